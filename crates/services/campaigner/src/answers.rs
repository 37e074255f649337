//! Asking for what rules and texts look up, for many events at once and not for long.

use hashbrown::{HashMap, HashSet};
use raingauge_campaigns::engine::{Engine, LookupKey, Pending};
use raingauge_ports::campaigns::{LookupError, Lookups};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::Offset;
use serde_json::Value as Json;
use std::time::Duration;
use tokio::runtime::Handle;

/// Whom to ask, and how.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    pub lookups: &'a dyn Lookups,
    pub clock: &'a dyn Clock,
    pub runtime: &'a Handle,
    pub patience_ms: i64,
}

/// What was answered while a commit is made. Nothing is asked twice.
pub struct Answers<'a> {
    asking: Asking<'a>,
    /// Counters include the log up to here.
    after: Offset,
    deadline_ms: i64,
    /// `None` for a lookup that failed.
    known: HashMap<LookupKey, Option<Json>>,
    /// Lookups that did not answer in time.
    late: HashSet<LookupKey>,
}

impl<'a> Answers<'a> {
    pub fn new(asking: Asking<'a>, after: Offset) -> Self {
        let deadline_ms = asking.clock.elapsed_ms() + asking.patience_ms;
        Self { asking, after, deadline_ms, known: HashMap::new(), late: HashSet::new() }
    }

    /// Waits again for as long as the patience says.
    pub fn renew_patience(&mut self) {
        self.deadline_ms = self.asking.clock.elapsed_ms() + self.asking.patience_ms;
    }

    pub fn of(&self, key: &LookupKey) -> Option<Json> {
        self.known.get(key).cloned().flatten()
    }

    /// Asks for everything that is not known yet.
    pub fn ask(&mut self, keys: impl IntoIterator<Item = LookupKey>) {
        let mut wanted = HashSet::new();
        let is_new = |key: &LookupKey| !self.known.contains_key(key) && !self.late.contains(key);
        let keys: Vec<LookupKey> =
            keys.into_iter().filter(is_new).filter(|key| wanted.insert(key.clone())).collect();
        if keys.is_empty() {
            return;
        }

        let Asking { lookups, clock, runtime, .. } = self.asking;
        let left_ms = self.deadline_ms - clock.elapsed_ms();
        let Ok(left_ms @ 1..) = u64::try_from(left_ms) else {
            self.late.extend(keys);
            return;
        };
        let patience = Duration::from_millis(left_ms);
        let answers = runtime.block_on(lookups.answers(&keys, self.after, patience));
        for (key, answer) in keys.into_iter().zip(answers) {
            match answer {
                Ok(answer) => {
                    self.known.insert(key, Some(answer));
                }
                Err(LookupError::Failed(why)) => {
                    tracing::debug!(lookup = %key.name, %why, "a lookup failed");
                    self.known.insert(key, None);
                }
                Err(LookupError::Late) => {
                    self.late.insert(key);
                }
            }
        }
    }

    /// Answers what many evaluations want, round by round, each round in one call.
    pub fn settle_all(&mut self, engine: &Engine, pending: &mut [Pending<'_>]) {
        loop {
            let wanted: Vec<LookupKey> =
                pending.iter_mut().flat_map(|one| self.feed(engine, one)).collect();
            let before = self.known.len();
            self.ask(wanted);
            if self.known.len() == before {
                return;
            }
        }
    }

    /// Answers what one evaluation wants.
    pub fn settle(&mut self, engine: &Engine, pending: &mut Pending<'_>) {
        self.settle_all(engine, std::slice::from_mut(pending));
    }

    /// Feeds what is known, and returns what is wanted besides.
    fn feed(&self, engine: &Engine, pending: &mut Pending<'_>) -> Vec<LookupKey> {
        loop {
            let (known, unknown): (Vec<_>, Vec<_>) =
                engine.wants(pending).into_iter().partition(|key| self.known.contains_key(key));
            if known.is_empty() {
                return unknown;
            }
            for key in known {
                let answer = self.known[&key].clone();
                engine.feed(pending, key, answer);
            }
        }
    }

    /// Takes every lookup that an evaluation still wants for failed.
    pub fn settle_finally(&self, engine: &Engine, pending: &mut Pending<'_>) {
        loop {
            let wanted = engine.wants(pending);
            if wanted.is_empty() {
                return;
            }
            for key in wanted {
                let answer = self.of(&key);
                engine.feed(pending, key, answer);
            }
        }
    }
}

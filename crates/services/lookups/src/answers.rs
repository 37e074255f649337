//! The service: groups keys by where they are answered, and answers them together.

use crate::cache::Cache;
use crate::caller::{Caller, Outcome};
use crate::counts::{CounterRange, Counts};
use crate::engines::Engines;
use futures_util::future::join_all;
use metrics::counter;
use parking_lot::Mutex;
use raingauge_campaigns::documents::{Lookup, LookupSource};
use raingauge_campaigns::engine::{LookupClass, LookupKey};
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::sender::Sender;
use raingauge_ports::campaigns::{DatabaseLookup, LookupError, Lookups, Tables};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::Offset;
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// Most calls of one lookup that wait or are under way.
const CALLS_MAX: usize = 10_000;

/// The newest version of the lookup of a name.
pub type Definitions = Arc<dyn Fn(&str) -> Option<Lookup> + Send + Sync>;

/// What the service works with.
pub struct Deps {
    pub definitions: Definitions,
    pub tables: Arc<dyn Tables>,
    pub counts: Arc<dyn Counts>,
    pub sender: Arc<dyn Sender>,
    pub databases: Arc<dyn DatabaseLookup>,
    pub clock: Arc<dyn Clock>,
}

#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of answers that are kept, of all lookups together.
    pub cache_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { cache_bytes: 64 << 20 }
    }
}

/// Answers lookups.
pub struct Answers {
    definitions: Definitions,
    tables: Arc<dyn Tables>,
    counts: Arc<dyn Counts>,
    calls: Arc<Calls>,
    callers: Mutex<HashMap<String, Arc<Caller>>>,
}

/// Calls to services and databases, and their answers.
struct Calls {
    engines: Engines,
    clock: Arc<dyn Clock>,
    cache: Mutex<Cache>,
    /// Calls under way, by the number of their caller and by key.
    under_way: Mutex<HashMap<u64, HashMap<String, Ending>>>,
}

/// The outcome of a call, once it has ended.
type Ending = watch::Receiver<Option<Outcome>>;

impl Answers {
    pub fn new(deps: Deps, options: &Options) -> Self {
        let Deps { definitions, tables, counts, sender, databases, clock } = deps;
        let calls = Calls {
            engines: Engines { sender, databases },
            clock,
            cache: Mutex::new(Cache::new(options.cache_bytes)),
            under_way: Mutex::default(),
        };
        Self { definitions, tables, counts, calls: Arc::new(calls), callers: Mutex::default() }
    }

    async fn answer_all(
        &self,
        keys: &[LookupKey],
        after: Offset,
        deadline: Instant,
    ) -> Vec<Outcome> {
        // Each key once, with the places that want its answer.
        let mut places: BTreeMap<&LookupKey, Vec<usize>> = BTreeMap::new();
        for (place, key) in keys.iter().enumerate() {
            places.entry(key).or_default().push(place);
        }

        let mut groups: BTreeMap<(LookupClass, &str), Vec<&LookupKey>> = BTreeMap::new();
        for key in places.keys() {
            // Counters are read together, whatever their templates.
            let name = if key.class == LookupClass::Counter { "" } else { key.name.as_str() };
            groups.entry((key.class, name)).or_default().push(key);
        }
        let answering = groups.iter().map(|((class, name), keys)| async move {
            let outcomes = self.answer_group(*class, name, keys, after, deadline).await;
            note(*class, &outcomes);
            outcomes
        });
        let answered = join_all(answering).await;

        for (key, places) in &places {
            note_saved(key.class, places.len() as u64 - 1);
        }
        let mut outcomes = vec![Err(LookupError::Late); keys.len()];
        for (keys, answers) in groups.values().zip(answered) {
            for (key, answer) in keys.iter().zip(answers) {
                for place in &places[key] {
                    outcomes[*place] = answer.clone();
                }
            }
        }
        outcomes
    }

    async fn answer_group(
        &self,
        class: LookupClass,
        name: &str,
        keys: &[&LookupKey],
        after: Offset,
        deadline: Instant,
    ) -> Vec<Outcome> {
        let late = || vec![Err(LookupError::Late); keys.len()];
        match class {
            LookupClass::Segment | LookupClass::Table => {
                let rows = timeout_at(deadline, self.rows(class, name, keys)).await;
                rows.unwrap_or_else(|_| late())
            }
            LookupClass::Counter => {
                let counts = timeout_at(deadline, self.counts(keys, after)).await;
                counts.unwrap_or_else(|_| late())
            }
            LookupClass::Http | LookupClass::Database => {
                let caller = match self.caller(class, name) {
                    Ok(caller) => caller,
                    Err(error) => return vec![Err(error); keys.len()],
                };
                let asked = keys.iter().map(|key| self.ask(&caller, key, deadline));
                join_all(asked).await
            }
        }
    }

    async fn rows(&self, class: LookupClass, name: &str, keys: &[&LookupKey]) -> Vec<Outcome> {
        let wanted: Vec<String> = keys.iter().map(|key| key.key.clone()).collect();
        match self.tables.get(name, &wanted).await {
            Ok(rows) if class == LookupClass::Segment => {
                rows.into_iter().map(|row| Ok(Json::Bool(row.is_some()))).collect()
            }
            Ok(rows) => {
                rows.into_iter().map(|row| Ok(row.map_or(Json::Null, Json::Object))).collect()
            }
            Err(error) => vec![Err(LookupError::Failed(error.to_string())); keys.len()],
        }
    }

    async fn counts(&self, keys: &[&LookupKey], after: Offset) -> Vec<Outcome> {
        let range = |key: &&LookupKey| CounterRange {
            key: key.key.clone(),
            range_s: key.range_s.unwrap_or_default(),
        };
        let ranges: Vec<CounterRange> = keys.iter().map(range).collect();
        let counts = self.counts.counts(&ranges, after).await;
        counts.into_iter().map(|count| count.map(Json::from).map_err(LookupError::Failed)).collect()
    }

    /// The caller of a lookup at its newest version.
    fn caller(&self, class: LookupClass, name: &str) -> Result<Arc<Caller>, LookupError> {
        let found = (self.definitions)(name).filter(|lookup| match lookup.class {
            LookupSource::Http => class == LookupClass::Http,
            LookupSource::Db => class == LookupClass::Database,
        });
        let unknown = || LookupError::Failed(format!("there is no lookup `{name}`"));
        let lookup = found.ok_or_else(unknown)?;

        let mut callers = self.callers.lock();
        if let Some(known) = callers.get(name).filter(|known| known.lookup == lookup) {
            return Ok(Arc::clone(known));
        }
        let number = callers.values().map(|caller| caller.number + 1).max().unwrap_or_default();
        let caller = Arc::new(Caller::new(name, number, lookup));
        callers.insert(name.to_owned(), Arc::clone(&caller));
        Ok(caller)
    }

    /// The answer to a key: a cached one, or that of a call.
    async fn ask(&self, caller: &Arc<Caller>, key: &LookupKey, deadline: Instant) -> Outcome {
        let cached = (caller.number, key.key.clone());
        if let Some(answer) = self.calls.cache.lock().get(&cached, Instant::now()) {
            note_saved(key.class, 1);
            return Ok(answer);
        }

        let (mut outcome, is_new) = match self.calls.begin(caller, &key.key) {
            Ok(begun) => begun,
            Err(error) => return Err(error),
        };
        if !is_new {
            note_saved(key.class, 1);
        }
        match timeout_at(deadline, outcome.wait_for(Option::is_some)).await {
            Err(_) => Err(LookupError::Late),
            Ok(Ok(found)) => found.clone().unwrap_or(Err(LookupError::Late)),
            // The call has panicked, or the process is ending.
            Ok(Err(_)) => Err(LookupError::Failed("the call was given up".to_owned())),
        }
    }
}

impl Calls {
    /// Joins the call for a key that is under way, or begins one. Returns whether it is new.
    fn begin(
        self: &Arc<Self>,
        caller: &Arc<Caller>,
        key: &str,
    ) -> Result<(Ending, bool), LookupError> {
        let mut under_way = self.under_way.lock();
        let own = under_way.entry(caller.number).or_default();
        if let Some(known) = own.get(key) {
            return Ok((known.clone(), false));
        }
        if own.len() >= CALLS_MAX {
            caller.note_refused("waiting");
            let why = format!("{CALLS_MAX} calls of it are waiting, which is the most");
            return Err(LookupError::Failed(why));
        }

        let (sender, outcome) = watch::channel(None);
        own.insert(key.to_owned(), outcome.clone());
        drop(under_way);

        let calls = Arc::clone(self);
        let caller = Arc::clone(caller);
        let key = key.to_owned();
        tokio::spawn(async move {
            let ended = UnderWay { calls: &calls, caller: caller.number, key: &key };
            let outcome = caller.call(&key, &calls.engines, &*calls.clock).await;
            if let Ok(answer) = &outcome
                && !caller.ttl().is_zero()
            {
                let until = Instant::now() + caller.ttl();
                let len = answer.to_string().len();
                let place = (caller.number, key.clone());
                calls.cache.lock().put(place, answer.clone(), len, until);
            }
            drop(ended);
            // Nobody may be waiting any more.
            let _ = sender.send(Some(outcome));
        });
        Ok((outcome, true))
    }
}

/// A call under way, which ends when this is dropped, even by a panic.
struct UnderWay<'c> {
    calls: &'c Calls,
    caller: u64,
    key: &'c str,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut under_way = self.calls.under_way.lock();
        if let Some(own) = under_way.get_mut(&self.caller) {
            own.remove(self.key);
            if own.is_empty() {
                under_way.remove(&self.caller);
            }
        }
    }
}

impl Lookups for Answers {
    fn answers<'a>(
        &'a self,
        keys: &'a [LookupKey],
        after: Offset,
        patience: Duration,
    ) -> BoxFuture<'a, Vec<Outcome>> {
        Box::pin(async move {
            let deadline = Instant::now() + patience;
            self.answer_all(keys, after, deadline).await
        })
    }
}

/// The name of a class in metrics, as left-hand sides begin.
const fn name_of(class: LookupClass) -> &'static str {
    match class {
        LookupClass::Segment => "segment",
        LookupClass::Table => "table",
        LookupClass::Database => "db",
        LookupClass::Http => "http",
        LookupClass::Counter => "counter",
    }
}

/// Counts look-ups that took no call, since their answer was there or on its way.
fn note_saved(class: LookupClass, len: u64) {
    if len > 0 {
        counter!("raingauge_campaign_lookups_saved_total", "class" => name_of(class))
            .increment(len);
    }
}

fn note(class: LookupClass, outcomes: &[Outcome]) {
    let name = |outcome: &Outcome| match outcome {
        Ok(_) => "answered",
        Err(LookupError::Late) => "late",
        Err(LookupError::Failed(_)) => "failed",
    };
    for outcome in ["answered", "late", "failed"] {
        let len = outcomes.iter().filter(|found| name(found) == outcome).count() as u64;
        if len > 0 {
            counter!("raingauge_campaign_lookups_total", "class" => name_of(class), "outcome" => outcome)
                .increment(len);
        }
    }
}

//! How clients use the door: frequent keys, sizes of values, and commands that are sent one by one.
//!
//! ```text
//!   connection: Observer ── one command in 64 ──▶ Observed: sketch of keys, sizes of values
//!                        └─ a burst that ended ─▶           doctor
//! ```
//!
//! An observer counts down without a lock, so that a command that is not looked at costs nothing.
//! The gaps are random, since clients repeat themselves: every 64th command could always be the
//! same one.

use parking_lot::Mutex;
use raingauge_resp::{Command, Drain};
use raingauge_values::doctor::{Burst, Case, Doctor, Exchange};
use raingauge_values::sizes::Sizes;
use raingauge_values::sketch::{Frequency, Sketch};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One command in this many is looked at, on average.
pub const SAMPLE_EVERY: u64 = 64;
/// Keys whose commands are counted.
const KEYS_MAX: usize = 256;
/// After this time the counts of keys are halved: a key that nobody asks for any more leaves.
const HALF_LIFE: Duration = Duration::from_secs(60);

/// What was observed on all connections.
pub struct Observed {
    /// The clock of bursts begins here.
    began: Instant,
    hot: Mutex<Hot>,
    sizes: Mutex<Sizes>,
    doctor: Mutex<Doctor>,
}

struct Hot {
    /// Names are a database and a key: one byte, then the rest.
    sketch: Sketch,
    halved: Instant,
}

/// A key that is asked for often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotKey {
    pub database: u8,
    pub name: Vec<u8>,
    /// Commands of the last minutes, estimated from the sample; those of a minute ago count half.
    pub commands: u64,
    /// By how many that may be too high, beside the chance of the sample.
    pub error: u64,
}

/// What one connection observes.
pub struct Observer {
    observed: Arc<Observed>,
    /// Commands until the next that is looked at.
    left: u64,
    /// The state of the generator of gaps, never 0.
    seed: u64,
    burst: Burst,
    /// The name of the client, when the burst began to be one.
    client: String,
    /// Whether the length of the next replies is that of a value.
    measures_reply: bool,
    /// A database and a key, to look up.
    name: Vec<u8>,
}

impl Default for Observed {
    fn default() -> Self {
        Self::new()
    }
}

impl Observed {
    pub fn new() -> Self {
        let began = Instant::now();
        Self {
            began,
            hot: Mutex::new(Hot { sketch: Sketch::new(KEYS_MAX), halved: began }),
            sizes: Mutex::default(),
            doctor: Mutex::default(),
        }
    }

    /// What observes one connection.
    pub fn observer(self: &Arc<Self>) -> Observer {
        Observer {
            observed: Arc::clone(self),
            left: 0,
            seed: RandomState::new().build_hasher().finish() | 1,
            burst: Burst::default(),
            client: String::new(),
            measures_reply: false,
            name: Vec::new(),
        }
    }

    /// The keys that commands name most often, the most frequent first.
    pub fn hot(&self, len_max: usize) -> Vec<HotKey> {
        let key = |Frequency { name, count, error }| HotKey {
            database: name.first().copied().unwrap_or_default(),
            name: name.get(1..).unwrap_or_default().to_vec(),
            commands: count * SAMPLE_EVERY,
            error: error * SAMPLE_EVERY,
        };
        self.hot.lock().sketch.top(len_max).into_iter().map(key).collect()
    }

    /// How large the values of the sample are.
    pub fn sizes(&self) -> Sizes {
        self.sizes.lock().clone()
    }

    /// Who sends commands one by one, the largest gain of a pipeline first.
    pub fn cases(&self) -> Vec<Case> {
        self.doctor.lock().cases()
    }

    pub fn reset_hot(&self) {
        self.hot.lock().sketch.clear();
    }

    pub fn reset_sizes(&self) {
        *self.sizes.lock() = Sizes::default();
    }

    pub fn reset_doctor(&self) {
        self.doctor.lock().clear();
    }

    fn us(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.began).as_micros() as u64
    }

    fn note_key(&self, name: &[u8]) {
        let mut hot = self.hot.lock();
        hot.sketch.note(name);
        if hot.halved.elapsed() >= HALF_LIFE {
            hot.sketch.halve();
            hot.halved = Instant::now();
        }
    }
}

impl Observer {
    /// Looks at one command in 64 of a drain, before it runs in this database.
    pub fn drain(&mut self, drain: &Drain, database: u8) {
        let len = drain.len() as u64;
        self.measures_reply = false;
        if self.left >= len {
            self.left -= len;
            return;
        }

        let mut index = self.left;
        while index < len {
            self.look_at(drain.get(index as usize), database);
            self.measures_reply &= len == 1;
            index += self.gap();
        }
        self.left = index - len;
    }

    /// Commands from one that is looked at to the next: [`SAMPLE_EVERY`] on average.
    fn gap(&mut self) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        1 + (self.seed >> 32) % (2 * SAMPLE_EVERY - 1)
    }

    fn look_at(&mut self, command: Command<'_>, database: u8) {
        let Some(spec) = command.spec().filter(|spec| spec.accepts(command.arguments.len())) else {
            return;
        };
        let mut first_key = None;
        let mut last_key = 0;
        spec.key_positions(command.arguments, |index, _| {
            first_key.get_or_insert(index);
            last_key = index;
        });
        let Some(key) = first_key.and_then(|index| command.arguments.get(index)) else { return };

        self.name.clear();
        self.name.push(database);
        self.name.extend_from_slice(key);
        self.observed.note_key(&self.name);

        self.measures_reply = spec.is_readonly();
        if spec.is_write() {
            let values = command.arguments.from(last_key + 1);
            let longest = values.iter().map(<[u8]>::len).max();
            if let Some(bytes) = longest {
                self.observed.sizes.lock().note(bytes as u64);
            }
        }
    }

    /// Notes that the replies of a drain were sent. `client` is the name that the client gave
    /// itself.
    pub fn replied(
        &mut self,
        drain: &Drain,
        began: Instant,
        ended: Instant,
        reply_bytes: usize,
        client: &str,
    ) {
        if let Some(bytes) = value_len(reply_bytes).filter(|_| self.measures_reply) {
            self.observed.sizes.lock().note(bytes);
        }
        if drain.is_empty() {
            return;
        }

        let exchange = Exchange {
            commands: drain.len(),
            command: drain.get(0).spec().map_or("unknown", |spec| spec.name),
            arrived_us: self.observed.us(began),
            replied_us: self.observed.us(ended),
        };
        let found = self.burst.note(exchange);
        if let Some(found) = found {
            self.observed.doctor.lock().note(&self.client, found);
        }
        if self.client != client {
            self.client = client.to_owned();
        }
    }
}

/// The length of the value in a reply of this length, with its frame; `None` for a reply that is no
/// longer than the one that says that there is no value.
fn value_len(reply_bytes: usize) -> Option<u64> {
    const NULL: usize = "$-1\r\n".len();
    const FRAME: usize = "$\r\n\r\n".len();
    let rest = reply_bytes.checked_sub(FRAME).filter(|_| reply_bytes > NULL)?;
    let digits = rest.checked_ilog10().map_or(1, |digits| digits as usize + 1);
    Some(rest.saturating_sub(digits) as u64)
}

impl Drop for Observer {
    fn drop(&mut self) {
        if let Some(found) = self.burst.end() {
            self.observed.doctor.lock().note(&self.client, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(key: &str) -> Drain {
        Drain::of(&[&[b"GET", key.as_bytes()]])
    }

    #[test]
    fn about_one_command_in_sixty_four_is_looked_at() {
        let observed = Arc::new(Observed::new());
        let mut observer = observed.observer();
        (0..64_000).for_each(|_| observer.drain(&get("a"), 3));
        let hot = observed.hot(9);
        assert_eq!(hot.len(), 1);
        assert_eq!((hot[0].database, &*hot[0].name, hot[0].error), (3, &b"a"[..], 0));
        assert!((54_400..73_600).contains(&hot[0].commands), "{}", hot[0].commands);

        let commands: Vec<&[&[u8]]> = vec![&[b"GET", b"b"]; 64_000];
        observer.drain(&Drain::of(&commands), 0);
        let hot = observed.hot(9);
        assert_eq!(hot.len(), 2);
        assert!(hot.iter().all(|key| (54_400..73_600).contains(&key.commands)), "{hot:?}");
        observed.reset_hot();
        assert_eq!(observed.hot(9), []);
    }

    /// Two commands in turn, of which every 64th would always be the same.
    #[test]
    fn what_repeats_itself_is_seen_as_a_whole() {
        let observed = Arc::new(Observed::new());
        let mut observer = observed.observer();
        let both: [&[&[u8]]; 2] = [&[b"GET", b"a"], &[b"GET", b"b"]];
        let pair = Drain::of(&both);
        (0..32_000).for_each(|_| observer.drain(&pair, 0));
        assert_eq!(observed.hot(9).len(), 2);
    }

    #[test]
    fn values_are_measured_as_they_are_written_and_read() {
        let observed = Arc::new(Observed::new());
        let mut observer = observed.observer();
        let value = vec![b'x'; 1_000];
        let set = Drain::of(&[&[b"SET", b"a", &value]]);
        let now = Instant::now();
        observer.drain(&set, 0);
        observer.replied(&set, now, now, 5, "");
        assert_eq!((observed.sizes().values(), observed.sizes().bytes()), (1, 1_000));

        for reply_bytes in ["$-1\r\n".len(), "$4000\r\n\r\n".len() + 4_000] {
            for _ in 0..2 * SAMPLE_EVERY {
                observer.drain(&get("a"), 0);
                observer.replied(&get("a"), now, now, reply_bytes, "");
            }
        }
        let sizes = observed.sizes();
        assert_eq!(sizes.bytes(), 1_000 + (sizes.values() - 1) * 4_000);
        assert!(sizes.values() > 1);
    }

    #[test]
    fn commands_one_by_one_are_a_case_under_the_name_of_the_client() {
        let observed = Arc::new(Observed::new());
        let mut observer = observed.observer();
        let start = Instant::now();
        for index in 0..30 {
            let began = start + Duration::from_micros(300 * index);
            observer.replied(&get("a"), began, began + Duration::from_micros(5), 5, "worker-7");
        }
        drop(observer);

        let cases = observed.cases();
        assert_eq!(
            (&*cases[0].client, cases[0].command, cases[0].commands),
            ("worker-7", "get", 30)
        );
        assert_eq!((cases[0].elapsed_us, cases[0].server_us), (29 * 300 + 5, 150));
    }
}

//! The largest keys of a counter, shared: finding them reads every tile of the counter, and clients
//! ask again and again.

use crate::App;
use crate::csv::cell;
use crate::problem::Problem;
use axum::http::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use raingauge_core::bucket::Granularity;
use raingauge_core::code::{Code, Refusal};
use raingauge_ports::buckets::Generation;
use raingauge_ports::log::{Offset, Partition};
use raingauge_reader::{Key, LargestKeys};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// Largest keys that are listed.
pub const KEYS_MAX: usize = 1_000;
/// Counters and ranges whose keys are remembered.
const REMEMBERED_MAX: usize = 64;
/// Keys that took longer than this to find are not looked for again at once when more has been
/// counted.
const DEAR_MS: i64 = 250;
/// How long such keys are answered although more has been counted.
const STALE_MS: i64 = 10_000;
/// How long a page waits for keys that are found for the first time. The search continues
/// afterwards, and the next request finds its result.
const PAGE_WAIT: Duration = Duration::from_millis(1_500);

/// A counter, the UTC days that are looked at, and the newest generation that answers: what was
/// found before counts were erased or made again says nothing of those that answer now.
type Question = (u32, i64, i64, Option<Generation>);
type Positions = Vec<(Partition, Offset)>;

/// What was found, newest first.
#[derive(Default)]
pub struct Memory(Mutex<Vec<Search>>);

#[derive(Clone)]
struct Search {
    which: Question,
    began_ms: i64,
    /// How far events were counted before the search began.
    applied: Positions,
    found: Arc<OnceCell<Answer>>,
}

#[derive(Clone)]
struct Answer {
    keys: Arc<LargestKeys>,
    took_ms: i64,
}

impl Memory {
    /// The search that answers a request: one that runs, one whose result still holds, or a new
    /// one.
    fn search(&self, which: Question, applied: Positions, now_ms: i64) -> Arc<OnceCell<Answer>> {
        let mut known = self.0.lock();
        let holds = |known: &Search| match known.found.get() {
            None => Arc::strong_count(&known.found) > 1,
            Some(_) if known.applied == applied => true,
            Some(found) => found.took_ms > DEAR_MS && now_ms - known.began_ms < STALE_MS,
        };

        if let Some(known) = known.iter().find(|known| known.which == which && holds(known)) {
            return Arc::clone(&known.found);
        }
        known.retain(|known| known.which != which);
        known.truncate(REMEMBERED_MAX - 1);

        let found = Arc::<OnceCell<Answer>>::default();
        known.insert(0, Search { which, began_ms: now_ms, applied, found: Arc::clone(&found) });
        found
    }

    /// What the last search found, and when it began.
    fn last(&self, which: &Question) -> Option<(i64, Arc<LargestKeys>)> {
        let known = self.0.lock();
        let last = known.iter().find(|known| known.which == *which)?;
        Some((last.began_ms, Arc::clone(&last.found.get()?.keys)))
    }
}

fn which(app: &App, counter: u32, from_s: i64, to_s: i64) -> Question {
    let view = app.counted.published.view();
    let generation = view.ruleset.index_of(counter).map(|index| view.timelines[index].newest());
    (counter, Granularity::Day.floor(from_s), Granularity::Day.ceil(to_s), generation)
}

/// The largest keys over the UTC days that touch a range, at most [`KEYS_MAX`].
pub async fn keys(
    app: &App,
    caller: &str,
    counter: u32,
    from_s: i64,
    to_s: i64,
) -> Result<Arc<LargestKeys>, Problem> {
    let counted = &app.counted;
    let applied = counted
        .logs
        .iter()
        .map(|log| (log.partition(), counted.published.applied(log.partition())));
    let clock = &app.clock;
    let which = which(app, counter, from_s, to_s);
    let search = app.largest.search(which, applied.collect(), clock.machine_ms());
    let find = || async {
        let turn = counted.scans.turn(caller).await?;
        let reader = Arc::clone(&app.reader);
        let began_ms = clock.machine_ms();

        // A search cannot be stopped: its turn lasts until its end, also when the caller leaves.
        let searching = tokio::spawn(async move {
            let _turn = turn;
            reader.largest_keys(counter, from_s, to_s, KEYS_MAX).await
        });
        let failed = |_| Refusal::new(Code::Unavailable, "the search for keys broke off");
        let keys = searching.await.map_err(failed)??;

        Ok::<_, Problem>(Answer { keys: Arc::new(keys), took_ms: clock.machine_ms() - began_ms })
    };

    Ok(Arc::clone(&search.get_or_try_init(find).await?.keys))
}

/// The keys as a CSV file.
pub fn to_csv(keys: &[Key]) -> String {
    let mut file = "key,count\r\n".to_owned();
    for Key { key, count } in keys {
        // Writing to a `String` cannot fail.
        let _ = write!(file, "{},{count}\r\n", cell(key));
    }
    file
}

/// The header of such a file that says whether every key was looked at.
pub const COMPLETE: HeaderName = HeaderName::from_static("x-complete");

/// The value of [`COMPLETE`].
pub const fn complete(is_complete: bool) -> HeaderValue {
    HeaderValue::from_static(if is_complete { "true" } else { "false" })
}

/// The keys as a page shows them: those of the last search, while a new one for stale keys runs.
/// `None` while the first search takes long.
pub async fn keys_of_page(
    app: &Arc<App>,
    caller: &'static str,
    counter: u32,
    from_s: i64,
    to_s: i64,
) -> Option<Result<Arc<LargestKeys>, Problem>> {
    let last = app.largest.last(&which(app, counter, from_s, to_s));
    if let Some((began_ms, keys)) = &last
        && app.clock.machine_ms() - began_ms < STALE_MS
    {
        return Some(Ok(Arc::clone(keys)));
    }

    let app = Arc::clone(app);
    let search = tokio::spawn(async move { keys(&app, caller, counter, from_s, to_s).await });
    match last {
        Some((_, keys)) => Some(Ok(keys)),
        None => tokio::time::timeout(PAGE_WAIT, search).await.ok()?.ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHICH: Question = (1, 0, 86_400, Some(4_096));

    fn found(took_ms: i64) -> Answer {
        Answer { keys: Arc::default(), took_ms }
    }

    #[test]
    fn a_search_is_shared_while_it_runs_and_while_nothing_was_counted_since() {
        let memory = Memory::default();
        let first = memory.search(WHICH, vec![(0, 7)], 0);
        assert!(Arc::ptr_eq(&first, &memory.search(WHICH, vec![(0, 8)], 1)), "it runs");
        assert_eq!(memory.last(&WHICH), None);
        let _ = first.set(found(1));
        assert_eq!(memory.last(&WHICH), Some((0, Arc::default())));
        assert!(Arc::ptr_eq(&first, &memory.search(WHICH, vec![(0, 7)], 1_000_000)));
        assert!(!Arc::ptr_eq(&first, &memory.search((2, 0, 86_400, Some(8_192)), vec![(0, 7)], 1)));
        assert!(
            !Arc::ptr_eq(&first, &memory.search(WHICH, vec![(0, 8)], 2)),
            "cheap ones are done again"
        );
    }

    #[test]
    fn a_dear_search_is_shared_for_some_seconds() {
        let memory = Memory::default();
        let first = memory.search(WHICH, vec![(0, 7)], 0);
        let _ = first.set(found(DEAR_MS + 1));
        assert!(Arc::ptr_eq(&first, &memory.search(WHICH, vec![(0, 8)], STALE_MS - 1)));
        let erased = (WHICH.0, WHICH.1, WHICH.2, Some(4_097));
        assert!(
            !Arc::ptr_eq(&first, &memory.search(erased, vec![(0, 8)], 1)),
            "other counts answer by now"
        );
        assert!(!Arc::ptr_eq(&first, &memory.search(WHICH, vec![(0, 8)], STALE_MS)));
    }

    #[test]
    fn keys_are_rows_of_a_file() {
        let key = |key: &str, count| Key { key: key.to_owned(), count };
        let file = to_csv(&[key("rain:a, b", 741), key("=1+1", -2)]);
        assert_eq!(file, "key,count\r\n\"rain:a, b\",741\r\n\"'=1+1\",-2\r\n");
    }

    #[test]
    fn a_search_whose_callers_left_is_begun_again() {
        let memory = Memory::default();
        let first = memory.search(WHICH, vec![(0, 7)], 0);
        let weak = Arc::downgrade(&first);
        drop(first);
        let _next = memory.search(WHICH, vec![(0, 7)], 1);
        assert!(weak.upgrade().is_none());
    }
}

mod failures;
mod simulator;

use super::*;
use raingauge_memory as memory;
use raingauge_ports::clock::ManualClock;
use raingauge_ports::contract::log::{self as contract, batch, texts};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const DAY_S: i64 = 86_400;

/// How long a lock may seem to be held: other tests start processes, each of which has all open
/// files of this one until it executes its own program.
const LOCK_WAIT: Duration = Duration::from_secs(1);

fn open_with(folder: &Path, options: Options, now_s: i64) -> Result<SegmentLog, Error> {
    let began = Instant::now();
    loop {
        match SegmentLog::open(folder, options.clone(), Arc::new(ManualClock::at_s(now_s))) {
            Err(Error::Io(error))
                if error.kind() == io::ErrorKind::WouldBlock && began.elapsed() < LOCK_WAIT =>
            {
                std::thread::yield_now();
            }
            opened => return opened,
        }
    }
}

fn open(folder: &Path) -> Result<SegmentLog, Error> {
    open_with(folder, Options::default(), 1_000)
}

async fn append(log: &SegmentLog, ids: &[&str]) -> Appended {
    log.append(batch(ids)).await.unwrap()
}

fn segment_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    files.sort();
    files
}

async fn keeps_the_contract(log: &(impl EventLog + EventSink)) {
    contract::keeps_what_it_accepts(log, log).await;
    contract::is_in_order(log, log).await;
    contract::goes_forward(log);
    contract::passes_over_events_alone(log, log).await;
    contract::wakes_those_who_wait(log, log).await;
    contract::keeps_what_is_needed(log);
}

#[tokio::test]
async fn both_logs_keep_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let small = Options { segment_bytes: 200, ..Options::default() };
    let on_disk = open_with(folder.path(), small, 1_000).unwrap();
    keeps_the_contract(&memory::Log::default()).await;
    keeps_the_contract(&on_disk).await;
    assert!(segment_files(folder.path()).len() > 3, "this test goes over several segments");
}

#[tokio::test]
async fn a_log_that_was_closed_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    append(&open(folder.path()).unwrap(), &["a", "b"]).await;
    let log = open(folder.path()).unwrap();
    assert_eq!(texts(&log, 0), ["a", "b"]);
    let appended = append(&log, &["b", "c"]).await;
    assert_eq!((appended.accepted, appended.duplicates), (1, 1));
    // What an earlier process wrote may hold control entries.
    assert_eq!([0, 2].map(|from| log.events_until(from)), [0, 3]);
    assert_eq!(texts(&log, 0), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_tail_that_was_never_acknowledged_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    append(&open(folder.path()).unwrap(), &["a", "b"]).await;
    let path = segment_files(folder.path()).remove(0);
    let sound = std::fs::read(&path).unwrap();
    for torn in [&b"RGB1"[..], b"RGB1\0\0\0\0\x40\0\0\0\x01\0\0\0\x02", b"noise", &[0; 100]] {
        std::fs::write(&path, [&sound, torn].concat()).unwrap();
        let log = open(folder.path()).unwrap();
        assert_eq!(texts(&log, 0), ["a", "b"]);
        drop(log);
        assert_eq!(std::fs::read(&path).unwrap(), sound);
    }
}

/// Whichever byte of the log is changed, or wherever it is cut, the log is refused and never
/// misread.
#[tokio::test]
async fn damage_to_what_was_acknowledged_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    {
        let log = open(folder.path()).unwrap();
        for id in ["a", "b", "c"] {
            append(&log, &[id]).await;
        }
    }

    let path = segment_files(folder.path()).remove(0);
    let sound = std::fs::read(&path).unwrap();
    for at in 0..sound.len() {
        let mut damaged = sound.clone();
        damaged[at] ^= 0x10;
        std::fs::write(&path, &damaged).unwrap();

        let error = open(folder.path()).map(|_| ()).expect_err("damage is found");
        assert!(matches!(error, Error::Corrupt(_)), "byte {at}: {error}");
        std::fs::write(&path, &sound[..at]).unwrap();
        assert!(matches!(open(folder.path()), Err(Error::Corrupt(_))), "cut at {at}");
    }

    std::fs::write(&path, &sound).unwrap();
    assert_eq!(texts(&open(folder.path()).unwrap(), 0), ["a", "b", "c"]);
}

#[tokio::test]
async fn damage_in_an_older_segment_is_found_when_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let small = Options { segment_bytes: 1, ..Options::default() };
    {
        let log = open_with(folder.path(), small.clone(), 1_000).unwrap();
        for id in ["a", "b", "c"] {
            append(&log, &[id]).await;
        }
    }

    let files = segment_files(folder.path());
    let file = OpenOptions::new().write(true).open(&files[0]).unwrap();
    file.write_all_at(b"x", 60).unwrap();
    assert!(
        matches!(open_with(folder.path(), small.clone(), 1_000), Err(Error::Corrupt(_))),
        "identities are learned from it"
    );
    std::fs::remove_file(&files[1]).unwrap();
    assert!(open_with(folder.path(), small, 1_000).is_err());
}

/// Identities pass through sets, runs and restarts, and each is known exactly once.
#[tokio::test]
async fn duplicates_are_recognized_across_runs_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { dedupe_ids_max: 1_000, ..Options::default() };
    let ids: Vec<String> = (0..900).map(|number| format!("id-{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();

    for (round, expected_new) in [(0, true), (1, false), (2, false)] {
        let log = open_with(
            folder.path(),
            Options { dedupe_ids_max: 400 * 2, ..options.clone() },
            1_000 + round,
        )
        .unwrap();
        for chunk in ids[..700].chunks(70) {
            let appended = append(&log, chunk).await;
            assert_eq!(
                appended.accepted,
                if expected_new { chunk.len() } else { 0 },
                "round {round}"
            );
        }
    }

    let runs = std::fs::read_dir(folder.path()).unwrap().filter(|entry| {
        entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "run")
    });
    assert!(runs.count() > 0, "this test goes over a run");
}

#[tokio::test]
async fn the_oldest_identities_make_room_when_there_are_too_many() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { dedupe_ids_max: 100, ..Options::default() };
    let log = open_with(folder.path(), options, 1_000).unwrap();
    let ids: Vec<String> = (0..1_000).map(|number| format!("id-{number}")).collect();
    for chunk in ids.chunks(10) {
        append(&log, &chunk.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
    assert_eq!(append(&log, &["id-999", "id-0"]).await.duplicates, 1);
}

#[tokio::test]
async fn old_segments_are_trimmed_but_never_what_is_still_needed() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes: 1, dedupe_ids_max: 2, ..Options::default() };
    let clock = Arc::new(ManualClock::at_s(1_000));
    let log =
        SegmentLog::open(folder.path(), options, Arc::clone(&clock) as Arc<dyn Clock>).unwrap();

    for day in 0..12 {
        clock.set_s(1_000 + day * DAY_S);
        append(&log, &[&format!("day-{day}")]).await;
    }

    log.trim(Needs::of_counting(2)).unwrap();
    assert_eq!(log.start(), 2, "the writer has applied only this far");
    log.trim(Needs::of_counting(Offset::MAX)).unwrap();
    assert_eq!(log.start(), 3, "seven days are kept, and the segment that they begin in");
    contract::tells_what_was_trimmed(&log);
    drop(log);

    let by_size =
        Options { segment_bytes: 1, dedupe_ids_max: 2, retention_bytes: 300, ..Options::default() };
    let log = open_with(folder.path(), by_size, 1_000).unwrap();
    log.trim(Needs::of_counting(Offset::MAX)).unwrap();
    assert!(log.start() > 3 && log.end() == 12, "the size bounds it too");
}

/// The log is kept for a lagging consumer up to the bound in bytes: a consumer that is further
/// behind is overtaken, and finds out.
#[tokio::test]
async fn a_consumer_holds_the_log_up_to_the_bound() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        segment_bytes: 1,
        retention: Duration::from_hours(24),
        dedupe_window_ms: DAY_S * 1_000,
        ..Options::default()
    };

    let clock = Arc::new(ManualClock::at_s(1_000));
    let open = |options| {
        SegmentLog::open(folder.path(), options, Arc::clone(&clock) as Arc<dyn Clock>).unwrap()
    };
    let log = open(options.clone());

    for day in 0..12 {
        clock.set_s(1_000 + day * DAY_S);
        append(&log, &[&format!("day-{day}")]).await;
    }

    contract::keeps_what_is_needed(&log);
    log.trim(Needs { counting: 12, others: 4 }).unwrap();
    assert_eq!(log.start(), 4, "of twelve days one is kept, and what the consumer needs");
    assert_eq!(texts(&log, 4).len(), 8);
    assert_eq!(log.appended_ms(4), Some((1_000 + 4 * DAY_S) * 1_000));
    assert_eq!((log.appended_ms(3), log.appended_ms(12)), (None, None));
    log.trim(Needs { counting: 3, others: 6 }).unwrap();
    assert_eq!(log.start(), 4, "counting is behind the consumer");
    drop(log);

    let segment_bytes = segment_files(folder.path())[0].metadata().unwrap().len();
    let bound = 3 * segment_bytes + segment_bytes / 2;
    let log = open(Options { consumer_lag_bytes_max: bound, ..options });
    log.trim(Needs { counting: 4, others: 4 }).unwrap();
    assert_eq!(log.start(), 4, "counting is never overtaken");
    log.trim(Needs { counting: 12, others: 4 }).unwrap();
    assert_eq!(log.start(), 9, "the last three segments are within the bound");
    assert!(matches!(log.read(4, 1), Err(Error::Trimmed { asked: 4, start: 9 })));
    clock.set_s(1_000 + 12 * DAY_S);
    log.trim(Needs { counting: 12, others: 11 }).unwrap();
    assert_eq!(log.start(), 10, "the retention decides again");
}

/// A log of few events never fills a run of identities; entries older than their window are trimmed
/// all the same.
#[tokio::test]
async fn a_small_log_is_trimmed_too() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at_s(1_000));
    let options = Options { segment_bytes: 1, ..Options::default() };
    let log =
        SegmentLog::open(folder.path(), options, Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
    for day in 0..12 {
        clock.set_s(1_000 + day * DAY_S);
        append(&log, &[&format!("day-{day}")]).await;
    }
    log.trim(Needs::of_counting(Offset::MAX)).unwrap();
    assert_eq!(log.start(), 3);
}

#[tokio::test]
async fn a_full_queue_tells_the_caller_to_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let log =
        open_with(folder.path(), Options { queue_bytes_max: 10_000, ..Options::default() }, 1_000)
            .unwrap();
    let ids: Vec<String> = (0..100).map(|number| format!("{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let waiting: Vec<_> = (0..1_000).map(|_| log.append(batch(&ids))).collect();

    let mut busy = 0;
    for answer in waiting {
        match answer.await {
            Ok(_) => {}
            Err(Error::Busy { retry_after }) => {
                assert!(retry_after > Duration::ZERO);
                busy += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }

    assert!(busy > 0, "1,000 batches of 5 kB do not fit a queue of 10 kB at once");
    assert_eq!(log.end(), 100);
}

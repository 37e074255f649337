use super::*;
use metrics_exporter_prometheus::PrometheusBuilder;
use raingauge_memory::Ledger;
use raingauge_ports::campaigns::{Commit, Decision, Delivery, Settled, Settlement, StateKind};
use raingauge_ports::contract::campaigns as contract;
use std::path::Path;

/// 2024-09-24T00:00:00Z, when the contract begins.
const NOW_MS: i64 = 1_727_136_000_000;
const DAY_MS: i64 = 86_400_000;

/// A ledger and its history.
struct Stage {
    folder: tempfile::TempDir,
    ledger: Arc<Ledger>,
    history: History,
    sources: Sources,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Arc::new(Ledger::default());
        Self {
            history: History::new(folder.path().join("history"), true),
            sources: Sources { ledger: Arc::clone(&ledger) as _, outbox: Arc::clone(&ledger) as _ },
            ledger,
            folder,
        }
    }

    /// What the process that follows has.
    fn restart(&mut self) {
        self.history = History::new(self.path(), true);
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("history")
    }

    fn commit(&self, fill: impl FnOnce(&mut Commit)) {
        contract::commit_to(&*self.ledger, fill);
    }

    async fn write(&self, days: i64) -> Result<(), Error> {
        self.history.write(&self.sources, NOW_MS + days * DAY_MS).await
    }

    /// Lets the ledger forget all that it may. Returns how much it forgot.
    fn expire(&self) -> usize {
        let horizons = Horizons {
            decisions_before_ms: i64::MAX,
            actions_before_ms: i64::MIN,
            deliveries_before_ms: i64::MAX,
        };
        let retention = self.history.guard(Arc::clone(&self.ledger) as _);
        retention.expire(horizons, 1_000).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).into_iter().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn lines(&self) -> Vec<Value> {
        lines_of(&self.path())
    }

    /// The decisions that the ledger still has.
    async fn kept(&self) -> usize {
        let query = DecisionQuery { from_ms: i64::MIN, len_max: 100, ..Default::default() };
        self.ledger.decisions(query).await.unwrap().decisions.len()
    }
}

fn lines_of(folder: &Path) -> Vec<Value> {
    let mut lines = Vec::new();
    let each = |line: &Value| {
        lines.push(line.clone());
        Ok(())
    };
    read(folder, 0..4_000_000_000, each).unwrap();
    lines
}

fn events(lines: &[Value]) -> Vec<&str> {
    lines.iter().filter_map(|line| line["event"].as_str()).collect()
}

#[tokio::test]
async fn a_day_that_is_over_is_written_as_it_is_answered_and_then_forgotten() {
    let stage = Stage::new();
    let decided = [(1, 0), (2, DAY_MS - 1), (3, DAY_MS), (4, 3 * DAY_MS)];
    let decided = decided.map(|(number, after_ms)| contract::decision(number, after_ms));
    stage.commit(|commit| commit.decisions = decided.to_vec());
    assert_eq!(stage.expire(), 0, "nothing is written yet");

    stage.write(0).await.unwrap();
    assert!(stage.names().is_empty());
    stage.write(1).await.unwrap();
    assert_eq!(stage.names(), ["2024-09-24.ndjson.gz"]);
    assert_eq!(stage.lines(), [decisions::shown(&decided[1]), decisions::shown(&decided[0])]);
    assert_eq!(stage.expire(), 2);

    // Days without lines have no file, and the last day is not over yet.
    stage.history.write(&stage.sources, NOW_MS + 4 * DAY_MS - 1).await.unwrap();
    assert_eq!(stage.names(), ["2024-09-24.ndjson.gz", "2024-09-25.ndjson.gz"]);
    assert_eq!(stage.expire(), 1);
    assert_eq!(stage.kept().await, 1);
    assert_eq!(events(&stage.lines()), ["o-3", "o-2", "o-1"]);
}

#[test]
fn metrics_say_what_is_written_and_up_to_when() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let stage = Stage::new();
    let decided = [(1, 0), (2, DAY_MS)].map(|(number, ms)| contract::decision(number, ms));
    stage.commit(|commit| commit.decisions = decided.to_vec());
    metrics::with_local_recorder(&recorder, || runtime.block_on(stage.write(4)).unwrap());

    let names = stage.names();
    let files = names.iter().map(|name| std::fs::metadata(stage.path().join(name)).unwrap());
    let bytes: u64 = files.map(|file| file.len()).sum();
    let page = recorder.handle().render();
    for line in [
        "days_total 2".to_owned(),
        format!("bytes_total {bytes}"),
        format!("until_seconds {}", (NOW_MS + 4 * DAY_MS) / 1_000),
    ] {
        let line = format!("raingauge_campaign_history_{line}\n");
        assert!(page.contains(&line), "{line} is not in\n{page}");
    }
}

#[tokio::test]
async fn deliveries_stand_with_the_day_in_which_they_ended() {
    let stage = Stage::new();
    let destination = |number: u8| ["b", "a", "c", "a"][usize::from(number) % 4].to_owned();
    stage.commit(|commit| {
        let delivery = |number: u8| Delivery {
            destination: destination(number),
            ..contract::delivery(number, 0)
        };
        commit.deliveries = (1..=9).map(delivery).collect();
    });
    for destination in ["a", "b", "c"] {
        stage.ledger.take(destination, NOW_MS, 100).await.unwrap();
    }
    let ended = |number: u8| Settled {
        action: contract::action(number),
        at_ms: NOW_MS + i64::from(number % 3) * DAY_MS + i64::from(number),
        settlement: match number {
            1..=4 => Settlement::Refused,
            5..=8 => Settlement::Delivered,
            _ => Settlement::Dead,
        },
        note: format!("attempt {number}"),
    };
    stage.ledger.settle((1..=9).map(ended).collect()).await.unwrap();

    stage.write(9).await.unwrap();
    let mut found: Vec<(String, String)> = Vec::new();
    for (day, name) in stage.names().into_iter().enumerate() {
        let from_s = (NOW_MS + day as i64 * DAY_MS) / 1_000;
        let each = |line: &Value| {
            found.push((name.clone(), line["note"].as_str().unwrap().to_owned()));
            Ok(())
        };
        read(&stage.path(), from_s..from_s + 86_400, each).unwrap();
    }
    found.sort();
    let expected = [(24, 3), (24, 6), (25, 1), (25, 4), (25, 7), (26, 2), (26, 5), (26, 8)];
    let expected = expected
        .map(|(day, number)| (format!("2024-09-{day}.ndjson.gz"), format!("attempt {number}")));
    assert_eq!(found, expected);
    assert_eq!(stage.expire(), 8, "the dead one has not ended");
}

#[tokio::test]
async fn a_crash_between_the_file_and_the_ledger_neither_loses_nor_doubles_a_line() {
    let mut stage = Stage::new();
    stage.commit(|commit| {
        commit.decisions = vec![contract::decision(1, 0), contract::decision(2, DAY_MS)];
    });

    // The file is written, and nothing is forgotten.
    stage.write(1).await.unwrap();
    let written = stage.lines();
    stage.restart();
    assert_eq!(stage.expire(), 0, "not before the files were looked at");
    stage.write(1).await.unwrap();
    assert_eq!((stage.lines(), stage.expire()), (written, 1));

    // The second file is written in part.
    let path = stage.path().join("unfinished.tmp");
    std::fs::write(&path, b"what a crash left").unwrap();
    stage.restart();
    stage.write(2).await.unwrap();
    assert!(!path.exists());
    assert_eq!(events(&stage.lines()), ["o-2", "o-1"]);
    assert_eq!((stage.expire(), stage.kept().await), (1, 0));
}

#[tokio::test]
async fn nothing_is_forgotten_that_the_disk_did_not_take() {
    let stage = Stage::new();
    stage.commit(|commit| {
        commit.decisions = vec![contract::decision(1, 0), contract::decision(2, DAY_MS)];
    });
    // The folder cannot be made.
    std::fs::write(stage.path(), b"").unwrap();
    assert!(matches!(stage.write(1).await, Err(Error::Io(_))));
    assert_eq!((stage.expire(), stage.kept().await), (0, 2));

    // The second file cannot be written.
    std::fs::remove_file(stage.path()).unwrap();
    stage.write(1).await.unwrap();
    std::fs::create_dir(stage.path().join("unfinished.tmp")).unwrap();
    assert!(matches!(stage.write(2).await, Err(Error::Io(_))));
    assert_eq!((stage.expire(), stage.kept().await), (1, 1), "the first day alone");

    std::fs::remove_dir(stage.path().join("unfinished.tmp")).unwrap();
    stage.write(2).await.unwrap();
    assert_eq!((stage.expire(), stage.kept().await), (1, 0));
    assert_eq!(events(&stage.lines()), ["o-2", "o-1"]);
}

#[tokio::test]
async fn an_erased_subject_leaves_the_files() {
    let stage = Stage::new();
    let other = Decision { subject: "u-8".to_owned(), ..contract::decision(2, 1) };
    stage.commit(|commit| {
        commit.decisions = vec![contract::decision(1, 0), other, contract::decision(3, DAY_MS)];
    });
    stage.write(2).await.unwrap();

    stage.history.erase("u-7").await.unwrap();
    assert_eq!(events(&stage.lines()), ["o-2"]);
    // The second day is empty, and is not written again.
    assert_eq!(stage.names(), ["2024-09-24.ndjson.gz", "2024-09-25.ndjson.gz"]);
}

#[tokio::test]
async fn files_are_removed_when_they_are_old() {
    let stage = Stage::new();
    stage.history.remove_before(NOW_MS).await.unwrap();
    stage.commit(|commit| {
        let day = |number: u8| contract::decision(number, i64::from(number) * DAY_MS);
        commit.decisions = (0..4).map(day).collect();
    });
    stage.write(9).await.unwrap();
    assert_eq!(stage.names().len(), 4);

    stage.history.remove_before(NOW_MS + 2 * DAY_MS + 5).await.unwrap();
    assert_eq!(stage.names(), ["2024-09-26.ndjson.gz", "2024-09-27.ndjson.gz"]);
    stage.write(9).await.unwrap();
    assert_eq!(stage.names().len(), 2);
}

#[tokio::test]
async fn a_history_that_is_off_writes_nothing_and_keeps_nothing() {
    let mut stage = Stage::new();
    stage.commit(|commit| commit.decisions = vec![contract::decision(1, 0)]);
    stage.history = History::new(stage.path(), false);
    stage.write(9).await.unwrap();
    assert!(!stage.path().exists());
    assert_eq!((stage.expire(), stage.kept().await), (1, 0));
}

#[test]
fn the_guard_passes_states_on() {
    let stage = Stage::new();
    let retention = stage.history.guard(Arc::clone(&stage.ledger) as _);
    assert_eq!(retention.remove_states(StateKind::Tally, 0, 9), Ok(0));
}

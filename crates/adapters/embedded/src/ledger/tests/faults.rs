//! Faults under the ledger: see [`crate::faults`]. Its model is the twin in memory.

use super::*;
use crate::faults::Library;
use raingauge_memory::Ledger as Twin;
use raingauge_ports::campaigns::StateKind;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

const COMMITS: u64 = 40;
const OFFSETS_OF_COMMIT: u64 = 10;
const TEST: &str = "ledger::tests::faults::a_process_under_faults";

/// The commit with this number, from 1 on: it reserves for one action, which it delivers.
fn commit(number: u64) -> Commit {
    let after_ms = number as i64;
    let id = action(number as u32);
    let refused = Decision {
        action: action(number as u32 + 1_000),
        is_granted: false,
        outcome: "limit_reached".to_owned(),
        ..contract::decision(2, after_ms)
    };
    let granted = Decision { action: id, ..contract::decision(1, after_ms) };
    let delivery =
        Delivery { action: id, cost: Some(contract::cost(10)), ..contract::delivery(1, 0) };
    let state = |subject: u64| {
        let value = number.to_le_bytes().to_vec();
        (contract::state_key(&format!("u-{subject}")), Some(value))
    };

    let before = number.checked_sub(2).filter(|number| *number > 0).unwrap_or(1_000);
    let before = contract::state_key(&format!("u-{before}"));

    Commit {
        epoch: 1,
        from: (number - 1) * OFFSETS_OF_COMMIT,
        position: number * OFFSETS_OF_COMMIT,
        log_ms: NOW_MS + after_ms,
        control: number.is_multiple_of(5).then(|| number.to_le_bytes().to_vec()),
        states: vec![state(0), state(number), (before, None)],
        budgets: vec![contract::budget_change(1_000_000, 10)],
        decisions: vec![granted, refused],
        timers: vec![Timer { action: id, ..contract::timer(1, after_ms) }],
        fired: vec![(NOW_MS + after_ms - 3, action((number as u32).saturating_sub(3)))],
        deliveries: vec![delivery],
    }
}

/// What becomes of the delivery of a commit.
fn settled(number: u64) -> Settled {
    let settlement = match number % 3 {
        0 => Settlement::Delivered,
        1 => Settlement::Refused,
        _ => Settlement::Dead,
    };
    let note = format!("attempt {number}");
    Settled { action: action(number as u32), at_ms: NOW_MS, settlement, note }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(work)
}

async fn send(outbox: &impl Outbox, number: u64) -> Result<(), Error> {
    outbox.take("messages", NOW_MS, 1).await?;
    outbox.settle(vec![settled(number)]).await
}

/// The process under faults; as a test of its own it does nothing. It reports the position of each
/// commit.
#[test]
fn a_process_under_faults() {
    let Some(folder) = std::env::var_os("FAULTS_FOLDER") else {
        return;
    };
    let opened = CampaignLedger::open(Path::new(&folder), &options(1 << 20));
    if opened.and_then(|ledger| block_on(run(&ledger))).is_err() {
        // Exits as the program does, without any cleanup.
        std::process::exit(1);
    }
}

async fn run(ledger: &CampaignLedger) -> Result<(), Error> {
    ledger.take_over()?;
    for number in 1..=COMMITS {
        ledger.commit(commit(number))?;
        println!("\ncommitted {}", number * OFFSETS_OF_COMMIT);
        std::io::stdout().flush().expect("the parent listens");
        send(ledger, number).await?;
    }
    Ok(())
}

/// Everything that a ledger answers.
async fn content<L: Ledger + LedgerReader + Outbox>(ledger: &L) -> String {
    let key = |kind| StateKey { kind, owner: 0, subject: String::new() };
    let query = DecisionQuery { len_max: 1_000, ..DecisionQuery::default() };
    let mut content = format!(
        "{:?}\n{:?}\n{:?}\n{:?}",
        ledger.states(key(StateKind::Tally), 1_000).await,
        ledger.decisions(query).await,
        ledger.budgets_of(7).await,
        ledger.due(i64::MAX, 1_000),
    );
    for number in 0..=COMMITS as u32 {
        let known = ledger.known(&[action(number), action(number + 1_000)]);
        content += &format!("\n{known:?} {:?}", ledger.get(action(number)).await);
    }
    content
}

/// Succeeds if the ledger holds exactly what was committed up to its position, and results of
/// deliveries with what they mean for the budget.
fn is_sound(folder: &Path, committed: u64) -> Result<(), String> {
    let ledger = CampaignLedger::open(folder, &options(1 << 20)).map_err(|why| why.to_string())?;
    let checkpoint = ledger.inner.writing.lock().checkpoint.clone();
    if checkpoint.position < committed {
        return Err(format!("{committed} was committed, and {} is left", checkpoint.position));
    }

    block_on(async {
        let twin = Twin::default();
        let mut expected = twin.take_over().expect("taken over");
        for number in 1..=checkpoint.position / OFFSETS_OF_COMMIT {
            let next = commit(number);
            expected = expected.after(&next);
            twin.commit(next).expect("committed");
            let found = ledger.get(action(number as u32)).await.map_err(|why| why.to_string())?;
            if found.is_some_and(|record| record.status != Status::Pending) {
                send(&twin, number).await.expect("settled");
            }
        }
        if checkpoint.epoch == 1 && checkpoint != expected {
            return Err(format!("{checkpoint:?} instead of {expected:?}"));
        }

        let found = content(&ledger).await;
        let expected = content(&twin).await;
        if found == expected { Ok(()) } else { Err(format!("{found}\ninstead of\n{expected}")) }
    })
}

fn library() -> Library {
    Library::new(TEST)
}

#[test]
fn no_fault_under_the_ledger_loses_or_changes_what_was_committed() {
    library().examine(&is_sound);
}

#[test]
fn a_sync_that_is_left_out_is_noticed() {
    library().notices_missing_syncs(&is_sound);
}

/// SIGKILL while the ledger is at work.
#[test]
fn a_killed_process_leaves_what_it_committed() {
    for until in [1, 7, 20, 33] {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Command::new(std::env::current_exe().expect("this test"));
        process.args(["--exact", TEST, "--nocapture"]).env("FAULTS_FOLDER", folder.path());
        let mut running =
            process.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a process");

        let lines = BufReader::new(running.stdout.take().expect("its output")).lines();
        let mut committed = lines.map_while(Result::ok).filter_map(|line| {
            line.strip_prefix("committed ").and_then(|position| position.parse::<u64>().ok())
        });
        let position = committed.nth(until - 1).expect("it has committed");
        running.kill().expect("it is killed");
        running.wait().expect("it has ended");

        is_sound(folder.path(), position).unwrap();
    }
}

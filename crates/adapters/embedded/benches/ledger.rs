//! How many events a second the ledger of campaigns commits durably, and by which layout.
//!
//! `cargo bench -p raingauge-embedded --bench ledger`; `RAINGAUGE_BENCH_EVENTS=3000000` sets how
//! many events each run commits, `RAINGAUGE_BENCH_RUNS=ledger,one,several` which runs and in which
//! order, so that two can be compared in turn.
//!
//! The load is that of 10,000 campaigns and 100,000 subjects: each event changes one tally or two,
//! one event in a hundred grants an action with its decision, budget, usage and delivery, and what
//! a batch makes of the ledger becomes durable in one synced commit. Deliveries are settled after
//! each commit. The first half of the events fills the store, the second is measured. Beside each
//! run stands a bare file, to which the same number of bytes is appended and synced as often: the
//! limit of the disk.

#[path = "ledger/layouts.rs"]
mod layouts;

use raingauge_embedded::{CampaignLedger, LedgerOptions};
use raingauge_ports::campaigns::{
    ActionId, BudgetChange, BudgetKey, Checkpoint, Commit, Cost, Decision, Delivery, Ledger,
    Outbox, Settled, Settlement, StateKey, StateKind, Timer,
};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SUBJECTS: u64 = 100_000;
const CAMPAIGNS: u64 = 10_000;
/// Distinct tallies: campaigns with the same definition share one.
const TALLIES: u64 = 32;
const BUDGETS: u32 = 1_000;
/// Events for each action that is granted.
const EVENTS_PER_ACTION: u64 = 100;
/// Actions for each one that is delayed, and waits as a timer first.
const ACTIONS_PER_TIMER: u64 = 5;
const EVIDENCE_LEN: usize = 300;
const BODY_LEN: usize = 400;
/// Bytes of states in memory.
const CACHE_BYTES: usize = 128 << 20;
/// Each batch lasts as long as its events take at 20,000 a second.
const EVENTS_PER_MS: u64 = 20;
/// A commit that takes longer is a stall.
const STALL: Duration = Duration::from_millis(250);

/// A pseudorandom number, the same in every run (splitmix64).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Text that does not compress to nothing.
fn text(seed: &mut u64, len: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(len + 16);
    while text.len() < len {
        text.extend_from_slice(format!("\"f{:08x}\":{},", random(seed) as u32, 7).as_bytes());
    }
    text
}

/// Makes commits of a ledger out of random events.
struct Load {
    seed: u64,
    now_ms: i64,
    checkpoint: Checkpoint,
    actions: u64,
    /// Bytes that a commit hands to the ledger.
    bytes: u64,
}

impl Load {
    fn commit(&mut self, ledger: &CampaignLedger, events: u64) -> Commit {
        let mut tallies = HashMap::<StateKey, u64>::new();
        let mut commit = Commit {
            epoch: self.checkpoint.epoch,
            from: self.checkpoint.position,
            position: self.checkpoint.position + events,
            log_ms: self.now_ms,
            ..Commit::default()
        };
        let due = ledger.due(self.now_ms, events as usize).expect("timers");

        for event in 0..events {
            let subject = format!("user-{:06}", random(&mut self.seed) % SUBJECTS);
            let first = random(&mut self.seed) % TALLIES;
            for tally in first..=first + event % 2 {
                let owner = u128::from((tally % TALLIES).wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 64;
                let key = StateKey { kind: StateKind::Tally, owner, subject: subject.clone() };
                *tallies.entry(key).or_default() += 1;
            }
            if event % EVENTS_PER_ACTION == 0 {
                self.grant(&mut commit, &mut tallies, &subject);
            }
        }

        for timer in due {
            commit.fired.push((timer.due_ms, timer.action));
            commit.deliveries.push(self.delivery(timer.action, timer.campaign, timer.subject));
        }
        self.add(ledger, tallies, &mut commit);
        self.now_ms += (events / EVENTS_PER_MS) as i64;
        self.checkpoint = self.checkpoint.after(&commit);
        commit
    }

    /// Adds counts to what the ledger has, as absolute values.
    fn add(
        &mut self,
        ledger: &CampaignLedger,
        counts: HashMap<StateKey, u64>,
        commit: &mut Commit,
    ) {
        let (keys, counts): (Vec<StateKey>, Vec<u64>) = counts.into_iter().unzip();
        let before = ledger.load(&keys).expect("states");
        for ((key, count), before) in keys.into_iter().zip(counts).zip(before) {
            let mut value = before.unwrap_or_else(|| vec![0; 24]);
            let sum = u64::from_le_bytes(value[..8].try_into().expect("8 bytes")) + count;
            value[..8].copy_from_slice(&sum.to_le_bytes());
            value[8..16].copy_from_slice(&self.now_ms.to_le_bytes());
            self.bytes += (18 + key.subject.len() + value.len()) as u64;
            commit.states.push((key, Some(value)));
        }
    }

    fn grant(&mut self, commit: &mut Commit, counts: &mut HashMap<StateKey, u64>, subject: &str) {
        self.actions += 1;
        let halves = [random(&mut self.seed), random(&mut self.seed)].map(u64::to_be_bytes);
        let action = ActionId(halves.concat().try_into().expect("16 bytes"));
        let campaign = (random(&mut self.seed) % CAMPAIGNS) as u32;
        let evidence = text(&mut self.seed, EVIDENCE_LEN);
        let decision = Decision {
            action,
            is_granted: true,
            campaign,
            version: 1,
            step: "reward".to_owned(),
            name: "voucher".to_owned(),
            subject: subject.to_owned(),
            source: "bench".to_owned(),
            event: format!("o-{}", self.actions),
            event_ms: self.now_ms,
            decided_ms: self.now_ms,
            outcome: "granted".to_owned(),
            variant: None,
            cost: Some(cost(campaign)),
            evidence: String::from_utf8(evidence).expect("text"),
        };
        self.bytes += decision.to_bytes().len() as u64;
        commit.decisions.push(decision);

        let owner = u128::from(campaign) << 96;
        for subject in [subject, ""] {
            let subject = subject.to_owned();
            *counts.entry(StateKey { kind: StateKind::Usage, owner, subject }).or_default() += 1;
        }
        let key = cost(campaign).budget;
        match commit.budgets.iter_mut().find(|change| change.key == key) {
            Some(change) => change.reserve += 1,
            None => commit.budgets.push(BudgetChange { key, max: i64::MAX, reserve: 1 }),
        }

        if self.actions.is_multiple_of(ACTIONS_PER_TIMER) {
            let due_ms = self.now_ms + 10_000;
            let body = text(&mut self.seed, BODY_LEN);
            self.bytes += BODY_LEN as u64;
            commit.timers.push(Timer {
                due_ms,
                action,
                campaign,
                subject: subject.to_owned(),
                body,
            });
        } else {
            commit.deliveries.push(self.delivery(action, campaign, subject.to_owned()));
        }
    }

    fn delivery(&mut self, action: ActionId, campaign: u32, subject: String) -> Delivery {
        self.bytes += BODY_LEN as u64;
        Delivery {
            action,
            campaign,
            subject,
            destination: "rewards".to_owned(),
            due_ms: self.now_ms,
            cost: Some(cost(campaign)),
            body: text(&mut self.seed, BODY_LEN),
        }
    }
}

fn cost(campaign: u32) -> Cost {
    let campaign = campaign % BUDGETS;
    let budget = BudgetKey { campaign, name: "vouchers".to_owned(), period: 0 };
    Cost { budget, amount: 1, is_refunded: true }
}

/// Sends and settles what is due.
async fn settle(ledger: &CampaignLedger, now_ms: i64) {
    let taken = ledger.take("rewards", now_ms, 1_000).await.expect("deliveries");
    let settled = taken.into_iter().map(|delivery| Settled {
        action: delivery.action,
        at_ms: now_ms,
        settlement: Settlement::Delivered,
        note: "200".to_owned(),
    });
    ledger.settle(settled.collect()).await.expect("settled");
}

fn run_ledger(folder: &Path, events: u64, batch: u64) -> Figures {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
    let runtime = runtime.expect("a runtime");
    let options = LedgerOptions { cache_bytes: CACHE_BYTES, ..LedgerOptions::default() };
    let ledger = CampaignLedger::open(folder, &options).expect("a ledger");
    let checkpoint = ledger.take_over().expect("taken over");
    let mut load = Load { seed: 7, now_ms: 0, checkpoint, actions: 0, bytes: 0 };
    let mut meter = Meter::new(events);

    while meter.goes_on() {
        if meter.begins(batch) {
            load.bytes = 0;
        }
        let commit = load.commit(&ledger, batch);
        meter.time(batch, || ledger.commit(commit).expect("committed"));
        runtime.block_on(settle(&ledger, load.now_ms));
    }

    meter.finish(load.bytes, disk_bytes(folder))
}

fn disk_bytes(folder: &Path) -> u64 {
    let entries =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let bytes = entries.map(|entry| {
        let path = entry.path();
        if path.is_dir() { disk_bytes(&path) } else { entry.metadata().map_or(0, |it| it.len()) }
    });
    bytes.sum()
}

/// Measures the second half of a run.
struct Meter {
    events: u64,
    done: u64,
    started: Instant,
    processor: Duration,
    commits: Vec<Duration>,
}

impl Meter {
    fn new(events: u64) -> Self {
        let processor = processor_time();
        Self { events, done: 0, started: Instant::now(), processor, commits: Vec::new() }
    }

    fn goes_on(&self) -> bool {
        self.done < self.events
    }

    /// Whether the next batch is the first that is measured.
    fn begins(&mut self, batch: u64) -> bool {
        let half = self.events / 2;
        let begins = self.done < half && self.done + batch >= half;
        if begins {
            *self = Self { done: self.done, ..Self::new(self.events) };
        }
        begins
    }

    fn time(&mut self, batch: u64, commit: impl FnOnce()) {
        let before = Instant::now();
        commit();
        self.commits.push(before.elapsed());
        self.done += batch;
    }

    fn finish(self, bytes: u64, disk: u64) -> Figures {
        Figures {
            events: self.events - self.events / 2,
            elapsed: self.started.elapsed(),
            commits: self.commits,
            bytes,
            disk,
            processor: processor_time() - self.processor,
        }
    }
}

/// What one run achieved.
struct Figures {
    events: u64,
    elapsed: Duration,
    commits: Vec<Duration>,
    bytes: u64,
    disk: u64,
    processor: Duration,
}

impl Figures {
    fn print(&mut self, name: &str) {
        self.commits.sort_unstable();
        let at = |share: f64| {
            let index = (self.commits.len() as f64 * share) as usize;
            self.commits[index.min(self.commits.len() - 1)].as_secs_f64() * 1e3
        };
        let stalls = self.commits.iter().filter(|took| **took > STALL).count();
        println!(
            "{name:20} {:8.0} events/s  commit p50 {:6.1} p99 {:6.1} max {:6.1} ms  stalls {stalls:3}  \
             {:5.0} B/event  disk {:5.0} MB  processor {:.1} µs/event",
            self.events as f64 / self.elapsed.as_secs_f64(),
            at(0.5),
            at(0.99),
            at(1.0),
            self.bytes as f64 / self.events as f64,
            self.disk as f64 / 1e6,
            self.processor.as_secs_f64() * 1e6 / self.events as f64,
        );
    }
}

/// Processor time of this process.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks = |index: usize| fields[index].parse::<u64>().expect("a number");
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

/// Appends and syncs the bytes of each commit.
fn bare(bytes_per_commit: usize, commits: usize, batch: u64) -> Figures {
    let mut file = tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).expect("a file");
    let block = vec![7; bytes_per_commit];
    let processor = processor_time();
    let started = Instant::now();
    let sync = |file: &mut File| {
        let before = Instant::now();
        file.write_all(&block).and_then(|()| file.sync_all()).expect("synced");
        before.elapsed()
    };
    let took = (0..commits).map(|_| sync(&mut file)).collect();
    Figures {
        events: commits as u64 * batch,
        elapsed: started.elapsed(),
        commits: took,
        bytes: (bytes_per_commit * commits) as u64,
        disk: 0,
        processor: processor_time() - processor,
    }
}

fn main() {
    let variable = |name: &str, default: &str| std::env::var(name).unwrap_or(default.to_owned());
    let events = variable("RAINGAUGE_BENCH_EVENTS", "2000000").parse().expect("a number");
    let runs =
        variable("RAINGAUGE_BENCH_RUNS", "ledger,one,one-separated,several,several-separated");

    for batch in [1_000, 5_000] {
        println!("commits of {batch} events");
        for name in runs.split(',') {
            let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
            let mut figures = match layouts::Layout::of_name(name) {
                Some(layout) => layouts::run(folder.path(), layout, events, batch),
                None => run_ledger(folder.path(), events, batch),
            };
            let commits = figures.commits.len();
            let per_commit = figures.bytes as usize / commits;
            figures.print(name);
            bare(per_commit, commits, batch).print("a bare file, synced");
        }
    }
}

//! The published states of the writers of all partitions.

pub use crate::state::Part;
use crate::state::{Backfill, BackfillStatus, CounterState, Progress as Filled, State};
use raingauge_ports::buckets::Generation;
use raingauge_ports::log::{Offset, Partition};
use raingauge_ports::published::Published;
use std::collections::BTreeMap;
use std::sync::Arc;

pub trait States: Send + Sync {
    /// Returns the configurations of a counter that counted what answers now, in each partition.
    fn parts(&self, counter: u32) -> Vec<(Partition, Vec<Part>)>;

    /// Returns the newest backfill of a counter, in each partition that knows it.
    fn backfills(&self, counter: u32) -> Vec<(Partition, Backfill)>;

    /// Returns the entries of a partition that repeat a request, by their offsets in order, as far
    /// as the partition is applied: they have no effect.
    fn repetitions(&self, partition: Partition) -> Vec<Offset>;

    /// Returns how many partitions have to take part in a backfill.
    fn partitions(&self) -> Partition {
        1
    }
}

/// The states of all writers, for decisions that concern all of them.
pub trait PublishedStates: Send + Sync {
    fn shown(&self) -> BTreeMap<Partition, PublishedState>;
}

/// The last published state of a writer. In a cluster this is what it has committed.
#[derive(Clone, Debug, Default)]
pub struct PublishedState {
    pub state: Arc<State>,
    /// The progress of the backfill at the head of its queue.
    pub progress: Option<Filled>,
    /// Counters about whose backfills something remains to be decided or written.
    pub open: Arc<[u32]>,
    /// Retired generations of which the store holds nothing any more; only the writer's process
    /// knows them.
    pub removed: Vec<Generation>,
}

impl PublishedState {
    pub fn new(state: Arc<State>, progress: Option<Filled>) -> Self {
        let open = state.open().into();
        Self { state, progress, open, removed: Vec::new() }
    }

    pub fn counter(&self, counter: u32) -> Option<&CounterState> {
        self.state.counters.get(&counter)
    }

    /// Returns the newest backfill of a counter, with its progress.
    pub fn backfill(&self, counter: u32) -> Option<Backfill> {
        let backfill = self.counter(counter)?.backfill.as_ref()?;
        let progress = self.progress_of(counter, backfill.number).filter(|_| backfill.is_running());
        Some(progress.map_or_else(|| backfill.clone(), |progress| progress.shown_in(backfill)))
    }

    pub fn progress_of(&self, counter: u32, number: u32) -> Option<&Filled> {
        self.progress.as_ref().filter(|progress| progress.is_of(counter, number))
    }
}

/// Combines the newest backfill of all partitions: offsets and counts are added up. Partition 0
/// decides its outcome; it has finished when all partitions have switched.
pub fn together(backfills: &[(Partition, Backfill)], partitions: Partition) -> Option<Backfill> {
    let number = backfills.iter().map(|(_, backfill)| backfill.number).max()?;
    let mut newest = backfills.iter().filter(|(_, backfill)| backfill.number == number);
    let (first, mut whole) = newest.next().cloned()?;
    let mut finished = Partition::from(whole.status == BackfillStatus::Finished);
    let mut is_cancelled = whole.status == BackfillStatus::Cancelled && first == 0;

    let mut known = 1;
    for (partition, part) in newest {
        known += 1;
        whole.from += part.from;
        whole.position += part.position;
        whole.counted += part.counted;
        whole.ended_at = whole.ended_at.max(part.ended_at);
        finished += Partition::from(part.status == BackfillStatus::Finished);
        is_cancelled |= part.status == BackfillStatus::Cancelled && *partition == 0;

        if whole.reason.is_empty() {
            whole.reason.clone_from(&part.reason);
        }
    }

    whole.status = match (is_cancelled, finished >= partitions.max(known)) {
        (true, _) => BackfillStatus::Cancelled,
        (false, true) => BackfillStatus::Finished,
        (false, false) => BackfillStatus::Running,
    };

    if whole.status == BackfillStatus::Running {
        whole.ended_at = 0;
    }
    Some(whole)
}

/// The progress of a counter's newest backfill.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Over all partitions.
    pub backfill: Backfill,
    /// The end of the log at the time of the query.
    pub end: Offset,
    /// The part of the log that it has read, from 0 to 1.
    pub share: f64,
}

/// Returns the progress of a counter's newest backfill; `None` when it has had none.
pub fn progress(states: &dyn States, published: &Published, counter: u32) -> Option<Progress> {
    let backfills = states.backfills(counter);
    let backfill = together(&backfills, states.partitions())?;
    let ends = backfills
        .iter()
        .map(|(partition, backfill)| published.applied(*partition).max(backfill.position));
    let end: Offset = ends.sum::<Offset>().max(backfill.position);
    let share = match backfill.status {
        BackfillStatus::Finished => 1.0,
        _ => {
            backfill.position.saturating_sub(backfill.from) as f64
                / end.saturating_sub(backfill.from).max(1) as f64
        }
    };

    Some(Progress { backfill, end, share: share.min(1.0) })
}

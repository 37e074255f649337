//! From a range to what has to be read for it.

use crate::cache::windows::Window;
use crate::range::{Answer, Range};
use crate::refusal::key_unknown;
use raingauge_core::bucket::Granularity;
use raingauge_core::code::Refusal;
use raingauge_core::plan::Plan;
use raingauge_core::tile::Overflow;
use raingauge_ports::buckets::Generation;
use raingauge_ports::published::{Published, View};
use smallvec::{SmallVec, smallvec};

/// What to read for a range, and what the answer will say.
pub struct ReadPlan {
    /// The place of the counter in the ruleset.
    pub rule: usize,
    /// By generation. A counter that was never backfilled has one.
    pub plans: SmallVec<[(Generation, Plan); 1]>,
    from_s: i64,
    end: End,
}

/// Where the answer says that its range ends.
#[derive(Clone, Copy)]
enum End {
    At(i64),
    /// At `to_s`, or behind the newest event when that lies later in the open quarter hour, which
    /// ends at `end_s`.
    Open {
        to_s: i64,
        end_s: i64,
    },
}

impl ReadPlan {
    /// Finds the counter of a key, and checks that the range can be answered.
    pub fn new(view: &View, range: &Range<'_>, now_s: i64) -> Result<Self, Refusal> {
        let rule = view.ruleset.index_of_key(range.key).ok_or_else(|| key_unknown(range.key))?;
        let (plan, end) = plan_and_end(range, now_s)?;
        Self::checked(view, rule, (plan, end), now_s)
    }

    /// What another window of the same counter needs, if the store still keeps that.
    pub fn of_window(
        view: &View,
        rule: usize,
        (from_s, to_s): Window,
        now_s: i64,
    ) -> Result<Self, Refusal> {
        Self::checked(view, rule, (Plan::new(from_s, to_s)?, End::At(to_s)), now_s)
    }

    fn checked(
        view: &View,
        rule: usize,
        (plan, end): (Plan, End),
        now_s: i64,
    ) -> Result<Self, Refusal> {
        view.horizons(rule, now_s).check(&plan)?;

        let timeline = &view.timelines[rule];
        let plans = match timeline.only() {
            Some(only) => smallvec![(only, plan)],
            None => timeline.plans(&plan)?.into(),
        };
        Ok(Self { rule, plans, from_s: plan.from_s, end })
    }

    /// Tiles that are read.
    pub fn rows(&self) -> u64 {
        self.plans.iter().map(|(_, plan)| tiles_of(plan)).sum()
    }

    /// Whether this reads exactly the window.
    pub fn covers(&self, (from_s, to_s): Window) -> bool {
        self.from_s == from_s && matches!(self.end, End::At(end_s) if end_s == to_s)
    }

    /// The answer with a sum. An open end is looked up after the sum, so that it lies behind all
    /// that was summed.
    pub fn answer(&self, sum: i128, published: &Published) -> Result<Answer, Refusal> {
        let count = i64::try_from(sum).map_err(|_| Overflow)?;
        let to_s = match self.end {
            End::At(to_s) => to_s,
            End::Open { to_s, end_s } => to_s.max(published.newest_event_s() + 1).min(end_s),
        };
        Ok(Answer { from_s: self.from_s, to_s, count })
    }
}

/// The plan of a range, and where the answer will say that it ends.
///
/// With `fresh`, an end inside the open quarter hour takes in the whole of it. The answer then ends
/// where the newest event in it can lie, so that the count is exact for the range that the answer
/// names.
fn plan_and_end(range: &Range<'_>, now_s: i64) -> Result<(Plan, End), Refusal> {
    let quarter = Granularity::Quarter;
    let is_open = quarter.floor(range.to_s) == quarter.floor(now_s);
    if range.fresh && is_open && !quarter.starts_at(range.to_s) {
        let end_s = quarter.ceil(range.to_s);
        return Ok((Plan::new(range.from_s, end_s)?, End::Open { to_s: range.to_s, end_s }));
    }

    let plan = Plan::new(range.from_s, range.to_s)?;
    Ok((plan, End::At(plan.to_s)))
}

/// Tiles that a plan reads: one for each edge, one for each 128 days.
pub fn tiles_of(plan: &Plan) -> u64 {
    let edges = plan.edges.iter().flatten().count() as u64;
    let spans = if plan.has_days() {
        u64::from((plan.day_end - 1) / 128 - plan.day_first / 128) + 1
    } else {
        0
    };
    edges + spans
}

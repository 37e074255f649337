//! From a range to what has to be read for it.

use crate::answer::Range;
use crate::cache::windows::Window;
use raingauge_core::bucket::Granularity;
use raingauge_core::code::Refusal;
use raingauge_core::plan::Plan;
use raingauge_ports::buckets::Generation;
use raingauge_ports::published::View;

/// A range that has been resolved: what to read, and what the answer will say.
pub struct Resolved {
    /// Where its counter stands in the ruleset.
    pub rule: usize,
    pub plans: Vec<(Generation, Plan)>,
    pub from_s: i64,
    pub end: End,
}

/// Where the answer says that its range ends.
#[derive(Clone, Copy)]
pub enum End {
    At(i64),
    /// At `to_s`, or behind the newest event when that lies later in the open quarter hour, which ends at `end_s`.
    Open {
        to_s: i64,
        end_s: i64,
    },
}

impl Resolved {
    /// Tiles that are read.
    pub fn rows(&self) -> u64 {
        self.plans.iter().map(|(_, plan)| tiles_of(plan)).sum()
    }

    /// Whether that is the window.
    pub fn covers(&self, (from_s, to_s): Window) -> bool {
        self.from_s == from_s && matches!(self.end, End::At(end_s) if end_s == to_s)
    }
}

/// The plans of a range by generation.
pub fn plans(view: &View, rule: usize, plan: Plan) -> Result<Vec<(Generation, Plan)>, Refusal> {
    let timeline = &view.timelines[rule];
    match timeline.only() {
        Some(only) => Ok(vec![(only, plan)]),
        None => Ok(timeline.plans(&plan)?),
    }
}

/// What another window of a rule needs, if that is still kept.
pub fn earlier(
    view: &View,
    rule: usize,
    (from_s, to_s): Window,
    now_s: i64,
) -> Result<Resolved, Refusal> {
    let plan = Plan::new(from_s, to_s)?;
    view.horizons(rule, now_s).check(&plan)?;
    Ok(Resolved { rule, plans: plans(view, rule, plan)?, from_s, end: End::At(to_s) })
}

/// The plan of a range, and where the answer will say that it ends.
///
/// With `fresh`, an end inside the open quarter hour takes in the whole of it. The answer then ends where the newest
/// event that is in it can lie, so that the count is exact for the range that the answer names.
pub fn plan(range: &Range<'_>, now_s: i64) -> Result<(Plan, End), Refusal> {
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
fn tiles_of(plan: &Plan) -> u64 {
    let edges = plan.edges.iter().flatten().count() as u64;
    let spans = if plan.has_days() {
        u64::from((plan.day_end - 1) / 128 - plan.day_first / 128) + 1
    } else {
        0
    };
    edges + spans
}

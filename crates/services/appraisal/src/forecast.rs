//! What a draft would have cost, beside what is in force.

use crate::fork::Fork;
use crate::limits::FORECAST_MEMBERS_SHOWN;
use crate::report::{SideReport, Tally, points_json};
use crate::request::ForecastRequest;
use raingauge_core::event::Event;
use raingauge_core::field::{Field, Scalar, extract};
use raingauge_points::{Command, Programme, ProgrammeDocument, Programmes};
use raingauge_ports::log::EventLog;
use raingauge_ports::record::Entry;
use raingauge_replay::request::SourceName;
use raingauge_replay::source::{Lines, Span, read_lines, walk};
use raingauge_replay::{Error, Progress};
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Events of points themselves, which award nothing.
const OWN_EVENTS: &str = "raingauge.points.";
/// How much earlier than the times of its events the log is read: events may come from the future,
/// and clocks differ.
const CLOCKS_MARGIN_MS: i64 = 86_400_000;

/// The result of a forecast.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    pub programme: String,
    /// Events in the range.
    pub events: u64,
    pub draft: SideReport,
    /// `None` for a programme that is not in force yet.
    pub in_force: Option<SideReport>,
    /// Points of the draft, less those in force.
    pub change: Json,
    pub liability_change: Json,
    pub gain_most: Vec<MemberChange>,
    pub lose_most: Vec<MemberChange>,
}

/// What a draft means for a member.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberChange {
    pub member: String,
    pub in_force: Json,
    pub draft: Json,
    pub change: Json,
}

/// What is compared, over which events.
pub struct Setup {
    draft: Arc<Programme>,
    in_force: Option<Arc<Programme>>,
    range_ms: Range<i64>,
    source: SourceName,
    by: Option<Field>,
    days: u16,
}

/// A programme that goes through the events.
struct Side {
    fork: Fork<Option<String>>,
    tally: Tally,
}

impl Setup {
    pub fn new(request: &ForecastRequest, in_force: &Programmes) -> Result<Self, Error> {
        let draft = match &request.programme {
            Json::String(name) => {
                let unknown =
                    || Error::invalid("programme", format!("there is no programme {name}"));
                Arc::clone(in_force.get(name).ok_or_else(unknown)?)
            }
            document => Arc::new(compiled(document)?),
        };
        let unknown = || Error::invalid("by", "name a field, such as data.country");
        let by = request.by.as_deref().map(|path| Field::of_path(path).ok_or_else(unknown));
        Ok(Self {
            in_force: in_force.get(draft.name()).cloned(),
            draft,
            range_ms: request.range_ms(),
            source: request.source,
            by: by.transpose()?,
            days: request.days(),
        })
    }

    /// Feeds all events to both sides. Blocks the thread.
    pub fn run(
        &self,
        logs: &[Arc<dyn EventLog>],
        lines: Option<Lines>,
        progress: &Progress,
    ) -> Result<Forecast, Error> {
        let mut draft = Side::new(&self.draft);
        let mut in_force = self.in_force.as_ref().map(Side::new);
        let mut events = 0;
        let mut end_ms = i64::MIN;
        let mut take = |event: &Event<'_>| {
            if !self.range_ms.contains(&event.time_ms) || event.kind.starts_with(OWN_EVENTS) {
                return Ok(());
            }
            events += 1;
            end_ms = end_ms.max(event.time_ms);
            let value = self.value_of(event);
            if let Some(side) = &mut in_force {
                side.take(event, value.clone())?;
            }
            draft.take(event, value)
        };

        match (self.source, lines) {
            (SourceName::Events, Some(lines)) => read_lines(lines, progress, take)?,
            (SourceName::Events, None) => {
                let detail = "send the events behind the request, a line each";
                return Err(Error::invalid("source", detail));
            }
            (SourceName::Log, _) => {
                let spans = logs.iter().map(|log| Span::since(log, self.read_from_ms())).collect();
                walk(spans, progress, |step| {
                    if let Entry::Event(event) = &step.entry {
                        take(event)?;
                    }
                    Ok(true)
                })?;
            }
        }

        let until_ms = if self.range_ms.end == i64::MAX { end_ms } else { self.range_ms.end };
        draft.end(until_ms)?;
        if let Some(side) = &mut in_force {
            side.end(until_ms)?;
        }
        Ok(self.report(events, &draft, in_force.as_ref()))
    }

    /// When the first event in the range may have been appended.
    fn read_from_ms(&self) -> i64 {
        let from_ms = self.range_ms.start.saturating_sub(CLOCKS_MARGIN_MS);
        if from_ms <= 0 { i64::MIN } else { from_ms }
    }

    fn value_of(&self, event: &Event<'_>) -> Option<String> {
        let field = self.by.as_ref()?;
        let mut found = Vec::with_capacity(1);
        extract(event, std::slice::from_ref(field), &mut found);
        let value = found.first().and_then(Option::as_ref).map(Scalar::as_text);
        Some(value.unwrap_or_default().to_owned())
    }

    fn report(&self, events: u64, draft: &Side, in_force: Option<&Side>) -> Forecast {
        let programme = &self.draft;
        let before = |side: &Side| (side.tally.points, side.liability().total());
        let (points, liability) = in_force.map_or((0, 0), before);
        let mut changes = member_changes(draft, in_force);
        changes.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));

        let shown = |changes: &mut dyn Iterator<Item = &(Arc<str>, i128)>| {
            let shown = changes.take(FORECAST_MEMBERS_SHOWN).map(|(member, change)| {
                let now = draft.tally.by_member.get(member).copied().unwrap_or(0);
                MemberChange {
                    member: member.to_string(),
                    in_force: points_json(programme, now - change),
                    draft: points_json(programme, now),
                    change: points_json(programme, *change),
                }
            });
            shown.collect::<Vec<_>>()
        };
        Forecast {
            programme: programme.name().to_string(),
            events,
            change: points_json(programme, draft.tally.points - points),
            liability_change: points_json(programme, draft.liability().total() - liability),
            gain_most: shown(&mut changes.iter().filter(|(_, change)| *change > 0)),
            lose_most: shown(&mut changes.iter().rev().filter(|(_, change)| *change < 0)),
            draft: draft.report(self.days),
            in_force: in_force.map(|side| side.report(self.days)),
        }
    }
}

fn compiled(document: &Json) -> Result<Programme, Error> {
    let document = ProgrammeDocument::parse(document).map_err(Error::Invalid)?;
    Programme::compile(&document, 0).map_err(Error::Invalid)
}

/// Members whose points differ, with the difference.
fn member_changes(draft: &Side, in_force: Option<&Side>) -> Vec<(Arc<str>, i128)> {
    let before = in_force.map(|side| &side.tally.by_member);
    let members: BTreeSet<&Arc<str>> =
        draft.tally.by_member.keys().chain(before.into_iter().flat_map(|all| all.keys())).collect();
    let of = |all: &std::collections::HashMap<Arc<str>, i128>, member: &Arc<str>| {
        all.get(member).copied().unwrap_or(0)
    };
    let changes = members.into_iter().map(|member| {
        let was = before.map_or(0, |before| of(before, member));
        (Arc::clone(member), of(&draft.tally.by_member, member) - was)
    });
    changes.filter(|(_, change)| *change != 0).collect()
}

impl Side {
    fn new(programme: &Arc<Programme>) -> Self {
        Self { fork: Fork::new(Arc::clone(programme)), tally: Tally::default() }
    }

    fn take(&mut self, event: &Event<'_>, value: Option<String>) -> Result<(), Error> {
        let programme = Arc::clone(self.fork.programme());
        if !programme.wants(&event.kind) {
            return Ok(());
        }
        for priced in programme.price_event(event) {
            let Ok(command) = priced else {
                self.tally.unpriced += 1;
                continue;
            };
            let tally = &mut self.tally;
            let mut noted = |value: Option<String>, command: &Command, answer: &_| {
                tally.note(&programme, value, command, answer);
            };
            self.fork.take(command, event.time_ms, value.clone(), &mut noted)?;
        }
        Ok(())
    }

    fn end(&mut self, until_ms: i64) -> Result<(), Error> {
        let programme = Arc::clone(self.fork.programme());
        let tally = &mut self.tally;
        self.fork.flush(&mut |value, command, answer| {
            tally.note(&programme, value, command, answer);
        })?;
        self.fork.settle_all(until_ms);
        Ok(())
    }

    fn liability(&self) -> raingauge_points::Liability {
        self.fork.totals().liability(self.fork.programme().name())
    }

    fn report(&self, days: u16) -> SideReport {
        let programme = self.fork.programme();
        SideReport::new(programme, &self.tally, &self.liability(), self.fork.members(), days)
    }
}

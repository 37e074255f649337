//! What a draft would have cost, beside what is in force.

use crate::feed::{Batches, Feed};
use crate::fork::Fork;
use crate::limits::FORECAST_MEMBERS_SHOWN;
use crate::report::{SideReport, Tally, points_json};
use crate::request::ForecastRequest;
use hashbrown::HashMap;
use raingauge_core::event::Event;
use raingauge_core::field::{Field, Scalar, extract};
use raingauge_points::programme::OWN_EVENTS;
use raingauge_points::{Programme, ProgrammeDocument, Programmes};
use raingauge_ports::log::EventLog;
use raingauge_ports::record::Entry;
use raingauge_replay::request::SourceName;
use raingauge_replay::source::{Lines, Span, read_lines, walk};
use raingauge_replay::{Error, Progress};
use serde::Serialize;
use serde_json::Value as Json;
use std::ops::Range;
use std::sync::Arc;

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
struct Side<'a> {
    programme: &'a Arc<Programme>,
    fork: Fork<'a>,
    tally: Tally,
    /// The field that divides its points.
    by: Option<&'a Field>,
}

/// What was read.
#[derive(Clone, Copy)]
struct Reading {
    /// Events in the range.
    events: u64,
    /// The time of the last one.
    end_ms: i64,
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

    /// Feeds all events to both sides, each in a thread of its own. Blocks the thread.
    pub fn run(
        &self,
        logs: &[Arc<dyn EventLog>],
        lines: Option<Lines>,
        progress: &Progress,
    ) -> Result<Forecast, Error> {
        // A programme that is in force is its own draft where it is asked for by its name.
        let is_other = |programme: &&Arc<Programme>| !Arc::ptr_eq(programme, &self.draft);
        let others = self.in_force.iter().filter(is_other);
        let programmes: Vec<_> = std::iter::once(&self.draft).chain(others).map(alone).collect();
        let by = self.by.as_ref();
        let sides = programmes
            .iter()
            .flat_map(|alone| alone.iter().map(move |programme| Side::new(programme, alone, by)));

        let (mut sides, reading) = self.feed(sides.collect(), logs, lines, progress)?;
        let Reading { events, end_ms } = reading;
        let until_ms = if self.range_ms.end == i64::MAX { end_ms } else { self.range_ms.end };
        sides.iter_mut().for_each(|side| side.fork.settle_all(until_ms));
        let in_force = self.in_force.as_ref().and(sides.last());
        Ok(self.report(events, &sides[0], in_force))
    }

    /// Reads all events, and returns the sides as they are after them.
    fn feed<'a>(
        &self,
        sides: Vec<Side<'a>>,
        logs: &[Arc<dyn EventLog>],
        lines: Option<Lines>,
        progress: &Progress,
    ) -> Result<(Vec<Side<'a>>, Reading), Error> {
        std::thread::scope(|scope| {
            let mut feed = Feed::default();
            let mut threads = Vec::with_capacity(sides.len());
            for side in sides {
                let batches = feed.batches();
                let builder = std::thread::Builder::new().name("forecast".to_owned());
                let thread = builder.spawn_scoped(scope, move || side.run(batches));
                threads.push(thread.map_err(|error| Error::Failed(error.to_string()))?);
            }

            // A side that cannot go on says why, and the reading only that it ended.
            let reading = self.read(feed, logs, lines, progress);
            let ended = threads.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            let sides = ended.collect::<Result<Vec<_>, Error>>()?;
            Ok((sides, reading?))
        })
    }

    fn read(
        &self,
        mut feed: Feed,
        logs: &[Arc<dyn EventLog>],
        lines: Option<Lines>,
        progress: &Progress,
    ) -> Result<Reading, Error> {
        let mut reading = Reading { events: 0, end_ms: i64::MIN };
        let mut take = |event: &Event<'_>| {
            if !self.range_ms.contains(&event.time_ms) || event.kind.starts_with(OWN_EVENTS) {
                return Ok(());
            }
            reading.events += 1;
            reading.end_ms = reading.end_ms.max(event.time_ms);
            let in_force = self.in_force.as_ref();
            let is_wanted = |programme: &Arc<Programme>| programme.wants(&event.kind);
            if is_wanted(&self.draft) || in_force.is_some_and(is_wanted) {
                feed.push(event)?;
            }
            Ok(())
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
        feed.flush()?;
        Ok(reading)
    }

    /// When the first event in the range may have been appended.
    fn read_from_ms(&self) -> i64 {
        let from_ms = self.range_ms.start.saturating_sub(CLOCKS_MARGIN_MS);
        if from_ms <= 0 { i64::MIN } else { from_ms }
    }

    fn report(&self, events: u64, draft: &Side<'_>, in_force: Option<&Side<'_>>) -> Forecast {
        let programme = &self.draft;
        let before = |side: &Side<'_>| (side.tally.points, side.liability().total());
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

/// A programme without any others.
pub fn alone(programme: &Arc<Programme>) -> Programmes {
    let mut programmes = Programmes::new();
    programmes.insert(Arc::clone(programme));
    programmes
}

/// Members whose points differ, with the difference.
fn member_changes(draft: &Side<'_>, in_force: Option<&Side<'_>>) -> Vec<(Arc<str>, i128)> {
    let none = HashMap::new();
    let now = &draft.tally.by_member;
    let before = in_force.map_or(&none, |side| &side.tally.by_member);
    let of = |all: &HashMap<Arc<str>, i128>, member| all.get(member).copied().unwrap_or(0);

    let known = now.iter().map(|(member, points)| (member, points - of(before, member)));
    let gone = before.iter().filter(|(member, _)| !now.contains_key(*member));
    let gone = gone.map(|(member, points)| (member, -points));
    let changes = known.chain(gone).filter(|(_, change)| *change != 0);
    changes.map(|(member, change)| (Arc::clone(member), change)).collect()
}

impl<'a> Side<'a> {
    /// A side for the only one of these programmes.
    fn new(
        programme: &'a Arc<Programme>,
        programmes: &'a Programmes,
        by: Option<&'a Field>,
    ) -> Self {
        Self { programme, fork: Fork::new(programmes), tally: Tally::default(), by }
    }

    /// Takes all events. Blocks the thread.
    fn run(mut self, batches: Batches) -> Result<Self, Error> {
        batches.each(|event| self.take(event))?;
        Ok(self)
    }

    fn take(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let priced = self.programme.price_event(event);
        if priced.is_empty() {
            return Ok(());
        }

        let value = self.by.map(|field| value_of(event, field));
        for priced in priced {
            let Ok(command) = priced else {
                self.tally.unpriced += 1;
                continue;
            };
            if let Some(answer) = self.fork.take(&command, event.time_ms)? {
                self.tally.note(self.programme, value.as_deref(), &command, &answer);
            }
        }
        Ok(())
    }

    fn liability(&self) -> raingauge_points::Liability {
        self.fork.totals().liability(self.programme.name())
    }

    fn report(&self, days: u16) -> SideReport {
        let members = self.fork.members();
        SideReport::new(self.programme, &self.tally, &self.liability(), members, days)
    }
}

/// What an event has in a field; the empty text where it has none.
fn value_of(event: &Event<'_>, field: &Field) -> String {
    let mut found = Vec::with_capacity(1);
    extract(event, std::slice::from_ref(field), &mut found);
    let value = found.first().and_then(Option::as_ref).map(Scalar::as_text);
    value.unwrap_or_default().to_owned()
}

//! Events that came before under the same source and id.

use super::Explanation;
use crate::figures::instant;
use crate::limits::SUBJECT_EVENTS_MAX;
use crate::request::NamedEvent;
use crate::source::Step;
use hashbrown::HashMap;
use raingauge_campaigns::decision::Reason;
use raingauge_core::event::Event;
use raingauge_ports::log::Offset;
use raingauge_ports::record::{Identity, identity};
use serde::Serialize;

/// What a duplicate is, for an answer that has the first event beside it.
pub const DETAIL: &str = "an event of this source and id had been received before: it decided, and \
                          later ones are duplicates of it";

/// The first event of a source and id, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlierEvent {
    pub event_time: String,
    /// Its place in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<Offset>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_at: Option<String>,
    /// When something was decided on it, where that is known instead of its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<String>,
}

/// The first arrivals of a replay.
#[derive(Default)]
pub struct Arrivals(HashMap<Identity, Arrival>);

#[derive(Clone, Copy)]
struct Arrival {
    event_ms: i64,
    offset: Offset,
    appended_ms: i64,
}

impl Arrivals {
    /// Notes the arrival of an event. Returns the first one, if this is a later one.
    pub fn note(&mut self, event: &Event<'_>, step: &Step<'_>) -> Option<EarlierEvent> {
        let name = identity(&event.source, &event.id);
        if let Some(first) = self.0.get(&name) {
            return Some(first.shown());
        }
        if self.0.len() < SUBJECT_EVENTS_MAX {
            let Step { offset, appended_ms, .. } = *step;
            self.0.insert(name, Arrival { event_ms: event.time_ms, offset, appended_ms });
        }
        None
    }

    /// The first event of the source and id of the named one.
    pub fn first(&self, named: &NamedEvent) -> Option<EarlierEvent> {
        self.0.get(&identity(&named.source, &named.id)).map(Arrival::shown)
    }
}

impl Arrival {
    fn shown(&self) -> EarlierEvent {
        EarlierEvent {
            event_time: instant(self.event_ms),
            offset: Some(self.offset),
            received_at: Some(instant(self.appended_ms)),
            decided_at: None,
        }
    }
}

/// Explains an event that only another one of the same source and id is known of.
pub fn duplicate(unknown: &Explanation, first: EarlierEvent) -> Explanation {
    Explanation {
        code: Reason::Duplicate.as_str().to_owned(),
        first: Some(first),
        detail: Some(DETAIL.to_owned()),
        ..unknown.clone()
    }
}

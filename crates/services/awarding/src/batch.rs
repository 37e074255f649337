//! What one turn takes from the log.

use crate::error::Error;
use crate::letters::UnpricedEvent;
use raingauge_consumers::control::{DocumentVersion, document_order};
use raingauge_core::event::Event;
use raingauge_points::programme::OWN_EVENTS;
use raingauge_points::{Answer, Command, Programmes, Unpriced};
use raingauge_ports::consumers::Name;
use raingauge_ports::log::{Block, Offset};
use raingauge_ports::points::Letter;
use raingauge_ports::record::Entry;
use std::sync::Arc;

/// The events of the log up to the next programme that takes effect, or programmes up to the next
/// event: what was appended before a change goes by the old rules.
pub struct Batch<'b> {
    pub events: Vec<Event<'b>>,
    /// Awards that are to be decided, ...
    pub priced: Vec<Command>,
    /// ... and what each of them is for.
    pub purposes: Vec<Purpose>,
    /// Awards that have no price yet, and why.
    pub unpriced: Vec<(Purpose, String)>,
    pub orders: Vec<DocumentVersion>,
    /// Behind the last entry.
    pub end: Offset,
}

/// What an award is for.
pub struct Purpose {
    /// The place of the event.
    pub event: usize,
    pub programme: Arc<str>,
    /// The key of the award, which says which of the rules it is.
    pub key: Arc<str>,
}

impl<'b> Batch<'b> {
    /// Takes entries from `from` on, and prices the events. Without the name of a consumer, control
    /// entries say nothing: documents take effect elsewhere.
    pub fn of(
        blocks: &'b [Block],
        from: Offset,
        programmes: &Programmes,
        consumer: Option<&Name>,
    ) -> Result<Self, Error> {
        let mut batch = Self {
            events: Vec::new(),
            priced: Vec::new(),
            purposes: Vec::new(),
            unpriced: Vec::new(),
            orders: Vec::new(),
            end: from,
        };
        let wants = |kind: &str| {
            !kind.starts_with(OWN_EVENTS)
                && programmes.iter().any(|programme| programme.wants(kind))
        };
        for entry in blocks.iter().flat_map(|block| block.wanted_entries(from, wants)) {
            let (offset, entry) = entry?;
            match batch.take(offset, entry, programmes, consumer) {
                Ok(true) => batch.end = offset + 1,
                Ok(false) => break,
                // What lies before an entry that cannot be obeyed is awarded first.
                Err(_) if batch.end > from => break,
                Err(error) => return Err(error),
            }
        }
        Ok(batch)
    }

    /// Takes an entry in, `None` for an event that no programme wants, or answers `false` where the
    /// batch ends before it.
    fn take(
        &mut self,
        offset: Offset,
        entry: Option<Entry<'b>>,
        programmes: &Programmes,
        consumer: Option<&Name>,
    ) -> Result<bool, Error> {
        match entry {
            // What the next programmes want of it is not known yet.
            None | Some(Entry::Event(_)) if !self.orders.is_empty() => return Ok(false),
            Some(Entry::Event(event)) => self.price(event, programmes),
            Some(Entry::Control(payload)) => {
                let Some(consumer) = consumer else { return Ok(true) };
                let order = document_order(payload, consumer)
                    .map_err(|why| Error::UnknownControl { offset, why })?;
                if order.is_some() && !self.events.is_empty() {
                    return Ok(false);
                }
                self.orders.extend(order);
            }
            None | Some(Entry::Void) => {}
        }
        Ok(true)
    }

    /// Letters of what is to be tried again: awards without a price, and those that were refused
    /// for now by their answers.
    pub fn leftovers(&self, answers: &[Result<Answer, Error>]) -> Vec<Letter> {
        let letter = |purpose: &Purpose, why: &str| {
            let event = &self.events[purpose.event];
            UnpricedEvent::letter(&purpose.programme, &purpose.key, event, why)
        };
        let unpriced = self.unpriced.iter().map(|(purpose, why)| letter(purpose, why));
        let answered = self.purposes.iter().zip(answers);
        let invalid = answered.filter_map(|(purpose, answer)| match answer {
            Ok(Answer::Invalid(refusal)) => Some(letter(purpose, &refusal.detail)),
            _ => None,
        });
        unpriced.chain(invalid).collect()
    }

    fn price(&mut self, event: Event<'b>, programmes: &Programmes) {
        let place = self.events.len();
        for programme in programmes.iter().filter(|programme| programme.wants(&event.kind)) {
            let name = Arc::clone(programme.name());
            for priced in programme.price_event(&event) {
                let (key, priced) = match priced {
                    Ok(command) => (Arc::clone(&command.key), Ok(command)),
                    Err(Unpriced::Missing { key, detail, .. }) => (key, Err(detail)),
                    Err(Unpriced::Refused { key, refusal, .. }) => (key, Err(refusal.detail)),
                };
                let purpose = Purpose { event: place, programme: Arc::clone(&name), key };
                match priced {
                    Ok(command) => {
                        self.priced.push(command);
                        self.purposes.push(purpose);
                    }
                    Err(why) => self.unpriced.push((purpose, why)),
                }
            }
        }
        self.events.push(event);
    }
}

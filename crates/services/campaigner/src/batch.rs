//! What one commit takes from the log.

use crate::compiled::Compiled;
use crate::control::DocumentVersion;
use crate::error::Error;
use crate::orders::{Order, RefusedStep};
use raingauge_core::event::Event;
use raingauge_ports::consumers::Name;
use raingauge_ports::log::{Block, EventLog, Offset};
use raingauge_ports::record::Entry;

/// Events in the order of the log up to the next order, or orders up to the next event. What is due
/// when documents change still goes by the old ones. Events that no campaign listens to are passed
/// over.
pub struct Batch<'b> {
    pub events: Vec<Logged<'b>>,
    pub orders: Vec<Order>,
    /// Behind the last entry.
    pub end: Offset,
    /// The time of the log there.
    pub log_ms: i64,
}

/// An event in the log.
pub struct Logged<'b> {
    pub offset: Offset,
    /// The time of the log at the event, which never goes back.
    pub log_ms: i64,
    pub event: Event<'b>,
}

/// How much a batch takes.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub events_max: usize,
    pub bytes_max: usize,
}

/// What a batch is taken for.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'t> {
    pub bounds: Bounds,
    pub consumer: &'t Name,
    pub compiled: &'t Compiled,
}

impl Bounds {
    pub fn blocks(&self, log: &dyn EventLog, from: Offset) -> Result<Vec<Block>, Error> {
        Ok(log.read(from, self.bytes_max)?)
    }

    /// Whether another read would return no more.
    pub fn are_met(&self, blocks: &[Block]) -> bool {
        let events: u64 = blocks.iter().map(|block| block.len).sum();
        let bytes: usize = blocks.iter().map(|block| block.bytes.len()).sum();
        events >= self.events_max as u64 || bytes >= self.bytes_max / 4 * 3
    }
}

impl<'b> Batch<'b> {
    /// Takes entries from `from` on. The time of the log there is `log_ms`.
    pub fn of(
        blocks: &'b [Block],
        from: Offset,
        log_ms: i64,
        terms: Terms<'_>,
    ) -> Result<Self, Error> {
        let mut batch = Self { events: Vec::new(), orders: Vec::new(), end: from, log_ms };
        let engine = terms.compiled.engine();
        for block in blocks {
            for entry in block.wanted_entries(from, |kind| engine.listens_to(kind)) {
                let (offset, entry) = entry?;
                match batch.take(offset, entry, block.appended_ms, terms) {
                    Ok(true) => batch.end = offset + 1,
                    Ok(false) => return Ok(batch),
                    // What lies before an entry that nobody can obey is decided first.
                    Err(_) if batch.end > from => return Ok(batch),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(batch)
    }

    /// Takes an entry in, `None` for an event that no campaign listens to, or answers `false` where
    /// the batch ends before it.
    fn take(
        &mut self,
        offset: Offset,
        entry: Option<Entry<'b>>,
        appended_ms: i64,
        terms: Terms<'_>,
    ) -> Result<bool, Error> {
        match entry {
            // What the next documents want of it is not known yet.
            None | Some(Entry::Event(_))
                if !self.orders.is_empty() || self.events.len() == terms.bounds.events_max =>
            {
                return Ok(false);
            }
            Some(Entry::Event(event)) => {
                self.log_ms = self.log_ms.max(appended_ms);
                self.events.push(Logged { offset, log_ms: self.log_ms, event });
            }
            Some(Entry::Control(payload)) => {
                let order = Order::parse(payload, terms.consumer, offset)?;
                // Documents take effect behind the batch.
                let is_next = match &order {
                    None => true,
                    Some(order) if order.needs_documents() => {
                        self.events.is_empty() && self.orders.is_empty()
                    }
                    Some(_) => self.events.is_empty(),
                };
                if !is_next {
                    return Ok(false);
                }
                self.log_ms = self.log_ms.max(appended_ms);
                self.orders.extend(order);
            }
            None | Some(Entry::Void) => self.log_ms = self.log_ms.max(appended_ms),
        }
        Ok(true)
    }

    /// The documents that take effect.
    pub fn documents(&self) -> impl Iterator<Item = &DocumentVersion> {
        self.orders.iter().filter_map(|order| match order {
            Order::Document(document) => Some(document),
            Order::Erase { .. } | Order::Redrive { .. } => None,
        })
    }

    /// The subjects that are erased.
    pub fn erased(&self) -> Vec<String> {
        let subjects = self.orders.iter().filter_map(|order| match order {
            Order::Erase { subject } => Some(subject.clone()),
            Order::Document(_) | Order::Redrive { .. } => None,
        });
        subjects.collect()
    }

    /// The steps that are decided again.
    pub fn redriven(&self) -> impl Iterator<Item = &RefusedStep> {
        self.orders.iter().flat_map(|order| match order {
            Order::Redrive { steps } => steps.as_slice(),
            Order::Document(_) | Order::Erase { .. } => &[],
        })
    }

    /// Leaves the orders to a later batch, which begins here as well.
    pub fn leave_orders(&mut self, from: Offset) {
        if !self.orders.is_empty() {
            self.orders.clear();
            self.end = from;
        }
    }

    /// Leaves out the events from a place on, and what follows them.
    pub fn cut(&mut self, place: usize) {
        let Some(first) = self.events.get(place) else { return };
        self.end = first.offset;
        self.events.truncate(place);
        if let Some(last) = self.events.last() {
            self.log_ms = last.log_ms;
        }
    }
}

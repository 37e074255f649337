//! Deliveries: granted actions on their way to a destination.
//!
//! ```text
//!             ┌─ retried, postponed ─┐
//!             ▼                      │
//!   ──▶ pending ──take──▶ being sent ┼──▶ delivered
//!        ▲  ▲                        ├──▶ refused
//!        │  └─ redriven ── dead ◀────┤
//!        └──── released ── held ◀────┘        pending, held, dead ──▶ cancelled
//! ```
//!
//! *Being sent* is known to one process alone. If that process ends, the delivery is pending again
//! and is sent a second time, with the same id and the same body.

use super::budgets::{read_cost, write_cost};
use super::bytes::{Reader, Writer};
use super::limits::LEDGER_NOTE_LEN_MAX;
use super::{ActionId, Budget, CampaignId, Cost};

/// What is sent to a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub action: ActionId,
    pub campaign: CampaignId,
    pub subject: String,
    pub destination: String,
    /// Not sent before this time, in milliseconds since 1970.
    pub due_ms: i64,
    /// What it has reserved.
    pub cost: Option<Cost>,
    /// The body as it is sent each time.
    pub body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Waits for its time, and then for its destination.
    Pending = 1,
    /// Its campaign is paused.
    Held = 2,
    Delivered = 3,
    /// The destination will never accept it.
    Refused = 4,
    /// Every attempt failed.
    Dead = 5,
    Cancelled = 6,
}

/// A delivery and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRecord {
    pub delivery: Delivery,
    pub status: Status,
    /// Attempts so far, since it was last redriven.
    pub tries: u32,
    /// When a pending one is due, and when any other got its status, in milliseconds since 1970.
    pub at_ms: i64,
    /// Result of the last attempt, such as `503 Service Unavailable`.
    pub note: String,
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    Delivered,
    /// The destination will never accept it.
    Refused,
    /// The attempt failed, and there is another one at this time.
    Retry {
        next_ms: i64,
    },
    /// The last attempt failed.
    Dead,
    /// It was not sent, and is due at this time: the destination is too busy or out of reach.
    Postponed {
        next_ms: i64,
    },
    /// It was not sent, since its campaign is paused.
    Held,
}

/// The result for one delivery that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    pub action: ActionId,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: i64,
    pub settlement: Settlement,
    /// Result of the attempt. Only its beginning is stored.
    pub note: String,
}

/// The place of a delivery among those of one status.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeliveryPlace {
    pub destination: String,
    pub at_ms: i64,
    pub action: ActionId,
}

/// Which deliveries to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryQuery {
    pub status: Status,
    pub destination: Option<String>,
    pub campaign: Option<CampaignId>,
    /// Continues behind this place, as the last answer said.
    pub after: Option<DeliveryPlace>,
    pub len_max: usize,
}

/// A page of deliveries, by destination and time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deliveries {
    pub records: Vec<DeliveryRecord>,
    /// Where the next page begins; `None` at the end. A page may be short, even empty, and have a
    /// next one: a call examines a bounded number of deliveries.
    pub next: Option<DeliveryPlace>,
}

/// Which deliveries an operator changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    One(ActionId),
    /// Those of a destination, of a campaign, of both, or all.
    All {
        destination: Option<String>,
        campaign: Option<CampaignId>,
    },
}

/// How much waits for a destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Pending deliveries, being sent or not; counted up to a bound.
    pub pending: usize,
    /// When the first of them is or was due, in milliseconds since 1970.
    pub oldest_ms: Option<i64>,
}

impl Status {
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Held, Self::Delivered, Self::Refused, Self::Dead, Self::Cancelled];
    /// Those that may still be cancelled.
    pub const OPEN: [Self; 3] = [Self::Pending, Self::Held, Self::Dead];
    /// Those that nothing follows.
    pub const ENDED: [Self; 3] = [Self::Delivered, Self::Refused, Self::Cancelled];

    /// The name in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Held => "held",
            Self::Delivered => "delivered",
            Self::Refused => "refused",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|status| *status as u8 == number)
    }
}

impl Selection {
    /// Whether it includes the delivery, whatever its status.
    pub fn includes(&self, delivery: &Delivery) -> bool {
        match self {
            Self::One(action) => delivery.action == *action,
            Self::All { destination, campaign } => {
                destination.as_ref().is_none_or(|name| delivery.destination == *name)
                    && campaign.is_none_or(|campaign| delivery.campaign == campaign)
            }
        }
    }
}

impl DeliveryQuery {
    /// Whether the query asks for this record, place and number aside.
    pub fn matches(&self, record: &DeliveryRecord) -> bool {
        let Self { destination, campaign, .. } = self.clone();
        record.status == self.status
            && Selection::All { destination, campaign }.includes(&record.delivery)
    }
}

/// What a change of a delivery's status means for its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    None,
    Spent,
    Returned,
}

impl Effect {
    pub fn on(self, budget: &Budget, cost: &Cost) -> Budget {
        match self {
            Self::None => *budget,
            Self::Spent => budget.spend(cost),
            Self::Returned => budget.refund(cost),
        }
    }
}

impl DeliveryRecord {
    const VERSION: u8 = 1;

    /// A delivery that nobody has taken.
    pub fn new(delivery: Delivery) -> Self {
        let at_ms = delivery.due_ms;
        Self { delivery, status: Status::Pending, tries: 0, at_ms, note: String::new() }
    }

    pub fn place(&self) -> DeliveryPlace {
        let Delivery { destination, action, .. } = &self.delivery;
        DeliveryPlace { destination: destination.clone(), at_ms: self.at_ms, action: *action }
    }

    /// Applies the result of an attempt to a pending delivery.
    pub fn settle(&mut self, settled: &Settled) -> Effect {
        let is_attempt =
            !matches!(settled.settlement, Settlement::Postponed { .. } | Settlement::Held);
        if is_attempt {
            self.tries += 1;
            self.note = settled.note.clone();
            self.note.truncate(self.note.floor_char_boundary(LEDGER_NOTE_LEN_MAX));
        }

        let (status, at_ms, effect) = match settled.settlement {
            Settlement::Delivered => (Status::Delivered, settled.at_ms, Effect::Spent),
            Settlement::Refused => (Status::Refused, settled.at_ms, Effect::Returned),
            Settlement::Retry { next_ms } | Settlement::Postponed { next_ms } => {
                (Status::Pending, next_ms, Effect::None)
            }
            Settlement::Dead => (Status::Dead, settled.at_ms, Effect::None),
            Settlement::Held => (Status::Held, settled.at_ms, Effect::None),
        };
        self.move_to(status, at_ms);

        effect
    }

    /// Makes a dead or held delivery pending again, due at `now_ms`.
    pub fn send_again(&mut self, now_ms: i64) -> Effect {
        if self.status == Status::Dead {
            self.tries = 0;
        }
        self.move_to(Status::Pending, now_ms);
        Effect::None
    }

    /// Ends a pending, held or dead delivery.
    pub fn cancel(&mut self, now_ms: i64) -> Effect {
        self.move_to(Status::Cancelled, now_ms);
        Effect::Returned
    }

    fn move_to(&mut self, status: Status, at_ms: i64) {
        self.status = status;
        self.at_ms = at_ms;
    }

    /// The stored form, without the body, which never changes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Delivery { action, campaign, subject, destination, due_ms, cost, body: _ } =
            &self.delivery;
        Writer::new(Self::VERSION)
            .id(*action)
            .u32(*campaign)
            .text(subject)
            .text(destination)
            .i64(*due_ms)
            .option(cost.as_ref(), write_cost)
            .u8(self.status as u8)
            .u32(self.tries)
            .i64(self.at_ms)
            .text(&self.note)
            .finish()
    }

    /// The record with an empty body; `None` if the bytes are malformed, or of a newer version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut fields = Reader::new(bytes, Self::VERSION)?;
        let delivery = Delivery {
            action: fields.id()?,
            campaign: fields.u32()?,
            subject: fields.text()?,
            destination: fields.text()?,
            due_ms: fields.i64()?,
            cost: fields.option(read_cost)?,
            body: Vec::new(),
        };
        let record = Self {
            delivery,
            status: Status::from_number(fields.u8()?)?,
            tries: fields.u32()?,
            at_ms: fields.i64()?,
            note: fields.text()?,
        };
        fields.finish(record)
    }
}

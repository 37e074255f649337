//! What the letters of the queues say.

use crate::cloud_event::to_json;
use raingauge_core::event::Event;
use raingauge_points::WalletId;
use raingauge_ports::points::{DueWallet, Letter};
use raingauge_ports::record::identity;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;

/// An event that a rule could not price yet. Letter of the queue `retry`.
#[derive(Debug, Serialize, Deserialize)]
pub struct UnpricedEvent {
    pub programme: Arc<str>,
    /// The key of the award, which says which of the rules it was.
    pub key: Arc<str>,
    /// The event as a CloudEvent.
    pub event: Box<RawValue>,
}

/// A range of wallets in which something is due. Letter of the queue `expiry`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SweepRange {
    pub sweep: i64,
    pub book: u16,
    pub until_hour: u32,
    /// Wallets behind this one, ...
    pub after: Option<Bound>,
    /// ... up to this one.
    pub through: Bound,
}

/// A place in the due index, whose order it has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Bound {
    pub hour: u32,
    pub programme: Arc<str>,
    pub member: Arc<str>,
}

impl From<&DueWallet> for Bound {
    fn from(due: &DueWallet) -> Self {
        Self {
            hour: due.hour,
            programme: Arc::clone(&due.wallet.programme),
            member: Arc::clone(&due.wallet.member),
        }
    }
}

impl From<&Bound> for DueWallet {
    fn from(bound: &Bound) -> Self {
        let Bound { hour, programme, member } = bound.clone();
        Self { hour, wallet: WalletId { programme, member } }
    }
}

/// A notification that failed. Letter of the queue `notify`. The body is sent as it is each time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedNotice {
    pub id: String,
    pub body: String,
}

impl UnpricedEvent {
    pub fn letter(programme: &Arc<str>, key: &Arc<str>, event: &Event<'_>, why: &str) -> Letter {
        let identity = identity(programme, key);
        let event = to_json(event);
        let unpriced = Self { programme: Arc::clone(programme), key: Arc::clone(key), event };
        Letter::new(format!("{identity:032x}"), json_of(&unpriced)).because(why)
    }
}

impl SweepRange {
    pub fn letter(&self) -> Letter {
        let Bound { hour, programme, member } = &self.through;
        let hash = identity(programme, member);
        let id = format!("{}:{}:{hour}:{hash:032x}", self.sweep, self.book);
        Letter::new(id, json_of(self))
    }
}

impl FailedNotice {
    pub fn letter(&self, why: &str) -> Letter {
        Letter::new(&self.id, json_of(self)).because(why)
    }
}

fn json_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts and numbers are JSON")
}

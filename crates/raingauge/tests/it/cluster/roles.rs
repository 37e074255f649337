//! A writer, a reader and a portal as processes of their own.

use super::load::ids_of_each_partition;
use super::place::Place;
use crate::client::{Client, event, forever};
use crate::server::{Home, Server, until};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The processes end before what they work on goes.
pub struct Roles {
    pub writer: Server,
    pub reader: Server,
    pub portal: Server,
    pub place: Place,
}

impl Roles {
    pub fn new() -> Option<Self> {
        let place = Place::new(3)?;
        let [writer, reader, portal] = std::thread::scope(|scope| {
            let start = |role: &'static str| scope.spawn(|| place.start(role));
            ["writer", "reader", "portal"].map(start).map(|starting| starting.join().expect("it starts"))
        });
        Some(Self { writer, reader, portal, place })
    }

    /// Those that tests share which run at the same time, and disturb nobody.
    pub fn shared() -> Option<Arc<Self>> {
        static SHARED: Mutex<Weak<Roles>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(roles) = shared.upgrade() {
            return Some(roles);
        }
        let roles = Arc::new(Self::new()?);
        *shared = Arc::downgrade(&roles);
        Some(roles)
    }

    /// Waits until whatever was changed at the portal has taken effect in every partition and at the reader.
    pub fn settle(&self) {
        settle(&self.portal, &self.writer, &self.reader, self.place.partitions);
    }

    /// A reader with other settings, and the folder of its logs.
    pub fn reader_with(&self, settings: &[(&str, &str)]) -> (Server, Home) {
        let home = self.place.home_with(settings);
        (super::place::start(&home, "reader"), home)
    }
}

/// Waits until every partition counts by the counters that the catalog holds now, and a reader answers by them: changes
/// reach each of them in the order of the counters' ids, and the last one is a counter that is made for this.
pub fn settle(portal: &Client, writer: &Client, reader: &Client, partitions: u16) {
    static NEXT: AtomicU32 = AtomicU32::new(900_000);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let kind = format!("settle{id}");
    portal.create(json!({"id": id, "name": kind, "template": format!("{kind}:{{round}}"), "eventType": kind,
        "retentionDays": forever()}));
    let mut round = 0;
    until("every partition counts by the newest counters", || {
        round += 1;
        let count = count_round(writer, reader, &kind, round, partitions);
        (count == Some(i64::from(partitions))).then_some(())
    });
}

/// Sends one event to each partition, and answers how many of them a reader counts.
pub fn count_round(writer: &Client, reader: &Client, kind: &str, round: u32, partitions: u16) -> Option<i64> {
    let ids = ids_of_each_partition(&format!("{kind}-{round}"), partitions);
    let events: Vec<Value> = ids.iter().map(|id| event(kind, id, NOON_S, json!({"round": round}))).collect();
    writer.count_events(&events);
    reader.results(&[(&format!("{kind}:{round}"), NOON_S, NOON_S + 900)])[0]["count"].as_i64()
}

/// A noon in September 2024.
pub const NOON_S: i64 = 1_727_179_200;

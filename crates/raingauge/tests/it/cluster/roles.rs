//! A writer, a reader and a portal as separate processes, and their guarantees: each guarantee has
//! its own counter, and does not disturb the others.

use super::load::ids_of_each_partition;
use super::place::{Place, start};
use super::{example, foreign, history, portal, watching};
use crate::client::{Client, event, forever};
use crate::server::{Home, Server, until};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

type Promise = (&'static str, fn(&Roles));

const PROMISES: [Promise; 10] = [
    ("the worked example", example::answers_487_through_a_reader_of_its_own),
    ("a repeated request", example::a_repeated_request_loses_no_event),
    ("a changed counter", portal::a_change_is_counted_by_the_writer_and_answered_by_the_reader),
    ("other roles", portal::a_route_of_another_role_says_which),
    ("waiting", portal::what_was_waited_for_is_seen_by_another_process),
    ("watching", watching::processes_see_each_other),
    ("foreign events", foreign::are_counted_and_what_is_malformed_is_put_aside),
    ("recount", history::a_recount_equals_what_is_stored),
    ("backfill", history::a_counter_that_came_later_is_previewed_and_backfilled),
    ("backfill again", history::counts_never_dip_while_they_are_made_again),
];

/// One test for one set of processes: starting them takes longer than most of the checks.
#[test]
fn writer_reader_and_portal_keep_their_promises_as_three_processes() {
    let Some(roles) = Roles::new() else { return };
    let broken: Vec<&str> = std::thread::scope(|scope| {
        let keep = |(name, promise): Promise| {
            let roles = &roles;
            let kept = move || {
                let began = Instant::now();
                promise(roles);
                println!("{name}: {:?}", began.elapsed());
            };

            (
                name,
                std::thread::Builder::new()
                    .name(name.to_owned())
                    .spawn_scoped(scope, kept)
                    .expect("a thread"),
            )
        };

        let running = PROMISES.map(keep);
        running
            .into_iter()
            .filter_map(|(name, kept)| kept.join().is_err().then_some(name))
            .collect()
    });
    assert!(broken.is_empty(), "what failed stands above: {broken:?}");
}

/// The processes end before the engines that they use.
pub struct Roles {
    pub writer: Server,
    pub reader: Server,
    pub portal: Server,
    pub place: Place,
}

impl Roles {
    fn new() -> Option<Self> {
        let place = Place::new(3)?;
        let [writer, reader, portal] = std::thread::scope(|scope| {
            let begin = |role: &'static str| scope.spawn(|| place.start(role));
            ["writer", "reader", "portal"]
                .map(begin)
                .map(|starting| starting.join().expect("it starts"))
        });
        Some(Self { writer, reader, portal, place })
    }

    /// Waits until every change in the portal has taken effect in every partition and at the
    /// reader.
    pub fn settle(&self) {
        settle(&self.portal, &self.writer, &self.reader, self.place.partitions);
    }

    /// A reader with other settings, and the folder of its logs.
    pub fn reader_with(&self, settings: &[(&str, &str)]) -> (Server, Home) {
        let home = self.place.home_with(settings);
        (start(&home, "reader"), home)
    }
}

/// Waits until every partition counts by the current counters of the catalog, and a reader answers
/// by them: changes reach each of them in the order of the counters' ids, and the last one is a
/// counter created for this purpose.
pub fn settle(portal: &Client, writer: &Client, reader: &Client, partitions: u16) {
    static NEXT: AtomicU32 = AtomicU32::new(900_000);

    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let kind = format!("settle{id}");
    portal.create(
        json!({"id": id, "name": kind, "template": format!("{kind}:{{round}}"), "eventType": kind,
        "retentionDays": forever()}),
    );

    let mut round = 0;
    until("every partition counts by the newest counters", || {
        round += 1;
        let count = count_round(writer, reader, &kind, round, partitions);
        (count == Some(i64::from(partitions))).then_some(())
    });
}

/// Sends one event to each partition, and returns how many of them a reader counts.
pub fn count_round(
    writer: &Client,
    reader: &Client,
    kind: &str,
    round: u32,
    partitions: u16,
) -> Option<i64> {
    let ids = ids_of_each_partition(&format!("{kind}-{round}"), partitions);
    let events: Vec<Value> =
        ids.iter().map(|id| event(kind, id, NOON_S, json!({"round": round}))).collect();
    writer.count_events(&events);
    reader.results(&[(&format!("{kind}:{round}"), NOON_S, NOON_S + 900)])[0]["count"].as_i64()
}

/// A noon in September 2024.
pub const NOON_S: i64 = 1_727_179_200;

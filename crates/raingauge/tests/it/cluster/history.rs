//! Queries of the log's history at a portal that counts nothing itself.

use super::roles::{NOON_S, Roles};
use crate::client::{Client, event, forever};
use crate::contract::backfill::finish_backfill;
use crate::model::Model;
use serde_json::{Value, json};

const CITIES: i64 = 5;

fn counter(id: u32, kind: &str) -> Value {
    json!({"id": id, "name": kind, "template": format!("{kind}:{{city}}"), "eventType": kind,
        "retentionDays": forever()})
}

/// Events over two days, and what they count.
fn events(kind: &str, count: i64) -> (Vec<Value>, Model) {
    let mut model = Model::default();
    let events = (0..count).map(|index| {
        let city = index % CITIES;
        let time_s = NOON_S + index * 7_919 % 172_800;
        model.add(&format!("{kind}:{city}"), time_s, 1);
        event(kind, &format!("{kind}-{index}"), time_s, json!({"city": city}))
    });
    (events.collect(), model)
}

#[track_caller]
fn compare(reader: &Client, model: &Model) {
    for key in model.keys() {
        for (from, to) in
            [(0, 172_800), (900, 3_600), (5_400, 93_600), (86_400, 172_800), (80_100, 90_900)]
        {
            let (from, to) = (NOON_S + from, NOON_S + to);
            assert_eq!(
                reader.count(key, from, to),
                model.count(key, from, to),
                "{key} in [{from}, {to})"
            );
        }
    }
}

pub fn a_recount_equals_what_is_stored(roles: &Roles) {
    roles.portal.create(counter(70, "recounted"));
    roles.settle();

    let (events, model) = events("recounted", 600);
    roles.writer.count_events(&events);
    compare(&roles.reader, &model);

    for key in model.keys() {
        let (from, to) = (NOON_S, NOON_S + 172_800);
        let answer = roles
            .portal
            .get(&format!("/v1/recount?key={key}&fromTime={from}&toTime={to}"))
            .expect(200);
        let count = model.count(key, from, to);
        let expected = json!({"key": key, "fromTime": from, "toTime": to, "comparedFrom": from, "stored": count,
            "recounted": count, "equal": true, "differences": []});

        assert_eq!(answer, expected);
    }
}

/// A counter that is made after the events: its preview tells what they come to, and its backfill,
/// asked for at once, makes them count.
pub fn a_counter_that_came_later_is_previewed_and_backfilled(roles: &Roles) {
    let (events, model) = events("later", 3_000);
    roles.writer.count_events(&events);

    let preview = roles.portal.post("/v1/counters/preview", &counter(71, "later")).expect(200);
    assert_eq!(
        (&preview["eventsOfType"], &preview["counted"]),
        (&json!(3_000), &json!(3_000)),
        "{preview}"
    );
    assert_eq!(preview["keys"], CITIES, "{preview}");
    roles.portal.create(counter(71, "later"));

    let done = finish_backfill(&roles.portal, 71);
    assert_eq!((&done["status"], &done["counted"]), (&json!("finished"), &json!(3_000)), "{done}");

    // The reader answers by it as soon as it has looked at the writers' states.
    roles.settle();
    compare(&roles.reader, &model);

    // An edit takes part in the backfill that is asked for right behind it.
    let mut doubled = counter(71, "later");
    doubled["value"] = json!(2);
    roles.portal.send("PUT", "/v1/counters/71", &[], doubled.to_string().as_bytes()).expect(200);

    let done = finish_backfill(&roles.portal, 71);
    assert_eq!(done["status"], "finished", "{done}");
    roles.settle();

    let mut twice = model.clone();
    twice.merge(&model);
    compare(&roles.reader, &twice);
}

/// While a backfill of a counter runs, the old counts answer, and no event is missed. A recount
/// finds the same, or reports that it cannot tell at the moment.
pub fn counts_never_dip_while_they_are_made_again(roles: &Roles) {
    roles.portal.create(counter(72, "again"));
    roles.settle();

    let (events, model) = events("again", 3_000);
    roles.writer.count_events(&events);

    let (from, to) = (NOON_S, NOON_S + 172_800);
    std::thread::scope(|scope| {
        let again = scope.spawn(|| {
            (0..3).for_each(|_| drop(finish_backfill(&roles.portal, 72)));
            roles.settle();
        });
        let count = model.count("again:0", from, to);
        let mut recounts = 0;
        while !again.is_finished() || recounts == 0 {
            assert_eq!(roles.reader.count("again:0", from, to), count);
            let answer =
                roles.portal.get(&format!("/v1/recount?key=again:0&fromTime={from}&toTime={to}"));
            if !matches!(answer.status, 429 | 503) {
                let recount = answer.expect(200);
                assert_eq!(
                    (&recount["equal"], &recount["recounted"]),
                    (&json!(true), &json!(count)),
                    "{recount}"
                );
                recounts += 1;
            }
        }
    });
    compare(&roles.reader, &model);
}

//! The reference's worked example, through a reader that shares nothing with the writer but the
//! store.

use super::roles::{NOON_S, Roles};
use crate::client::{Client, event, forever};
use crate::contract::buckets::{ROWS, ask_example, rain_drops, rows};
use crate::server::until;
use serde_json::{Value, json};

pub fn answers_487_through_a_reader_of_its_own(roles: &Roles) {
    let (by_tables, _folder) = roles.reader_with(&[("cql.read_plan", "tables")]);
    roles.portal.create(rain_drops());
    let readers: [&Client; 2] = [&roles.reader, &by_tables];
    buckets_that_were_set(roles, readers);
    rows_that_were_written_by_hand(roles, readers);
}

fn buckets_that_were_set(roles: &Roles, readers: [&Client; 2]) {
    let key = "rain_drops:city:111222";
    for reader in readers {
        until("the reader knows the key", || reader.results(&[(key, 0, 900)])[0]["count"].as_i64());
    }

    // The counter may be so new that no partition has heard of it: what is accepted is counted all
    // the same.
    until("the writer takes the buckets", || {
        let sent = roles.writer.post("/v1/buckets", &rows(key)).expect(200);
        (sent["accepted"] == ROWS.len()).then_some(())
    });
    readers.iter().for_each(|reader| ask_example(reader, key));
    roles.writer.post("/v1/buckets", &rows(key)).expect(200);
    readers.iter().for_each(|reader| ask_example(reader, key));
}

/// The answer to a request is lost, an event is counted in any partition, and the client sends the
/// request again.
pub fn a_repeated_request_loses_no_event(roles: &Roles) {
    let counter = json!({"id": 36, "name": "repeated", "template": "repeated:{city}", "eventType": "repeated",
        "retentionDays": forever()});
    roles.portal.create(counter);
    roles.settle();

    let buckets: Vec<Value> = (0..9)
        .map(|city| json!({"key": format!("repeated:{city}"), "granularity": "hour", "time": NOON_S, "count": 18}))
        .collect();
    let set = |body: &[Value]| {
        let key = [("idempotency-key", "\"a request\"")];
        roles.writer.send("POST", "/v1/buckets", &key, json!(body).to_string().as_bytes())
    };
    let first = set(&buckets).expect(200);
    assert_eq!(first["accepted"], 9);

    let events: Vec<Value> = (0..9)
        .map(|city| event("repeated", &format!("r{city}"), NOON_S, json!({"city": city})))
        .collect();
    roles.writer.count_events(&events);

    assert_eq!(set(&buckets).expect(200), first);
    set(&buckets[1..]).expect_problem(422, "idempotency_key_reused");

    for city in 0..9 {
        assert_eq!(
            roles.reader.count(&format!("repeated:{city}"), NOON_S, NOON_S + 3_600),
            19,
            "city {city}"
        );
    }
}

/// The rows as the reference prints them, written by another program.
fn rows_that_were_written_by_hand(roles: &Roles, readers: [&Client; 2]) {
    let key = "rain_drops:city:333";
    for (granularity, time, count) in ROWS {
        let width = match granularity {
            "quarter" => "minutely",
            "hour" => "hourly",
            _ => "daily",
        };
        roles.place.run_cql(&format!(
            "INSERT INTO {width}_count_table (key, {width}_timestamp, log_partition, count) VALUES ('{key}', '{}', -1, {count})",
            time.replace('Z', "+0000")
        ));
    }

    readers.iter().for_each(|reader| ask_example(reader, key));
}

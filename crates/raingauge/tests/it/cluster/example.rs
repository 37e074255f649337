//! The reference's worked example, through a reader that shares nothing with the writer but the store.

use super::roles::Roles;
use crate::client::Client;
use crate::contract::buckets::{ROWS, ask_example, rain_drops, rows};
use crate::server::until;

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
    // The counter may be so new that no partition has heard of it: what is accepted is counted all the same.
    until("the writer takes the buckets", || {
        let sent = roles.writer.post("/v1/buckets", &rows(key)).expect(200);
        (sent["accepted"] == ROWS.len()).then_some(())
    });
    readers.iter().for_each(|reader| ask_example(reader, key));
    roles.writer.post("/v1/buckets", &rows(key)).expect(200);
    readers.iter().for_each(|reader| ask_example(reader, key));
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

//! Counts and events by commands: the same numbers, refusals and duplicates as over HTTP.

use super::{Client, home, integers, ok, words};
use crate::client::{at, drop_event, drops_counter, now_s, rfc3339};
use crate::server::{Home, Server, until};
use raingauge_resp_client::Reply;
use serde_json::Value;

const FROM: &str = "2024-09-24T00:00:00Z";
const TO: &str = "2024-09-26T00:00:00Z";

/// Seven drops in Oslo, one in each of the first hours of a day, and one in Bergen.
fn rained(server: &Server) {
    server.create(drops_counter());
    let mut events: Vec<Value> = (0..7)
        .map(|hour| drop_event(&format!("o{hour}"), at(FROM) + hour * 3_600, "oslo"))
        .collect();
    events.push(drop_event("b", at("2024-09-25T12:00:00Z"), "bergen"));
    server.count_events(&events);
}

#[test]
fn a_count_is_that_of_the_other_doors() {
    let home = home();
    let server = home.start();
    rained(&server);
    let mut client = Client::new(&server);

    assert_eq!(client.integer(&["RAIN.COUNT", "drops:oslo", FROM, TO]), 7);
    assert_eq!(client.integer(&["rain.count", "drops:oslo", FROM, TO, "fresh"]), 7);
    let seconds = (at(FROM).to_string(), at(TO).to_string());
    assert_eq!(client.integer(&["RAIN.COUNT", "drops:bergen", &seconds.0, &seconds.1]), 1);
    assert_eq!(client.integer(&["RAIN.COUNT", "drops:oslo", "-15m", "now"]), 0);

    let counts = client.call(&[
        "RAIN.COUNTS",
        "3",
        "drops:oslo",
        FROM,
        TO,
        "drops:bergen",
        FROM,
        TO,
        "drops:oslo",
        "today",
        "now",
    ]);
    assert_eq!(counts, integers(&[7, 1, 0]));
    assert_eq!(server.counts(&[("drops:oslo", at(FROM), at(TO))]), [7]);
}

#[test]
fn refusals_carry_the_codes_of_the_api_and_spoil_nothing_else() {
    let home = home();
    let server = home.start();
    rained(&server);
    let mut client = Client::new(&server);

    for (command, code) in [
        ("RAIN.COUNT nothing:here 0 900", "RAIN key_unknown "),
        ("RAIN.COUNT drops:oslo soon now", "RAIN time_invalid "),
        ("RAIN.COUNT drops:oslo now today", "RAIN range_backwards "),
        ("RAIN.COUNT drops:oslo 0 900 STALE", "ERR syntax error"),
        ("RAIN.COUNT drops:oslo 0", "ERR wrong number of arguments for 'rain.count' command"),
        ("RAIN.COUNTS 2 drops:oslo 0 900", "ERR syntax error"),
        ("RAIN.COUNTS 0 drops:oslo 0 900", "ERR value is out of range, must be positive"),
        ("RAIN.COUNTS x drops:oslo 0 900", "ERR value is not an integer or out of range"),
        ("RAIN.SERIES drops:oslo 0 900 minute", "RAIN granularity_unknown "),
        ("RAIN.SERIES drops:oslo 0 900 hour Mars/Base", "RAIN timezone_unknown "),
        ("RAIN.TOP 99 0 900 3", "RAIN counter_unknown "),
        ("RAIN.TOP oslo 0 900 3", "RAIN counter_unknown "),
        ("RAIN.TOP 34 0 900 0", "RAIN limit_out_of_range "),
        ("RAIN.EVENT WAIT DECIDED {}", "RAIN wait_unknown "),
        ("RAIN.ADD drop 1 city", "ERR wrong number of arguments for 'rain.add' command"),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let refused = client.refused(&words);
        assert!(refused.starts_with(code), "{command}: {refused}");
    }

    // In a list and in a pipeline, each fails alone.
    let Reply::Array(counts) = client.call(&[
        "RAIN.COUNTS",
        "3",
        "drops:oslo",
        FROM,
        TO,
        "a:b",
        FROM,
        TO,
        "drops:bergen",
        FROM,
        TO,
    ]) else {
        panic!("an array");
    };
    assert_eq!((&counts[0], &counts[2]), (&Reply::Integer(7), &Reply::Integer(1)));
    assert!(counts[1].error().expect("an error").starts_with("RAIN key_unknown "));
    assert_eq!(client.integer(&["RAIN.COUNT", "drops:oslo", FROM, TO]), 7);
}

#[test]
fn a_pipeline_mixes_counts_objects_and_refusals_in_order() {
    let home = home();
    let server = home.start();
    rained(&server);
    let mut client = Client::new(&server);

    let count = format!("RAIN.COUNT drops:oslo {FROM} {TO}");
    let commands: Vec<Vec<String>> =
        ["SET a 1", &count, &count, "INCR a", "RAIN.COUNT a b", "GET a", &count, "PING"]
            .into_iter()
            .map(words)
            .collect();
    let replies = client.pipeline(&commands);
    assert_eq!(
        (&replies[1], &replies[2], &replies[6]),
        (&Reply::Integer(7), &Reply::Integer(7), &Reply::Integer(7))
    );
    assert_eq!((&replies[3], &replies[5]), (&Reply::Integer(2), &Reply::Bulk(b"2".to_vec())));
    assert!(replies[4].error().is_some_and(|error| error.contains("rain.count")));

    // Larger than a batch of the reader, and larger than one command may be.
    let many: Vec<Vec<String>> = (0..2_500).map(|_| words(&count)).collect();
    assert!(client.pipeline(&many).iter().all(|reply| *reply == Reply::Integer(7)));
    let long = format!("RAIN.COUNTS 1001{}", format!(" drops:oslo {FROM} {TO}").repeat(1_001));
    assert!(
        client.pipeline(&[words(&long)])[0].error().unwrap().starts_with("RAIN too_many_ranges ")
    );
}

#[test]
fn a_series_and_the_largest_keys_are_pairs() {
    let home = home();
    let server = home.start();
    rained(&server);
    let mut client = Client::new(&server);
    let pair = |key: Reply, count| Reply::Array(vec![key, Reply::Integer(count)]);
    let day = |text: &str, count| pair(Reply::Integer(at(text)), count);

    let days = client.call(&["RAIN.SERIES", "drops:oslo", FROM, TO, "day"]);
    assert_eq!(days, Reply::Array(vec![day(FROM, 7), day("2024-09-25T00:00:00Z", 0)]));
    let berlin = client.call(&[
        "RAIN.SERIES",
        "drops:oslo",
        "2024-09-23T22:00:00Z",
        "2024-09-24T22:00:00Z",
        "DAY",
        "Europe/Berlin",
    ]);
    assert_eq!(berlin, Reply::Array(vec![day("2024-09-23T22:00:00Z", 7)]));

    let top = client.call(&["RAIN.TOP", "34", FROM, TO, "5"]);
    let key = |name: &str| Reply::Bulk(name.as_bytes().to_vec());
    assert_eq!(top, Reply::Array(vec![pair(key("drops:oslo"), 7), pair(key("drops:bergen"), 1)]));
    let first = client.call(&["RAIN.TOP", "34", FROM, TO, "1"]);
    assert_eq!(first, Reply::Array(vec![pair(key("drops:oslo"), 7)]));
}

/// Answers wait for a client that does not read, and the rest of its pipeline waits with them.
#[test]
fn long_answers_do_not_gather_in_front_of_a_client() {
    const OUTPUT_BYTES: usize = 1 << 20;
    const COMMANDS: usize = 300;
    let home = Home::with(&[
        ("resp.listen", "127.0.0.1:0"),
        ("resp.output_bytes_max", &OUTPUT_BYTES.to_string()),
    ]);
    let server = home.start();
    rained(&server);
    let mut late = Client::new(&server);
    let mut other = Client::new(&server);

    // About 190 KB each, and 57 MB together.
    let series = "RAIN.SERIES drops:oslo 2023-09-01T00:00:00Z 2024-09-30T00:00:00Z hour";
    let alone = late.pipeline(&[words(series)]);
    (0..COMMANDS).for_each(|_| late.push(series));
    late.send();
    let waiting = until("answers wait", || {
        let list = other.call(&["CLIENT", "LIST"]);
        let list = String::from_utf8_lossy(list.bytes().expect("a list"));
        let waiting = list.split("omem=").skip(1).filter_map(|rest| {
            rest.split(' ').next().and_then(|bytes| bytes.parse::<usize>().ok())
        });
        waiting.max().filter(|bytes| *bytes > OUTPUT_BYTES)
    });
    assert!(waiting < 4 * OUTPUT_BYTES, "{waiting} bytes");
    assert_eq!(late.replies(COMMANDS), vec![alone[0].clone(); COMMANDS]);
}

#[test]
fn events_are_accepted_once() {
    let home = home();
    let server = home.start();
    server.create(drops_counter());
    let mut client = Client::new(&server);
    let now = now_s();
    let json = |id: &str| drop_event(id, now, "oslo").to_string();

    let sent = client.call(&["RAIN.EVENT", "WAIT", "APPLIED", &json("1"), &json("2"), "{}"]);
    assert_eq!(sent, integers(&[2, 0, 1]));
    let from = rfc3339(now - 86_400);
    assert_eq!(client.integer(&["RAIN.COUNT", "drops:oslo", &from, "now", "FRESH"]), 2);
    assert_eq!(client.call(&["RAIN.EVENT", &json("1"), &json("3")]), integers(&[1, 1, 0]));

    // Fields and values; an event of the same source and id is the same one.
    let add = ["RAIN.ADD", "drop", "7", "city", "oslo", "wet", "true"];
    assert_eq!(client.call(&add), integers(&[1, 0, 0]));
    assert_eq!(client.call(&add), integers(&[0, 1, 0]));
    let other = ["RAIN.ADD", "drop", "7", "SOURCE", "till-4", "AT", "-1h", "city", "oslo"];
    assert_eq!(client.call(&other), integers(&[1, 0, 0]));
    assert_eq!(
        client.call(&["RAIN.ADD", "drop", "8", "AT", "1e9", "city", "oslo"]),
        integers(&[0, 0, 1])
    );

    until("all are counted", || {
        let count = client.integer(&["RAIN.COUNT", "drops:oslo", &from, "now", "FRESH"]);
        (count == 5).then_some(())
    });
}

#[test]
fn a_client_that_wants_no_replies_gets_no_counts() {
    let home = home();
    let server = home.start();
    rained(&server);
    let mut client = Client::new(&server);

    let count = format!("RAIN.COUNT drops:oslo {FROM} {TO}");
    for command in ["CLIENT REPLY OFF", &count, "RAIN.HOT", "CLIENT REPLY ON", &count] {
        client.push(command);
    }
    assert_eq!(client.replies(2), [ok(), Reply::Integer(7)]);

    for command in ["CLIENT REPLY SKIP", &count, "RAIN.COUNTS 1 drops:oslo 0 900"] {
        client.push(command);
    }
    assert_eq!(client.replies(1), [integers(&[0])]);
}

#[test]
fn a_pipeline_of_events_says_of_each_what_became_of_it() {
    let home = home();
    let server = home.start();
    server.create(drops_counter());
    let mut client = Client::new(&server);

    let mut commands: Vec<Vec<String>> =
        (0..1_200).map(|id| words(&format!("RAIN.ADD drop {} city oslo", id % 1_000))).collect();
    commands.insert(600, words("RAIN.ADD drop"));
    let replies = client.pipeline(&commands);
    assert!(replies[600].error().is_some_and(|error| error.contains("rain.add")));
    let taken: Vec<&Reply> = replies.iter().filter(|reply| reply.error().is_none()).collect();
    assert!(taken[..1_000].iter().all(|reply| **reply == integers(&[1, 0, 0])));
    assert!(taken[1_000..].iter().all(|reply| **reply == integers(&[0, 1, 0])));

    let from = rfc3339(now_s() - 86_400);
    let wait =
        client.call(&["RAIN.EVENT", "WAIT", "APPLIED", &drop_event("z", now_s(), "x").to_string()]);
    assert_eq!(wait, integers(&[1, 0, 0]));
    assert_eq!(client.integer(&["RAIN.COUNT", "drops:oslo", &from, "now", "FRESH"]), 1_000);
    assert_eq!(server.metric("raingauge_events_duplicate_total"), 200.0);
}

#[test]
fn transactions_take_objects_alone() {
    let home = home();
    let server = home.start();
    let mut client = Client::new(&server);
    client.call(&["MULTI"]);
    assert!(client.refused(&["RAIN.COUNT", "a", "0", "900"]).starts_with("ERR "));
    assert!(client.refused(&["EXEC"]).starts_with("EXECABORT "));
}

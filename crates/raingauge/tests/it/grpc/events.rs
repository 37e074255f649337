//! Events over gRPC: accepted, deduplicated, refused one by one.

use super::proto::io::cloudevents::v1::CloudEvent;
use super::proto::io::cloudevents::v1::cloud_event::Data;
use super::proto::io::cloudevents::v1::cloud_event::cloud_event_attribute_value::Attr;
use super::proto::raingauge::v1::{PublishRequest, PublishResponse};
use super::{Grpc, attribute, drop_event, home, noon_s, raw};
use crate::client::{self, drops_counter, forever, now_s};
use crate::contract::events::{add_work, busy_home};
use crate::server::until;
use prost::Message;
use serde_json::json;

fn with_attribute(mut event: CloudEvent, name: &str, value: Attr) -> CloudEvent {
    event.attributes.insert(name.to_owned(), attribute(value));
    event
}

fn codes(answer: &PublishResponse) -> Vec<(u32, &str)> {
    assert!(answer.rejected.iter().all(|refused| refused.detail.len() > 10));
    answer.rejected.iter().map(|refused| (refused.index, refused.code.as_str())).collect()
}

#[test]
fn events_in_every_form_are_counted_once() {
    let home = home();
    let server = home.start();
    server.create(drops_counter());
    server.create(json!({
        "id": 35, "name": "by subject", "template": "by:{subject}", "eventType": "drop", "retentionDays": forever(),
    }));

    let grpc = Grpc::new(&server);
    let binary = Some(Data::BinaryData(br#"{"city": "oslo"}"#.to_vec()));
    let json_type = Attr::CeString("Application/JSON; charset=utf-8".to_owned());
    let not_json = Some(Data::BinaryData(b"\xff\xfe".to_vec()));
    let picture = Attr::CeString("image/png".to_owned());

    let rfc3339 = Attr::CeString(client::rfc3339(noon_s()));
    let events = vec![
        drop_event("text", noon_s(), "oslo"),
        CloudEvent { data: binary.clone(), ..drop_event("bytes", noon_s(), "") },
        with_attribute(
            CloudEvent { data: binary, ..drop_event("typed", noon_s(), "") },
            "datacontenttype",
            json_type,
        ),
        with_attribute(drop_event("time as text", 0, "oslo"), "time", rfc3339),
        with_attribute(
            drop_event("subject", noon_s(), "oslo"),
            "subject",
            Attr::CeString("tuesday".to_owned()),
        ),
        with_attribute(
            drop_event("extension", noon_s(), "oslo"),
            "traceparent",
            Attr::CeInteger(7),
        ),
        // No fields to count by, and no fault either.
        CloudEvent { data: None, ..drop_event("nothing", noon_s(), "") },
        with_attribute(
            CloudEvent { data: not_json, ..drop_event("picture", noon_s(), "") },
            "datacontenttype",
            picture,
        ),
        drop_event("text", noon_s(), "oslo"),
    ];

    let answer = grpc.publish(events).expect("taken");
    assert_eq!((answer.accepted, answer.duplicates, codes(&answer)), (8, 1, vec![]));
    assert_eq!(server.counts(&[("drops:oslo", noon_s(), noon_s() + 900)]), [6]);
    assert_eq!(server.counts(&[("by:tuesday", noon_s(), noon_s() + 900)]), [1]);

    // Both doors know the same events.
    let again = server.count_events(&[client::drop_event("text", noon_s(), "oslo")]);
    assert_eq!(again["duplicates"], 1);

    let empty = grpc.publish(Vec::new()).expect("taken");
    assert_eq!(empty, PublishResponse::default());
}

#[test]
fn each_event_is_refused_alone() {
    let home = home();
    let server = home.start();
    server.create(drops_counter());

    let grpc = Grpc::new(&server);
    let good = |id: &str| drop_event(id, noon_s(), "oslo");
    let of_text =
        |text: &str| CloudEvent { data: Some(Data::TextData(text.to_owned())), ..good("x") };
    let timestamp = |seconds, nanos| Attr::CeTimestamp(prost_types::Timestamp { seconds, nanos });
    let mut timeless = good("x");

    timeless.attributes.clear();
    let events = [
        (good("a"), ""),
        (CloudEvent { spec_version: "0.3".to_owned(), ..good("x") }, "specversion_unsupported"),
        (CloudEvent { id: String::new(), ..good("x") }, "attribute_missing"),
        (CloudEvent { source: "s".repeat(1_025), ..good("x") }, "attribute_too_long"),
        (timeless, "attribute_missing"),
        (with_attribute(good("x"), "time", timestamp(-1, 0)), "time_invalid"),
        (with_attribute(good("x"), "time", timestamp(i64::MAX, 0)), "time_invalid"),
        (with_attribute(good("x"), "time", timestamp(0, -1)), "time_invalid"),
        (with_attribute(good("x"), "time", Attr::CeInteger(7)), "event_malformed"),
        (with_attribute(good("x"), "subject", Attr::CeBoolean(true)), "event_malformed"),
        (with_attribute(good("x"), "time", timestamp(now_s() + 3_600, 0)), "time_in_future"),
        (of_text("{"), "event_malformed"),
        (of_text(&"[".repeat(10_000)), "event_malformed"),
        (of_text(&format!("\"{}\"", "x".repeat(65_536))), "event_too_large"),
        (good("b"), ""),
    ];

    let refused = |(index, (_, code)): (usize, &(CloudEvent, &'static str))| (index as u32, *code);
    let expected: Vec<_> =
        events.iter().enumerate().filter(|(_, (_, code))| !code.is_empty()).map(refused).collect();
    let answer =
        grpc.publish(events.iter().map(|(event, _)| event.clone()).collect()).expect("taken");
    assert_eq!((answer.accepted, answer.duplicates, codes(&answer)), (2, 0, expected));
    assert_eq!(server.count("drops:oslo", noon_s(), noon_s() + 900), 2);
}

/// A malformed event does not affect the others.
#[test]
fn a_malformed_event_is_refused_alone_too() {
    #[derive(Clone, PartialEq, Message)]
    struct Raw {
        #[prost(bytes = "vec", repeated, tag = "1")]
        events: Vec<Vec<u8>>,
        #[prost(bool, tag = "2")]
        wait_applied: bool,
    }

    let home = home();
    let server = home.start();
    server.create(drops_counter());

    let grpc = Grpc::new(&server);
    let events = vec![
        drop_event("a", noon_s(), "oslo").encode_to_vec(),
        b"noise".to_vec(),
        vec![0x0a, 0xff],
    ];

    let message = Raw { events, wait_applied: true }.encode_to_vec();
    let answer = grpc.wait(raw::call(
        &grpc.address,
        "/raingauge.v1.Events/Publish",
        &[],
        &raw::framed(&message),
    ));

    assert_eq!(answer.header("grpc-status"), "0", "{answer:?}");
    let answer = PublishResponse::decode(&answer.body[5..]).expect("an answer");
    assert_eq!(
        (answer.accepted, codes(&answer)),
        (1, vec![(1, "event_malformed"), (2, "event_malformed")])
    );
    assert_eq!(server.count("drops:oslo", noon_s(), noon_s() + 900), 1);
}

#[test]
fn the_number_of_events_of_a_request_is_limited() {
    let home = home();
    let server = home.start();
    let grpc = Grpc::new(&server);
    let message =
        PublishRequest { events: vec![CloudEvent::default(); 50_001], wait_applied: false };
    let answer = grpc.publish(message.events);
    super::assert_refused(answer, tonic::Code::InvalidArgument, "too_many_events");
    let answer =
        grpc.publish(vec![CloudEvent::default(); 50_000]).expect("taken, and each is refused");
    assert_eq!((answer.accepted, answer.rejected.len()), (0, 50_000));
}

/// The same as by HTTP: an answer, since the events are durable, that says that they are not
/// counted.
#[test]
fn events_that_are_not_counted_in_time_are_safe() {
    let home = busy_home();
    let server = home.start();
    let grpc = Grpc::new(&server);
    let told = (0..60).find_map(|round| {
        add_work(&server, round);
        let event = drop_event(&round.to_string(), noon_s(), &format!("oslo-{round}"));

        // On a busy machine the log itself may take longer than a second.
        let answer = grpc.publish(vec![event]).ok()?;
        assert_eq!(answer.accepted, 1);
        answer.not_applied_yet.then_some((round, answer.lag))
    });

    let (round, lag) = told.expect("counting takes longer than a second at last");
    assert!(lag > 0);

    let key = format!("drops:oslo-{round}");
    until("it is counted all the same", || {
        (server.count(&key, noon_s(), noon_s() + 900) == 1).then_some(())
    });
}

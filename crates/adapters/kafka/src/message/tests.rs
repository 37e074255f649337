use super::*;
use proptest::prelude::*;
use raingauge_core::limits::EVENT_LEN_MAX;
use rdkafka::Timestamp;
use rdkafka::message::OwnedMessage;

const APPENDED_MS: i64 = 1_727_215_430_250;

fn message(headers: Option<OwnedHeaders>, payload: Option<&[u8]>) -> OwnedMessage {
    let appended = Timestamp::LogAppendTime(APPENDED_MS);
    OwnedMessage::new(payload.map(<[u8]>::to_vec), None, "t".to_owned(), appended, 0, 0, headers)
}

/// What is read with a minute's allowance for clocks.
fn read(message: &OwnedMessage) -> Reading<'_> {
    let options = Options { future_allowance_s: 60, ..Options::default() };
    super::read(message, APPENDED_MS, &options)
}

fn with(pairs: &[(&str, &[u8])]) -> Option<OwnedHeaders> {
    let headers = OwnedHeaders::new();
    Some(
        pairs.iter().fold(headers, |headers, (key, value)| {
            headers.insert(Header { key, value: Some(*value) })
        }),
    )
}

fn code_of(message: &OwnedMessage) -> &'static str {
    match read(message) {
        Reading::Refused(refusal) => refusal.code.as_str(),
        other => panic!("{other:?} is taken"),
    }
}

const BINARY: [(&str, &[u8]); 5] = [
    ("ce_specversion", b"1.0"),
    ("ce_id", b"7"),
    ("ce_source", b"s"),
    ("ce_type", b"rain"),
    ("ce_time", b"2024-09-24T22:03:50.25Z"),
];
const STRUCTURED: &[u8] =
    br#"{"specversion":"1.0","id":"7","source":"s","type":"rain","time":"2024-09-24T22:03:50.25Z","data":{"a":1}}"#;

proptest! {
    /// What is written is read again.
    #[test]
    fn events_lead_back(
        id in ".{1,9}",
        source in ".{1,9}",
        subject in proptest::option::of(".{0,9}"),
        time_ms in 0..APPENDED_MS,
        number in any::<i64>(),
        empty in any::<bool>(),
        refused in proptest::collection::vec(any::<u64>(), 0..3),
    ) {
        let data = if empty { String::new() } else { format!(r#"{{"n":{number}}}"#) };
        let event = Event {
            id: id.as_str().into(),
            source: source.as_str().into(),
            kind: "t".into(),
            subject: subject.as_deref().map(Cow::Borrowed),
            time_ms,
            data: &data,
            refused_keys: refused
                .iter()
                .flat_map(|hash| hash.to_le_bytes())
                .collect::<Vec<u8>>()
                .into(),
        };
        let message = message(Some(headers_of(&event)), Some(data.as_bytes()));
        prop_assert_eq!(read(&message), Reading::Event(event));
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        payload in proptest::collection::vec(any::<u8>(), 0..80),
        name in 0..10_usize,
        value in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let names = [
            "ce_specversion",
            "ce_id",
            "ce_time",
            "ce_type",
            "ce_source",
            "ce_subject",
            "content-type",
            control::SIGNATURE,
            CONTROL,
            REFUSED_KEYS,
        ];
        let _ = read(&message(with(&[(names[name], &value)]), Some(&payload)));
    }
}

#[test]
fn both_modes_of_other_producers_are_read() {
    let structured = message(
        with(&[("content-type", b"application/cloudevents+json; charset=UTF-8")]),
        Some(STRUCTURED),
    );
    let plain = message(None, Some(STRUCTURED));
    let mut pairs = BINARY.to_vec();
    pairs.extend([
        ("Content-Type", &b"application/json"[..]),
        ("ce_extension", b"\xff"),
        ("ce_id", b"second"),
    ]);

    let binary = message(with(&pairs), Some(br#"{"a":1}"#));
    for message in [&structured, &plain, &binary] {
        let Reading::Event(event) = read(message) else { panic!("it is an event") };
        assert_eq!((&*event.id, &*event.source, &*event.kind), ("7", "s", "rain"));
        assert_eq!((event.time_ms, event.data), (APPENDED_MS, r#"{"a":1}"#));
    }

    let mut pairs = BINARY.to_vec();
    pairs.push(("content-type", b"image/png"));

    let picture = message(with(&pairs), Some(b"\x89PNG"));
    assert!(matches!(read(&picture), Reading::Event(event) if event.data.is_empty()));
}

#[test]
fn control_entries_are_their_payload() {
    let control = message(Some(control_headers(None)), Some(b"note"));
    assert_eq!(read(&control), Reading::Control(b"note", None));
}

#[test]
fn each_fault_has_its_code() {
    let replaced = |name: &str, value: &'static [u8]| {
        let pairs = BINARY.map(|pair| if pair.0 == name { (pair.0, value) } else { pair });
        message(with(&pairs), Some(b"{}"))
    };
    assert_eq!(code_of(&replaced("ce_specversion", b"0.3")), "specversion_unsupported");
    assert_eq!(code_of(&replaced("ce_id", b"")), "attribute_missing");
    assert_eq!(code_of(&replaced("ce_source", b"\xff\xfe")), "event_malformed");
    assert_eq!(code_of(&replaced("ce_time", b"yesterday")), "time_invalid");
    assert_eq!(code_of(&replaced("ce_time", b"2024-09-24T22:04:51Z")), "time_in_future");
    assert_eq!(code_of(&message(with(&BINARY), Some(b"{"))), "event_malformed");
    assert_eq!(code_of(&message(with(&BINARY), Some(&b"[".repeat(1_000)))), "event_malformed");
    assert_eq!(
        code_of(&message(
            with(&BINARY),
            Some(format!("\"{}\"", "7".repeat(EVENT_LEN_MAX)).as_bytes())
        )),
        "event_too_large"
    );
    assert_eq!(code_of(&message(with(&BINARY[..4]), None)), "attribute_missing");
    assert_eq!(code_of(&message(None, None)), "event_malformed");
    assert_eq!(code_of(&message(None, Some(b"noise"))), "event_malformed");
    assert_eq!(
        code_of(&message(with(&[("content-type", b"text/plain")]), Some(STRUCTURED))),
        "media_type_unknown"
    );

    let batch =
        message(with(&[("content-type", b"application/cloudevents-batch+json")]), Some(b"[]"));
    assert_eq!(code_of(&batch), "batch_unsupported");
}

/// The partition of an event is part of the contract where that is asked for.
#[test]
fn an_event_in_the_partition_of_another_one_is_refused() {
    let partitions = 5;
    let own = partition_of(record::identity("s", "7"), partitions);
    let in_partition = |partition: u16| {
        let appended = Timestamp::LogAppendTime(APPENDED_MS);
        OwnedMessage::new(
            Some(b"{}".to_vec()),
            None,
            "t".to_owned(),
            appended,
            partition.into(),
            0,
            with(&BINARY),
        )
    };

    let checking =
        Options { checks_partitions: true, partitions: Some(partitions), ..Options::default() };
    for partition in 0..partitions {
        let message = in_partition(partition);
        assert!(
            matches!(read(&message), Reading::Event(_)),
            "without the check any partition will do"
        );

        match super::read(&message, APPENDED_MS, &checking) {
            Reading::Event(_) => assert_eq!(partition, own),
            Reading::Refused(refusal) => {
                assert!(partition != own && refusal.code.as_str() == "partition_wrong")
            }
            Reading::Control(..) => panic!("it is an event"),
        }
    }
}

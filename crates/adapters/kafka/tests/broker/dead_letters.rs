use crate::support::{One, SOON, flush, foreign, made, options, produce, shown, until};
use raingauge_kafka::{ControlFault, ControlRules, Options};
use raingauge_ports::contract::log::{batch, texts};
use raingauge_ports::log::{EventLog, EventSink};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Headers, OwnedMessage};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use std::time::Instant;

/// All messages of the dead-letter topic.
fn dead_letters(options: &Options) -> Vec<OwnedMessage> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", options.brokers.join(",")).set("group.id", "dead-letters");

    let consumer: BaseConsumer = config.set("enable.auto.commit", "false").create().unwrap();
    let (_, end) = consumer.fetch_watermarks(&options.dead_letter_topic, 0, SOON).unwrap();
    let mut place = TopicPartitionList::new();
    place.add_partition_offset(&options.dead_letter_topic, 0, Offset::Beginning).unwrap();
    consumer.assign(&place).unwrap();

    let deadline = Instant::now() + SOON;
    let mut letters = Vec::new();
    while (letters.len() as i64) < end {
        assert!(Instant::now() < deadline);
        if let Some(Ok(message)) = consumer.poll(SOON) {
            letters.push(message.detach());
        }
    }

    letters
}

/// Appends, and waits without reading: who waits at an end counts from there, and puts nothing
/// aside that stands before it.
async fn behind(one: &One, ids: &[&str]) {
    let end = one.sink.append(batch(ids)).await.unwrap().ends[0].1;
    until("it shows", || one.log.end() >= end);
}

fn codes(letters: &[OwnedMessage]) -> Vec<&str> {
    letters.iter().map(|letter| header(letter, "raingauge-reason-code")).collect()
}

fn header<'a>(message: &'a OwnedMessage, name: &str) -> &'a str {
    let headers = message.headers().unwrap();
    let found = headers.iter().find(|header| header.key == name).and_then(|header| header.value);
    std::str::from_utf8(found.unwrap_or_else(|| panic!("the header {name} is there"))).unwrap()
}

#[tokio::test]
async fn what_cannot_be_counted_is_put_aside_once() {
    let Some(options) = options("poison") else {
        return;
    };
    let one = One::new(&options).await;
    one.append(batch(&["a"])).await;

    let producer = foreign(&options, &[]);
    produce(&producer, &options.topic, &[("trace", b"\xff\x00")], b"noise");
    produce(
        &producer,
        &options.topic,
        &[("content-type", b"application/cloudevents-batch+json")],
        b"[]",
    );

    let future: [(&str, &[u8]); 5] = [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"f"),
        ("ce_source", b"s"),
        ("ce_type", b"t"),
        ("ce_time", b"9000-01-01T00:00:00Z"),
    ];

    produce(&producer, &options.topic, &future, b"{}");
    produce(&producer, &options.topic, &[], &b" ".repeat(100_000));
    flush(&producer);
    assert_eq!(one.append(batch(&["b"])).await, 6);

    // A log that is only inspected sends nothing.
    let looking = one.topic.log(0).unwrap();
    shown(&looking, 6);
    assert_eq!(texts(&looking, 0), ["a", "b"]);
    assert_eq!(dead_letters(&options).len(), 0);

    assert_eq!(texts(&one.log, 0), ["a", "b"]);
    let letters = dead_letters(&options);
    let codes: Vec<&str> =
        letters.iter().map(|letter| header(letter, "raingauge-reason-code")).collect();
    assert_eq!(
        codes,
        ["event_malformed", "batch_unsupported", "time_in_future", "event_too_large"]
    );

    for (letter, offset) in letters.iter().zip(1..) {
        assert_eq!(header(letter, "raingauge-source-topic"), options.topic);
        assert_eq!(header(letter, "raingauge-source-partition"), "0");
        assert_eq!(header(letter, "raingauge-source-offset"), offset.to_string());
        assert!(!header(letter, "raingauge-reason").is_empty());
    }

    assert_eq!(letters[0].payload(), Some(&b"noise"[..]));
    let trace = letters[0].headers().unwrap().iter().find(|header| header.key == "trace").unwrap();
    assert_eq!(trace.value, Some(&b"\xff\x00"[..]), "its own headers are kept");

    // Reading again sends nothing, nor does reading from the middle or taking the partition back.
    assert_eq!(texts(&one.log, 0), ["a", "b"]);
    assert_eq!(texts(&one.log, 3), ["b"]);
    assert_eq!(texts(&one.topic.counting_log(0).unwrap(), 0), ["a", "b"]);

    // A successor begins behind what its predecessor has dealt with.
    let successor = One::open(&options).await;
    assert_eq!(texts(&successor.log, 3), ["b"]);
    assert_eq!(texts(&successor.log, 0), ["a", "b"]);

    let codes: Vec<String> = dead_letters(&options)
        .iter()
        .map(|letter| header(letter, "raingauge-source-offset").to_owned())
        .collect();
    assert_eq!(
        codes,
        ["1", "2", "3", "4", "3", "4"],
        "at least once: the successor began before two of them"
    );
}

/// A worker that waits at the end has read what comes before it asks for it.
#[tokio::test]
async fn what_was_waited_for_is_put_aside_too() {
    let Some(options) = options("waited") else {
        return;
    };
    let one = One::new(&options).await;
    let producer = foreign(&options, &[]);

    for round in 0..3 {
        let end = one.log.end();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| one.log.wait_beyond(end, SOON));
            produce(&producer, &options.topic, &[], b"noise");
            flush(&producer);
            assert_eq!(waiting.join().unwrap(), end + 1);
        });
        assert_eq!(one.log.read(end, 1).unwrap()[0].len, 1);
        assert_eq!(dead_letters(&options).len(), round + 1);
    }
}

/// A dead-letter topic that is not there must not stop the counting.
#[tokio::test]
async fn counting_goes_on_without_a_dead_letter_topic() {
    let Some(options) = options("no-letters") else {
        return;
    };
    let one = One::new(&options).await;
    let without =
        Options { dead_letter_topic: format!("{}-missing", options.topic), ..options.clone() };
    let producer = foreign(&options, &[]);
    produce(&producer, &options.topic, &[], b"noise");
    flush(&producer);
    one.append(batch(&["a"])).await;
    let one = One::open(&without).await;
    assert_eq!(texts(&one.log, 0), ["a"]);
}

/// Garbage is dealt with in batches, not message by message: this many would take minutes
/// otherwise.
#[tokio::test]
async fn a_flood_of_garbage_does_not_hold_up_what_stands_behind_it() {
    let Some(options) = options("flood") else {
        return;
    };
    let one = One::new(&options).await;
    let producer = foreign(&options, &[("queue.buffering.max.messages", "1000000")]);
    (0..30_000).for_each(|_| produce(&producer, &options.topic, &[], b"noise"));
    flush(&producer);
    behind(&one, &["a"]).await;
    assert_eq!(texts(&one.log, 0), ["a"]);
    assert_eq!(dead_letters(&options).len(), 30_000);
}

/// A reader that is to stop does not wait for brokers that confirm nothing.
#[tokio::test]
async fn a_reader_that_stops_does_not_wait_for_dead_letters() {
    let Some(options) = options("stops") else {
        return;
    };

    // More copies than there are brokers are wanted before anything is confirmed.
    let letters = format!("{}-unconfirmed", options.topic);
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", options.brokers.join(",")).create().unwrap();
    let topic =
        NewTopic::new(&letters, 1, TopicReplication::Fixed(1)).set("min.insync.replicas", "2");
    admin.create_topics([&topic], &AdminOptions::new()).await.unwrap().pop().unwrap().unwrap();
    made(&options, 1).await;

    let one = One::open(&Options {
        dead_letter_topic: letters,
        delivery_timeout: SOON,
        ..options.clone()
    })
    .await;

    let producer = foreign(&options, &[]);
    produce(&producer, &options.topic, &[], b"noise");
    flush(&producer);
    shown(&one.log, 1);

    std::thread::scope(|scope| {
        let (began, begin) = std::sync::mpsc::channel();
        let log = &one.log;
        let reading = scope.spawn(move || {
            began.send(()).unwrap();
            log.read(0, 1_000)
        });
        begin.recv().unwrap();
        one.log.stop_waiting();
        assert_eq!(reading.join().unwrap().unwrap(), Vec::new());
    });
}

/// Neither garbage under the header of a control entry nor a forged one stops a partition or
/// changes anything.
#[tokio::test]
async fn control_entries_of_others_are_put_aside() {
    let Some(options) = options("forged") else {
        return;
    };
    let check = |payload: &[u8]| match payload {
        b"x" => Err(ControlFault::Malformed("no JSON".to_owned())),
        b"newer" => Err(ControlFault::UnknownKind("newer".to_owned())),
        _ => Ok(()),
    };

    let open = ControlRules { check: Some(check), ..ControlRules::default() };
    let one = One::new(&Options { controls: open.clone(), ..options.clone() }).await;
    let producer = foreign(&options, &[]);

    for payload in [&b"x"[..], b"newer", b"note"] {
        produce(&producer, &options.topic, &[("raingauge-control", b"1")], payload);
    }
    flush(&producer);
    behind(&one, &["a"]).await;
    assert_eq!(texts(&one.log, 0), ["[note]", "a"], "without a key what is well formed is obeyed");
    assert_eq!(codes(&dead_letters(&options)), ["control_malformed", "control_kind_unknown"]);

    let keyed = ControlRules { keys: vec![b"secret of the cluster".to_vec()], ..open };
    let keyed = One::open(&Options { controls: keyed, ..options.clone() }).await;
    let signed = keyed.sink.append_control(0, b"signed".to_vec()).await.unwrap();
    until("it shows", || keyed.log.end() >= signed);
    assert_eq!(texts(&keyed.log, 0), ["a", "[signed]"], "with a key only what is signed is obeyed");
    assert_eq!(codes(&dead_letters(&options))[2..], ["control_unsigned"; 3]);

    let newer = keyed.sink.append_control(0, b"newer".to_vec()).await.unwrap();
    shown(&keyed.log, newer);
    assert_eq!(
        texts(&keyed.log, signed),
        ["[newer]"],
        "a newer process wrote it: the reader must not pass it over"
    );
}

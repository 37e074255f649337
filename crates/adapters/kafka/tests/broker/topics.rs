use crate::support::{One, SOON, made, options, plan, until};
use raingauge_kafka::{self as kafka, Error, Options, Plan, migrate};
use raingauge_ports::contract::log::batch;
use raingauge_ports::log::{self, EventLog, LogTimes};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use std::time::{Duration, Instant};

/// Creates a topic with settings of its own.
pub async fn create(options: &Options, partitions: i32, settings: &[(&str, &str)]) {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", options.brokers.join(",")).create().unwrap();
    let topic = NewTopic::new(&options.topic, partitions, TopicReplication::Fixed(1));
    let topic = settings.iter().fold(topic, |topic, (name, value)| topic.set(name, value));
    let options = AdminOptions::new().operation_timeout(Some(Duration::from_secs(30)));
    admin.create_topics([&topic], &options).await.unwrap().pop().unwrap().unwrap();
}

#[tokio::test]
async fn topics_are_made_once() {
    let Some(options) = options("make") else {
        return;
    };
    assert!(matches!(kafka::Topic::open(options.clone()).await, Err(Error::NoTopic { .. })));

    let first = made(&options, 3).await;
    assert!(first.iter().all(|done| done.created), "{first:?}");

    let names: Vec<&String> = first.iter().map(|done| &done.topic).collect();
    assert!(
        [&options.topic, &options.dead_letter_topic].iter().all(|name| names.contains(name)),
        "{names:?}"
    );

    let again = made(&options, 3).await;
    assert!(again.iter().all(|done| !done.created && done.warnings.is_empty()), "{again:?}");
    assert_eq!(kafka::Topic::open(options).await.unwrap().partitions(), 3);
}

#[tokio::test]
async fn without_a_topic_of_leases_the_error_says_how_to_make_it() {
    let Some(options) = options("no-leases") else {
        return;
    };
    create(&options, 1, &[("message.timestamp.type", "LogAppendTime")]).await;
    let topic = kafka::Topic::open(options.clone()).await.expect("the topic opens");
    let refused = kafka::Leases::open(&topic).await.err().expect("it is refused").to_string();
    assert!(
        refused.contains(&options.leases_topic()) && refused.contains("raingauge migrate"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_topic_with_other_partitions_is_refused() {
    let Some(options) = options("partitions") else {
        return;
    };
    made(&options, 3).await;
    assert!(matches!(
        migrate(&options, &plan(4)).await,
        Err(Error::PartitionsChanged { found: 3, wanted: 4, .. })
    ));

    let wanted = Options { partitions: Some(2), ..options };
    assert!(matches!(
        kafka::Topic::open(wanted).await,
        Err(Error::PartitionsChanged { found: 3, wanted: 2, .. })
    ));
}

#[tokio::test]
async fn a_topic_that_cannot_be_counted_by_is_refused() {
    let Some(first) = options("times") else {
        return;
    };
    create(&first, 1, &[]).await;
    assert!(matches!(migrate(&first, &plan(1)).await, Err(Error::NotAppendTime { .. })));
    assert!(matches!(kafka::Topic::open(first).await, Err(Error::NotAppendTime { .. })));

    let compacted = options("compacted").unwrap();
    create(
        &compacted,
        1,
        &[("message.timestamp.type", "LogAppendTime"), ("cleanup.policy", "compact")],
    )
    .await;
    assert!(matches!(migrate(&compacted, &plan(1)).await, Err(Error::Compacted { .. })));

    let short = options("short").unwrap();
    create(
        &short,
        1,
        &[
            ("message.timestamp.type", "LogAppendTime"),
            ("retention.ms", "3600000"),
            ("retention.bytes", "1000"),
        ],
    )
    .await;

    let done = migrate(&short, &plan(1)).await.unwrap();
    assert_eq!(
        done[0].warnings.len(),
        3,
        "retention by time and by size, and the length of messages: {done:?}"
    );

    let brief = Plan { retention_ms: 1_000, ..plan(1) };
    assert!(matches!(migrate(&short, &brief).await, Err(Error::Settings(_))));
}

/// An acknowledged event survives the loss of one copy, or opening the topic warns that it does
/// not.
#[tokio::test]
async fn a_topic_that_can_lose_acknowledged_events_is_reported() {
    let Some(careless) = options("careless") else {
        return;
    };
    let settings =
        [("message.timestamp.type", "LogAppendTime"), ("unclean.leader.election.enable", "true")];
    create(&careless, 1, &[&settings[..], &[("max.message.bytes", "8388608")]].concat()).await;

    let planned = Plan { replication: 3, ..plan(1) };

    // The other topics are there already, so that three copies are not asked of one broker.
    migrate(&careless, &plan(1)).await.unwrap();
    let warnings = migrate(&careless, &planned).await.unwrap().remove(0).warnings.join("\n");
    assert!(warnings.contains("min.insync.replicas=2"), "{warnings}");
    assert!(warnings.contains("unclean.leader.election.enable=false"), "{warnings}");

    let careful = options("careful").unwrap();
    made(&careful, 1).await;
    assert_eq!(migrate(&careful, &plan(1)).await.unwrap()[0].warnings, Vec::<String>::new());
}

async fn recreate(options: &Options) {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", options.brokers.join(",")).create().unwrap();
    admin
        .delete_topics(&[&options.topic], &AdminOptions::new())
        .await
        .unwrap()
        .pop()
        .unwrap()
        .unwrap();

    // The brokers delete in the background.
    let deadline = Instant::now() + SOON;
    while !migrate(options, &plan(1)).await.is_ok_and(|done| done[0].created) {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A topic that is recreated while it is read has another id, whatever its offsets and times are.
#[tokio::test]
async fn a_topic_that_is_recreated_while_it_is_read_is_refused() {
    let Some(options) = options("under-way") else {
        return;
    };
    let one = One::new(&options).await;
    let id = one.topic.id().expect("these brokers know of ids");
    one.append(batch(&["a", "b"])).await;
    assert_eq!(
        kafka::Topic::open(options.clone()).await.unwrap().id(),
        Some(id),
        "it stays the same"
    );

    recreate(&options).await;
    until("what is not the same is not read", || {
        matches!(one.log.read(0, 1), Err(log::Error::Replaced(_)))
    });

    let refused = one.log.verify(0, 0).unwrap_err().to_string();
    assert!(refused.contains("was recreated") && refused.contains("kafka.epoch"), "{refused}");

    let next = One::open(&options).await;
    assert_ne!(next.topic.id(), Some(id));
    next.log.verify(0, 0).unwrap();
    next.topic.refuse();
    assert!(matches!(next.log.read(0, 1), Err(log::Error::Replaced(_))));
}

/// Offsets alone do not tell a topic from its successor: what was appended later than the
/// checkpoint lies before it.
#[tokio::test]
async fn a_recreated_topic_is_refused_even_when_it_has_grown_longer() {
    let Some(options) = options("recreated") else {
        return;
    };
    let one = One::new(&options).await;
    let end = one.append(batch(&["a", "b", "c"])).await;
    let appended_ms = one.log.read(0, 10_000).unwrap().last().unwrap().appended_ms;

    one.log.verify(end, appended_ms).unwrap();
    one.log.verify(end - 1, appended_ms).unwrap();
    one.append(batch(&["d"])).await;
    one.log.verify(end, appended_ms).unwrap();
    drop(one);

    recreate(&options).await;
    let one = One::open(&options).await;
    one.append(batch(&["e", "f"])).await;

    let short = one.log.verify(end, appended_ms).unwrap_err().to_string();
    assert!(short.contains("kafka.epoch"), "{short}");
    one.append(batch(&["g", "h", "i"])).await;

    let refused = one.log.verify(end, appended_ms).unwrap_err();
    assert!(
        matches!(&refused, log::Error::Replaced(reason) if reason.contains("was recreated")),
        "{refused}"
    );
    one.log.verify(0, 0).unwrap();
}

#[tokio::test]
async fn a_wrong_address_is_named() {
    // Nothing listens on the port of a listener that is gone.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let options = Options {
        brokers: vec![format!("127.0.0.1:{port}")],
        request_timeout: Duration::from_secs(2),
        ..Options::default()
    };
    let error =
        kafka::Topic::open(options.clone()).await.err().expect("nobody is there").to_string();
    assert!(error.contains(&port.to_string()) && error.contains("kafka.brokers"), "{error}");
    let error = migrate(&options, &plan(1)).await.unwrap_err().to_string();
    assert!(error.contains(&port.to_string()), "{error}");
}

#[tokio::test]
async fn an_unknown_property_is_named() {
    let options = Options {
        properties: [("no.such.thing".to_owned(), "1".to_owned())].into(),
        ..Options::default()
    };
    let error = kafka::Topic::open(options).await.err().expect("it is refused").to_string();
    assert!(error.contains("no.such.thing"), "{error}");
}

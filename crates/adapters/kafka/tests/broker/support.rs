//! A topic of its own for each test, and a producer that is not raingauge's.

use raingauge_kafka::{self as kafka, Migrated, Options, Plan, migrate};
use raingauge_ports::log::{Batch, EventLog, EventSink, Offset};
use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub const SOON: Duration = Duration::from_secs(60);

/// The options of a test, or nothing when there is no broker.
pub fn options(test: &str) -> Option<Options> {
    let Ok(broker) = std::env::var("RAINGAUGE_TEST_KAFKA") else {
        println!("skipped: RAINGAUGE_TEST_KAFKA names no broker");
        return None;
    };
    Some(options_at(&broker, test))
}

pub fn options_at(broker: &str, test: &str) -> Options {
    let name = format!("{test}-{:016x}", rand::random::<u64>());
    Options {
        brokers: vec![broker.to_owned()],
        topic: name.clone(),
        dead_letter_topic: format!("{name}-dead"),
        group: format!("{name}-group"),
        session_timeout: Duration::from_secs(6),
        ..Options::default()
    }
}

/// A broker in a folder of its own, by `scripts/services`.
pub struct Broker {
    folder: tempfile::TempDir,
    pub address: String,
}

impl Broker {
    /// Nothing when there are no brokers to be had.
    pub fn start(arguments: &[&str]) -> Option<Self> {
        if std::env::var_os("RAINGAUGE_TEST_KAFKA").is_none() {
            println!(
                "skipped: RAINGAUGE_TEST_KAFKA names no broker, so that none is started either"
            );
            return None;
        }
        let mut broker = Self { folder: tempfile::tempdir().unwrap(), address: String::new() };
        broker.services("start", arguments);
        broker.address = broker.variable("RAINGAUGE_TEST_KAFKA");
        Some(broker)
    }

    /// What it told about itself.
    pub fn variable(&self, name: &str) -> String {
        let environment = std::fs::read_to_string(self.folder.path().join("env")).unwrap();
        let value = environment.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        value
            .unwrap_or_else(|| panic!("the environment has no {name}"))
            .trim_matches(['\'', '"'])
            .to_owned()
    }

    pub fn services(&self, verb: &str, arguments: &[&str]) {
        let services = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scripts/services");
        let mut command = Command::new(services);
        let done = command
            .arg(verb)
            .arg(self.folder.path())
            .args(arguments)
            .stdout(Stdio::null())
            .status();
        assert!(done.is_ok_and(|status| status.success()), "scripts/services {verb} succeeds");
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.services("stop", &[]);
    }
}

pub fn plan(partitions: u16) -> Plan {
    Plan { partitions, replication: 1, retention_ms: 7 * 86_400_000 }
}

pub async fn made(options: &Options, partitions: u16) -> Vec<Migrated> {
    migrate(options, &plan(partitions)).await.expect("the topics are made")
}

/// A new topic of one partition: what is sent to it and how it is read.
pub struct One {
    pub topic: kafka::Topic,
    pub sink: kafka::Sink,
    pub log: kafka::Log,
}

impl One {
    pub async fn new(options: &Options) -> Self {
        made(options, 1).await;
        Self::open(options).await
    }

    pub async fn open(options: &Options) -> Self {
        let topic = kafka::Topic::open(options.clone()).await.expect("the topic opens");
        let sink = kafka::Sink::new(&topic).expect("a sink");
        let log = topic.counting_log(0).expect("a log");
        Self { topic, sink, log }
    }

    /// Appends and waits until it shows.
    pub async fn append(&self, batch: Batch) -> Offset {
        let end = self.sink.append(batch).await.expect("appended").ends[0].1;
        assert!(self.log.wait_beyond(end - 1, SOON) >= end);
        end
    }
}

/// Waits for a condition.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A producer as anybody has one.
pub fn foreign(options: &Options, properties: &[(&str, &str)]) -> BaseProducer {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", options.brokers.join(","));
    for (name, value) in properties {
        config.set(*name, *value);
    }
    config.create().expect("a producer")
}

/// Hands over one message.
pub fn produce(producer: &BaseProducer, topic: &str, headers: &[(&str, &[u8])], payload: &[u8]) {
    let headers = headers.iter().fold(OwnedHeaders::new(), |headers, (key, value)| {
        headers.insert(Header { key, value: Some(*value) })
    });
    let record: BaseRecord<'_, (), [u8]> =
        BaseRecord::to(topic).partition(0).payload(payload).headers(headers);
    producer.send(record).map_err(|(error, _)| error).expect("handed over");
}

pub fn flush(producer: &BaseProducer) {
    producer.flush(SOON).expect("flushed");
}

/// Waits until the partition reaches so far.
pub fn shown(log: &dyn EventLog, end: Offset) {
    assert!(log.wait_beyond(end - 1, SOON) >= end);
}

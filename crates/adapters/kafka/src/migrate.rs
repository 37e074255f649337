//! Creates the topics, and checks whether existing topics are suitable for counting.

use crate::context::{Connection, Context};
use crate::ends;
use crate::error::{self, Error};
use crate::options::{MESSAGE_LEN_MAX, Options};
use rdkafka::admin::{
    AdminClient, AdminOptions, ConfigResource, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::config::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use std::time::Duration;

/// How long a topic of entries keeps its messages: 30 days, in which a consumer may be away.
const ENTRIES_RETENTION_MS: &str = "2592000000";

/// How missing topics are created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub partitions: u16,
    pub replication: u16,
    /// How long messages are kept: the dedupe window plus the longest expected outage of counting.
    pub retention_ms: i64,
}

impl Plan {
    /// Copies that must hold a message before it is acknowledged: all but one, so that one may
    /// fail.
    fn in_sync_min(&self) -> u16 {
        self.replication.saturating_sub(1).max(1)
    }
}

/// The result for one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    pub topic: String,
    /// Whether this run created it.
    pub created: bool,
    /// Settings worth checking, as sentences.
    pub warnings: Vec<String>,
}

type Admin = AdminClient<Context>;

/// Creates the topic and the dead-letter topic unless they exist, and checks whether the topic is
/// suitable: it must stamp messages with the append time, must not be compacted, and must have the
/// planned number of partitions. Changes nothing about an existing topic.
pub async fn migrate(options: &Options, plan: &Plan) -> Result<Vec<Migrated>, Error> {
    if plan.retention_ms >= 0 && plan.retention_ms <= options.dedupe_window_ms {
        return Err(Error::Settings(format!(
            "messages would be kept for {} ms, but are needed for longer than the dedupe window, {} ms",
            plan.retention_ms, options.dedupe_window_ms
        )));
    }

    let admin = admin(options)?;
    let length = MESSAGE_LEN_MAX.to_string();
    let retention = plan.retention_ms.to_string();
    let in_sync = plan.in_sync_min().to_string();
    let replication = || TopicReplication::Fixed(plan.replication.into());
    let events = NewTopic::new(&options.topic, plan.partitions.into(), replication())
        .set("message.timestamp.type", "LogAppendTime")
        .set("cleanup.policy", "delete")
        .set("retention.ms", &retention)
        .set("min.insync.replicas", &in_sync)
        .set("unclean.leader.election.enable", "false")
        .set("max.message.bytes", &length);

    let created = create(&admin, options, &events).await?;
    let warnings = if created { Vec::new() } else { verify(&admin, options, plan).await? };
    let mut done = vec![Migrated { topic: options.topic.clone(), created, warnings }];

    if options.dead_letter_topic != options.topic {
        // The headers with the reason come on top of the original message.
        let length = (MESSAGE_LEN_MAX + (64 << 10)).to_string();
        let letters = NewTopic::new(&options.dead_letter_topic, 1, replication())
            .set("retention.ms", &retention)
            .set("min.insync.replicas", &in_sync)
            .set("unclean.leader.election.enable", "false")
            .set("max.message.bytes", &length);

        let created = create(&admin, options, &letters).await?;
        done.push(Migrated {
            topic: options.dead_letter_topic.clone(),
            created,
            warnings: Vec::new(),
        });
    }

    // Listeners read only new messages; an hour is kept for people who inspect the topics.
    for (name, partitions) in
        [(options.changes_topic(), plan.partitions), (options.leases_topic(), 1)]
    {
        let stream = NewTopic::new(&name, partitions.into(), replication())
            .set("cleanup.policy", "delete")
            .set("retention.ms", "3600000")
            .set("max.message.bytes", &length);

        let created = create(&admin, options, &stream).await?;
        done.push(Migrated { topic: name.clone(), created, warnings: Vec::new() });
    }

    Ok(done)
}

/// Creates a topic of entries unless it exists, and checks one that does. Changes nothing about an
/// existing one, so an operator may keep its messages for another time.
pub async fn migrate_entries(
    options: &Options,
    plan: &Plan,
    name: &str,
) -> Result<Migrated, Error> {
    let in_sync = plan.in_sync_min().to_string();
    let replication = TopicReplication::Fixed(plan.replication.into());
    let topic = NewTopic::new(name, plan.partitions.into(), replication)
        .set("cleanup.policy", "delete")
        .set("retention.ms", ENTRIES_RETENTION_MS)
        .set("min.insync.replicas", &in_sync)
        .set("unclean.leader.election.enable", "false");
    let created = create(&admin(options)?, options, &topic).await?;
    if !created {
        check_entries(options, name).await?;
    }
    Ok(Migrated { topic: name.to_owned(), created, warnings: Vec::new() })
}

/// Checks whether a topic of entries is suitable: a compacted one would keep only the last entry of
/// each member. If its settings may not be read, nothing is checked.
pub async fn check_entries(options: &Options, name: &str) -> Result<(), Error> {
    let options = Options { topic: name.to_owned(), ..options.clone() };
    match describe(&admin(&options)?, &options).await? {
        Some(config) => check_not_compacted(&config, &options.topic),
        None => Ok(()),
    }
}

/// Checks whether the topic is suitable. If its settings may not be read, an unsuitable message
/// will be refused later.
pub async fn check(options: &Options) -> Result<(), Error> {
    let Some(config) = describe(&admin(options)?, options).await? else {
        return Ok(());
    };
    check_config(&config, options)
}

fn admin(options: &Options) -> Result<Admin, Error> {
    let config: ClientConfig = options.admin_config();
    let context = Context { connection: Connection::new(options.place()) };
    config.create_with_context(context).map_err(error::settings)
}

fn admin_options(timeout: Duration) -> AdminOptions {
    AdminOptions::new().request_timeout(Some(timeout)).operation_timeout(Some(timeout))
}

async fn create(admin: &Admin, options: &Options, topic: &NewTopic<'_>) -> Result<bool, Error> {
    let asked = admin.create_topics([topic], &admin_options(options.request_timeout)).await;
    match asked.map_err(|error| unreachable(options, &error))?.pop() {
        Some(Ok(_)) => Ok(true),
        Some(Err((_, RDKafkaErrorCode::TopicAlreadyExists))) => Ok(false),
        Some(Err((topic, code))) => Err(Error::Refused {
            topic,
            reason: format!(
                "it could not be created: {code}: create it by hand, or check the replication factor"
            ),
        }),
        None => Err(Error::Refused {
            topic: topic.name.to_owned(),
            reason: "the brokers did not confirm its creation".to_owned(),
        }),
    }
}

/// Checks an existing topic. Returns warnings.
async fn verify(admin: &Admin, options: &Options, plan: &Plan) -> Result<Vec<String>, Error> {
    let found = ends::find(options, Connection::new(options.place())).await?;
    let topic = options.topic.clone();
    if found != plan.partitions {
        return Err(Error::PartitionsChanged {
            topic,
            found: found.into(),
            wanted: plan.partitions.into(),
        });
    }

    let Some(config) = describe(admin, options).await? else {
        return Ok(vec![
            "its settings cannot be read with these credentials: make sure that message.timestamp.type=LogAppendTime".to_owned(),
        ]);
    };

    check_config(&config, options)?;
    Ok(warnings(&config, options, plan))
}

async fn describe(admin: &Admin, options: &Options) -> Result<Option<ConfigResource>, Error> {
    let asked = [ResourceSpecifier::Topic(&options.topic)];
    let answered = admin.describe_configs(&asked, &admin_options(options.request_timeout)).await;
    match answered.map_err(|error| unreachable(options, &error))?.pop() {
        Some(Ok(config)) => Ok(Some(config)),
        Some(Err(
            RDKafkaErrorCode::TopicAuthorizationFailed
            | RDKafkaErrorCode::ClusterAuthorizationFailed,
        ))
        | None => Ok(None),
        Some(Err(RDKafkaErrorCode::UnknownTopicOrPartition)) => {
            Err(Error::NoTopic { topic: options.topic.clone() })
        }
        Some(Err(code)) => {
            Err(Error::Refused { topic: options.topic.clone(), reason: code.to_string() })
        }
    }
}

fn setting<'a>(config: &'a ConfigResource, name: &str) -> &'a str {
    config.get(name).and_then(|entry| entry.value.as_deref()).unwrap_or_default()
}

fn check_config(config: &ConfigResource, options: &Options) -> Result<(), Error> {
    let topic = options.topic.clone();
    if setting(config, "message.timestamp.type") != "LogAppendTime" {
        return Err(Error::NotAppendTime { topic });
    }
    check_not_compacted(config, &topic)
}

fn check_not_compacted(config: &ConfigResource, topic: &str) -> Result<(), Error> {
    if setting(config, "cleanup.policy").contains("compact") {
        return Err(Error::Compacted { topic: topic.to_owned() });
    }
    Ok(())
}

fn warnings(config: &ConfigResource, options: &Options, plan: &Plan) -> Vec<String> {
    let number = |name: &str| setting(config, name).parse::<i64>().ok();
    let mut warnings = Vec::new();
    if let Some(kept_ms) = number("retention.ms").filter(|kept_ms| *kept_ms >= 0) {
        if kept_ms <= options.dedupe_window_ms {
            warnings.push(format!(
                "it keeps messages for {kept_ms} ms, which is not longer than the dedupe window"
            ));
        } else if kept_ms != plan.retention_ms {
            warnings.push(format!(
                "it keeps messages for {kept_ms} ms instead of {} ms",
                plan.retention_ms
            ));
        }
    }

    if let Some(bytes) = number("retention.bytes").filter(|bytes| *bytes >= 0) {
        warnings.push(format!(
            "it keeps at most {bytes} bytes of a partition: messages may be deleted before they are counted"
        ));
    }

    let wanted = plan.in_sync_min();
    if let Some(in_sync) = number("min.insync.replicas").filter(|in_sync| *in_sync < wanted.into())
    {
        warnings.push(format!(
            "it acknowledges events that only {in_sync} copies hold: set min.insync.replicas={wanted}, so that losing one copy loses nothing"
        ));
    }

    if setting(config, "unclean.leader.election.enable") == "true" {
        warnings.push(
            "a copy that lacks acknowledged events may become leader: set unclean.leader.election.enable=false"
                .to_owned(),
        );
    }

    if let Some(bytes) = number("max.message.bytes").filter(|bytes| *bytes < MESSAGE_LEN_MAX as i64)
    {
        warnings.push(format!(
            "it accepts messages of at most {bytes} bytes: requests that set many buckets may fail"
        ));
    }

    warnings
}

fn unreachable(options: &Options, error: &KafkaError) -> Error {
    Error::Unreachable { brokers: options.place(), reason: error.to_string() }
}

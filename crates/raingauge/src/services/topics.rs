//! The topics of a cluster that points use beside the events that are counted.

use raingauge_ports::log::EventLog;
use raingauge_ports::points::EntryStream;
use std::sync::Arc;
use tokio::runtime::Handle;

#[cfg(feature = "cluster")]
use super::waiting::{Startup, until_there};
#[cfg(feature = "cluster")]
use anyhow::Context as _;
#[cfg(feature = "cluster")]
use raingauge_kafka as kafka;

/// Where the topics of points are.
#[derive(Clone)]
pub enum TopicPlace {
    /// A single process has its events in the data folder, and no brokers.
    DataFolder,
    /// At the brokers of the events.
    #[cfg(feature = "cluster")]
    Brokers { topic: kafka::Topic, startup: Startup },
}

/// What points read and write at the brokers.
#[derive(Default)]
pub struct OpenTopics {
    /// Every partition of the events, for a reader that recognizes repetitions itself.
    pub events: Vec<Arc<dyn EventLog>>,
    pub stream: Option<Arc<dyn EntryStream>>,
}

impl TopicPlace {
    /// Opens the partitions of the events, and the stream of entries if it has a topic, once they
    /// are there; nothing where the events are in the data folder.
    pub async fn open(&self, stream: Option<String>) -> anyhow::Result<OpenTopics> {
        let place = self.clone();
        let runtime = Handle::current();
        let open = async move || {
            let events = place.open_events().await?;
            let stream = match &stream {
                Some(name) => Some(place.open_stream(name).await?),
                None => None,
            };
            anyhow::Ok(OpenTopics { events, stream })
        };
        // What waits for brokers stays on one thread.
        tokio::task::spawn_blocking(move || runtime.block_on(open())).await?
    }

    /// Opens the stream of entries, once its topic exists.
    #[cfg_attr(not(feature = "cluster"), allow(unused_variables, reason = "only brokers have it"))]
    async fn open_stream(&self, name: &str) -> anyhow::Result<Arc<dyn EntryStream>> {
        match self {
            Self::DataFolder => anyhow::bail!("only a cluster has topics: leave the topic out"),
            #[cfg(feature = "cluster")]
            Self::Brokers { topic, startup } => {
                let what = format!("the stream of entries of points, topic {name}");
                let open = async || kafka::EntryTopic::open(topic, name).await;
                let opening = until_there(startup, &what, is_final_for_kafka, open);
                Ok(Arc::new(opening.await.context("points.kafka_topic")?))
            }
        }
    }

    /// Opens every partition of the events for a reader that recognizes repetitions itself; none
    /// where they are in the data folder.
    async fn open_events(&self) -> anyhow::Result<Vec<Arc<dyn EventLog>>> {
        match self {
            Self::DataFolder => Ok(Vec::new()),
            #[cfg(feature = "cluster")]
            Self::Brokers { topic, startup } => {
                let topic = topic.without_window();
                let what =
                    format!("the events that points are for, topic {}", topic.options().topic);
                let open = async || open_logs(topic.clone()).await;
                Ok(until_there(startup, &what, is_final_for_kafka, open).await?)
            }
        }
    }
}

/// Opens every partition for reading, once each has a leader: after a restart, the brokers report a
/// topic before its partitions have leaders.
#[cfg(feature = "cluster")]
pub async fn open_logs(topic: kafka::Topic) -> Result<Vec<Arc<dyn EventLog>>, kafka::Error> {
    let open = move || {
        let open = |partition| Ok(Arc::new(topic.log(partition)?) as Arc<dyn EventLog>);
        (0..topic.partitions()).map(open).collect::<Result<Vec<_>, kafka::Error>>()
    };
    let opened = tokio::task::spawn_blocking(open).await;
    opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
}

/// Returns whether waiting cannot cure an error of Kafka.
#[cfg(feature = "cluster")]
pub fn is_final_for_kafka(error: &kafka::Error) -> bool {
    !matches!(error, kafka::Error::NoTopic { .. } | kafka::Error::Unreachable { .. })
}

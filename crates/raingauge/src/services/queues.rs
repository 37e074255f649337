//! The queues of points on Amazon SQS, where this binary was built with them.

use raingauge_ports::points::{QueueControl, Queues};
use raingauge_settings::{Group, Reader};
#[cfg(feature = "sqs")]
use raingauge_sqs::{RemoteQueues, Settings};
use std::sync::Arc;

/// The queues as ports.
pub type OpenQueues = (Arc<dyn Queues>, Arc<dyn QueueControl>);

/// How the queues on SQS are reached; beside the books where nothing says so.
#[derive(Clone, Default, PartialEq)]
pub struct QueuePlace {
    #[cfg(feature = "sqs")]
    remote: Option<raingauge_sqs::Options>,
}

#[cfg(feature = "sqs")]
impl QueuePlace {
    pub const GROUP: Group = Settings::GROUP;

    pub fn read(reader: &mut Reader) -> Self {
        let settings = Settings::read(reader);
        let variable = |name: &str| std::env::var(name).ok();
        Self { remote: settings.is_chosen().then(|| settings.options(variable)) }
    }

    /// The queues on SQS, which are made where they are missing; `None` where they are elsewhere.
    pub async fn open(&self) -> anyhow::Result<Option<OpenQueues>> {
        let Some(options) = &self.remote else { return Ok(None) };
        let queues = Arc::new(RemoteQueues::open(options).await?);
        Ok(Some((Arc::clone(&queues) as _, queues)))
    }
}

#[cfg(not(feature = "sqs"))]
impl QueuePlace {
    /// There is nothing to choose.
    pub const GROUP: Group = Group { settings: &[], check: |_| {} };

    pub fn read(_reader: &mut Reader) -> Self {
        Self::default()
    }

    /// `None`: the queues are beside the books.
    pub async fn open(&self) -> anyhow::Result<Option<OpenQueues>> {
        Ok(None)
    }
}

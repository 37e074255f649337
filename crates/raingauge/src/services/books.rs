//! Where the books and queues of points are: in the data folder, or in the database that the
//! processes of a cluster share.

use raingauge_ports::clock::Clock;
use raingauge_ports::points::{BookReader, Books, QueueControl, Queues};
use std::sync::Arc;

#[cfg(feature = "cluster")]
use super::database;
#[cfg(feature = "cluster")]
use super::waiting::{Startup, until_there};
#[cfg(feature = "cluster")]
use crate::settings::Settings;
#[cfg(feature = "cluster")]
use anyhow::Context as _;
#[cfg(feature = "cluster")]
use raingauge_ports::points::{Error, Verified};
#[cfg(feature = "cluster")]
use raingauge_sql::{MySqlBooks, MySqlOptions};
#[cfg(feature = "cluster")]
use std::time::Duration;
#[cfg(feature = "cluster")]
use tokio::runtime::Handle;

/// How many books a cluster has. Turns of different books run beside each other, and a member
/// belongs to the same one for ever, so the number never changes.
#[cfg(feature = "cluster")]
const BOOKS: u16 = 16;
/// Most connections of a process to the books: four for turns, one for their readers, and some for
/// balances and repeated commands.
#[cfg(feature = "cluster")]
const CONNECTIONS_MAX: u32 = 12;
/// Longest time of a verification, which reads everything in one transaction.
#[cfg(feature = "cluster")]
const VERIFY_TIMEOUT: Duration = Duration::from_secs(86_400);

#[cfg(feature = "cluster")]
const NOWHERE: &str = "the points of a cluster are kept in MySQL: set cluster.catalog to \"mysql\", \
                       or points.enabled to \"no\"";

/// The books and queues of points as ports.
pub struct OpenBooks {
    pub books: Arc<dyn Books>,
    pub reader: Arc<dyn BookReader>,
    pub queues: Arc<dyn Queues>,
    pub control: Arc<dyn QueueControl>,
}

/// Where the books of points are.
#[derive(Clone)]
pub enum BookPlace {
    /// In the data folder, which one process has.
    DataFolder,
    /// In the MySQL database of the catalog, for any number of processes.
    #[cfg(feature = "cluster")]
    Shared(SharedPlace),
    /// The processes of the cluster have no database in common.
    #[cfg(feature = "cluster")]
    Nowhere,
}

/// The database of the books, and what reports that it is waited for.
#[cfg(feature = "cluster")]
#[derive(Clone)]
pub struct SharedPlace {
    options: MySqlOptions,
    startup: Startup,
}

impl BookPlace {
    /// The place of the books of a cluster.
    #[cfg(feature = "cluster")]
    pub fn of_cluster(settings: &Settings, startup: &Startup) -> Self {
        if !settings.cluster.catalog_is_mysql() {
            return Self::Nowhere;
        }
        let options =
            MySqlOptions { connections_max: CONNECTIONS_MAX, ..database::mysql_options(settings) };
        Self::Shared(SharedPlace { options, startup: startup.clone() })
    }

    /// Opens what processes share, once its database is there; `None` where it is in the data
    /// folder.
    #[cfg_attr(not(feature = "cluster"), allow(unused_variables, reason = "only a cluster shares"))]
    pub async fn open_shared(&self, clock: &Arc<dyn Clock>) -> anyhow::Result<Option<OpenBooks>> {
        match self {
            Self::DataFolder => Ok(None),
            #[cfg(feature = "cluster")]
            Self::Shared(place) => Ok(Some(place.open(Arc::clone(clock)).await?)),
            #[cfg(feature = "cluster")]
            Self::Nowhere => anyhow::bail!(NOWHERE),
        }
    }

    /// Computes again what follows from the entries of shared books, and compares.
    #[cfg(feature = "cluster")]
    pub async fn verify(&self) -> anyhow::Result<Verified> {
        let Self::Shared(SharedPlace { options, .. }) = self else { anyhow::bail!(NOWHERE) };
        let options = MySqlOptions { call_timeout: VERIFY_TIMEOUT, ..options.clone() };
        let books = MySqlBooks::open(&options, BOOKS, Handle::current()).await?;
        let verified = books.verify().await;
        books.close().await;
        Ok(verified?)
    }
}

#[cfg(feature = "cluster")]
impl SharedPlace {
    async fn open(&self, clock: Arc<dyn Clock>) -> anyhow::Result<OpenBooks> {
        let runtime = Handle::current();
        let is_final = |error: &Error| !matches!(error, Error::Unavailable(_));
        let open = async || MySqlBooks::open(&self.options, BOOKS, runtime.clone()).await;
        let opening = until_there(&self.startup, "the books of points in MySQL", is_final, open);
        let books = Arc::new(opening.await.context("points.enabled")?);
        let queues = Arc::new(books.queues(clock));
        Ok(OpenBooks {
            books: Arc::clone(&books) as _,
            reader: books,
            queues: Arc::clone(&queues) as _,
            control: queues,
        })
    }
}

//! The engines of points, in the data folder; those of a cluster are in its database.
//!
//! ```text
//!   points/
//!   ├── journal/   every entry, for ever
//!   ├── state/     wallets, keys, sums and statements, which follow from the journal
//!   └── queues/    letters: awards that wait, events without a price, ranges of sweeps
//! ```

use super::{BookPlace, OpenBooks, QueuePlace, files};
use anyhow::bail;
use raingauge_embedded::{
    BookOptions, LetterQueues, PointBooks, QueueOptions, rebuild_books, verify_books,
};
use raingauge_outbound as outbound;
use raingauge_ports::campaigns::sender::Sender;
use raingauge_ports::clock::Clock;
use raingauge_ports::points::{BookReader, Books, QueueControl, Queues, Verified};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Handle;

/// The engines of points as ports.
#[derive(Clone)]
pub struct PointsEngines {
    pub books: Arc<dyn Books>,
    pub reader: Arc<dyn BookReader>,
    pub queues: Arc<dyn Queues>,
    pub control: Arc<dyn QueueControl>,
    pub sender: Arc<dyn Sender>,
}

/// What points may use of this machine.
#[derive(Clone)]
pub struct PointsOptions {
    pub data_dir: PathBuf,
    pub cache_bytes: usize,
    /// Bytes that are kept free on the disk.
    pub reserve_bytes: u64,
    /// Most table files that each engine keeps open.
    pub open_files_max: usize,
    pub allow_private_addresses: bool,
    pub queue_place: QueuePlace,
    pub clock: Arc<dyn Clock>,
}

impl PointsEngines {
    /// Opens the engines, and makes those that are not there.
    pub async fn open(place: BookPlace, options: PointsOptions) -> anyhow::Result<Self> {
        let queue_place = options.queue_place.clone();
        let runtime = Handle::current();
        let open = move || {
            let shared = runtime.block_on(place.open_shared(&options.clock))?;
            Self::open_blocking(shared, &options)
        };
        let mut engines = tokio::task::spawn_blocking(open).await??;

        if let Some((queues, control)) = queue_place.open().await? {
            engines.queues = queues;
            engines.control = control;
        }
        Ok(engines)
    }

    fn open_blocking(shared: Option<OpenBooks>, options: &PointsOptions) -> anyhow::Result<Self> {
        let client = outbound::Client::new(&outbound::Options {
            allow_private_addresses: options.allow_private_addresses,
            ..Default::default()
        })?;
        let open = match shared {
            Some(shared) => shared,
            None => in_data_folder(options)?,
        };
        let OpenBooks { books, reader, queues, control } = open;
        Ok(Self { books, reader, queues, control, sender: Arc::new(client) })
    }
}

fn in_data_folder(options: &PointsOptions) -> anyhow::Result<OpenBooks> {
    let folder = folder_of(&options.data_dir);
    files::make_folder(&folder)?;
    let books = Arc::new(PointBooks::open(&folder, &book_options(options))?);

    let defaults = QueueOptions::default();
    let queue_options = QueueOptions {
        open_files_max: options.open_files_max.min(defaults.open_files_max),
        reserve_bytes: options.reserve_bytes,
        ..defaults
    };
    let clock = Arc::clone(&options.clock);
    let queues = Arc::new(LetterQueues::open(&folder.join("queues"), &queue_options, clock)?);
    Ok(OpenBooks {
        books: Arc::clone(&books) as _,
        reader: books,
        queues: Arc::clone(&queues) as _,
        control: queues,
    })
}

fn folder_of(data_dir: &Path) -> PathBuf {
    data_dir.join("points")
}

fn book_options(options: &PointsOptions) -> BookOptions {
    let defaults = BookOptions::default();
    BookOptions {
        cache_bytes: options.cache_bytes,
        open_files_max: options.open_files_max.min(defaults.open_files_max),
        reserve_bytes: options.reserve_bytes,
        ..defaults
    }
}

/// Opens the books of a data folder by themselves. No server may be running on it.
pub fn open_books(data_dir: &Path) -> anyhow::Result<PointBooks> {
    let folder = existing(data_dir)?;
    Ok(PointBooks::open(&folder, &BookOptions::default())?)
}

/// Makes what follows from the journal of a data folder again.
pub fn rebuild_points(data_dir: &Path) -> anyhow::Result<()> {
    rebuild_books(&existing(data_dir)?, &BookOptions::default())?;
    Ok(())
}

/// Computes again what follows from the journal of a data folder, and compares.
pub fn verify_points(data_dir: &Path) -> anyhow::Result<Verified> {
    Ok(verify_books(&existing(data_dir)?, &BookOptions::default())?)
}

fn existing(data_dir: &Path) -> anyhow::Result<PathBuf> {
    let folder = folder_of(data_dir);
    if !folder.is_dir() {
        bail!("{} has no points: is it the data folder of a server?", data_dir.display());
    }
    Ok(folder)
}

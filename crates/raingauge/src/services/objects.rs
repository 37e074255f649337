//! The engine of the objects of Redis clients, in the data folder of the process.
//!
//! ```text
//!   objects/
//!   ├── log/     groups of effects since the last checkpoint
//!   └── …        heads and entries
//! ```

use super::files;
use raingauge_embedded::{ObjectFiles, ObjectOptions};
use raingauge_ports::objects::{ObjectControl, ObjectStore, SyncMode};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The part of `objects.memory_bytes` that the engine takes, in percent: changes that wait for a
/// checkpoint, and the cache of the disk. Objects in memory have the rest.
const ENGINE_PERCENT: usize = 40;

/// The engine of objects as ports.
#[derive(Clone)]
pub struct ObjectEngines {
    pub store: Arc<dyn ObjectStore>,
    pub control: Arc<dyn ObjectControl>,
}

/// Where objects are kept, and what they may use of this machine.
#[derive(Clone)]
pub struct ObjectPlace {
    pub data_dir: PathBuf,
    pub sync: SyncMode,
    pub memory_bytes: usize,
    pub checkpoint_interval: Duration,
    /// Bytes that are kept free on the disk.
    pub reserve_bytes: u64,
    /// Most table files that the engine keeps open.
    pub open_files_max: usize,
}

impl ObjectEngines {
    /// Opens the engine, and makes what is not there.
    pub async fn open(place: ObjectPlace) -> anyhow::Result<Self> {
        tokio::task::spawn_blocking(move || Self::open_blocking(&place)).await?
    }

    fn open_blocking(place: &ObjectPlace) -> anyhow::Result<Self> {
        let folder = place.data_dir.join("objects");
        files::make_folder(&folder)?;

        let defaults = ObjectOptions::default();
        let options = ObjectOptions {
            sync_mode: place.sync,
            memory_bytes: place.memory_bytes / 100 * ENGINE_PERCENT,
            checkpoint_interval: place.checkpoint_interval,
            reserve_bytes: place.reserve_bytes,
            open_files_max: place.open_files_max.min(defaults.open_files_max),
            ..defaults
        };
        let store = Arc::new(ObjectFiles::open(&folder, &options)?);
        Ok(Self { store: Arc::clone(&store) as _, control: store })
    }
}

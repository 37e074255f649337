//! The engine of the objects of Redis clients, in the data folder of the process.
//!
//! ```text
//!   objects/
//!   ├── log/     groups of effects since the last checkpoint
//!   └── …        heads and entries
//! ```

use super::files;
use anyhow::bail;
use bytes::Bytes;
use raingauge_embedded::{
    ObjectDescription, ObjectDifference, ObjectFiles, ObjectOptions, WideObject, verify_objects,
};
use raingauge_ports::objects::{ObjectControl, ObjectStore, SyncMode};
use raingauge_values::{Body, Head, head};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
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
        let folder = folder_of(&place.data_dir);
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

/// Compares the records of the objects of a data folder with each other. Returns a summary; an
/// error is the first difference. No server may be running on the folder.
pub fn verify_store(data_dir: &Path) -> anyhow::Result<Value> {
    let folder = folder_of(data_dir);
    if !folder.is_dir() {
        bail!("{} has no objects: is it the data folder of a server?", data_dir.display());
    }
    match verify_objects(&folder, &ObjectOptions::default(), &describe)? {
        Ok(summary) => Ok(json!({
            "keys": summary.keys,
            "expiring": summary.expiring,
            "wide": summary.wide,
            "entries": summary.entries,
            "dead": summary.dead,
            "behind": summary.behind,
        })),
        Err(ObjectDifference { record, why }) => bail!("{record} contradicts the others: {why}"),
    }
}

/// What a head says of its object. A string or a packed collection is decoded as well.
fn describe(bytes: &Bytes) -> Result<ObjectDescription, String> {
    let damaged = |why: raingauge_values::Damaged| why.to_string();
    head::decode(bytes).map_err(damaged)?;
    let Head { expires_ms, body, .. } = Head::parse(bytes).map_err(damaged)?;
    let wide = match body {
        Body::Wide { id, count, .. } => Some(WideObject { id, count }),
        Body::Whole(_) => None,
    };
    Ok(ObjectDescription { expires_ms, wide })
}

fn folder_of(data_dir: &Path) -> PathBuf {
    data_dir.join("objects")
}

//! The engines of campaigns, in the data folder.
//!
//! ```text
//!   campaigns/
//!   ├── ledger/   what campaigns remember, decided, and are about to send
//!   └── tables/   uploaded tables and segments
//! ```

use super::files;
use anyhow::Context as _;
use raingauge_embedded::{CampaignLedger, LedgerOptions, TableOptions, UploadedTables};
use raingauge_outbound as outbound;
use raingauge_ports::campaigns::sender::Sender;
use raingauge_ports::campaigns::{
    DatabaseLookup, Ledger, LedgerErasure, LedgerReader, LedgerRetention, Outbox, TableLoads,
    Tables,
};
use raingauge_sql::{DatabaseSettings, Databases};
use std::path::Path;
use std::sync::Arc;

/// The engines of campaigns as ports.
#[derive(Clone)]
pub struct CampaignEngines {
    pub ledger: Arc<dyn Ledger>,
    pub retention: Arc<dyn LedgerRetention>,
    pub erasure: Arc<dyn LedgerErasure>,
    pub reader: Arc<dyn LedgerReader>,
    pub outbox: Arc<dyn Outbox>,
    pub tables: Arc<dyn Tables>,
    pub loads: Arc<dyn TableLoads>,
    pub sender: Arc<dyn Sender>,
    /// Databases that lookups read.
    pub databases: Arc<dyn DatabaseLookup>,
}

/// What campaigns may use of this machine.
#[derive(Clone, Debug)]
pub struct CampaignOptions {
    pub state_cache_bytes: usize,
    /// Bytes that are kept free on the disk.
    pub reserve_bytes: u64,
    /// Most table files that each engine keeps open.
    pub open_files_max: usize,
    pub allow_private_addresses: bool,
    pub databases: DatabaseSettings,
}

impl CampaignEngines {
    /// Opens the engines in a data folder, and makes those that are not there. Blocks the thread.
    pub fn open(data_dir: &Path, options: CampaignOptions) -> anyhow::Result<Self> {
        let CampaignOptions {
            state_cache_bytes,
            reserve_bytes,
            open_files_max,
            allow_private_addresses,
            databases,
        } = options;
        let folder = data_dir.join("campaigns");
        files::make_folder(&folder)?;

        let defaults = LedgerOptions::default();
        let open_files_max = open_files_max.min(defaults.open_files_max);
        let ledger_options = LedgerOptions {
            cache_bytes: state_cache_bytes,
            open_files_max,
            reserve_bytes,
            ..defaults
        };
        let ledger = Arc::new(CampaignLedger::open(&folder.join("ledger"), &ledger_options)?);
        let table_options =
            TableOptions { reserve_bytes, open_files_max, ..TableOptions::default() };
        let tables = Arc::new(UploadedTables::open(&folder.join("tables"), &table_options)?);
        let client = outbound::Client::new(&outbound::Options {
            allow_private_addresses,
            ..Default::default()
        })?;

        let connections = databases.connections.as_deref().unwrap_or_default();
        let databases = Databases::open(connections).map_err(anyhow::Error::msg);
        let databases = databases.context("campaigns.connections")?;

        Ok(Self {
            ledger: Arc::clone(&ledger) as _,
            retention: Arc::clone(&ledger) as _,
            erasure: Arc::clone(&ledger) as _,
            reader: Arc::clone(&ledger) as _,
            outbox: ledger,
            tables: Arc::clone(&tables) as _,
            loads: tables,
            sender: Arc::new(client),
            databases: Arc::new(databases),
        })
    }
}

//! The doors of campaigns: their routes in the API and their pages in the portal.
//!
//! ```text
//!   HTTP door, portal ──▶ routes, pages ──▶ Campaigns ──▶ documents, worker, ledger, outbox,
//!                                                         deliveries, tables, replays
//! ```
//!
//! The handlers capture the services of campaigns, which the doors do not know.

mod actions;
mod contract;
mod decisions;
mod destinations;
mod documents;
pub mod history;
mod jobs;
mod pages;
mod refused;
mod replays;
mod settings;
mod states;
mod subjects;
mod tables;
mod upload;
mod usage;
mod wait;

pub use settings::Settings;
pub use wait::DECIDED;

use history::History;
use raingauge_app::Role;
use raingauge_campaigner::{Handle as Worker, Operator};
use raingauge_deliveries::Deliveries;
use raingauge_documents::{Documents, Uploads};
use raingauge_http::{Routes, bound};
use raingauge_ports::campaigns::{LedgerReader, Outbox};
use raingauge_ports::clock::Clock;
use raingauge_replay::Replay;
use std::sync::Arc;

/// The routes of campaigns, as they are added.
type Table = bound::Table<Campaigns>;

/// The services of campaigns.
#[derive(Clone)]
pub struct Campaigns {
    pub documents: Arc<Documents>,
    /// Decides, and knows which documents are in effect.
    pub worker: Worker,
    /// What operators ask of the worker.
    pub operator: Operator,
    pub ledger: Arc<dyn LedgerReader>,
    pub outbox: Arc<dyn Outbox>,
    /// What the ledger has forgotten.
    pub history: History,
    pub deliveries: Deliveries,
    /// Tables and segments, and their loads.
    pub uploads: Arc<Uploads>,
    pub replay: Replay,
    pub clock: Arc<dyn Clock>,
}

impl Campaigns {
    /// The routes of the API.
    pub fn routes(&self) -> Routes {
        let table = Table::new(Role::Portal, self.clone());
        let table = documents::add(table);
        let table = states::add(table);
        let table = replays::add(table);
        let table = jobs::add(table);
        let table = usage::add(table);
        let table = decisions::add(table);
        let table = actions::add(table);
        let table = destinations::add(table);
        let table = subjects::add(table);
        tables::add(table).routes()
    }
}

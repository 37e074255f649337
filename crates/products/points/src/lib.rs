//! The doors of points: their routes in the API and their pages in the portal.
//!
//! ```text
//!   HTTP, gRPC, portal ──▶ routes, methods, pages ──▶ Points ──▶ teller, members, documents
//! ```
//!
//! The handlers capture the services of points, which the doors do not know. What a request asks
//! for becomes commands of the ledger in [`commands`], for routes, methods and pages alike.

mod adjustment;
mod answers;
mod appraisals;
mod awards;
mod commands;
mod contract;
mod entries;
mod grpc;
mod kinds;
mod members;
mod pages;
mod programmes;
mod queues;
mod redemptions;
mod refused;
mod requests;
mod settings;
mod source;
mod sweeps;
mod transaction_kind;
mod transactions;
mod wait;

pub use adjustment::AdjustmentKind;
pub use commands::{Adjustment, Conversion};
pub use settings::{Awarding, Settings};
pub use wait::AWARDED;

use raingauge_app::Role;
use raingauge_appraisal::Appraisal;
use raingauge_awarding::Handle;
use raingauge_documents::Documents;
use raingauge_http::{Routes, bound};
use raingauge_ports::clock::Clock;
use raingauge_ports::points::{Books, QueueControl};
use std::sync::Arc;

/// The routes of points, as they are added.
type Table = bound::Table<Points>;

/// The services of points.
#[derive(Clone)]
pub struct Points {
    /// Programmes and rewards.
    pub documents: Arc<Documents>,
    /// Decides, and reads what was decided.
    pub teller: Handle,
    /// The journal.
    pub books: Arc<dyn Books>,
    pub queues: Arc<dyn QueueControl>,
    /// Forecasts and audits over events of the past.
    pub appraisal: Appraisal,
    /// The clock of points.
    pub clock: Arc<dyn Clock>,
    /// The largest adjustment that one person alone may make, in whole points; `None` for no
    /// limit.
    pub adjust_review: Option<u64>,
}

impl Points {
    /// The routes of the API.
    pub fn routes(&self) -> Routes {
        let table = Table::new(Role::Portal, self.clone());
        let table = awards::add(table);
        let table = transactions::add(table);
        let table = members::add(table);
        let table = entries::add(table);
        let table = programmes::add(table);
        let table = appraisals::add(table);
        let table = redemptions::add(table);
        let table = queues::add(table);
        sweeps::add(table).routes()
    }
}

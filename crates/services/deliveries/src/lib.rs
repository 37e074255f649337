//! Delivers what campaigns decided: the outbox of the ledger, on its way to destinations.
//!
//! ```text
//!   outbox ──take──▶ Worker of a destination ──▶ paused? rate? breaker? ──▶ Sender ──▶ receiver
//!      ▲                     └ in this process ──▶ EventSink, Points         │
//!      └──settle── Results ◀──────────────── delivered, refused, retried ────┘
//! ```
//!
//! A delivery is sent at least once, with the same id and the same body each time: a process that
//! ends between the response and its result sends again. Destinations do not wait for each other.
//! In a destination, requests begin in the order in which deliveries are due, at the pace of its
//! document; retries make them end in any order.
//!
//! Requests are webhooks as Standard Webhooks defines them, signed with secrets that are read when
//! they are needed, from a file or the environment. Events that campaigns emit are appended to the
//! event log, which takes each id once, and points that they grant go into the ledger of a
//! programme, which takes each key once.

mod attempt;
mod destination;
mod documents;
mod local_worker;
mod log_target;
mod pacing;
mod points_target;
mod probe;
mod results;
mod secrets;
mod service;
mod shared;
mod status;
mod stopped;
mod worker;

pub use destination::{Destination, LOG, SecretSource, Target};
pub use documents::{Destinations, StoppedCampaigns, destinations, stopped_campaigns};
pub use probe::Probe;
pub use service::{Deliveries, Deps, Error};
pub use shared::GoneDestination;
pub use status::{Activity, DestinationStatus, Failure};

//! The ports: what the services need from outside, as traits of at most eight methods, each in a
//! file of its own beside the values that it takes.
//!
//! ```text
//!            ┌───────── the event log ──────────┐
//!   ingest ──┤ EventSink              EventLog ├── writer ──┤ BucketWriter │
//!            └──────────────────────────────────┘                   │
//!   portal ──┤ Catalog │                             reader ──┤ BucketReader │
//! ```
//!
//! The feature `contract` provides the suites that every adapter of a port passes in its tests. A
//! port without a suite says why.
//!
//! Three kinds of modules are not ports. They are here because services and adapters share them,
//! and nothing lies below both:
//!
//! - state of one process: [`published`] with [`activity`] and [`key_counts`], which the writer
//!   maintains and readers and doors read, and [`scans`], the turns of expensive requests;
//! - formats: [`record`], the entries of a log as bytes, and the chunks of [`dedupe`];
//! - rules that several processes follow together: the window of [`dedupe`], and [`leases`].

pub mod activity;
pub mod buckets;
pub mod cache;
pub mod campaigns;
pub mod catalog;
pub mod checks;
pub mod clock;
pub mod cluster;
pub mod consumers;
#[cfg(feature = "contract")]
pub mod contract;
pub mod dedupe;
pub mod drafts;
pub mod identity;
pub mod instances;
pub mod key_counts;
pub mod leases;
pub mod log;
pub mod maintenance;
pub mod objects;
pub mod people;
pub mod points;
pub mod published;
pub mod record;
pub mod rollouts;
pub mod scans;
pub mod tiles;

use std::future::Future;
use std::pin::Pin;

/// The future returned by an asynchronous method of a port.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

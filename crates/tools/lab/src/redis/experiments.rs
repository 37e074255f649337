//! The published experiments on the Redis door, beside Redis in the same run.
//!
//! ```text
//!   pipeline  1,500 commands a message: one by one, in three batches, in two; over delays
//!   nvme      a store that is larger than memory: load, reads, 80:20; closed and open loop
//!   cluster   large values on 25 connections, on one node and by slots
//!   churn     a sorted set that gains and loses members: does the rate last?
//!   cost      nodes by memory, disk and cores, at dated prices
//! ```
//!
//! Each returns a [`Record`] with rows, curves and findings, of which [`record::write`] makes a
//! folder.

pub mod churn;
pub mod cluster;
pub mod cost;
pub mod figure;
pub mod nvme;
pub mod pipeline;
pub mod record;
pub mod servers;

pub use record::{Finding, Record};
pub use servers::Named;

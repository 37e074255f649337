//! What callers that send events may wait for, beyond their being counted.
//!
//! A product that reads the log adds a stage by its name: `POST /v1/events?wait=NAME` is answered
//! when the events have passed it.

use raingauge_core::code::Code;
use raingauge_ports::BoxFuture;
use raingauge_ports::log::{Offset, Partition};
use std::sync::Arc;

/// A stage that entries of the log pass, in the order of their partition.
pub trait Stage: Send + Sync {
    /// Waits until the entries before these ends have passed. An error says why they will not.
    fn passed<'a>(&'a self, ends: &'a [(Partition, Offset)]) -> BoxFuture<'a, Result<(), String>>;

    /// Returns the number of entries before these ends that have not passed yet.
    fn lag(&self, ends: &[(Partition, Offset)]) -> u64;
}

/// A stage that a product adds.
#[derive(Clone)]
pub struct Wait {
    /// The value of the parameter `wait`.
    pub name: &'static str,
    /// The code of an answer that had to come before the events had passed.
    pub late: Code,
    pub stage: Arc<dyn Stage>,
}

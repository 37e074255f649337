//! Observed events, as pages show them.

use crate::Portal;
use crate::fault::Fault;
use raingauge_counters::observed::Observation;
use std::sync::Arc;

impl Portal {
    /// Returns the types of the newest events and their fields, without masked values.
    pub async fn observed(&self) -> Result<Arc<Observation>, Fault> {
        let samples = self.limits.samples.clone();
        Ok(self.counted.recent.observed(move |found| samples.redact(found)).await?)
    }
}

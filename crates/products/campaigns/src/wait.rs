//! `POST /v1/events?wait=decided`: waits until campaigns have decided on the events.

use crate::Campaigns;
use raingauge_app::{Stage, Wait};
use raingauge_campaigner::Handle;
use raingauge_core::code::Code;
use raingauge_ports::BoxFuture;
use raingauge_ports::log::{Offset, Partition};
use std::sync::Arc;

/// The name that callers wait by.
pub const DECIDED: &str = "decided";

struct Decided(Handle);

impl Campaigns {
    /// What senders of events may wait for.
    pub fn wait(&self) -> Wait {
        let stage = Arc::new(Decided(self.worker.clone()));
        Wait { name: DECIDED, late: Code::NotDecidedYet, stage }
    }
}

impl Stage for Decided {
    fn passed<'a>(&'a self, ends: &'a [(Partition, Offset)]) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let mut positions = self.0.positions();
            let end = end_of(ends);
            let reached = positions.wait_for(|position| *position >= end).await;
            reached.map(|_| ()).map_err(|_| "the campaign worker has ended".to_owned())
        })
    }

    fn lag(&self, ends: &[(Partition, Offset)]) -> u64 {
        end_of(ends).saturating_sub(self.0.position())
    }
}

/// The worker reads one log, which has one partition.
fn end_of(ends: &[(Partition, Offset)]) -> Offset {
    ends.iter().map(|(_, end)| *end).max().unwrap_or_default()
}

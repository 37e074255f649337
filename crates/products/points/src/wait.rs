//! `POST /v1/events?wait=awarded`: waits until the points of the events are in the ledger.

use crate::Points;
use raingauge_app::{Stage, Wait};
use raingauge_awarding::Handle;
use raingauge_core::code::Code;
use raingauge_ports::BoxFuture;
use raingauge_ports::log::{Offset, Partition};
use std::sync::Arc;

/// The name that callers wait by.
pub const AWARDED: &str = "awarded";

struct Awarded(Handle);

impl Points {
    /// What senders of events may wait for.
    pub fn wait(&self) -> Wait {
        let stage = Arc::new(Awarded(self.teller.clone()));
        Wait { name: AWARDED, late: Code::NotAwardedYet, stage }
    }
}

impl Stage for Awarded {
    fn passed<'a>(&'a self, ends: &'a [(Partition, Offset)]) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let is_reached = self.0.reached(ends).await;
            is_reached.then_some(()).ok_or_else(|| "the teller of points has ended".to_owned())
        })
    }

    fn lag(&self, ends: &[(Partition, Offset)]) -> u64 {
        self.0.lag(ends)
    }
}

//! The destination of batches of events.

use raingauge_core::event::Event;

/// The outcome of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    pub accepted: u64,
    pub duplicates: u64,
    pub rejected: Vec<RejectedEvent>,
}

/// One event of a batch that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedEvent {
    /// Its place among the events of the batch.
    pub index: usize,
    pub code: String,
    pub detail: String,
}

/// Takes batches, several at once.
pub trait Sink: Sync {
    /// Events in flight.
    type Payload: Send;

    /// Most batches in flight; each has a thread.
    fn senders(&self) -> usize;

    /// Begins a batch; waits while the sink is full.
    fn begin(&self) -> anyhow::Result<Self::Payload>;

    /// Adds an event.
    fn push(&self, payload: &mut Self::Payload, event: Event<'_>) -> anyhow::Result<()>;

    /// Sends a batch, and returns once it is durable.
    fn send(&self, payload: Self::Payload) -> anyhow::Result<Receipt>;

    /// Waits until everything that was sent is counted. `last` is the last event that was sent, as
    /// NDJSON. Returns true when everything is counted, false when that is unknown.
    fn wait_applied(&self, last: Option<Vec<u8>>) -> anyhow::Result<bool>;

    /// Returns an event for [`Sink::wait_applied`], if the sink needs one.
    fn last_event(payload: &Self::Payload) -> Option<Vec<u8>>;
}

//! The deliveries as the sender and the operators see them.

use super::{
    Backlog, Deliveries, Delivery, DeliveryQuery, DeliveryRecord, Error, Selection, Settled,
};
use crate::BoxFuture;
use crate::campaigns::{ActionId, CampaignId};

/// Deliveries arrive in it with the commits of the ledger.
///
/// Results are stored in the background of the commits: a process that ends may forget that it sent
/// something, and then sends it again. What an operator changes is durable when the call returns.
pub trait Outbox: Send + Sync {
    /// Takes at most `len_max` deliveries of a destination that are due, the earliest first. No
    /// other call takes them until they are settled.
    fn take<'a>(
        &'a self,
        destination: &'a str,
        now_ms: i64,
        len_max: usize,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, Error>>;

    /// Stores the results of deliveries that were taken, and spends or returns what they reserved.
    /// A result for any other delivery is ignored.
    fn settle(&self, results: Vec<Settled>) -> BoxFuture<'_, Result<(), Error>>;

    /// Lists deliveries, without their bodies.
    fn list(&self, query: DeliveryQuery) -> BoxFuture<'_, Result<Deliveries, Error>>;

    /// Returns a delivery with its body.
    fn get(&self, action: ActionId) -> BoxFuture<'_, Result<Option<DeliveryRecord>, Error>>;

    /// Makes dead deliveries pending again, due now and under the same ids. Returns how many: those
    /// of a large selection are changed [`LEDGER_PAGE_LEN_MAX`] at a time, until a call returns 0.
    ///
    /// [`LEDGER_PAGE_LEN_MAX`]: super::limits::LEDGER_PAGE_LEN_MAX
    fn redrive(&self, selection: Selection, now_ms: i64) -> BoxFuture<'_, Result<usize, Error>>;

    /// Cancels pending, held and dead deliveries, except those that are being sent, and gives back
    /// what they reserved. Returns how many, as [`Outbox::redrive`] does.
    fn cancel(&self, selection: Selection, now_ms: i64) -> BoxFuture<'_, Result<usize, Error>>;

    /// Makes the held deliveries of a campaign pending again, due now. Returns how many, as
    /// [`Outbox::redrive`] does.
    fn release(&self, campaign: CampaignId, now_ms: i64) -> BoxFuture<'_, Result<usize, Error>>;

    /// How much waits for a destination.
    fn backlog<'a>(&'a self, destination: &'a str) -> BoxFuture<'a, Result<Backlog, Error>>;
}

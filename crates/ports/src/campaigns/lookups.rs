//! Values that rules have to load: the answers of tables, counters, databases and services.

use crate::BoxFuture;
use crate::log::Offset;
use raingauge_campaigns::engine::LookupKey;
use serde_json::Value as Json;
use std::time::Duration;

/// Why a lookup has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// In a sentence, without secrets.
    #[error("{0}")]
    Failed(String),
    /// It did not answer within the patience of the caller. It may be asked again.
    #[error("it has not answered yet")]
    Late,
}

/// Answers lookups. It returns an answer for each key, in their order, at the latest when the
/// patience has passed; equal keys are asked once. What answers late is kept for as long as the
/// lookup's cache says, so that asking again finds it.
///
/// A counter is read once counting has applied the log up to `after`, so that it includes the
/// events that ask.
///
/// No contract suite: the one implementation over real engines is the service of lookups, whose
/// tests say what it promises.
pub trait Lookups: Send + Sync {
    fn answers<'a>(
        &'a self,
        keys: &'a [LookupKey],
        after: Offset,
        patience: Duration,
    ) -> BoxFuture<'a, Vec<Result<Json, LookupError>>>;
}

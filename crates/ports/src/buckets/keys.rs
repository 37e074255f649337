//! The keys that were counted.

use super::{Error, Generation};
use crate::BoxFuture;

/// Which keys there are.
pub trait KeySource: Send + Sync {
    /// The [hashes](raingauge_core::event::key_hash) of all keys that a generation has counted, in
    /// order and each once. A store that lists keys by counter may know those of other generations,
    /// too.
    fn key_hashes(&self, generation: Generation) -> BoxFuture<'_, Result<Vec<u64>, Error>>;
}

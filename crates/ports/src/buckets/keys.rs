//! The counted keys.

use super::{Answer, Generation};

/// Lists the counted keys.
pub trait KeySource: Send + Sync {
    /// Returns the [hashes](raingauge_core::event::key_hash) of all keys that a generation has
    /// counted, sorted and without repetition. A store that lists keys by counter may include those
    /// of other generations.
    fn key_hashes(&self, generation: Generation) -> Answer<'_, Vec<u64>>;
}

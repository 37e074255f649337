//! How the keyspace works.

use crate::limits::TOGETHER_BYTES_MIN;
use crate::settings::Settings;
use std::time::Duration;

/// Bounds that handlers keep to.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest string, in bytes.
    pub value_bytes_max: usize,
    /// Largest object in memory, in bytes.
    pub object_bytes_max: usize,
    /// How long RAIN.ONCE remembers an id and its reply.
    pub once: Duration,
}

#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of memory for resident objects and their keys.
    pub resident_bytes: usize,
    pub limits: Limits,
    /// How often expired keys that nobody reads are removed.
    pub sweep_every: Duration,
}

/// The part of `objects.memory_bytes` that resident objects take, in percent. The store has the
/// rest: changes that wait for a checkpoint, and the cache of the disk.
const RESIDENT_PERCENT: usize = 60;

impl Options {
    /// Bytes of memory that one command, or one transaction, may load, change or answer.
    pub(crate) fn together_bytes_max(&self) -> usize {
        self.resident_bytes.saturating_mul(2).max(TOGETHER_BYTES_MIN)
    }

    /// Options for a number of bytes of resident objects.
    pub fn of_memory(resident_bytes: usize) -> Self {
        let limits = Limits {
            value_bytes_max: 64 << 20,
            object_bytes_max: (resident_bytes / 2).max(1),
            once: Duration::from_secs(24 * 3_600),
        };
        Self { resident_bytes, limits, sweep_every: Duration::from_millis(100) }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from(&Settings::default())
    }
}

impl From<&Settings> for Options {
    fn from(settings: &Settings) -> Self {
        let resident_bytes = settings.memory_bytes / 100 * RESIDENT_PERCENT;
        let limits = Limits {
            value_bytes_max: settings.value_bytes_max,
            object_bytes_max: settings.object_bytes_max.min(resident_bytes),
            once: settings.once,
        };
        Self { limits, ..Self::of_memory(resident_bytes) }
    }
}

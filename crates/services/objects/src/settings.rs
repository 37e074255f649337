//! The settings of objects.

use core::time::Duration;
use raingauge_ports::objects::SyncMode;
use raingauge_settings::{Reader, settings};

/// The part of `objects.memory_bytes` that one object may take, where nothing else is set.
const OBJECT_SHARE: usize = 4;

settings! {
    /// How the objects of Redis clients are kept.
    pub struct Settings in "objects" checked by Settings::check {
        /// When a write is answered: `always`, when it is on the disk; `everysec`, when the kernel
        /// has it, which syncs it within a second; `no`, likewise, and the kernel decides.
        sync: &'static str = one_of(SyncMode::NAMES);
        /// Memory for objects, changes that wait for a checkpoint, and the cache of the disk.
        memory_bytes: usize = bytes(256 * MIB, 16 * MIB..=TIB);
        /// Largest object in memory; 0 for a quarter of objects.memory_bytes.
        object_bytes_max: usize = bytes(0, 0..=TIB);
        /// Longest string, and longest argument of a command.
        value_bytes_max: usize = bytes(64 * MIB, MIB..=512 * MIB);
        /// Longest time between two checkpoints, which bounds what a start reads again.
        checkpoint_interval as "checkpoint_interval_ms": Duration = millis(10_000, 100..=600_000);
        /// How long RAIN.ONCE remembers an id and its reply.
        once as "once_hours": Duration = hours(24, 1..=8_760);
    }
}

impl Settings {
    fn check(&mut self, reader: &mut Reader) {
        const KEY: &str = "objects.object_bytes_max";
        if self.object_bytes_max == 0 {
            self.object_bytes_max = self.memory_bytes / OBJECT_SHARE;
        }

        if self.object_bytes_max > self.memory_bytes / 2 {
            let half = self.memory_bytes / 2;
            let message = format!(
                "an object of {} bytes would fill more than half of objects.memory_bytes",
                self.object_bytes_max
            );
            let advice = format!("Give at most {half}, or raise objects.memory_bytes");
            reader.refuse(KEY, message, advice);
        }
    }

    /// When a write is answered.
    pub fn sync_mode(&self) -> SyncMode {
        SyncMode::from_name(self.sync).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_may_take_a_quarter_of_the_memory() {
        let settings = Settings::default();
        assert_eq!(settings.object_bytes_max, settings.memory_bytes / 4);
        assert_eq!(settings.sync_mode(), SyncMode::Always);
    }
}

//! Numbers of the keyspace, readable without its lock.

use std::sync::atomic::{AtomicU64, Ordering};

/// Keys that reading commands found, and did not find.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lookups {
    hits: u64,
    misses: u64,
}

impl Totals {
    pub(crate) fn lookups(&self) -> Lookups {
        Lookups { hits: self.hits, misses: self.misses }
    }

    /// Takes back what was counted since then, in the same hold.
    pub(crate) fn go_back(&mut self, lookups: Lookups) {
        self.hits = lookups.hits;
        self.misses = lookups.misses;
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Numbers of the keyspace since the start, and what is in memory now.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
            /// Keys in memory, known absences among them.
            pub resident: u64,
            /// Bytes of memory that they take, about.
            pub resident_bytes: u64,
            /// The newest group.
            pub submitted: u64,
            /// The newest group that survives a power cut.
            pub synced: u64,
        }

        /// The numbers as the keyspace counts them.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct Totals {
            $(pub $name: u64,)*
            pub resident: u64,
            pub resident_bytes: u64,
        }

        /// The numbers as the process reads them.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($name: AtomicU64,)*
            resident: AtomicU64,
            resident_bytes: AtomicU64,
        }

        impl Counters {
            pub(crate) fn publish(&self, totals: &Totals) {
                $(self.$name.store(totals.$name, Ordering::Relaxed);)*
                self.resident.store(totals.resident, Ordering::Relaxed);
                self.resident_bytes.store(totals.resident_bytes, Ordering::Relaxed);
            }

            pub(crate) fn read(&self) -> Totals {
                Totals {
                    $($name: self.$name.load(Ordering::Relaxed),)*
                    resident: self.resident.load(Ordering::Relaxed),
                    resident_bytes: self.resident_bytes.load(Ordering::Relaxed),
                }
            }
        }

        impl Totals {
            /// What was counted since `base`; sizes stay as they are.
            pub(crate) fn since(self, base: &Totals) -> Stats {
                Stats {
                    $($name: self.$name.saturating_sub(base.$name),)*
                    resident: self.resident,
                    resident_bytes: self.resident_bytes,
                    submitted: 0,
                    synced: 0,
                }
            }
        }
    };
}

counters! {
    /// Commands that ran over objects.
    commands,
    /// Holds of the lock.
    holds,
    /// Groups of effects.
    groups,
    /// Keys that commands which read found.
    hits,
    /// Keys that commands which read did not find.
    misses,
    /// Keys that were read from the store.
    loads,
    expired,
    evicted,
}

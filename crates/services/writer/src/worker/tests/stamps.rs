//! The clock of the log: a function of the entries, however a reader cuts them into blocks.

use super::world::{Medium, World};
use proptest::prelude::*;
use raingauge_ports::log::Block;
use raingauge_ports::record;

/// Entries that were appended at the same millisecond, cut into blocks of these sizes. A block may
/// begin with entries of the previous one, which are applied already.
type Run = (i64, Vec<(u64, bool)>);

fn any_log() -> impl Strategy<Value = Vec<Run>> {
    // Clocks go back, and many more entries are appended in a millisecond than it has microseconds.
    let appended_ms = 1_700_000_000_000..1_700_000_000_009_i64;
    let len = prop_oneof![9 => 1..9_u64, 1 => 500..3_000_u64];
    prop::collection::vec((appended_ms, prop::collection::vec((len, any::<bool>()), 0..6)), 0..20)
}

fn block(base: u64, end: u64, appended_ms: i64) -> Block {
    let mut bytes = Vec::new();
    (base..end).for_each(|_| record::push_void(&mut bytes));
    Block { base, appended_ms, len: end - base, bytes }
}

proptest! {
    #[test]
    fn stamps_do_not_depend_on_how_the_log_is_cut_into_blocks(
        log in any_log(),
        first_us in 0..1_700_000_000_005_000_i64,
    ) {
        let mut world = World::new(Medium::memory());
        let worker = world.worker();
        worker.stamp_us = first_us;
        let mut stamp_us = first_us;
        for (appended_ms, blocks) in log {
            let run = worker.position;
            for (len, begins_with_the_run) in blocks {
                let (from, end) = (worker.position, worker.position + len);
                worker
                    .apply_block(&block(
                        if begins_with_the_run { run } else { from },
                        end,
                        appended_ms,
                    ))
                    .unwrap();
                for offset in from..end {
                    let next = worker.stamp_base_us + offset as i64;
                    prop_assert!(next > stamp_us, "each entry has a stamp of its own");
                    prop_assert_eq!(next, (stamp_us + 1).max(appended_ms * 1_000));
                    stamp_us = next;
                }
                prop_assert_eq!((worker.position, worker.stamp_us), (end, stamp_us));
            }
        }
    }
}

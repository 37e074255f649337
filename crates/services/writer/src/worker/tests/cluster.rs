//! A cluster in one thread: partitions, workers that crash at any of their writes, zombies,
//! readers, conductors that die half way or act on outdated states, backfills, edits, erasures,
//! buckets that are set, changes of the retention, a log that is trimmed, and repetitions that each
//! worker detects by a window rebuilt from what all workers stored. All of it follows from a seed.
//!
//! `RAINGAUGE_SEED=N` replays one seed. `RAINGAUGE_SEEDS=N` plays N seeds from a random one on,
//! instead of the first ones.

mod deduped;
mod engines;
mod naive;
mod play;
mod reread;

use play::{Defect, Play};
use std::sync::atomic::{AtomicU64, Ordering};

/// Seeds of a run of the suite.
const SEEDS: u64 = 1_000;
/// Steps of one seed.
const STEPS: usize = 120;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn play(seed: u64) {
    struct Replay(u64);
    impl Drop for Replay {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("replay with RAINGAUGE_SEED={}", self.0);
            }
        }
    }
    let _replay = Replay(seed);
    play_to_the_end(Play::new(seed, None));
}

fn play_to_the_end(mut play: Play) {
    for _ in 0..STEPS {
        play.step();
    }
    play.settle();
    play.step_all_away();
}

/// Known former defects are found within few seeds.
#[test]
fn the_simulator_finds_what_it_is_made_for() {
    for defect in [
        Defect::SwitchesAlone,
        Defect::CountsGenerationsAlone,
        Defect::ErasesInAnyOrder,
        Defect::ForgetsWindows,
    ] {
        let fails = |seed| {
            std::panic::catch_unwind(|| play_to_the_end(Play::new(seed, Some(defect)))).is_err()
        };
        assert!((0..300).any(fails), "{defect:?} is not found");
    }
}

#[test]
fn a_cluster_counts_what_a_naive_walk_counts_whatever_breaks() {
    if let Some(seed) = number("RAINGAUGE_SEED") {
        return play(seed);
    }
    let (first, seeds) = match number("RAINGAUGE_SEEDS") {
        Some(seeds) => (random_seed(), seeds),
        None => (0, SEEDS),
    };
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);

    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let seed = next.fetch_add(1, Ordering::Relaxed)
                    && seed < seeds
                {
                    play(first.wrapping_add(seed));
                }
            });
        }
    });
    println!("{seeds} seeds from {first} on");
}

/// Another one each time.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

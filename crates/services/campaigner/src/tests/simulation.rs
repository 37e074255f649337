//! A worker that dies at any of its commits, against a naive reading of the log.
//!
//! All of it follows from a seed, in one thread with a clock that is moved: campaigns, events that
//! repeat and come late, lookups that fail, documents that change, campaigns that begin with the
//! events of the log or are paused and archived, a log, documents and a ledger that cannot be read
//! at times, and commits that fail, before or after they are made. In the end, what the
//! worker decided and handed to the outbox has to be what one walk through the log comes to that
//! never failed, with bodies byte for byte, and at every commit no budget is overdrawn.
//!
//! Beside the worker, deliveries go to a receiver whose answers get lost, also after it has acted,
//! from a process that dies at any of its awaits and over an outbox that fails. In the end, every
//! action that was granted has been done once, refused by the receiver, or withdrawn.
//!
//! `RAINGAUGE_SEED=N` replays one seed. `RAINGAUGE_SEEDS=N` plays N seeds from a random one on,
//! instead of the first ones.

mod delivery;
mod faults;
mod naive;
mod play;
mod world;

use play::{Defect, Play};
use std::sync::atomic::{AtomicU64, Ordering};

/// Seeds of a run of the suite.
const SEEDS: u64 = 1_000;

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
    Play::new(seed, None).play_out();
}

/// Defects that a worker might have are found within few seeds.
#[test]
fn the_simulator_finds_what_it_is_made_for() {
    let defects = [
        Defect::ForgetsTimers,
        Defect::CommitsTwice,
        Defect::ForgetsAState,
        Defect::RepeatsHistory,
        Defect::GivesUpDeliveries,
        Defect::RenamesDeliveries,
    ];
    for defect in defects {
        let fails =
            |seed| std::panic::catch_unwind(|| Play::new(seed, Some(defect)).play_out()).is_err();
        assert!((0..300).any(fails), "{defect:?} is not found");
    }
}

/// Deliveries whose answers got lost are sent again.
#[test]
fn receivers_are_asked_again_for_what_they_have_done() {
    let repeated = |seed| {
        let mut play = Play::new(seed, None);
        play.play_out();
        play.repeated()
    };
    let repeated: usize = (0..50).map(repeated).sum();
    assert!(repeated > 20, "{repeated}");
}

#[test]
fn a_worker_decides_what_a_naive_walk_decides_whatever_breaks() {
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

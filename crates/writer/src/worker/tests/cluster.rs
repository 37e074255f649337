//! A cluster in one thread: partitions, workers that crash in the middle of a commit, zombies, readers, conductors that
//! act on old news, backfills, edits, changes of the retention and a log that is trimmed. All of it follows from a seed.
//!
//! `RAINGAUGE_SEED=N` replays one seed. `RAINGAUGE_SEEDS=N` plays N seeds from a random one on, instead of the first ones,
//! as many as fit in a test.

mod engines;
mod naive;
mod play;

use play::{Defect, Play};
use std::time::{Duration, Instant};

/// Seeds of a run of the suite, as far as they fit in the time that it has for them.
const SEEDS: u64 = 10_000;
const TIME_MAX: Duration = Duration::from_secs(8);
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

/// What clusters did once is found within few seeds.
#[test]
fn the_simulator_finds_what_it_is_made_for() {
    for defect in [Defect::SwitchesAlone, Defect::CountsGenerationsAlone] {
        let fails = |seed| std::panic::catch_unwind(|| play_to_the_end(Play::new(seed, Some(defect)))).is_err();
        assert!((0..300).any(fails), "{defect:?} is not found");
    }
}

#[test]
fn a_cluster_counts_what_a_naive_walk_counts_whatever_breaks() {
    if let Some(seed) = number("RAINGAUGE_SEED") {
        return play(seed);
    }
    let (wanted, began) = (number("RAINGAUGE_SEEDS"), Instant::now());
    let first = wanted.map_or(0, |_| random_seed());
    let threads = std::thread::available_parallelism().map_or(2, |threads| threads.get().min(4)) as u64;
    let played = std::thread::scope(|scope| {
        let share = |thread: u64| {
            let seeds = (thread..wanted.unwrap_or(SEEDS)).step_by(threads as usize);
            let mut played = 0;
            for seed in seeds.take_while(|_| wanted.is_some() || began.elapsed() < TIME_MAX) {
                play(first.wrapping_add(seed));
                played += 1;
            }
            played
        };
        let players: Vec<_> = (0..threads).map(|thread| scope.spawn(move || share(thread))).collect();
        players.into_iter().map(|player| player.join().expect("every seed ends well")).sum::<u64>()
    });
    println!("{played} seeds from {first} on");
    assert!(played > 0);
}

/// Another one each time.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

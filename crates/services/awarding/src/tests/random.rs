//! Choices of simulations, which follow from a seed.

/// Numbers after SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn of(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Whether something happens that does so one time in `number`.
    pub fn one_in(&mut self, number: u64) -> bool {
        self.below(number) == 0
    }

    pub fn pick<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[self.below(items.len() as u64) as usize]
    }
}

/// Plays the first seeds, as many as `RAINGAUGE_SEEDS` says, or the one of `RAINGAUGE_SEED`. A seed
/// that fails is printed.
pub fn play(default: u64, game: impl Fn(u64)) {
    struct Seed(u64);
    impl Drop for Seed {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("repeat it with RAINGAUGE_SEED={}", self.0);
            }
        }
    }

    let variable = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let seeds = match variable("RAINGAUGE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("RAINGAUGE_SEEDS").unwrap_or(default),
    };
    for seed in seeds {
        let _printed = Seed(seed);
        game(seed);
    }
}

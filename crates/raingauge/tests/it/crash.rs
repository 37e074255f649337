//! Crashes: the real process is killed at random moments under load, repeatedly, over the same
//! data.
//!
//! Afterwards every count equals a naive model that was fed with what was acknowledged. What was
//! not acknowledged may have been counted or not, and is sent again, which counts it exactly once.
//!
//! `RAINGAUGE_CRASH_ROUNDS` and `RAINGAUGE_CRASH_SEED` choose the number of rounds and the seed;
//! `scripts/crash` sets them.

mod damage;
pub mod load;

use crate::client::Client;
use crate::model::Model;
use crate::server::{Home, Server};
use load::{END_S, Editor, Producer, START_S, Setter};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Rounds over one data folder; then a new one is begun.
const ROUNDS_PER_HOME: usize = 40;
/// Rounds after which every count is compared.
const ROUNDS_PER_CHECK: usize = 20;

/// A small cache, small segments and short sets of identities: in these rounds everything rolls
/// over.
pub fn small_home() -> Home {
    Home::with(&[
        ("storage.tile_cache_bytes", "1048576"),
        ("storage.block_cache_bytes", "1048576"),
        ("log.segment_bytes", "1048576"),
        ("dedupe.ids_max", "120000"),
    ])
}

/// The number in a variable of the environment.
pub fn number(variable: &str) -> Option<u64> {
    std::env::var(variable)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}

/// The seed of a random test, printed so that a failure can be replayed.
pub fn seed() -> u64 {
    let seed = number("RAINGAUGE_CRASH_SEED").unwrap_or_else(rand::random);
    println!("replay with RAINGAUGE_CRASH_SEED={seed}");
    seed
}

#[test]
fn every_count_survives_being_killed_at_random_moments() {
    let rounds = number("RAINGAUGE_CRASH_ROUNDS").unwrap_or(200) as usize;
    let mut random = StdRng::seed_from_u64(seed());
    let mut done = 0;
    let mut restarts = Vec::new();

    while done < rounds {
        let mut sequence = Sequence::new(&mut random);
        done += sequence.run(ROUNDS_PER_HOME.min(rounds - done), &mut random);
        restarts.append(&mut sequence.restarts);
    }

    restarts.sort_unstable();
    println!(
        "{done} rounds; restarts took {:?} in the middle, {:?} at most",
        restarts[restarts.len() / 2],
        restarts[restarts.len() - 1]
    );
}

/// Rounds over one data folder.
pub struct Sequence {
    home: Home,
    producers: [Producer; 2],
    editor: Editor,
    setter: Setter,
    restarts: Vec<Duration>,
}

impl Sequence {
    pub fn new(random: &mut StdRng) -> Self {
        let producers = ["a", "b"].map(|name| Producer::new(name, random));
        let editor = Editor::new(random);
        let setter = Setter::new(random);
        let sequence = Self { home: small_home(), producers, editor, setter, restarts: Vec::new() };
        load::create_counters(&sequence.home.start());
        sequence
    }

    /// Returns how many rounds there were: producers that have no more to send end a sequence
    /// early.
    fn run(&mut self, rounds: usize, random: &mut StdRng) -> usize {
        for round in 1..=rounds {
            if random.random_bool(0.2) {
                self.kill_while_starting(random);
            }
            let server = self.restart();
            self.check_bounds(&server);
            self.settle(&server);

            let is_last = round == rounds || self.producers.iter().all(Producer::is_done);
            if is_last || round % ROUNDS_PER_CHECK == 0 {
                self.check(&server, random);
            }

            if is_last {
                return round;
            }

            // Sometimes a round lives long enough for a commit by the clock.
            let life_ms =
                if random.random_bool(0.02) { 2_300 } else { random.random_range(1..200) };
            self.load_and_kill(server, Duration::from_millis(life_ms));
        }
        rounds
    }

    fn restart(&mut self) -> Server {
        let began = Instant::now();
        let server = self.home.start();
        self.restarts.push(began.elapsed());
        server
    }

    /// A crash in the middle of the recovery from another one.
    fn kill_while_starting(&self, random: &mut StdRng) {
        let data = self.home.data().display().to_string();
        let arguments =
            ["serve", "--data-dir", &data, "--listen", "127.0.0.1:0"].map(str::to_owned);
        let mut child = self
            .home
            .command(&arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");

        std::thread::sleep(Duration::from_millis(random.random_range(0..80)));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
    }

    /// All clients send until the server is killed. The moment of the kill is the random part.
    fn load_and_kill(&mut self, server: Server, life: Duration) {
        let client: Client = (*server).clone();
        std::thread::scope(|scope| {
            for producer in &mut self.producers {
                scope.spawn(|| producer.run(&client, usize::MAX));
            }
            scope.spawn(|| self.editor.run(&client));
            scope.spawn(|| self.setter.run(&client));
            std::thread::sleep(life);
            server.kill();
        });
    }

    /// All clients send without interruption, get their answers, and everything is counted.
    pub fn load(&mut self, client: &Client, batches: usize) {
        self.producers.iter_mut().for_each(|producer| producer.run(client, batches));
        self.settle(client);
    }

    fn settle(&mut self, client: &Client) {
        self.producers.iter_mut().for_each(|producer| producer.settle(client));
        self.editor.settle(client);
        self.setter.settle(client);
    }

    /// Right after a restart: everything that was acknowledged is there, and nothing that was never
    /// sent.
    fn check_bounds(&self, client: &Client) {
        // Counts that can only grow have bounds.
        let keys: Vec<String> = (0..load::CITIES).map(|city| format!("rides:{city}")).collect();
        let counts = client
            .counts(&keys.iter().map(|key| (key.as_str(), START_S, END_S)).collect::<Vec<_>>());
        let pending = self.producers.each_ref().map(Producer::pending);

        for (key, count) in keys.iter().zip(counts) {
            let least: i64 = self
                .producers
                .iter()
                .map(|producer| producer.acknowledged().count(key, START_S, END_S))
                .sum();

            let most = least
                + pending.iter().map(|pending| pending.count(key, START_S, END_S)).sum::<i64>();
            assert!((least..=most).contains(&count), "{key}: {count} is not in {least}..={most}");
        }
    }

    /// Returns every range with its expected count: key, range, count.
    pub fn expected(&self, random: &mut StdRng) -> Vec<(String, i64, i64, i64)> {
        let mut model = Model::default();
        self.producers.iter().for_each(|producer| model.merge(producer.acknowledged()));

        let mut expected = self.setter.expected();
        expected.push(("edited".to_owned(), START_S, END_S, self.editor.total()));

        for key in model.keys() {
            let mut ranges =
                vec![(START_S, END_S), (END_S - 7_200, END_S), (END_S - 3_600, END_S - 900)];
            ranges.extend((0..4).map(|_| {
                let from = random.random_range(START_S..END_S);
                (from, random.random_range(from..END_S))
            }));
            expected.extend(
                ranges
                    .into_iter()
                    .map(|(from, to)| (key.to_owned(), from, to, model.count(key, from, to))),
            );
        }

        expected
    }

    fn check(&self, client: &Client, random: &mut StdRng) {
        let expected = self.expected(random);
        for chunk in expected.chunks(1_000) {
            let ranges: Vec<(&str, i64, i64)> =
                chunk.iter().map(|(key, from, to, _)| (key.as_str(), *from, *to)).collect();
            let counts = client.counts(&ranges);
            for ((key, from, to, expected), count) in chunk.iter().zip(counts) {
                assert_eq!(count, *expected, "{key} in [{from}, {to})");
            }
        }
    }
}

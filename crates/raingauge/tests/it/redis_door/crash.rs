//! Kills under writers of all types: the real process dies at random moments, repeatedly, over the
//! same data, with every write synced. Afterwards each database is what its writer's commands make
//! of it, up to a command that is not before the last acknowledged one: nothing acknowledged is
//! missing, nothing is out of order, and no half of an EXEC is there.
//!
//! `RAINGAUGE_CRASH_ROUNDS` and `RAINGAUGE_CRASH_SEED` choose the number of kills and the seed;
//! `scripts/crash objects` sets them.

use super::{Client, address_of};
use crate::crash::{number, seed};
use crate::server::{Home, Server};
use model::{Command, Model, command};
use raingauge_resp_client::{Address, Connection, Reply};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::process::Stdio;
use std::time::Duration;

mod model;

/// Kills in a run of the suite.
const ROUNDS: u64 = 10;
/// Kills over one data folder; then a new one is begun.
const ROUNDS_PER_HOME: u64 = 50;
/// Each has a connection and a database of its own.
const WRITERS: u8 = 4;
/// Commands of one pipeline.
const PIPELINE_MAX: usize = 30;

#[test]
fn objects_survive_being_killed_at_random_moments() {
    let rounds = number("RAINGAUGE_CRASH_ROUNDS").unwrap_or(ROUNDS);
    let mut random = StdRng::seed_from_u64(seed());
    let mut done = 0;
    let mut acknowledged = 0;
    while done < rounds {
        // Memory so small that objects are read from the disk, and checkpoints happen all the time.
        let home = Home::with(&[
            ("resp.listen", "127.0.0.1:0"),
            ("objects.memory_bytes", "33554432"),
            ("objects.checkpoint_interval_ms", "100"),
        ]);
        let mut writers: Vec<Writer> =
            (0..WRITERS).map(|database| Writer::new(database, random.random())).collect();
        for _ in 0..ROUNDS_PER_HOME.min(rounds - done) {
            if random.random_bool(0.2) {
                kill_while_starting(&home, &mut random);
            }
            let server = home.start();
            writers.iter_mut().for_each(|writer| writer.check(&server));
            load_and_kill(server, &mut writers, Duration::from_millis(random.random_range(1..300)));
            done += 1;
        }

        let server = home.start();
        writers.iter_mut().for_each(|writer| writer.check(&server));
        acknowledged += writers.iter().map(|writer| writer.acknowledged).sum::<u64>();
    }
    println!("{done} kills, {acknowledged} acknowledged commands");
    assert!(acknowledged > 0, "there was a load");
}

/// A crash in the middle of the recovery from another one.
fn kill_while_starting(home: &Home, random: &mut StdRng) {
    let data = home.data().display().to_string();
    let arguments = ["serve", "--data-dir", &data, "--listen", "127.0.0.1:0"].map(str::to_owned);
    let mut command = home.command(&arguments);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = child.expect("it starts");
    std::thread::sleep(Duration::from_millis(random.random_range(0..150)));
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
}

/// Sends until the server is killed. The moment of the kill is the random part.
fn load_and_kill(server: Server, writers: &mut [Writer], life: Duration) {
    let address = address_of(&server).expect("the address is in the log");
    std::thread::scope(|scope| {
        for writer in writers {
            let address = &address;
            scope.spawn(move || writer.load(address));
        }
        std::thread::sleep(life);
        server.kill();
    });
}

/// The one who writes to a database.
struct Writer {
    database: u8,
    random: StdRng,
    /// What the acknowledged commands make of the database.
    model: Model,
    /// Commands that were sent behind them.
    pending: VecDeque<Command>,
    /// How many commands were made, and acknowledged.
    made: u64,
    acknowledged: u64,
}

impl Writer {
    fn new(database: u8, seed: u64) -> Self {
        Self {
            database,
            random: StdRng::seed_from_u64(seed),
            model: Model::default(),
            pending: VecDeque::new(),
            made: 0,
            acknowledged: 0,
        }
    }

    /// Sends pipelines until the server is gone. Each command is followed by its number, under a
    /// key of its own.
    fn load(&mut self, address: &str) {
        let address: Address = format!("redis://{address}").parse().expect("an address");
        let Ok(mut connection) = Connection::open(&address) else {
            return;
        };
        let database = self.database.to_string();
        if connection.call(&[b"SELECT", database.as_bytes()]).is_err() {
            return;
        }
        while self.pipeline(&mut connection).is_some() {}
    }

    fn pipeline(&mut self, connection: &mut Connection) -> Option<()> {
        for _ in 0..self.random.random_range(1..=PIPELINE_MAX) {
            self.made += 1;
            let command = command(&mut self.random, self.made);
            for words in command.words(self.made) {
                let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
                connection.push(&words);
            }
            self.pending.push_back(command);
        }
        connection.flush().ok()?;

        while let Some(command) = self.pending.front() {
            for _ in command.words(0) {
                let reply = connection.reply().ok()?;
                let is_refused = reply.error().is_some();
                assert!(!is_refused, "{command:?} was refused: {reply:?}");
            }
            self.acknowledge();
        }
        Some(())
    }

    /// Moves the model behind the next command.
    fn acknowledge(&mut self) {
        if let Some(command) = self.pending.pop_front() {
            self.acknowledged += 1;
            self.model.apply(&command, Some(self.acknowledged));
        }
    }

    /// Finds out how far the pending commands came, and compares all of the database.
    fn check(&mut self, server: &Server) {
        let mut client = Client::new(server);
        client.call(&["SELECT", &self.database.to_string()]);
        let found = read(&mut client);
        let number = found.number();
        assert!(
            (self.acknowledged..=self.made).contains(&number) || self.model.number() == number,
            "database {}: command {} was acknowledged and {} sent, but {number} is there",
            self.database,
            self.acknowledged,
            self.made,
        );

        while self.acknowledged < number {
            self.acknowledge();
        }
        // The command behind it may have come, and its number not.
        if found != self.model
            && let Some(next) = self.pending.front()
        {
            let mut one_more = self.model.clone();
            one_more.apply(next, None);
            if found == one_more {
                self.model = one_more;
            }
        }
        assert_eq!(found, self.model, "database {} behind command {number}", self.database);
        assert_eq!(client.integer(&["DBSIZE"]), self.model.len() as i64);

        // What was not acknowledged is not sent again; numbers go on.
        self.pending.clear();
        self.acknowledged = self.made;
    }
}

/// Reads all of the selected database.
fn read(client: &mut Client) -> Model {
    let mut model = Model::default();
    let keys = client.call(&["KEYS", "*"]);
    for key in texts(&keys) {
        let kind = client.call(&["TYPE", &key]);
        let kind = String::from_utf8_lossy(kind.bytes().unwrap_or_default()).into_owned();
        let reply = match kind.as_str() {
            "string" => client.call(&["GET", &key]),
            "hash" => client.call(&["HGETALL", &key]),
            "set" => client.call(&["SMEMBERS", &key]),
            "zset" => client.call(&["ZRANGE", &key, "0", "-1", "WITHSCORES"]),
            "list" => client.call(&["LRANGE", &key, "0", "-1"]),
            other => panic!("{key} is {other}"),
        };
        let words = match reply {
            Reply::Bulk(text) => vec![String::from_utf8_lossy(&text).into_owned()],
            reply => texts(&reply),
        };
        model.put(&key, &kind, words);
    }
    model
}

fn texts(reply: &Reply) -> Vec<String> {
    let elements = reply.elements().unwrap_or_else(|| panic!("no array: {reply:?}"));
    let text =
        |element: &Reply| String::from_utf8_lossy(element.bytes().unwrap_or_default()).into_owned();
    elements.iter().map(text).collect()
}

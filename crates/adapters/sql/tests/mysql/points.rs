//! Books of points on a server: the contract, several processes that award at once, and faults.
//!
//! `RAINGAUGE_BOOK_FAULTS=500 cargo test -p raingauge-sql --test mysql -- points::` deals that many
//! faults; a run of the suite deals a few. `RAINGAUGE_SEED` repeats a run.

use crate::points_load::{BOOKS, Place, TURN, Teller};
use crate::server::PrivateServer;
use crate::support::Server;
use raingauge_points::{Footprint, Turn};
use raingauge_ports::clock::{Clock as _, SystemClock};
use raingauge_ports::contract::{books, queues};
use raingauge_ports::points::{Books, Error};
use raingauge_sql::{MySqlBooks, MySqlOptions};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};

/// Names the database of a worker, and where in the commands it begins.
const WORKER_URL: &str = "RAINGAUGE_TEST_BOOKS_URL";
const WORKER_FIRST: &str = "RAINGAUGE_TEST_BOOKS_FIRST";
const FAULTS: &str = "RAINGAUGE_BOOK_FAULTS";
const SEED: &str = "RAINGAUGE_SEED";
/// How many commands there are. Workers that gave all of them begin again.
const COMMANDS: u64 = 1_200;
const WORKERS: u64 = 3;
/// Answers between two faults.
const ANSWERS_PER_FAULT: usize = 120;
/// Longest time without an answer. A server that was killed comes back in seconds.
const PATIENCE: Duration = Duration::from_secs(60);

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn open(options: &MySqlOptions, runtime: &Handle) -> Result<MySqlBooks, Error> {
    runtime.block_on(MySqlBooks::open(options, BOOKS, runtime.clone()))
}

#[test]
fn books_keep_the_contract() {
    let Some(server) = Server::shared() else {
        return;
    };
    let runtime = runtime();
    let handle = runtime.handle();
    let _entered = handle.enter();
    books::suite(|| {
        let options = handle.block_on(server.database());
        open(&options, handle).unwrap()
    });
    handle.block_on(server.clean_up());
}

#[test]
fn queues_keep_the_contract() {
    let Some(server) = Server::shared() else {
        return;
    };
    let runtime = runtime();
    let handle = runtime.handle();
    let fresh = async || {
        let options = server.database().await;
        let books = MySqlBooks::open(&options, BOOKS, handle.clone()).await.unwrap();
        books.queues(Arc::new(SystemClock))
    };
    handle.block_on(queues::suite(fresh, tokio::time::sleep));
    handle.block_on(server.clean_up());
}

/// Runs a test of the books of a database of its own, where there is a server.
fn with_books(test: impl FnOnce(&MySqlBooks, &MySqlOptions, &Handle)) {
    let Some(server) = Server::shared() else {
        return;
    };
    let runtime = runtime();
    let handle = runtime.handle();
    let options = handle.block_on(server.database());
    test(&open(&options, handle).unwrap(), &options, handle);
    handle.block_on(server.clean_up());
}

#[test]
fn turns_of_other_books_do_not_wait() {
    with_books(|books, _, _| {
        // It would end with an error of the server, which lets no transaction wait for ever.
        let nothing = Footprint::default();
        let take = |book| books.turn(&[book], &nothing, &mut |_, _| Turn::default());
        let mut taken = None;
        let first = books.turn(&[1, 2], &nothing, &mut |_, _| {
            taken = Some(std::thread::scope(|scope| scope.spawn(|| take(0)).join().unwrap()));
            Turn::default()
        });
        assert_eq!(first.map(|heads| heads.len()), Ok(2));
        assert_eq!(taken.map(|taken| taken.map(|heads| heads.len())), Some(Ok(1)));
    });
}

#[test]
fn another_number_of_books_is_refused() {
    with_books(|books, options, handle| {
        assert_eq!((books.books(), books.head(BOOKS - 1).unwrap().sequence), (BOOKS, 0));

        let other = handle.block_on(MySqlBooks::open(options, BOOKS + 1, handle.clone()));
        let sentence = other.unwrap_err().to_string();
        assert!(
            sentence.contains("it has 4 books of points, and this raingauge needs 5"),
            "{sentence}"
        );
    });
}

/// Machines that share a database compare their clocks with it.
#[test]
fn a_turn_knows_the_time_of_the_server() {
    with_books(|books, _, _| {
        let before_ms = SystemClock.now_ms();
        let mut engine_ms = None;
        let heads = books.turn(&[0, 2], &Footprint::default(), &mut |_, loaded| {
            engine_ms = loaded.engine_ms;
            Turn::default()
        });
        assert_eq!(heads.unwrap().len(), 2);
        let engine_ms = engine_ms.expect("it has a clock of its own");
        assert!((before_ms..=SystemClock.now_ms()).contains(&engine_ms), "{before_ms} {engine_ms}");
    });
}

/// Part of the next test: gives commands until it is killed.
#[test]
fn worker() {
    let (Ok(url), Ok(first)) = (std::env::var(WORKER_URL), std::env::var(WORKER_FIRST)) else {
        return;
    };
    let runtime = runtime();
    let options = options(url);
    let teller = loop {
        if let Ok(books) = open(&options, runtime.handle()) {
            break Teller::new(books);
        }
    };

    let first: u64 = first.parse().unwrap();
    for turn in 0.. {
        let from = first + turn * TURN as u64;
        let numbers: Vec<u64> = (from..from + TURN as u64).map(|each| each % COMMANDS).collect();
        // A turn that failed may have been committed or not: it is repeated.
        let places = loop {
            if let Ok(places) = teller.turn(&numbers) {
                break places;
            }
        };
        for (number, (book, sequence)) in numbers.iter().zip(places) {
            println!("answered {number} {book} {sequence} .");
        }
    }
}

/// With short times, so that a process that stands still does not hold up others for long.
fn options(url: impl Into<String>) -> MySqlOptions {
    let call_timeout = Duration::from_secs(2);
    MySqlOptions { call_timeout, connect_timeout: call_timeout, ..MySqlOptions::new(url) }
}

#[test]
fn nothing_is_lost_or_happens_twice_whatever_is_killed() {
    let runtime = runtime();
    let handle = runtime.handle();
    let Some(mut server) = handle.block_on(PrivateServer::start(&[])) else {
        return;
    };
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let faults = number(FAULTS).unwrap_or(5);
    let seed = number(SEED).unwrap_or_else(|| u64::from(std::process::id()));
    println!("{SEED}={seed}");

    let url = handle.block_on(server.databases().database()).url;
    let mut stage = Stage::new(url.clone(), seed);
    for fault in 0..faults {
        stage.watch(ANSWERS_PER_FAULT);
        let which = (seed.wrapping_mul(31) + fault * 7) % 5;
        match which {
            0 => {
                server.stop(Signal::KILL);
                handle.block_on(server.go());
            }
            1 => stage.pause(fault % WORKERS),
            _ => stage.replace(fault % WORKERS),
        }
    }
    stage.watch(ANSWERS_PER_FAULT);
    let answers = stage.end();

    let teller = Teller::new(open(&options(url), handle).unwrap());
    let all: Vec<u64> = (0..COMMANDS).collect();
    for numbers in all.chunks(TURN) {
        let places = teller.turn(numbers).unwrap();
        for (number, place) in numbers.iter().zip(places) {
            let before = answers.get(number).unwrap_or(&place);
            assert_eq!(*before, place, "command {number} is answered by its one entry");
        }
    }
    teller.examine(COMMANDS, handle);
}

/// The processes that award at the same time.
struct Stage {
    url: String,
    seed: u64,
    workers: Vec<Child>,
    begun: u64,
    heard: Receiver<(u64, Place)>,
    tells: Sender<(u64, Place)>,
    answers: HashMap<u64, Place>,
}

impl Stage {
    fn new(url: String, seed: u64) -> Self {
        let (tells, heard) = channel();
        let answers = HashMap::new();
        let mut stage = Self { url, seed, workers: Vec::new(), begun: 0, heard, tells, answers };
        for _ in 0..WORKERS {
            let worker = stage.begin();
            stage.workers.push(worker);
        }
        stage
    }

    /// Starts a worker, and notes what it is answered.
    fn begin(&mut self) -> Child {
        // Workers begin near each other, so that they give the same commands at the same time.
        let first = (self.seed + self.begun * 3 * TURN as u64) % COMMANDS;
        self.begun += 1;
        let mut worker = Command::new(std::env::current_exe().unwrap())
            .args(["points::worker", "--exact", "--nocapture"])
            .env(WORKER_URL, &self.url)
            .env(WORKER_FIRST, first.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();

        let lines = BufReader::new(worker.stdout.take().unwrap()).lines();
        let tells = self.tells.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(answer) = answer_of(&line)
                    && tells.send(answer).is_err()
                {
                    return;
                }
            }
        });
        worker
    }

    /// Waits for a number of answers. A repeated command has the same one.
    fn watch(&mut self, answers: usize) {
        for _ in 0..answers {
            let (number, place) = self.heard.recv_timeout(PATIENCE).expect("workers go on");
            let before = *self.answers.entry(number).or_insert(place);
            assert_eq!(before, place, "command {number} has one entry");
        }
    }

    /// Kills a worker, wherever it is, and starts another one.
    fn replace(&mut self, which: u64) {
        let new = self.begin();
        let mut old = std::mem::replace(&mut self.workers[which as usize], new);
        old.kill().unwrap();
        old.wait().unwrap();
    }

    /// Stops a worker without ending it, until the others went on for a while.
    fn pause(&mut self, which: u64) {
        let id = Pid::from_child(&self.workers[which as usize]);
        kill_process(id, Signal::STOP).unwrap();
        // Its last answers may still be on the way.
        self.watch(2 * ANSWERS_PER_FAULT);
        kill_process(id, Signal::CONT).unwrap();
    }

    fn end(mut self) -> HashMap<u64, Place> {
        for worker in &mut self.workers {
            worker.kill().unwrap();
            worker.wait().unwrap();
        }
        std::mem::take(&mut self.answers)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            // It may have been ended already.
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

/// Reads a line of a worker; the last one may have been cut off.
fn answer_of(line: &str) -> Option<(u64, Place)> {
    let mut numbers =
        line.strip_prefix("answered ")?.strip_suffix(" .")?.split(' ').map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let number = next()?;
    let book = u16::try_from(next()?).ok()?;
    Some((number, (book, next()?)))
}

//! Concurrent clients that record what they did.

use super::operation::{Event, Operation};
use anyhow::{Result, anyhow, ensure};
use parking_lot::Mutex;
use raingauge_resp_client::{Address, Connection, Error, Reply};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Pause before a client tries again to reach a server that does not answer.
const RETRY: Duration = Duration::from_millis(5);

#[derive(Debug, Clone)]
pub struct Options {
    pub clients: usize,
    /// Few keys make conflicts.
    pub keys: usize,
    /// Operations of each client.
    pub operations: usize,
    pub seed: u64,
    /// A word in the names of the keys, which must be new.
    pub prefix: String,
}

/// Runs the clients until each has done its operations, and returns the history. `disturb` runs
/// beside them, on a thread of its own, and is to end soon after `stop` becomes true; the clients
/// ask for the address whenever they connect.
pub fn record(
    options: &Options,
    address: &(dyn Fn() -> Address + Sync),
    disturb: impl FnOnce(&AtomicBool) -> Result<()> + Send,
) -> Result<Vec<Event>> {
    let began = Instant::now();
    let events = Mutex::new(Vec::new());
    let stop = AtomicBool::new(false);

    std::thread::scope(|scope| {
        let disturbing = scope.spawn(|| disturb(&stop));
        let clients: Vec<_> = (0..options.clients)
            .map(|number| {
                let mut client = Client::new(options, number, began, address);
                let events = &events;
                scope.spawn(move || {
                    let done = client.run(options.operations);
                    events.lock().extend(done);
                })
            })
            .collect();

        let ended: Result<Vec<()>, _> = clients.into_iter().map(|client| client.join()).collect();
        stop.store(true, Ordering::Release);
        let disturbed = disturbing.join();
        ended.map_err(|_| anyhow!("a client panicked"))?;
        disturbed.map_err(|_| anyhow!("the disturbance panicked"))?
    })?;

    let events = events.into_inner();
    ensure!(!events.is_empty(), "no operation was recorded");
    Ok(events)
}

struct Client<'a> {
    number: usize,
    keys: Vec<String>,
    random: StdRng,
    began: Instant,
    address: &'a (dyn Fn() -> Address + Sync),
    connection: Option<Connection>,
}

impl<'a> Client<'a> {
    fn new(
        options: &Options,
        number: usize,
        began: Instant,
        address: &'a (dyn Fn() -> Address + Sync),
    ) -> Self {
        let keys = (0..options.keys).map(|key| format!("{{h}}{}:{key}", options.prefix)).collect();
        let random = StdRng::seed_from_u64(options.seed.wrapping_add(number as u64));
        Self { number, keys, random, began, address, connection: None }
    }

    fn run(&mut self, operations: usize) -> Vec<Event> {
        let mut events = Vec::with_capacity(operations);
        while events.len() < operations {
            let Some(mut connection) = self.connected() else {
                std::thread::sleep(RETRY);
                continue;
            };

            let key = self.random.random_range(0..self.keys.len());
            let called_ns = self.now_ns();
            let (operation, outcome) = self.operate(&mut connection, key);
            let is_done = outcome.is_ok();
            if is_done {
                self.connection = Some(connection);
            }

            // Nothing is known of a read without a reply, so it says nothing.
            if let Some(operation) = operation {
                let returned_ns = is_done.then(|| self.now_ns());
                let client = self.number;
                events.push(Event { client, key, operation, called_ns, returned_ns });
            }
        }
        events
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn connected(&mut self) -> Option<Connection> {
        match self.connection.take() {
            Some(connection) => Some(connection),
            None => Connection::open(&(self.address)()).ok(),
        }
    }

    /// Does something to a key. The operation is `None` if it had no effect and no reply.
    fn operate(
        &mut self,
        connection: &mut Connection,
        key: usize,
    ) -> (Option<Operation>, Result<(), Error>) {
        let name = self.keys[key].as_bytes();
        let number = self.random.random_range(1..=1_000_000_i64);
        match self.random.random_range(0..10) {
            0..4 => match connection.done(&[b"GET", name]) {
                Ok(reply) => (Some(Operation::Read { found: value(&reply) }), Ok(())),
                Err(error) => (None, Err(error)),
            },
            4..6 => {
                let answer = connection.done(&[b"SET", name, number.to_string().as_bytes()]);
                (Some(Operation::Write { value: number }), answer.map(drop))
            }
            6..8 => {
                let amount = number % 10;
                let answer = connection.done(&[b"INCRBY", name, amount.to_string().as_bytes()]);
                let sum = answer.as_ref().ok().and_then(Reply::integer);
                (Some(Operation::Add { amount, sum }), answer.map(drop))
            }
            8 => {
                let answer = connection.done(&[b"DEL", name]);
                let existed = answer.as_ref().ok().and_then(Reply::integer).map(|count| count > 0);
                (Some(Operation::Remove { existed }), answer.map(drop))
            }
            _ => exchange(connection, name, number),
        }
    }
}

/// Reads a key and writes another number, if nobody else has written in between.
fn exchange(
    connection: &mut Connection,
    name: &[u8],
    number: i64,
) -> (Option<Operation>, Result<(), Error>) {
    let read = connection
        .done(&[b"WATCH", name])
        .and_then(|_| connection.done(&[b"GET", name]))
        .map(|reply| value(&reply));
    let read = match read {
        Ok(read) => read,
        Err(error) => return (None, Err(error)),
    };

    connection.push(&[b"MULTI"]);
    connection.push(&[b"SET", name, number.to_string().as_bytes()]);
    connection.push(&[b"EXEC"]);
    let answer = connection
        .flush()
        .and_then(|()| connection.reply())
        .and_then(|_| connection.reply())
        .and_then(|_| connection.reply());
    let written = answer.as_ref().ok().map(|reply| !reply.is_null());
    (Some(Operation::Exchange { read, value: number, written }), answer.map(drop))
}

fn value(reply: &Reply) -> Option<i64> {
    std::str::from_utf8(reply.bytes()?).ok()?.parse().ok()
}

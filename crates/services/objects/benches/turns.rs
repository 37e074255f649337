//! From a parsed pipeline to its replies, over a store in memory: GET and SET, one by one and in
//! pipelines, and a leaderboard.
//!
//! ```sh
//! cargo bench -p raingauge-objects --bench turns
//! ```

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use raingauge_memory as memory;
use raingauge_objects::{Objects, Options, Session};
use raingauge_ports::clock::SystemClock;
use raingauge_resp::{Command, Controls, Drain, Failure, Protocol, Replies, Spec};
use std::sync::Arc;
use tokio::runtime::Runtime;

const KEYS: u64 = 100_000;
const VALUE: &[u8] = &[b'x'; 64];

/// Nothing but objects.
struct Door;

impl Controls for Door {
    fn control(&mut self, command: Command<'_>, _: &mut Replies) -> Result<(), Failure> {
        Err(command.unknown())
    }

    fn ran(&mut self, _: &'static Spec, _: u64, _: bool) {}
}

struct World {
    runtime: Runtime,
    objects: Arc<Objects>,
    session: Session,
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let store = Arc::new(memory::Objects::new());
        let options = Options::of_memory(256 << 20);
        let objects = Objects::open(Arc::clone(&store) as _, store, Arc::new(SystemClock), options);
        let session = objects.session();
        Self { runtime, objects, session }
    }

    fn run(&mut self, drain: &Drain) -> usize {
        let Self { runtime, objects, session } = self;
        let mut replies = Replies::new(Protocol::Two);
        let mut next = 0;
        let mut bytes = 0;
        let mut door = Door;
        while next < drain.len() {
            let run = objects.run(session, &mut door, drain, next, &mut replies);
            next = runtime.block_on(run).next;
            bytes += replies.take().iter().map(|part| part.len()).sum::<usize>();
        }
        bytes
    }
}

/// Keys in an order without a pattern.
fn keys() -> impl Iterator<Item = String> {
    (0..).map(|number: u64| format!("key:{}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % KEYS))
}

fn drain_of(command: impl Fn(&str) -> Vec<Vec<u8>>, len: usize) -> Drain {
    let mut drain = Drain::new();
    for key in keys().take(len) {
        let words = command(&key);
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        drain.push(Drain::of(&[&words]).get(0).arguments);
    }
    drain
}

fn words(words: &[&[u8]]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.to_vec()).collect()
}

fn turns(criterion: &mut Criterion) {
    let mut world = World::new();
    let set = |key: &str| words(&[b"SET", key.as_bytes(), VALUE]);
    let get = |key: &str| words(&[b"GET", key.as_bytes()]);
    let add = |key: &str| words(&[b"ZINCRBY", b"board", b"1", key.as_bytes()]);
    let rank = |key: &str| words(&[b"ZREVRANK", b"board", key.as_bytes()]);
    world.run(&drain_of(set, KEYS as usize));
    world.run(&drain_of(add, KEYS as usize));

    let mut group = criterion.benchmark_group("turns");
    for len in [1, 16, 1_000] {
        group.throughput(Throughput::Elements(len as u64));
        let drains = [
            ("get", drain_of(get, len)),
            ("set", drain_of(set, len)),
            ("zincrby", drain_of(add, len)),
            ("zrevrank", drain_of(rank, len)),
        ];
        for (name, drain) in drains {
            group.bench_with_input(BenchmarkId::new(name, len), &drain, |bencher, drain| {
                bencher.iter(|| world.run(drain));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, turns);
criterion_main!(benches);

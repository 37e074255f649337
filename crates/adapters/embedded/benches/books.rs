//! How many awards of points a second become durable, by the layout of the store.
//!
//! `cargo bench -p raingauge-embedded --bench books`; `RAINGAUGE_BENCH_WALLETS=100000000` sets how
//! many wallets and keys there are before, `RAINGAUGE_BENCH_AWARDS=2000000` how many awards each
//! variant makes, `RAINGAUGE_BENCH_HOT=10000` among how many wallets they are spread (all of them,
//! if it is not given), `RAINGAUGE_BENCH_RUNS=engine,one,two` what is measured and in which order:
//! the books themselves, which begin with an award to each wallet, or a layout of fjall,
//! `RAINGAUGE_BENCH_TURN=2000` how many awards the books take at a time,
//! `RAINGAUGE_BENCH_SUMS=0` how many sums they have beside those of the awards,
//! `RAINGAUGE_BENCH_THREADS=0,2,4` with how many threads that read ahead,
//! `RAINGAUGE_BENCH_CACHE_MB=512` how large caches are, and `RAINGAUGE_BENCH_FOLDER=/path` where
//! the data lie.
//!
//! Each layout begins with a new folder, into which the wallets and their keys are written as
//! sorted tables. A turn then reads the wallets of its awards and asks for their keys, which are
//! new, in the order of the store; appends what it decided to the journal and waits for the disk;
//! and writes wallets, keys, rows of statements and sometimes the hour when a wallet is due into
//! the store, which nobody waits for. Beside them stands a bare file, to which the bytes of the
//! journal are appended and synced as often: the limit of the disk.

#[path = "books/engine.rs"]
mod engine;
#[path = "books/processor.rs"]
mod processor;

use fjall::config::{
    BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry, HashRatioPolicy, PinningPolicy,
};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use processor::processor_time;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Awards of a turn.
const TURN: usize = 2_000;
/// Bytes that an award takes in the journal.
const ENTRY_LEN: usize = 240;
const WALLET_LEN: usize = 80;
const ROW_LEN: usize = 40;
/// Awards for each one that moves the hour when its wallet is due.
const AWARDS_PER_DUE: usize = 4;
/// The store is synced this often.
const SYNCED_EVERY: Duration = Duration::from_secs(2);
const JOURNAL_BYTES_MAX: u64 = 128 << 20;
const MEMTABLE_BYTES: u64 = 32 << 20;
const WORKER_NICENESS: i32 = 10;

/// Kinds of records. Each is the first byte of its keys.
const HEAD: u8 = 0;
const WALLET: u8 = 1;
const KEY: u8 = 2;
const DUE: u8 = 3;
/// In a keyspace of its own, or behind all others.
const ROW: u8 = 7;

/// A pseudorandom number, the same in every run (splitmix64).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn fill(seed: &mut u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&random(seed).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// The key of a record about a member, whose name is its number.
fn of_member(kind: u8, member: u64) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend_from_slice(b"points\0");
    key.extend_from_slice(format!("{member:010}").as_bytes());
    key
}

fn of_key(hash: [u64; 2]) -> Vec<u8> {
    let mut key = vec![KEY];
    hash.iter().for_each(|half| key.extend_from_slice(&half.to_be_bytes()));
    key
}

/// What the run was asked for.
struct Load {
    wallets: u64,
    /// Wallets among which the awards are spread.
    hot: u64,
    awards: usize,
    /// Awards of a turn of the books.
    turn: usize,
    /// Sums that the books have before.
    sums: u16,
    cache_bytes: u64,
    folder: PathBuf,
}

struct Store {
    database: Database,
    /// Wallets, keys and due hours, which are looked up.
    points: Keyspace,
    /// Rows of statements, over which one only ranges.
    rows: Keyspace,
}

impl Store {
    fn open(folder: &Path, layout: &str, cache_bytes: u64) -> Self {
        // The workers inherit the low priority of the thread that starts them.
        let open = || {
            let _ = rustix::process::nice(WORKER_NICENESS);
            Database::builder(folder)
                .cache_size(cache_bytes)
                .max_journaling_size(JOURNAL_BYTES_MAX)
                .worker_threads(1)
                .open()
                .expect("a database")
        };
        let database = std::thread::scope(|scope| scope.spawn(open).join()).expect("opened");

        let looked_up = || {
            let bits = BloomConstructionPolicy::BitsPerKey(10.0);
            KeyspaceCreateOptions::default()
                .filter_block_pinning_policy(PinningPolicy::all(true))
                .index_block_pinning_policy(PinningPolicy::all(true))
                .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(bits)))
                .data_block_hash_ratio_policy(HashRatioPolicy::all(1.33))
                .max_memtable_size(MEMTABLE_BYTES)
        };
        let ranged = || {
            KeyspaceCreateOptions::default()
                .filter_policy(FilterPolicy::all(FilterPolicyEntry::None))
                .max_memtable_size(MEMTABLE_BYTES)
        };

        let points = database.keyspace("points", looked_up).expect("a keyspace");
        let rows = match layout {
            "one" => points.clone(),
            "two" => database.keyspace("rows", ranged).expect("a keyspace"),
            other => panic!("no layout is called {other}: one, two"),
        };
        Self { database, points, rows }
    }

    /// Writes the wallets, and as many keys, as sorted tables.
    fn load(&self, wallets: u64) {
        let mut seed = 1;
        let mut ingestion = self.points.start_ingestion().expect("an ingestion");
        for member in 0..wallets {
            let record = fill(&mut seed, WALLET_LEN);
            ingestion.write(of_member(WALLET, member), record).expect("a wallet");
        }

        // Spread evenly over all keys, each somewhere in its own part of them.
        let part = u64::MAX / wallets;
        for number in 0..wallets {
            let high = number * part + random(&mut seed) % part;
            let key = of_key([high, random(&mut seed)]);
            ingestion.write(key, number.to_be_bytes().to_vec()).expect("a key");
        }
        ingestion.finish().expect("loaded");
    }

    /// Returns the records of wallets that are there, for keys that are not.
    fn read(&self, awards: &[Award]) -> Vec<Vec<u8>> {
        let read = |award: &Award| {
            let wallet = self.points.get(&award.wallet).expect("read");
            wallet.expect("every wallet was loaded").to_vec()
        };
        awards.iter().map(read).collect()
    }

    /// How many of the keys there are, which should be none.
    fn count(&self, keys: &[Vec<u8>]) -> usize {
        keys.iter().filter(|key| self.points.get(key).expect("read").is_some()).count()
    }

    /// Reads for a turn, on this thread or divided among `threads` others.
    fn load_turn(&self, awards: &[Award], keys: &[Vec<u8>], threads: usize) -> Vec<Vec<u8>> {
        if threads == 0 {
            assert_eq!(self.count(keys), 0, "the keys of a turn are new");
            return self.read(awards);
        }

        let part = awards.len().div_ceil(threads);
        std::thread::scope(|scope| {
            let parts = awards.chunks(part).zip(keys.chunks(part));
            let readers: Vec<_> = parts
                .map(|(awards, keys)| {
                    scope.spawn(move || {
                        assert_eq!(self.count(keys), 0, "the keys of a turn are new");
                        self.read(awards)
                    })
                })
                .collect();
            readers.into_iter().flat_map(|reader| reader.join().expect("read")).collect()
        })
    }

    /// Writes what a turn changes, without waiting for the disk.
    fn commit(&self, turn: u64, awards: &[Award], keys: Vec<Vec<u8>>, wallets: Vec<Vec<u8>>) {
        let mut batch = self.database.batch().durability(Some(PersistMode::Buffer));
        for (place, (key, record)) in keys.into_iter().zip(wallets).enumerate() {
            let Award { wallet, member } = &awards[place];
            let sequence = turn * TURN as u64 + place as u64;
            let mut row = of_member(ROW, *member);
            row.push(0);
            row.extend_from_slice(&sequence.to_be_bytes());
            if place % AWARDS_PER_DUE == 0 {
                let mut due = vec![DUE];
                due.extend_from_slice(&(sequence as u32 % 4_000).to_be_bytes());
                due.extend_from_slice(&wallet[1..]);
                batch.insert(&self.points, due, Vec::new());
            }

            batch.insert(&self.rows, row, record[..ROW_LEN].to_vec());
            batch.insert(&self.points, wallet.clone(), record);
            batch.insert(&self.points, key, sequence.to_be_bytes().to_vec());
        }

        batch.insert(&self.points, vec![HEAD], turn.to_be_bytes().to_vec());
        batch.insert(&self.rows, vec![HEAD, 1], turn.to_be_bytes().to_vec());
        batch.commit().expect("committed");
    }
}

struct Award {
    /// The key of the wallet's record.
    wallet: Vec<u8>,
    member: u64,
}

/// Wallets of the awards of a turn, in the order of the store. One that has two awards comes once.
fn awards(seed: &mut u64, hot: u64) -> Vec<Award> {
    let mut members: Vec<u64> = (0..TURN).map(|_| random(seed) % hot).collect();
    members.sort_unstable();
    members.dedup();
    let award = |member| Award { wallet: of_member(WALLET, member), member };
    members.into_iter().map(award).collect()
}

/// Where the time of a turn goes.
#[derive(Default)]
struct Breakdown {
    read: Duration,
    journal: Duration,
    store: Duration,
}

fn run(store: &Store, load: &Load, threads: usize, seed: u64) -> Figures {
    let mut seed = seed;
    let path = load.folder.join("bench.book");
    let mut journal = File::create(path).expect("a file");
    let mut parts = Breakdown::default();
    let mut turns = Vec::new();
    let mut done = 0;
    let mut synced = Instant::now();
    let processor = processor_time();
    let started = Instant::now();

    while done < load.awards {
        let awards = awards(&mut seed, load.hot);
        let hashes = awards.iter().map(|_| [random(&mut seed), random(&mut seed)]);
        let mut keys: Vec<Vec<u8>> = hashes.map(of_key).collect();
        keys.sort_unstable();
        let began = Instant::now();

        let mut wallets = store.load_turn(&awards, &keys, threads);
        let read = Instant::now();

        // The balance of a wallet, and the block.
        let mut block = Vec::with_capacity(awards.len() * ENTRY_LEN);
        for wallet in &mut wallets {
            wallet[0] = wallet[0].wrapping_add(1);
            (0..ENTRY_LEN / WALLET_LEN).for_each(|_| block.extend_from_slice(wallet));
        }
        journal.write_all(&block).and_then(|()| journal.sync_data()).expect("synced");
        let durable = Instant::now();

        done += awards.len();
        store.commit(turns.len() as u64, &awards, keys, wallets);
        if synced.elapsed() > SYNCED_EVERY {
            store.database.persist(PersistMode::SyncData).expect("synced");
            synced = Instant::now();
        }
        parts.read += read - began;
        parts.journal += durable - read;
        parts.store += durable.elapsed();
        turns.push(began.elapsed());
    }

    let elapsed = started.elapsed();
    let disk = disk_bytes(&load.folder);
    Figures { awards: done, elapsed, turns, parts, disk, processor: processor_time() - processor }
}

/// Appends and syncs the bytes of each turn.
fn bare(load: &Load) -> Figures {
    let mut file = File::create(load.folder.join("bare")).expect("a file");
    let block = vec![7; TURN * ENTRY_LEN];
    let processor = processor_time();
    let started = Instant::now();
    let sync = |file: &mut File| {
        let before = Instant::now();
        file.write_all(&block).and_then(|()| file.sync_data()).expect("synced");
        before.elapsed()
    };
    let turns = (0..load.awards.div_ceil(TURN)).map(|_| sync(&mut file)).collect();
    let elapsed = started.elapsed();
    Figures {
        awards: load.awards,
        elapsed,
        turns,
        parts: Breakdown { journal: elapsed, ..Breakdown::default() },
        disk: 0,
        processor: processor_time() - processor,
    }
}

/// What one run achieved.
struct Figures {
    awards: usize,
    elapsed: Duration,
    turns: Vec<Duration>,
    parts: Breakdown,
    disk: u64,
    processor: Duration,
}

impl Figures {
    fn print(&mut self, name: &str) {
        self.turns.sort_unstable();
        let at = |share: f64| {
            let index = (self.turns.len() as f64 * share) as usize;
            self.turns[index.min(self.turns.len() - 1)].as_secs_f64() * 1e3
        };
        let each = |part: Duration| part.as_secs_f64() * 1e6 / self.awards as f64;
        println!(
            "{name:24} {:8.0} awards/s  turn p50 {:6.1} p99 {:6.1} max {:6.1} ms  \
             read {:5.2} journal {:5.2} store {:5.2} µs/award  processor {:5.1} µs/award  disk {:6.0} MB",
            self.awards as f64 / self.elapsed.as_secs_f64(),
            at(0.5),
            at(0.99),
            at(1.0),
            each(self.parts.read),
            each(self.parts.journal),
            each(self.parts.store),
            each(self.processor),
            self.disk as f64 / 1e6,
        );
    }
}

fn disk_bytes(folder: &Path) -> u64 {
    let entries =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let bytes = entries.map(|entry| {
        let path = entry.path();
        if path.is_dir() { disk_bytes(&path) } else { entry.metadata().map_or(0, |it| it.len()) }
    });
    bytes.sum()
}

fn variable<T: FromStr>(name: &str, default: T) -> T {
    let Ok(value) = std::env::var(name) else {
        return default;
    };
    value.parse().unwrap_or_else(|_| panic!("{name} is {value}"))
}

fn main() {
    let wallets = variable("RAINGAUGE_BENCH_WALLETS", 1_000_000_u64);
    let mut load = Load {
        wallets,
        hot: variable("RAINGAUGE_BENCH_HOT", wallets),
        awards: variable("RAINGAUGE_BENCH_AWARDS", 2_000_000),
        turn: variable("RAINGAUGE_BENCH_TURN", TURN).max(1),
        sums: variable("RAINGAUGE_BENCH_SUMS", 0),
        cache_bytes: variable("RAINGAUGE_BENCH_CACHE_MB", 512_u64) << 20,
        folder: PathBuf::new(),
    };
    let parent = variable("RAINGAUGE_BENCH_FOLDER", env!("CARGO_TARGET_TMPDIR").to_owned());
    let layouts = variable("RAINGAUGE_BENCH_RUNS", "engine,two,one".to_owned());
    let threads = variable("RAINGAUGE_BENCH_THREADS", "0,2,4".to_owned());

    for layout in layouts.split(',') {
        let folder = tempfile::tempdir_in(&parent).expect("a folder");
        load.folder = folder.path().to_owned();
        if layout == "engine" {
            engine::run(&load).print("engine");
            bare(&load).print("a bare file, synced");
            continue;
        }

        let store = Store::open(&load.folder.join("state"), layout, load.cache_bytes);
        let started = Instant::now();
        store.load(load.wallets);
        println!(
            "layout {layout}: {} wallets and keys loaded in {:.0} s, {:.0} MB",
            load.wallets,
            started.elapsed().as_secs_f64(),
            disk_bytes(&load.folder) as f64 / 1e6,
        );

        for (place, threads) in threads.split(',').enumerate() {
            let threads: usize = threads.parse().expect("a number");
            let mut figures = run(&store, &load, threads, 2 + place as u64);
            figures.print(&format!("{layout}, {threads} ahead"));
        }
        bare(&load).print("a bare file, synced");
    }
}

//! Which layout of fjall suits objects: what random overwrites cost in bytes written and in space,
//! how long calls stall, and how long reads take beside them.
//!
//! `cargo bench -p raingauge-embedded --bench objects_spike -- variant=inline,512,4096
//! values=200000 bytes=1000 rounds=3`:
//!
//! ```text
//! variant   inline, or the size from which values are separated      inline,512,4096
//! write     batch, ingest, straight or store                         batch
//! values    how many keys                                            200000
//! bytes     length of a value                                        1000
//! rounds    random overwrites of all keys, after they were filled    3
//! pending   bytes that wait for a checkpoint                         16777216
//! group     values that become durable together                      256
//! cache     bytes of fjall's cache of blocks                         67108864
//! readers   threads that read random keys beside the writes          1
//! evict     whether the kernel forgets the files twice a second      no
//! compact   whether a major compaction ends the run                  no
//! seconds   longest time of a run                                    240
//! tables    size from which the store's checkpoints become tables    that of the store
//! leave     whether the process ends without closing, with its data  no
//! folder    where the data lies                                      the target folder
//! ```
//!
//! `batch` and `ingest` write a log of groups, each synced, and hand what changed to fjall at
//! checkpoints: in one synced batch with the position, or as sorted tables. `straight` writes each
//! group to fjall and syncs it there. `store` is the store as it was built. With `leave=yes` it is
//! left as a kill leaves it, and `open=yes` measures how long it takes to open.
//!
//! Bytes written are those of the process' calls to `write`, as the kernel counts them, and so
//! independent of the machine.

use fjall::config::{BlockSizePolicy, BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode,
};
use raingauge_embedded::{ObjectFiles, ObjectOptions};
use raingauge_ports::objects::{Durability, Effect, Group, Key, ObjectControl, ObjectStore, Old};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Reads a second of one thread, so that they load the disk and not the processor.
const READ_EVERY: Duration = Duration::from_micros(500);
/// How often the kernel is asked to forget what it caches.
const EVICTION: Duration = Duration::from_millis(500);
/// Bytes of records that fjall keeps in memory before it writes a table.
const MEMTABLE_BYTES: u64 = 16 << 20;

/// A pseudorandom number, the same in every run (splitmix64).
fn mixed(state: u64) -> u64 {
    let state = state.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[derive(Clone)]
struct Run {
    variant: String,
    write: String,
    values: u64,
    bytes: usize,
    rounds: u64,
    pending: usize,
    group: u64,
    cache: u64,
    readers: u64,
    evicts: bool,
    compacts: bool,
    seconds: u64,
    tables: Option<usize>,
    folder: PathBuf,
}

impl Run {
    fn of(arguments: &HashMap<String, String>, variant: &str, write: &str) -> Self {
        let text = |name: &str, or: &str| arguments.get(name).map_or(or, String::as_str).to_owned();
        let number = |name: &str, or: u64| -> u64 {
            text(name, &or.to_string()).parse().unwrap_or_else(|_| panic!("{name} is a number"))
        };
        Self {
            variant: variant.to_owned(),
            write: write.to_owned(),
            values: number("values", 200_000),
            bytes: number("bytes", 1_000) as usize,
            rounds: number("rounds", 3),
            pending: number("pending", 16 << 20) as usize,
            group: number("group", 256),
            cache: number("cache", 64 << 20),
            readers: number("readers", 1),
            evicts: text("evict", "no") == "yes",
            compacts: text("compact", "no") == "yes",
            seconds: number("seconds", 240),
            tables: arguments.get("tables").map(|_| number("tables", 0) as usize),
            folder: PathBuf::from(text("folder", "target/objects-spike")),
        }
    }

    fn layout(&self) -> KeyspaceCreateOptions {
        let filter = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0));
        let layout = KeyspaceCreateOptions::default()
            .max_memtable_size(MEMTABLE_BYTES)
            .data_block_size_policy(BlockSizePolicy::all(4_096))
            .filter_policy(FilterPolicy::all(filter));
        let Ok(threshold) = self.variant.parse::<u32>() else {
            return layout;
        };
        layout.with_kv_separation(Some(
            KvSeparationOptions::default()
                .compression(CompressionType::None)
                .separation_threshold(threshold)
                .staleness_threshold(0.33)
                .age_cutoff(1.0),
        ))
    }

    /// A value that does not compress, and tells its round.
    fn value(&self, key: u64, round: u64) -> Vec<u8> {
        let words = self.bytes.div_ceil(8) as u64;
        let seed = mixed(key ^ round << 48);
        let words = (0..words).flat_map(|word| mixed(seed.wrapping_add(word)).to_le_bytes());
        words.take(self.bytes).collect()
    }

    fn key(number: u64) -> Vec<u8> {
        format!("key:{:016x}", mixed(number)).into_bytes()
    }
}

/// The writing side: a log beside pending values, or fjall alone.
struct Engine {
    database: Database,
    keyspace: Keyspace,
    log: File,
    pending: HashMap<Vec<u8>, Vec<u8>>,
    pending_bytes: usize,
    checkpoint_max: Duration,
    checkpoints: u64,
    write: String,
    pending_max: usize,
}

impl Engine {
    fn open(run: &Run) -> Self {
        let folder = run.folder.join("fjall");
        let database = Database::builder(&folder)
            .cache_size(run.cache)
            .worker_threads(1)
            .open()
            .expect("fjall");
        let keyspace = database.keyspace("objects", || run.layout()).expect("a keyspace");
        let log = File::options().create(true).append(true).open(run.folder.join("log"));
        let log = log.expect("a log");
        Self {
            database,
            keyspace,
            log,
            pending: HashMap::new(),
            pending_bytes: 0,
            checkpoint_max: Duration::ZERO,
            checkpoints: 0,
            write: run.write.clone(),
            pending_max: run.pending,
        }
    }

    fn write(&mut self, group: Vec<(Vec<u8>, Vec<u8>)>) {
        if self.write == "straight" {
            let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
            for (key, value) in group {
                batch.insert(&self.keyspace, key, value);
            }
            return batch.commit().expect("a batch");
        }

        let mut block = Vec::new();
        for (key, value) in &group {
            block.extend_from_slice(&(key.len() as u32).to_le_bytes());
            block.extend_from_slice(&(value.len() as u32).to_le_bytes());
            block.extend_from_slice(key);
            block.extend_from_slice(value);
        }
        self.log.write_all(&block).expect("a block");
        self.log.sync_data().expect("synced");
        for (key, value) in group {
            self.pending_bytes += key.len() + value.len();
            if let Some(old) = self.pending.insert(key, value) {
                self.pending_bytes -= old.len();
            }
        }
        if self.pending_bytes >= self.pending_max {
            self.checkpoint();
        }
    }

    /// In the bench the caller waits for it; in the store it runs on a thread of its own.
    fn checkpoint(&mut self) {
        let began = Instant::now();
        let mut changed: Vec<_> = std::mem::take(&mut self.pending).into_iter().collect();
        changed.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        self.pending_bytes = 0;

        if self.write == "ingest" {
            let mut ingestion = self.keyspace.start_ingestion().expect("an ingestion");
            for (key, value) in changed {
                ingestion.write(key, value).expect("a value");
            }
            ingestion.finish().expect("ingested");
        } else {
            let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
            for (key, value) in changed {
                batch.insert(&self.keyspace, key, value);
            }
            batch.commit().expect("a batch");
        }

        self.log.set_len(0).expect("shortened");
        self.checkpoints += 1;
        self.checkpoint_max = self.checkpoint_max.max(began.elapsed());
    }
}

/// What the readers saw.
#[derive(Default)]
struct Reads {
    stop: AtomicBool,
    /// Keys below this number are there.
    filled: AtomicU64,
}

impl Reads {
    /// Reads random keys until it is stopped; returns how long each took, in microseconds.
    fn run(&self, keyspace: &Keyspace, thread: u64) -> Vec<u32> {
        let mut took = Vec::new();
        let mut turn = thread << 40;
        while !self.stop.load(Ordering::Relaxed) {
            let filled = self.filled.load(Ordering::Relaxed);
            if filled > 0 {
                turn += 1;
                let key = Run::key(mixed(turn) % filled);
                let began = Instant::now();
                let value = keyspace.get(key).expect("a value");
                took.push(began.elapsed().as_micros() as u32);
                std::hint::black_box(value);
            }
            std::thread::sleep(READ_EVERY);
        }
        took
    }
}

/// Bytes that the process handed to the kernel.
fn bytes_written() -> u64 {
    let counters = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = counters.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

/// Calls `visit` with each file below a folder.
fn files(folder: &Path, visit: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { files(&path, visit) } else { visit(&path) }
    }
}

fn disk_bytes(folder: &Path) -> u64 {
    let mut bytes = 0;
    files(folder, &mut |path| bytes += path.metadata().map_or(0, |metadata| metadata.len()));
    bytes
}

/// Makes the kernel forget what it caches of the files, as a small machine would.
fn evict(folder: &Path) {
    files(folder, &mut |path| {
        if let Ok(file) = File::open(path) {
            // Advice that is not taken changes the times of reads alone.
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        }
    });
}

/// The value at a part of a sorted list.
fn quantile(sorted: &[u32], part: f64) -> f64 {
    let place = ((sorted.len() as f64 - 1.0) * part).max(0.0) as usize;
    sorted.get(place).map_or(0.0, |micros| f64::from(*micros) / 1_000.0)
}

fn measure(run: &Run) {
    let _ = std::fs::remove_dir_all(&run.folder);
    std::fs::create_dir_all(&run.folder).expect("a folder");
    let reads = Arc::new(Reads::default());
    let mut engine = Engine::open(run);

    let readers: Vec<_> = (0..run.readers)
        .map(|thread| {
            let reads = Arc::clone(&reads);
            let keyspace = engine.keyspace.clone();
            std::thread::spawn(move || reads.run(&keyspace, thread + 1))
        })
        .collect();
    let evicting = run.evicts.then(|| {
        let reads = Arc::clone(&reads);
        let folder = run.folder.clone();
        std::thread::spawn(move || {
            while !reads.stop.load(Ordering::Relaxed) {
                evict(&folder);
                std::thread::sleep(EVICTION);
            }
        })
    });

    let written_before = bytes_written();
    let began = Instant::now();
    let mut written = 0_u64;
    let mut longest = Duration::ZERO;
    let mut disk_max = 0;
    let mut rates = Vec::new();

    'rounds: for round in 0..=run.rounds {
        let round_began = Instant::now();
        let mut at = 0;
        while at < run.values {
            let len = run.group.min(run.values - at);
            let number = |place: u64| match round {
                0 => place,
                _ => mixed(place ^ round << 50) % run.values,
            };
            let group = (at..at + len)
                .map(|place| (Run::key(number(place)), run.value(number(place), round)))
                .collect();

            let call = Instant::now();
            engine.write(group);
            longest = longest.max(call.elapsed());
            at += len;
            written += len;
            if round == 0 {
                reads.filled.store(at, Ordering::Relaxed);
            }

            if (at / run.group).is_multiple_of(1_000) {
                disk_max = disk_max.max(disk_bytes(&run.folder));
            }
            if began.elapsed() > Duration::from_secs(run.seconds) {
                break 'rounds;
            }
        }
        rates.push(run.values as f64 / round_began.elapsed().as_secs_f64());
    }

    if !engine.pending.is_empty() {
        engine.checkpoint();
    }
    let took = began.elapsed();
    reads.stop.store(true, Ordering::Relaxed);
    let mut times: Vec<u32> =
        readers.into_iter().flat_map(|reader| reader.join().expect("a reader")).collect();
    times.sort_unstable();
    if let Some(evicting) = evicting {
        evicting.join().expect("it evicted");
    }

    // What compactions still have to do belongs to the writes.
    settle(&engine);
    let amplified = bytes_written() - written_before;
    let disk = disk_bytes(&run.folder);
    disk_max = disk_max.max(disk);
    let compacted = run.compacts.then(|| {
        engine.keyspace.major_compact().expect("compacted");
        settle(&engine);
        (disk_bytes(&run.folder), bytes_written() - written_before)
    });

    let live = run.values.min(written) as f64 * (run.bytes + 20) as f64;
    let payload = written as f64 * (run.bytes + 20) as f64;
    println!(
        "variant={} write={} values={} bytes={} written={written} in {:.0} s: {} values/s by round, \
         longest call {:.0} ms, checkpoints {} (longest {:.0} ms), bytes written {:.2}x, \
         space {:.2}x (at most {:.2}x), GET p50 {:.3} p99 {:.3} p99.9 {:.3} max {:.1} ms of {} reads",
        run.variant,
        run.write,
        run.values,
        run.bytes,
        took.as_secs_f64(),
        rates.iter().map(|rate| format!("{rate:.0}")).collect::<Vec<_>>().join(" "),
        longest.as_secs_f64() * 1_000.0,
        engine.checkpoints,
        engine.checkpoint_max.as_secs_f64() * 1_000.0,
        amplified as f64 / payload,
        disk as f64 / live,
        disk_max as f64 / live,
        quantile(&times, 0.5),
        quantile(&times, 0.99),
        quantile(&times, 0.999),
        quantile(&times, 1.0),
        times.len(),
    );
    if let Some((disk, amplified)) = compacted {
        println!(
            "  after a major compaction: space {:.2}x, bytes written {:.2}x",
            disk as f64 / live,
            amplified as f64 / payload,
        );
    }

    drop(engine);
    let _ = std::fs::remove_dir_all(&run.folder);
}

/// Waits until fjall neither flushes nor compacts, and has removed the files that no read needs: it
/// does that when a memory table is full.
fn settle(engine: &Engine) {
    for _ in 0..3 {
        engine.keyspace.insert("settle", "").expect("a value");
        engine.keyspace.rotate_memtable_and_wait().expect("a table");
        wait_for_workers(engine);
    }
}

fn wait_for_workers(engine: &Engine) {
    let mut quiet = 0;
    while quiet < 10 {
        std::thread::sleep(Duration::from_millis(50));
        let is_busy =
            engine.database.active_compactions() > 0 || engine.database.outstanding_flushes() > 0;
        quiet = if is_busy { 0 } else { quiet + 1 };
    }
}

/// Options of the store with this cache.
fn store_options(run: &Run) -> ObjectOptions {
    ObjectOptions {
        memory_bytes: run.cache as usize * 4,
        tables_bytes: run.tables,
        ..Default::default()
    }
}

/// The store as it was built: the caller waits until each group is synced.
fn measure_store(run: &Run, leaves: bool) {
    let _ = std::fs::remove_dir_all(&run.folder);
    let options = store_options(run);
    let store = ObjectFiles::open(&run.folder, &options).expect("a store");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
    let runtime = runtime.expect("a runtime");
    let written_before = bytes_written();
    let cpu_before = cpu_us();
    let began = Instant::now();
    let mut longest = Duration::ZERO;
    let mut rates = Vec::new();
    let mut disk_max = 0;
    let mut reads = Vec::new();

    for round in 0..=run.rounds {
        let round_began = Instant::now();
        for at in (0..run.values).step_by(run.group as usize) {
            let effects = (at..(at + run.group).min(run.values)).map(|place| {
                let number =
                    if round == 0 { place } else { mixed(place ^ round << 50) % run.values };
                Effect::PutHead {
                    key: Key::new(0, Run::key(number)),
                    head: run.value(number, round).into(),
                    expires_ms: None,
                    wide: None,
                    old: Old::Unknown,
                }
            });
            let group = Group { effects: effects.collect() };

            let call = Instant::now();
            let stamp = store.submit(group).expect("it is taken");
            runtime.block_on(store.durable(stamp, Durability::Synced)).expect("it is durable");
            longest = longest.max(call.elapsed());

            let key = Key::new(0, Run::key(mixed(at ^ round << 40) % (at + 1)));
            let call = Instant::now();
            runtime.block_on(store.heads(vec![key], 0)).expect("a head");
            reads.push(call.elapsed().as_micros() as u32);
            if (at / run.group).is_multiple_of(1_000) {
                disk_max = disk_max.max(disk_bytes(&run.folder));
                if run.evicts {
                    evict(&run.folder);
                }
            }
        }
        rates.push(format!("{:.0}", run.values as f64 / round_began.elapsed().as_secs_f64()));
    }

    let took = began.elapsed();
    let cpu_us = cpu_us() - cpu_before;
    let count = Instant::now();
    let keys = runtime.block_on(store.count(0)).expect("a count").keys;
    let count = count.elapsed();
    reads.sort_unstable();
    let payload = (run.values * (run.rounds + 1)) as f64 * (run.bytes + 20) as f64;
    let live = run.values as f64 * (run.bytes + 20) as f64;
    println!(
        "write=store values={} bytes={} in {:.0} s: {} values/s by round, longest call {:.0} ms, \
         {:.2} us of processor time a value, bytes written {:.2}x, space {:.2}x (at most {:.2}x), GET p50 {:.3} p99 {:.3} max {:.1} ms, \
         {keys} keys counted in {:.0} ms, {:?}, resident at most {} MiB",
        run.values,
        run.bytes,
        took.as_secs_f64(),
        rates.join(" "),
        longest.as_secs_f64() * 1_000.0,
        cpu_us as f64 / (run.values * (run.rounds + 1)) as f64,
        (bytes_written() - written_before) as f64 / payload,
        disk_bytes(&run.folder) as f64 / live,
        disk_max as f64 / live,
        quantile(&reads, 0.5),
        quantile(&reads, 0.99),
        quantile(&reads, 1.0),
        count.as_secs_f64() * 1_000.0,
        store.status(),
        resident_mib(),
    );
    if leaves {
        std::process::exit(0);
    }
    drop(store);
    let _ = std::fs::remove_dir_all(&run.folder);
}

/// Processor time of the process so far, in microseconds: ticks of a hundredth of a second.
fn cpu_us() -> u64 {
    const TICK_US: u64 = 10_000;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may hold spaces, the times are the 12th and the 13th field.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
    ticks.sum::<u64>() * TICK_US
}

/// The most memory that the process has had.
fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) >> 10
}

/// How long a store takes to open that was left, and to read and count after that.
fn measure_open(run: &Run) {
    evict(&run.folder);
    let options = store_options(run);
    let began = Instant::now();
    let store = ObjectFiles::open(&run.folder, &options).expect("a store");
    let opened = began.elapsed();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
    let runtime = runtime.expect("a runtime");
    let first = runtime.block_on(store.heads(vec![Key::new(0, Run::key(run.values / 2))], 0));
    assert!(first.expect("a head")[0].is_some());

    println!(
        "opened {:.2} GB after {:.0} ms, the first GET after {:.0} ms; {:?}, resident {} MiB",
        disk_bytes(&run.folder) as f64 / 1e9,
        opened.as_secs_f64() * 1_000.0,
        began.elapsed().as_secs_f64() * 1_000.0,
        store.status(),
        resident_mib(),
    );
    drop(store);
    let _ = std::fs::remove_dir_all(&run.folder);
}

fn main() {
    let arguments: HashMap<String, String> = std::env::args()
        .skip(1)
        .filter_map(|argument| {
            argument.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
        })
        .collect();
    let list = |name: &str, or: &str| -> Vec<String> {
        let list = arguments.get(name).map_or(or, String::as_str);
        list.split(',').map(str::to_owned).collect()
    };

    let is_yes = |name: &str| arguments.get(name).is_some_and(|value| value == "yes");
    if is_yes("open") {
        return measure_open(&Run::of(&arguments, "4096", "store"));
    }
    for variant in list("variant", "inline,512,4096") {
        for write in list("write", "batch") {
            let run = Run::of(&arguments, &variant, &write);
            if write == "store" { measure_store(&run, is_yes("leave")) } else { measure(&run) }
        }
    }
}

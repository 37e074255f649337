//! A keyspace of its own for each test, and a reader and a writer as one store.

use raingauge_core::plan::{Plan, Slice};
use raingauge_core::retention::Horizons;
use raingauge_core::tile::Overflow;
use raingauge_cql::schema::{Layout, migrate};
use raingauge_cql::{self as cql, Options, ReadPlan};
use raingauge_ports::BoxFuture;
use raingauge_ports::buckets::{
    Addition, BucketReader, BucketRetention, BucketWriter, Cell, Checkpoint, Error, Generation,
    KeySource, Largest, Query,
};
use raingauge_ports::log::{Offset, Partition};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

/// A keyspace on the cluster.
pub struct Place {
    pub runtime: Runtime,
    pub options: Options,
}

/// Tests of one process have different keyspaces, and so have those of two processes.
static NEXT: AtomicU32 = AtomicU32::new(0);

pub fn contact_points() -> Option<Vec<String>> {
    let points = std::env::var("RAINGAUGE_TEST_CQL").ok();
    if points.is_none() {
        eprintln!("skipped: RAINGAUGE_TEST_CQL names no cluster; `make test` starts one");
    }
    points.map(|points| points.split(',').map(str::to_owned).collect())
}

impl Place {
    /// `None`, and a line that says so, when there is no cluster to test on.
    pub fn new() -> Option<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();

        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let options = Options {
            contact_points: contact_points()?,
            keyspace: format!("test_{}_{number}", std::process::id()),
            request_timeout: Duration::from_secs(20),
            speculative_after: Duration::ZERO,
            ..Options::default()
        };

        let place = Self { runtime, options };
        let migrated =
            place.runtime.block_on(migrate(&place.options, &layout())).expect("migrated");
        assert_eq!((migrated.from, migrated.to), (0, raingauge_cql::schema::VERSION));

        Some(place)
    }

    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub fn cql(&self) -> cql::Cluster {
        self.block_on(cql::Cluster::connect(self.options.clone())).expect("connected")
    }

    pub fn store(&self, partition: Partition) -> Store {
        let cql = self.cql();
        let writer =
            cql::Writer::new(cql.clone(), "test-log", partition, self.runtime.handle().clone());
        Store { reader: cql::Reader::new(cql), writer }
    }

    pub fn reading(&self, read_plan: ReadPlan) -> cql::Reader {
        let options = Options { read_plan, ..self.options.clone() };
        cql::Reader::new(self.block_on(cql::Cluster::connect(options)).expect("connected"))
    }

    pub fn run(&self, statement: &str) {
        let session = self.cql().session_for_tests();
        self.block_on(session.query_unpaged(statement, ())).expect("the statement runs");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Ok(cql) = self.block_on(cql::Cluster::connect(self.options.clone())) {
            let statement = format!("DROP KEYSPACE {}", self.options.keyspace);
            let _ = self.block_on(cql.session_for_tests().query_unpaged(statement, ()));
        }
    }
}

pub fn layout() -> Layout {
    Layout {
        replication: "{'class': 'SimpleStrategy', 'replication_factor': 1}".to_owned(),
        ..Layout::default()
    }
}

/// What the contract is asked of.
pub struct Store {
    pub reader: cql::Reader,
    pub writer: cql::Writer,
}

/// The writer belongs to a thread without a runtime, as its worker is.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join()).expect("the thread ends well")
}

impl BucketWriter for Store {
    fn checkpoint(&self) -> Result<Checkpoint, Error> {
        apart(|| self.writer.checkpoint())
    }

    fn stamp_from(&self, base_us: i64) {
        self.writer.stamp_from(base_us);
    }

    fn add(
        &self,
        generation: Generation,
        key: &str,
        added: Addition,
        horizons: &Horizons,
    ) -> Result<(), Error> {
        self.writer.add(generation, key, added, horizons)
    }

    fn set(
        &self,
        generation: Generation,
        key: &str,
        offset: Offset,
        cell: Cell,
    ) -> Result<(), Error> {
        self.writer.set(generation, key, offset, cell)
    }

    fn erase(&self, generation: Generation, key: &str, offset: Offset) -> Result<(), Error> {
        apart(|| self.writer.erase(generation, key, offset))
    }

    fn commit(&self, checkpoint: &Checkpoint) -> Result<(), Error> {
        apart(|| self.writer.commit(checkpoint))
    }

    fn wants_commit(&self) -> bool {
        self.writer.wants_commit()
    }
}

impl BucketRetention for Store {
    fn prolong(
        &self,
        generation: Generation,
        horizons: &Horizons,
        cursor: &mut Option<Vec<u8>>,
    ) -> Result<(), Error> {
        apart(|| self.writer.prolong(generation, horizons, cursor))
    }

    fn expire(
        &self,
        generation: Generation,
        horizons: &Horizons,
        cursor: &mut Option<Vec<u8>>,
        scan_max: usize,
    ) -> Result<u64, Error> {
        apart(|| self.writer.expire(generation, horizons, cursor, scan_max))
    }
}

impl KeySource for Store {
    fn key_hashes(&self, generation: Generation) -> BoxFuture<'_, Result<Vec<u64>, Error>> {
        self.reader.key_hashes(generation)
    }
}

impl BucketReader for Store {
    fn sum_cached(
        &self,
        generation: Generation,
        key: &str,
        plan: &Plan,
    ) -> Option<Result<i128, Overflow>> {
        self.reader.sum_cached(generation, key, plan)
    }

    fn sums(&self, queries: Vec<Query>) -> BoxFuture<'_, Vec<Result<i128, Error>>> {
        self.reader.sums(queries)
    }

    fn cells(
        &self,
        generation: Generation,
        key: String,
        slice: Slice,
    ) -> BoxFuture<'_, Result<Vec<Cell>, Error>> {
        self.reader.cells(generation, key, slice)
    }

    fn largest_keys(
        &self,
        generation: Generation,
        slice: Slice,
        len_max: usize,
        scan_max: usize,
    ) -> BoxFuture<'_, Result<Largest, Error>> {
        self.reader.largest_keys(generation, slice, len_max, scan_max)
    }
}

//! What a ledger of points costs on MySQL or MariaDB: awards a second, made durable in turns.
//!
//! ```text
//!   turn   BEGIN; lock the head of a book; load wallets and keys;
//!          insert entries and keys, replace wallets, update the head; COMMIT
//! ```
//!
//! Each connection takes turns on books of its own, out of 16, so that no turn waits for another.
//! Members are uniform over all wallets and keys are random, which is the worst order for a B-tree.
//! Afterwards the tables are compared with what was acknowledged.
//!
//! Run it with `scripts/services run temp --mariadb -- cargo bench -p raingauge-sql --bench books`.
//! Arguments behind `--`: `seconds=10`, `wallets=200000`, `turn=500`, `connections=1,2,4`.

use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const VARIABLE: &str = "RAINGAUGE_TEST_MYSQL";
const DATABASE: &str = "raingauge_bench_books";
const BOOKS: u64 = 16;
/// Bytes of an entry, and of the record of a wallet.
const ENTRY_LEN: usize = 240;
const WALLET_LEN: usize = 100;
/// Points of each award.
const POINTS: i64 = 7;

const SCHEMA: &str = "
CREATE TABLE heads (book BIGINT PRIMARY KEY, sequence BIGINT NOT NULL) ENGINE = InnoDB;
CREATE TABLE wallets (
    book     BIGINT       NOT NULL,
    member   VARCHAR(128) NOT NULL,
    due_hour BIGINT       NOT NULL,
    record   BLOB         NOT NULL,
    PRIMARY KEY (book, member),
    KEY wallets_by_hour (book, due_hour, member)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE entries (
    book            BIGINT       NOT NULL,
    sequence        BIGINT       NOT NULL,
    member          VARCHAR(128) NOT NULL,
    member_sequence BIGINT       NOT NULL,
    recorded_ms     BIGINT       NOT NULL,
    body            BLOB         NOT NULL,
    PRIMARY KEY (book, sequence),
    KEY entries_by_member (book, member, member_sequence)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE award_keys (
    hash BINARY(16) PRIMARY KEY, book BIGINT NOT NULL, sequence BIGINT NOT NULL
) ENGINE = InnoDB;
";

const LOCK_HEAD: &str = "SELECT sequence FROM heads WHERE book = ? FOR UPDATE";
const MOVE_HEAD: &str = "UPDATE heads SET sequence = ? WHERE book = ?";

fn main() {
    let Some(address) = std::env::var(VARIABLE).ok().filter(|address| !address.is_empty()) else {
        println!("{VARIABLE} names no server: see the head of benches/books.rs");
        return;
    };
    let load = Load::of_arguments();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts");
    runtime.block_on(run(&address, &load));
}

/// What is measured.
struct Load {
    duration: Duration,
    wallets: u64,
    awards_per_turn: usize,
    connections: Vec<u64>,
}

impl Load {
    fn of_arguments() -> Self {
        let given: HashMap<String, String> = std::env::args()
            .filter_map(|argument| {
                argument.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
            })
            .collect();
        let text = |name: &str, default: &str| {
            given.get(name).cloned().unwrap_or_else(|| default.to_owned())
        };
        let number = |name: &str, default: &str| {
            text(name, default).parse::<u64>().expect("the argument is a whole number")
        };

        Self {
            duration: Duration::from_secs(number("seconds", "10")),
            wallets: number("wallets", "200000").max(BOOKS),
            awards_per_turn: number("turn", "500").clamp(1, 5_000) as usize,
            connections: text("connections", "1,2,4")
                .split(',')
                .map(|count| count.parse().expect("connections are whole numbers"))
                .collect(),
        }
    }
}

async fn run(address: &str, load: &Load) {
    let options: MySqlConnectOptions = address.parse().expect("the address of a MySQL server");
    prepare(&options).await;
    describe(&options, load).await;

    let mut acknowledged = 0;
    for connections in &load.connections {
        acknowledged += measure(&options, load, *connections, acknowledged).await;
    }

    verify(&options, acknowledged).await;
    let mut server = connect(&options).await;
    execute(&mut server, format!("DROP DATABASE {DATABASE}")).await;
}

async fn prepare(options: &MySqlConnectOptions) {
    let mut server = options.connect().await.expect("the server answers");
    let fresh = format!(
        "DROP DATABASE IF EXISTS {DATABASE};
        CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4; USE {DATABASE}; {SCHEMA}"
    );
    execute(&mut server, fresh).await;
    for book in 0..BOOKS {
        execute(&mut server, format!("INSERT INTO heads VALUES ({book}, 0)")).await;
    }
}

async fn describe(options: &MySqlConnectOptions, load: &Load) {
    let mut server = connect(options).await;
    let (version, at_commit, pool): (String, i64, i64) = sqlx::query_as(
        "SELECT VERSION(), CAST(@@innodb_flush_log_at_trx_commit AS SIGNED),
        CAST(@@innodb_buffer_pool_size AS SIGNED)",
    )
    .fetch_one(&mut server)
    .await
    .expect("the server describes itself");

    println!(
        "server {version}, flush_log_at_trx_commit {at_commit}, buffer pool {} MiB; {} wallets, \
         {} awards a turn",
        pool >> 20,
        load.wallets,
        load.awards_per_turn
    );
}

/// Runs the load over this number of connections and returns how many awards were acknowledged.
async fn measure(options: &MySqlConnectOptions, load: &Load, connections: u64, before: u64) -> u64 {
    let began = Instant::now();
    let until = began + load.duration;
    let tellers: Vec<_> = (0..connections)
        .map(|number| {
            let options = options.clone();
            let shape = Shape::new(load, number, connections, before);
            tokio::spawn(async move { shape.work(&options, until).await })
        })
        .collect();

    let mut durations = Vec::new();
    for teller in tellers {
        durations.extend(teller.await.expect("a teller ends"));
    }
    let elapsed_s = began.elapsed().as_secs_f64();

    let awards = durations.len() as u64 * load.awards_per_turn as u64;
    durations.sort();
    let at = |share: f64| {
        let place = (durations.len() as f64 * share) as usize;
        durations
            .get(place.min(durations.len().saturating_sub(1)))
            .map_or(0.0, Duration::as_secs_f64)
            * 1e3
    };
    println!(
        "{connections} connections: {:>8.0} awards/s, {} turns, turn p50 {:.1} ms, p99 {:.1} ms",
        awards as f64 / elapsed_s,
        durations.len(),
        at(0.5),
        at(0.99)
    );
    awards
}

/// One connection with its books and its statements.
struct Shape {
    books: Vec<u64>,
    wallets_per_book: u64,
    awards: usize,
    random: Random,
    load_wallets: Arc<str>,
    load_keys: Arc<str>,
    add_entries: Arc<str>,
    add_keys: Arc<str>,
    put_wallets: Arc<str>,
}

impl Shape {
    fn new(load: &Load, number: u64, connections: u64, before: u64) -> Self {
        let awards = load.awards_per_turn;
        let many = |row: &str| vec![row; awards].join(",");
        Self {
            books: (0..BOOKS).filter(|book| book % connections == number).collect(),
            wallets_per_book: load.wallets / BOOKS,
            awards,
            random: Random((before << 8 | connections) << 8 | number),
            load_wallets: format!(
                "SELECT member, record FROM wallets WHERE book = ? AND member IN ({})",
                many("?")
            )
            .into(),
            load_keys: format!("SELECT hash FROM award_keys WHERE hash IN ({})", many("?")).into(),
            add_entries: format!("INSERT INTO entries VALUES {}", many("(?,?,?,?,?,?)")).into(),
            add_keys: format!("INSERT INTO award_keys VALUES {}", many("(?,?,?)")).into(),
            put_wallets: "REPLACE INTO wallets VALUES ".into(),
        }
    }

    /// Takes turns until the time is over and returns how long each took.
    async fn work(mut self, options: &MySqlConnectOptions, until: Instant) -> Vec<Duration> {
        let mut connection = connect(options).await;
        let mut durations = Vec::new();
        for book in self.books.clone().into_iter().cycle() {
            if Instant::now() >= until {
                break;
            }
            let began = Instant::now();
            self.turn(&mut connection, book).await.expect("the turn commits");
            durations.push(began.elapsed());
        }
        connection.close().await.expect("the connection closes");
        durations
    }

    async fn turn(&mut self, connection: &mut MySqlConnection, book: u64) -> sqlx::Result<()> {
        let members: Vec<String> = (0..self.awards)
            .map(|_| format!("{book}-{:09}", self.random.next() % self.wallets_per_book))
            .collect();
        let mut keys: Vec<[u8; 16]> = (0..self.awards).map(|_| self.random.key()).collect();
        keys.sort_unstable();

        let mut turn = connection.begin().await?;
        let sequence: i64 =
            sqlx::query_scalar(LOCK_HEAD).bind(book as i64).fetch_one(&mut *turn).await?;
        let mut wallets = self.wallets(&mut turn, book, &members).await?;
        self.no_key_is_known(&mut turn, &keys).await?;

        let mut entries = sqlx::query(AssertSqlSafe(Arc::clone(&self.add_entries)));
        for (at, member) in members.iter().enumerate() {
            let wallet = wallets.entry(member.clone()).or_insert_with(|| vec![0; WALLET_LEN]);
            let member_sequence = number_at(wallet, 0) + 1;
            wallet[..8].copy_from_slice(&member_sequence.to_be_bytes());
            let balance = number_at(wallet, 8) + POINTS;
            wallet[8..16].copy_from_slice(&balance.to_be_bytes());

            entries = entries.bind(book as i64).bind(sequence + at as i64 + 1).bind(member);
            entries = entries.bind(member_sequence).bind(0_i64).bind(vec![b'e'; ENTRY_LEN]);
        }
        entries.execute(&mut *turn).await?;

        let mut added = sqlx::query(AssertSqlSafe(Arc::clone(&self.add_keys)));
        for (at, key) in keys.iter().enumerate() {
            added = added.bind(&key[..]).bind(book as i64).bind(sequence + at as i64 + 1);
        }
        added.execute(&mut *turn).await?;
        self.put(&mut turn, book, wallets).await?;

        let moved = sequence + self.awards as i64;
        sqlx::query(MOVE_HEAD).bind(moved).bind(book as i64).execute(&mut *turn).await?;
        turn.commit().await
    }

    async fn wallets(
        &self,
        connection: &mut MySqlConnection,
        book: u64,
        members: &[String],
    ) -> sqlx::Result<HashMap<String, Vec<u8>>> {
        let statement = AssertSqlSafe(Arc::clone(&self.load_wallets));
        let query = members
            .iter()
            .fold(sqlx::query(statement).bind(book as i64), |query, member| query.bind(member));
        let rows: Vec<MySqlRow> = query.fetch_all(connection).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    async fn no_key_is_known(
        &self,
        connection: &mut MySqlConnection,
        keys: &[[u8; 16]],
    ) -> sqlx::Result<()> {
        let statement = AssertSqlSafe(Arc::clone(&self.load_keys));
        let query = keys.iter().fold(sqlx::query(statement), |query, key| query.bind(&key[..]));
        let rows: Vec<MySqlRow> = query.fetch_all(connection).await?;
        assert!(rows.is_empty(), "random keys do not repeat");
        Ok(())
    }

    /// Writes the wallets of a turn in statements of 256, 128 … 1 rows, so that the server knows
    /// every statement already.
    async fn put(
        &self,
        connection: &mut MySqlConnection,
        book: u64,
        wallets: HashMap<String, Vec<u8>>,
    ) -> sqlx::Result<()> {
        let mut wallets: Vec<_> = wallets.into_iter().collect();
        wallets.sort_unstable();

        let mut rest = &wallets[..];
        while !rest.is_empty() {
            let rows = (1 << rest.len().ilog2()).min(256);
            let (now, later) = rest.split_at(rows);
            let text = format!("{}{}", self.put_wallets, vec!["(?,?,?,?)"; rows].join(","));
            let mut query = sqlx::query(AssertSqlSafe(text));
            for (member, record) in now {
                query = query.bind(book as i64).bind(member).bind(900_000_i64).bind(&record[..]);
            }
            query.execute(&mut *connection).await?;
            rest = later;
        }
        Ok(())
    }
}

/// Compares the tables with the number of acknowledged awards.
async fn verify(options: &MySqlConnectOptions, acknowledged: u64) {
    let mut server = connect(options).await;
    let (heads, entries, keys): (i64, i64, i64) = sqlx::query_as(
        "SELECT (SELECT CAST(SUM(sequence) AS SIGNED) FROM heads), (SELECT COUNT(*) FROM entries),
        (SELECT COUNT(*) FROM award_keys)",
    )
    .fetch_one(&mut server)
    .await
    .expect("the tables can be counted");
    let records: Vec<(Vec<u8>,)> = sqlx::query_as("SELECT record FROM wallets")
        .fetch_all(&mut server)
        .await
        .expect("the wallets can be read");
    let points: i64 = records.iter().map(|(record,)| number_at(record, 8)).sum();

    let expected = acknowledged as i64;
    assert_eq!((heads, entries, keys), (expected, expected, expected));
    assert_eq!(points, expected * POINTS, "every acknowledged point is in a wallet");
    println!("verified: {expected} awards in {} wallets", records.len());
}

async fn connect(options: &MySqlConnectOptions) -> MySqlConnection {
    options.clone().database(DATABASE).connect().await.expect("the server answers")
}

async fn execute(connection: &mut MySqlConnection, statements: String) {
    let done = sqlx::raw_sql(AssertSqlSafe(statements)).execute(connection).await;
    done.expect("the statement succeeds");
}

fn number_at(record: &[u8], at: usize) -> i64 {
    i64::from_be_bytes(record[at..at + 8].try_into().expect("eight bytes"))
}

/// SplitMix64, which repeats a run exactly.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn key(&mut self) -> [u8; 16] {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&self.next().to_be_bytes());
        key[8..].copy_from_slice(&self.next().to_be_bytes());
        key
    }
}

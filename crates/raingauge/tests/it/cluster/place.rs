//! A keyspace, topics, a group and a database for one test alone.

use crate::server::{Home, PATIENCE, Server};
use raingauge_cql as cql;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::{AssertSqlSafe, ConnectOptions};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;
use tokio::runtime::Runtime;

/// A writer that is silent for this long loses its partitions; the minimum that a broker accepts.
const SESSION_TIMEOUT_MS: &str = "6000";

/// Addresses of the servers that the tests share.
#[derive(Clone)]
pub struct Addresses {
    pub cql: String,
    pub kafka: String,
    /// In the form `mysql://user:password@host:port/database`.
    pub mysql: String,
}

impl Addresses {
    /// Returns `None`, and prints a line about it, when there are no servers.
    pub fn given() -> Option<Self> {
        let given = |name: &str| {
            let address = std::env::var(name).ok().filter(|address| !address.is_empty());
            if address.is_none() {
                println!("skipped: {name} names no server; `make test` starts the servers");
            }
            address
        };
        let cql = given("RAINGAUGE_TEST_CQL")?;
        let kafka = given("RAINGAUGE_TEST_KAFKA")?;
        Some(Self { cql, kafka, mysql: given("RAINGAUGE_TEST_MYSQL")? })
    }
}

pub struct Place {
    pub addresses: Addresses,
    /// The settings with which all processes here start.
    pub home: Home,
    pub topic: String,
    pub partitions: u16,
    keyspace: String,
    database: String,
    runtime: Runtime,
    began: Instant,
}

impl Place {
    /// With a schema, topics and a catalog.
    pub fn new(partitions: u16) -> Option<Self> {
        let place = Self::bare(partitions)?;
        place.migrate();
        Some(place)
    }

    /// With an empty database, and nothing else.
    pub fn bare(partitions: u16) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);

        let addresses = Addresses::given()?;
        let number = MADE.fetch_add(1, Ordering::Relaxed);

        // A process of an earlier day may have had the same number, and its topics still exist.
        let name = format!("{}_{number}_{:08x}", std::process::id(), rand::random::<u32>());
        let mut place = Self {
            home: Home::new(),
            topic: format!("it-{name}"),
            keyspace: format!("it_{name}"),
            database: format!("raingauge_it_{name}"),
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap(),
            began: Instant::now(),
            addresses,
            partitions,
        };

        let url = place.database_at(&place.addresses.mysql);
        for (key, value) in place.settings() {
            place.home.set(key, &value);
        }
        place.home.set("mysql.url", &url);

        Some(place)
    }

    /// Returns all settings of processes here except the catalog's.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let text = |text: &str| text.to_owned();
        vec![
            ("cluster.engines", text("cluster")),
            ("cluster.catalog", text("mysql")),
            ("cluster.commit_interval_ms", text("100")),
            ("cql.contact_points", self.addresses.cql.clone()),
            ("cql.keyspace", self.keyspace.clone()),
            ("cql.replication", text("{'class': 'SimpleStrategy', 'replication_factor': 1}")),
            // The machine of the tests may be slow for a while, and these tests are not about
            // slowness.
            ("cql.request_timeout_ms", text("60000")),
            ("cql.speculative_after_ms", text("0")),
            ("server.request_timeout_s", text("60")),
            // Anyone at this machine may request pages.
            ("portal.sign_in", text("false")),
            ("reader.deadline_ms", text("60000")),
            ("kafka.brokers", self.addresses.kafka.clone()),
            ("kafka.topic", self.topic.clone()),
            ("kafka.dead_letter_topic", self.dead_letter_topic()),
            ("kafka.group", format!("{}-group", self.topic)),
            ("kafka.partitions", self.partitions.to_string()),
            ("kafka.session_timeout_ms", text(SESSION_TIMEOUT_MS)),
            ("kafka.delivery_timeout_ms", text("30000")),
        ]
    }

    pub fn dead_letter_topic(&self) -> String {
        format!("{}-dead", self.topic)
    }

    /// Creates a database with this place's name on a server, and returns its address.
    pub fn database_at(&self, server: &str) -> String {
        self.run_sql(server, &format!("CREATE DATABASE {}", self.database));
        self.database_url(server)
    }

    /// Returns the address of this place's catalog.
    pub fn catalog_url(&self) -> String {
        self.database_url(&self.addresses.mysql)
    }

    /// Returns the address of this place's database on a server.
    pub fn database_url(&self, server: &str) -> String {
        let (address, _) = server.rsplit_once('/').expect("an address ends in a database");
        format!("{address}/{}", self.database)
    }

    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub fn run_sql(&self, server: &str, statement: &str) {
        self.runtime.block_on(try_sql(server, statement)).expect("the statement runs");
    }

    pub fn keyspace(&self) -> &str {
        &self.keyspace
    }

    /// Returns statements that create the tables of the catalog as they are, with their rows.
    pub fn sql_dump(&self) -> Vec<String> {
        let options: MySqlConnectOptions = self.catalog_url().parse().expect("an address");
        self.runtime.block_on(async {
            let mut connection = options.connect().await.expect("a connection");
            // Views follow the tables that they read.
            let names = "SELECT CAST(table_name AS CHAR), table_type = 'VIEW'
                         FROM information_schema.tables WHERE table_schema = DATABASE()
                         ORDER BY table_type = 'VIEW', table_name";
            let names: Vec<(String, bool)> =
                sqlx::query_as(names).fetch_all(&mut connection).await.expect("names");

            let mut statements = vec!["SET FOREIGN_KEY_CHECKS = 0".to_owned()];
            for (name, is_view) in names {
                let create = AssertSqlSafe(format!("SHOW CREATE TABLE {name}"));
                let (_, create): (String, String) =
                    sqlx::query_as(create).fetch_one(&mut connection).await.expect("a table");
                if is_view {
                    let (_, select) = create.split_once(" VIEW ").expect("a view");
                    statements.push(format!("CREATE VIEW {select}"));
                    continue;
                }
                statements.push(create);

                let columns = "SELECT CAST(column_name AS CHAR) FROM information_schema.columns
                               WHERE table_schema = DATABASE() AND table_name = ?
                               ORDER BY ordinal_position";
                let columns: Vec<String> = sqlx::query_scalar(columns)
                    .bind(&name)
                    .fetch_all(&mut connection)
                    .await
                    .expect("columns");
                let values = columns.iter().map(|column| format!("QUOTE({column})"));
                let values = values.collect::<Vec<_>>().join(", ',', ");

                let rows = format!(
                    "SELECT CAST(CONCAT('INSERT INTO {name} VALUES (', {values}, ')') AS CHAR)
                     FROM {name}"
                );
                let rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(rows))
                    .fetch_all(&mut connection)
                    .await
                    .expect("rows");
                statements.extend(rows);
            }

            statements
        })
    }

    pub fn migrate(&self) {
        let migrated = self.home.run(&["migrate"]);
        assert!(migrated.status.success(), "{migrated:?}");
    }

    /// Returns a further home for processes that differ in some settings.
    pub fn home_with(&self, settings: &[(&str, &str)]) -> Home {
        let mut home = self.home.like();
        settings.iter().for_each(|(key, value)| home.set(key, value));
        home
    }

    pub fn start(&self, roles: &str) -> Server {
        start(&self.home, roles)
    }

    /// Runs a statement in the keyspace directly, bypassing raingauge.
    pub fn run_cql(&self, statement: &str) {
        self.try_cql(statement).expect("the statement runs");
    }

    /// Returns the number of rows that a statement finds.
    pub fn rows(&self, statement: &str) -> usize {
        self.try_cql(statement).expect("the statement runs")
    }

    /// Returns the number of rows.
    fn try_cql(&self, statement: &str) -> Result<usize, String> {
        self.runtime.block_on(async {
            let ran = self
                .connect()
                .await?
                .session_for_tests()
                .query_unpaged(statement, ())
                .await
                .map_err(|error| error.to_string())?;
            Ok(ran.into_rows_result().map_or(0, |rows| rows.rows_num()))
        })
    }

    /// Connects to the keyspace directly, bypassing raingauge.
    pub async fn connect(&self) -> Result<cql::Cluster, String> {
        let options = cql::Options {
            contact_points: self.addresses.cql.split(',').map(str::to_owned).collect(),
            keyspace: self.keyspace.clone(),
            request_timeout: PATIENCE,
            ..cql::Options::default()
        };
        cql::Cluster::connect(options).await.map_err(|error| error.to_string())
    }
}

async fn try_sql(server: &str, statement: &str) -> sqlx::Result<()> {
    let options: MySqlConnectOptions = server.parse()?;
    let mut connection: MySqlConnection = options.connect().await?;
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.map(drop)
}

/// Starts a process with some roles, and waits until it is ready.
pub fn start(home: &Home, roles: &str) -> Server {
    let arguments = ["serve", "--role", roles, "--listen", "127.0.0.1:0"].map(str::to_owned);
    home.try_start_with(&arguments)
        .unwrap_or_else(|refused| panic!("no {roles} could be started: {refused:?}"))
}

impl Drop for Place {
    /// The data of a failed test stays for inspection; the servers are there for the tests alone.
    fn drop(&mut self) {
        println!("{} was there for {:?}", self.topic, self.began.elapsed());
        if !std::thread::panicking() {
            let drop_database = format!("DROP DATABASE {}", self.database);
            let _ = self.runtime.block_on(try_sql(&self.addresses.mysql, &drop_database));
            let _ = self.try_cql(&format!("DROP KEYSPACE {}", self.keyspace));
        }
    }
}

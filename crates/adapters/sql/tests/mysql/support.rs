//! Databases on the server that the tests share.

use parking_lot::Mutex;
use raingauge_ports::catalog::Error;
use raingauge_sql::{MySqlCatalog, MySqlOptions};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::{AssertSqlSafe, ConnectOptions};
use std::sync::atomic::{AtomicU32, Ordering};

const VARIABLE: &str = "RAINGAUGE_TEST_MYSQL";

/// A server, and the databases that one test made on it.
pub struct Server {
    /// As `mysql://user:password@host:port`.
    address: String,
    /// What follows the database in an address, with its question mark.
    parameters: String,
    made: Mutex<Vec<String>>,
}

/// The address of the server that all tests share; none is the reason to skip a test.
pub fn shared_address() -> Option<String> {
    let address = std::env::var(VARIABLE).ok().filter(|address| !address.is_empty());
    if address.is_none() {
        eprintln!("skipped: {VARIABLE} names no server; `make test` starts one");
    }
    address
}

impl Server {
    pub fn shared() -> Option<Self> {
        Some(Self::at(&shared_address()?))
    }

    pub fn at(address: &str) -> Self {
        let (scheme, rest) = address.split_once("://").expect("an address begins with mysql://");
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let parameters = rest.find('?').map_or("", |at| &rest[at..]).to_owned();
        Self { address: format!("{scheme}://{authority}"), parameters, made: Mutex::default() }
    }

    /// How a database of this server is reached by the user of the tests.
    pub fn options(&self, database: &str) -> MySqlOptions {
        MySqlOptions::new(self.url(database))
    }

    fn url(&self, database: &str) -> String {
        format!("{}/{database}{}", self.address, self.parameters)
    }

    /// As `options`, but by another user.
    pub fn options_of(&self, user: &str, password: &str, database: &str) -> MySqlOptions {
        let (_, place) = self.address.rsplit_once('@').expect("the address names a user");
        MySqlOptions::new(format!(
            "mysql://{user}:{password}@{place}/{database}{}",
            self.parameters
        ))
    }

    /// A database without tables.
    pub async fn empty_database(&self) -> String {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("raingauge_test_{}_{number}", std::process::id());
        // A process of an earlier day may have had the same number, and have been killed.
        self.run("", &format!("DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name}")).await;
        self.made.lock().push(name.clone());
        name
    }

    /// A database with the newest schema.
    pub async fn database(&self) -> MySqlOptions {
        let options = self.options(&self.empty_database().await);
        MySqlCatalog::migrate(&options).await.unwrap();
        options
    }

    pub async fn catalog(&self) -> MySqlCatalog {
        MySqlCatalog::open(&self.database().await).await.unwrap()
    }

    /// A connection that goes past the catalog.
    pub async fn connect(&self, database: &str) -> MySqlConnection {
        let options: MySqlConnectOptions = self.url(database).parse().unwrap();
        options.connect().await.unwrap()
    }

    /// Runs statements past the catalog.
    pub async fn run(&self, database: &str, statements: &str) {
        let mut connection = self.connect(database).await;
        sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&mut connection).await.unwrap();
    }

    /// Drops the databases of this test. Those of a test that failed stay, to be looked at.
    pub async fn clean_up(self) {
        let made = std::mem::take(&mut *self.made.lock());
        for name in made {
            self.run("", &format!("DROP DATABASE {name}")).await;
        }
    }
}

/// The name of the database in an address.
pub fn name_of(options: &MySqlOptions) -> String {
    let path = options.url.split('?').next().unwrap();
    path.rsplit_once('/').unwrap().1.to_owned()
}

/// The sentence of an answer that says that the catalog is out of reach.
pub fn sentence<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Err(Error::Unavailable(sentence)) => sentence,
        other => panic!("expected the catalog to be out of reach, not {other:?}"),
    }
}

pub fn says<T: std::fmt::Debug>(answer: Result<T, Error>, part: &str) {
    let sentence = sentence(answer);
    assert!(sentence.contains(part), "{sentence}");
}

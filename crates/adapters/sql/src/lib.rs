//! The catalog on SQL databases: counter configurations and all their versions, in an SQLite file
//! or in MySQL. Beside it, the books of points of a cluster.
//!
//! ```text
//!   catalog, people, books … ──▶ database ◀── sqlite │ mysql
//!      │                         transactions, statements
//!      └──▶ rules of the port: what a change may do, given the newest versions (pure)
//! ```
//!
//! Every port is implemented once, over the traits of `database`. A change reads the newest
//! versions, decides and writes in one transaction, during which no other change runs, so neither
//! two tasks nor two processes can save counters that conflict. Databases differ in how such a
//! transaction begins, in a few statements of the catalog, in how the schema is brought up to date
//! and in the meaning of their errors.

mod books;
mod catalog;
mod database;
mod databases;
mod documents;
mod drafts;
#[cfg(feature = "mysql")]
mod mysql;
mod people;
mod queues;
mod rollouts;
mod rows;
mod sqlite;
mod watch;

pub use books::Books;
pub use catalog::Catalog;
pub use database::Database;
pub use databases::{Databases, Settings as DatabaseSettings};
pub use documents::Documents;
pub use drafts::Drafts;
#[cfg(feature = "mysql")]
pub use mysql::{Migrated, MySql, MySqlBooks, MySqlCatalog, MySqlOptions, MySqlSettings, MySqlTls};
pub use people::People;
pub use queues::Queues;
pub use rollouts::Rollouts;
pub use sqlite::{Sqlite, SqliteBooks, SqliteCatalog};
pub use watch::{Checks, Instances};

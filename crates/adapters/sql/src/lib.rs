//! The catalog on SQL databases: counter configurations and all their versions, in an SQLite file or in MySQL.
//!
//! ```text
//!   Catalog ──▶ sqlite │ mysql: one exclusive transaction ──▶ rows: statements, rows and versions
//!                        │
//!                        └──▶ decide: what a change may do, given the newest versions (pure)
//! ```
//!
//! A change reads the newest versions, decides and writes in one transaction that no other change runs beside, so that
//! neither two tasks nor two processes can save counters that conflict. What differs between databases is how such a
//! transaction begins, how the schema is brought up to date and what their errors mean; the rest is shared. Other ports
//! over the same database (`people`, `drafts`) are written once, over what `database` asks of each.

mod database;
mod decide;
mod drafts;
#[cfg(feature = "mysql")]
mod mysql;
mod people;
mod rollouts;
mod rows;
mod sqlite;
mod watch;

pub use drafts::SqlDrafts;
#[cfg(feature = "mysql")]
pub use mysql::{Migrated, MySqlCatalog, MySqlOptions, MySqlTls};
pub use people::SqlPeople;
pub use rollouts::SqlRollouts;
pub use sqlite::SqliteCatalog;
pub use watch::{SqlChecks, SqlInstances};

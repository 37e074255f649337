//! The schema of the file: its version, and the migrations to the newest.

use super::BUSY_TIMEOUT;
use super::fault::{Faults, is_busy};
use crate::database::Unavailable;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use std::time::{Duration, Instant};

/// The migrations from each version of the schema to the next; a new file is at version 0. A
/// released migration is never edited: another one is added behind it.
const MIGRATIONS: [&str; 10] = [
    include_str!("../../migrations/sqlite/0001_counters.sql"),
    include_str!("../../migrations/sqlite/0002_cache_policies.sql"),
    include_str!("../../migrations/sqlite/0003_people.sql"),
    include_str!("../../migrations/sqlite/0004_drafts.sql"),
    include_str!("../../migrations/sqlite/0005_watch.sql"),
    include_str!("../../migrations/sqlite/0006_rollouts.sql"),
    include_str!("../../migrations/sqlite/0007_contributors.sql"),
    include_str!("../../migrations/sqlite/0008_draft_kinds.sql"),
    include_str!("../../migrations/sqlite/0009_documents.sql"),
    include_str!("../../migrations/sqlite/0010_points.sql"),
];
const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;
/// Marks the file as a catalog of raingauge: "RGca" in ASCII.
const APPLICATION_ID: i64 = 0x5247_6361;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// Creates the file if necessary, refuses one that is not a catalog or is newer than this program,
/// and migrates an older one.
pub async fn prepare(options: &SqliteConnectOptions, faults: &Faults) -> Result<(), Unavailable> {
    let explain = |error| faults.explain(error);
    let mut connection =
        options.clone().create_if_missing(true).connect().await.map_err(explain)?;
    // First read without a write lock, so that a foreign file is not even locked.
    let version = version(&mut connection, faults).await?;
    if version < SCHEMA_VERSION {
        migrate(&mut connection, faults).await?;
    }
    enter_wal(&mut connection).await.map_err(explain)?;
    connection.close().await.map_err(explain)
}

/// Returns the version of the schema, at most the one that this program knows.
async fn version(connection: &mut SqliteConnection, faults: &Faults) -> Result<i64, Unavailable> {
    let (application_id, version, tables): (i64, i64, i64) = sqlx::query_as(
        "SELECT application_id, user_version, (SELECT COUNT(*) FROM sqlite_schema)
         FROM pragma_application_id, pragma_user_version",
    )
    .fetch_one(connection)
    .await
    .map_err(|error| faults.explain(error))?;

    let is_empty = (application_id, version, tables) == (0, 0, 0);
    if application_id != APPLICATION_ID && !is_empty {
        return Err(faults.refuse("it is an SQLite file of another program: choose another file"));
    }

    if version > SCHEMA_VERSION {
        return Err(faults.refuse(&format!(
            "its schema has version {version}, and this raingauge knows versions up to {SCHEMA_VERSION}: \
             run the raingauge that wrote it, or a newer one"
        )));
    }

    Ok(version)
}

/// Applies all missing migrations in one transaction: a crash leaves the file unchanged.
async fn migrate(connection: &mut SqliteConnection, faults: &Faults) -> Result<(), Unavailable> {
    let explain = |error| faults.explain(error);
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(explain)?;

    // Another process may have migrated first.
    let version = version(&mut transaction, faults).await?;
    for migration in MIGRATIONS.iter().skip(version as usize) {
        sqlx::raw_sql(*migration).execute(&mut *transaction).await.map_err(explain)?;
    }

    // A pragma takes no parameters; these values are constants of this program.
    let stamp = format!(
        "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};"
    );
    sqlx::raw_sql(AssertSqlSafe(stamp)).execute(&mut *transaction).await.map_err(explain)?;
    transaction.commit().await.map_err(explain)
}

/// Lets readers continue during a change. The setting is stored in the file. The switch needs the
/// file exclusively, and unlike for a transaction, SQLite does not wait for that.
async fn enter_wal(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match sqlx::query("PRAGMA journal_mode = WAL").execute(&mut *connection).await {
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                tokio::time::sleep(BUSY_PAUSE).await
            }
            done => return done.map(drop),
        }
    }
}

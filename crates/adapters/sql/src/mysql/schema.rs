//! The schema of the database: its version, and the migrations to the newest.

use super::fault::{Faults, number};
use crate::database::Unavailable;
use sqlx::mysql::MySqlConnection;

/// The migrations from each version of the schema to the next; an empty database is at version 0. A
/// released migration is never edited: another one is added behind it.
const MIGRATIONS: [&str; 9] = [
    include_str!("../../migrations/mysql/0001_catalog.sql"),
    include_str!("../../migrations/mysql/0002_people.sql"),
    include_str!("../../migrations/mysql/0003_drafts.sql"),
    include_str!("../../migrations/mysql/0004_watch.sql"),
    include_str!("../../migrations/mysql/0005_rollouts.sql"),
    include_str!("../../migrations/mysql/0006_contributors.sql"),
    include_str!("../../migrations/mysql/0007_draft_kinds.sql"),
    include_str!("../../migrations/mysql/0008_documents.sql"),
    include_str!("../../migrations/mysql/0009_points.sql"),
];
const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

const VERSION: &str = "SELECT version FROM raingauge_schema";
/// Also distinguishes tables of raingauge from those of another program.
const MAKE_VERSION: &str = "CREATE TABLE IF NOT EXISTS raingauge_schema (
    only_row TINYINT NOT NULL PRIMARY KEY CHECK (only_row = 1),
    version  BIGINT  NOT NULL
) ENGINE = InnoDB";
const SET_VERSION: &str = "INSERT INTO raingauge_schema (only_row, version) VALUES (1, ?)
    ON DUPLICATE KEY UPDATE version = VALUES(version)";
const FOREIGN: &str = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()
    AND table_name IN ('counters', 'counter_versions', 'cache_policies', 'catalog_revision', 'people_revision', 'users',
    'sessions', 'invitations', 'api_tokens', 'audit_entries', 'drafts_revision', 'drafts', 'draft_contributors', 'draft_kinds', 'instances',
    'checks', 'rollouts_revision', 'rollouts', 'product_documents_revision', 'product_documents', 'points_heads',
    'points_wallets', 'points_entries', 'points_keys', 'points_references', 'points_totals', 'points_budgets', 'points_positions',
    'points_queues', 'points_letters')";
/// One migration at a time on each server. The name of a lock has at most 64 characters, and the
/// name of a database may be as long.
const LOCK: &str = "SELECT GET_LOCK(CONCAT('raingauge ', SHA1(DATABASE())), ?)";
const LOCK_WAIT_S: i64 = 60;
const UNKNOWN_TABLE: u16 = 1146;

/// The result of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The previous version of the schema; 0 if there was none.
    pub from: i64,
    pub to: i64,
}

/// Refuses a schema that does not match this program.
pub async fn check(connection: &mut MySqlConnection, faults: &Faults) -> Result<(), Unavailable> {
    let version = version(connection, faults).await?;
    if version == 0 {
        return Err(faults.refuse("it has no tables of raingauge: run `raingauge migrate`"));
    }
    if version < SCHEMA_VERSION {
        return Err(faults.refuse(&format!(
            "its schema has version {version}, and this raingauge needs version {SCHEMA_VERSION}: run `raingauge migrate`"
        )));
    }
    Ok(())
}

/// Brings the schema up to date. The lock ends with the connection.
pub async fn migrate(
    connection: &mut MySqlConnection,
    faults: &Faults,
) -> Result<Migrated, Unavailable> {
    let explain = |error| faults.explain(error);
    let locked: Option<i64> = sqlx::query_scalar(LOCK)
        .bind(LOCK_WAIT_S)
        .fetch_one(&mut *connection)
        .await
        .map_err(explain)?;

    if locked != Some(1) {
        return Err(
            faults.refuse("another migration runs for too long: try again when it has ended")
        );
    }

    let from = version(connection, faults).await?;
    if from == 0 {
        claim(connection, faults).await?;
    }

    for (migration, version) in MIGRATIONS.iter().zip(1_i64..).skip(from as usize) {
        sqlx::raw_sql(*migration).execute(&mut *connection).await.map_err(explain)?;
        sqlx::query(SET_VERSION).bind(version).execute(&mut *connection).await.map_err(explain)?;
    }

    Ok(Migrated { from, to: SCHEMA_VERSION })
}

/// Marks the database as one of raingauge, unless tables of another program use the names.
async fn claim(connection: &mut MySqlConnection, faults: &Faults) -> Result<(), Unavailable> {
    let explain = |error| faults.explain(error);
    if stored_version(connection).await.map_err(explain)?.is_some() {
        // A first migration was interrupted.
        return Ok(());
    }

    let foreign: i64 =
        sqlx::query_scalar(FOREIGN).fetch_one(&mut *connection).await.map_err(explain)?;
    if foreign > 0 {
        return Err(
            faults.refuse("it has tables of another program: give raingauge a database of its own")
        );
    }

    sqlx::raw_sql(MAKE_VERSION).execute(&mut *connection).await.map_err(explain)?;
    sqlx::query(SET_VERSION).bind(0_i64).execute(&mut *connection).await.map(drop).map_err(explain)
}

/// Returns the version of the schema, at most the one that this program knows; 0 if there is none.
async fn version(connection: &mut MySqlConnection, faults: &Faults) -> Result<i64, Unavailable> {
    let version =
        stored_version(connection).await.map_err(|error| faults.explain(error))?.unwrap_or(0);
    if !(0..=SCHEMA_VERSION).contains(&version) {
        return Err(faults.refuse(&format!(
            "its schema has version {version}, and this raingauge knows versions up to {SCHEMA_VERSION}: \
             run the raingauge that wrote it, or a newer one"
        )));
    }
    Ok(version)
}

/// `None` if no version was ever written.
async fn stored_version(connection: &mut MySqlConnection) -> Result<Option<i64>, sqlx::Error> {
    match sqlx::query_scalar(VERSION).fetch_optional(connection).await {
        Err(error) if number(&error) == Some(UNKNOWN_TABLE) => Ok(None),
        answer => answer,
    }
}

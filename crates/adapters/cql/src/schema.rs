//! The schema: what each version adds, and the way to the newest.

use crate::session::connect;
use crate::{Error, Options, error};
use raingauge_core::bucket::DAY_S;
use raingauge_core::tile::TILE_CELLS;
use scylla::client::session::Session;

/// Version of the schema that this program reads and writes.
pub const VERSION: i32 = MIGRATIONS.len() as i32;

/// How the keyspace is replicated, and how the tables group what they store by time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// What CQL wants behind `replication =`, such as `{'class': 'NetworkTopologyStrategy', 'dc1': 3}`.
    pub replication: String,
    /// Days in a window of time-window compaction, of quarter hours, hours and days. About a thirtieth of the retention.
    pub window_days: [u32; 3],
}

impl Default for Layout {
    fn default() -> Self {
        let replication =
            "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}".to_owned();
        Self { replication, window_days: [3, 14, 30] }
    }
}

/// What leads from each version of the schema to the next. One that was released is never edited.
const MIGRATIONS: [fn(&Layout, Server) -> Vec<String>; 4] = [first, second, third, fourth];

/// The schema that was the first to list spans.
const LISTS_SPANS: i32 = 3;
/// Writers of the schema before may run for this long after a migration.
const REPLACED_WITHIN_DAYS: u32 = 7;

/// Asks a third copy when one of those that make a quorum keeps the others waiting. By their own measure, which is how
/// slow reads were of late, servers would wait for a second and more when a node has just been lost.
const READS_AGAIN: &str = "speculative_retry = '50ms'";

/// What kind of server it is. Options that only one of them knows are used with that one alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    Cassandra,
    Scylla,
}

/// What a migration did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    pub server: Server,
    pub from: i32,
    pub to: i32,
}

fn first(layout: &Layout, server: Server) -> Vec<String> {
    let mut statements = Vec::new();
    for (width, days) in ["minutely", "hourly", "daily"].iter().zip(layout.window_days) {
        let gc = match server {
            // Expired cells need no repair before they go: nothing is deleted that somebody could resurrect.
            Server::Scylla => " AND tombstone_gc = {'mode': 'timeout'}",
            Server::Cassandra => "",
        };
        statements.push(format!(
            "CREATE TABLE IF NOT EXISTS {width}_count_table (
                key text, {width}_timestamp timestamp, log_partition bigint, count bigint,
                PRIMARY KEY ((key), {width}_timestamp, log_partition)
             ) WITH CLUSTERING ORDER BY ({width}_timestamp DESC, log_partition ASC)
               AND compaction = {{'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'DAYS',
                                  'compaction_window_size': {days}}} AND {READS_AGAIN}{gc}"
        ));
    }
    statements.push(format!(
        "CREATE TABLE IF NOT EXISTS tile_table (key text, period int, tiles map<bigint, blob>, PRIMARY KEY ((key), period))
         WITH compaction = {{'class': 'LeveledCompactionStrategy'}} AND {READS_AGAIN}"
    ));
    statements.push(format!(
        "CREATE TABLE IF NOT EXISTS checkpoint_table
         (log text, log_partition int, position bigint, stamp bigint, state blob, PRIMARY KEY ((log), log_partition))
         WITH {READS_AGAIN}"
    ));
    statements.push(
        "CREATE TABLE IF NOT EXISTS key_table (counter int, shard int, key text, PRIMARY KEY ((counter, shard), key))
         WITH compaction = {'class': 'LeveledCompactionStrategy'}"
            .to_owned(),
    );
    statements.push(
        "CREATE TABLE IF NOT EXISTS lease_table (name text PRIMARY KEY, holder text)".to_owned(),
    );
    statements
}

/// Large states of writers, the settings that decide what is counted, and how far the backfill of each partition is.
fn second(_: &Layout, _: Server) -> Vec<String> {
    let states = "CREATE TABLE IF NOT EXISTS state_table (
                      log text, log_partition int, id bigint, chunk int, bytes blob,
                      PRIMARY KEY ((log, log_partition, id), chunk)
                  )";
    let settings = "CREATE TABLE IF NOT EXISTS settings_table (log text PRIMARY KEY, settings map<text, text>)";
    let progress = "CREATE TABLE IF NOT EXISTS progress_table (
                        log text, log_partition int, rank bigint, progress blob,
                        PRIMARY KEY ((log), log_partition)
                    )";
    [states, settings, progress].map(str::to_owned).to_vec()
}

/// The spans of a counter's keys side by side, so that its largest keys are found without reading each key.
fn third(_: &Layout, _: Server) -> Vec<String> {
    vec![format!(
        "CREATE TABLE IF NOT EXISTS span_table (
             counter int, list int, period int, key text, tiles map<bigint, blob>,
             PRIMARY KEY ((counter, list), period, key)
         ) WITH compaction = {{'class': 'LeveledCompactionStrategy'}} AND {READS_AGAIN}"
    )]
}

/// The dedupe windows of the partitions, in chunks that expire. Each is written once, so that nothing that has expired could
/// come back, and it may go at once.
fn fourth(_: &Layout, server: Server) -> Vec<String> {
    let gc = match server {
        Server::Scylla => " AND tombstone_gc = {'mode': 'timeout'}",
        Server::Cassandra => "",
    };
    vec![format!(
        "CREATE TABLE IF NOT EXISTS window_table (
             log text, log_partition int, rules bigint, chunk bigint, bytes blob,
             PRIMARY KEY ((log, log_partition, rules, chunk))
         ) WITH compaction = {{'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'HOURS',
                               'compaction_window_size': 6}}
           AND compression = {{'enabled': false}} AND gc_grace_seconds = 10800 AND {READS_AGAIN}{gc}"
    )]
}

/// Makes the keyspace and brings its tables up to the newest version. Running it again, or twice at once, changes nothing.
pub async fn migrate(options: &Options, layout: &Layout) -> Result<Migrated, Error> {
    check_keyspace(&options.keyspace)?;
    let session = connect(options).await?;
    let server = server(&session).await?;
    let keyspace = &options.keyspace;
    run(
        &session,
        &format!(
            "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {}",
            layout.replication
        ),
    )
    .await?;
    session.use_keyspace(keyspace, false).await.map_err(error::request)?;
    run(&session, "CREATE TABLE IF NOT EXISTS schema_version (id int PRIMARY KEY, version int)")
        .await?;
    session.await_schema_agreement().await.map_err(error::request)?;
    let from = version(&session, options).await?;
    if from > VERSION {
        return Err(Error::SchemaTooNew { place: options.place(), found: from, known: VERSION });
    }
    for (migration, number) in MIGRATIONS.iter().zip(1..).skip(from as usize) {
        for statement in migration(layout, server) {
            run(&session, &statement).await?;
        }
        session.await_schema_agreement().await.map_err(error::request)?;
        if number == LISTS_SPANS && from > 0 {
            let first = first_listed_after((crate::wall_s() / DAY_S) as u32);
            run(&session, &format!("INSERT INTO schema_version (id, version) VALUES (1, {first})"))
                .await?;
        }
        run(&session, &format!("INSERT INTO schema_version (id, version) VALUES (0, {number})"))
            .await?;
    }
    Ok(Migrated { server, from, to: VERSION })
}

/// Refuses a keyspace whose schema is not the one that this program knows.
pub async fn check(session: &Session, options: &Options) -> Result<(), Error> {
    let found = version(session, options).await?;
    if found > VERSION {
        return Err(Error::SchemaTooNew { place: options.place(), found, known: VERSION });
    }
    if found < VERSION {
        return Err(Error::SchemaTooOld { place: options.place(), found, needed: VERSION });
    }
    Ok(())
}

/// The first span that every writer lists, of a keyspace that had tiles before: one that begins when the last
/// writer of the schema before has been replaced.
fn first_listed_after(today: u32) -> u32 {
    (today + REPLACED_WITHIN_DAYS).div_ceil(TILE_CELLS)
}

/// The number of the first span that `span_table` holds for every key; 0 where it always did.
pub(crate) async fn spans_listed_from(session: &Session, options: &Options) -> Result<u32, Error> {
    let statement = format!("SELECT version FROM {}.schema_version WHERE id = 1", options.keyspace);
    let found = session.query_unpaged(statement, ()).await.map_err(error::request)?;
    let rows = found.into_rows_result().map_err(error::request)?;
    let row = rows.maybe_first_row::<(i32,)>().map_err(error::request)?;
    Ok(row.map_or(0, |(first,)| first as u32))
}

/// The version of the schema; 0 where there is none.
async fn version(session: &Session, options: &Options) -> Result<i32, Error> {
    let tables = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ? AND table_name = 'schema_version'";
    let known = session
        .query_unpaged(tables, (options.keyspace.to_lowercase(),))
        .await
        .map_err(error::request)?;
    if known.into_rows_result().map_err(error::request)?.rows_num() == 0 {
        return Ok(0);
    }
    let statement = format!("SELECT version FROM {}.schema_version WHERE id = 0", options.keyspace);
    let found = session.query_unpaged(statement, ()).await.map_err(error::request)?;
    let rows = found.into_rows_result().map_err(error::request)?;
    Ok(rows.maybe_first_row::<(i32,)>().map_err(error::request)?.map_or(0, |(version,)| version))
}

/// Scylla has system tables of its own.
pub(crate) async fn server(session: &Session) -> Result<Server, Error> {
    let statement = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'system_schema' \
                     AND table_name = 'scylla_tables'";
    let found = session.query_unpaged(statement, ()).await.map_err(error::request)?;
    let rows = found.into_rows_result().map_err(error::request)?;
    Ok(if rows.rows_num() > 0 { Server::Scylla } else { Server::Cassandra })
}

async fn run(session: &Session, statement: &str) -> Result<(), Error> {
    session.query_unpaged(statement, ()).await.map(drop).map_err(error::request)
}

/// A keyspace stands in statements as text, so that it may be no more than a name.
pub fn check_keyspace(name: &str) -> Result<(), Error> {
    let is_word = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    let begins = name.starts_with(|char: char| char.is_ascii_alphabetic());
    if is_word && begins && name.len() <= 48 {
        Ok(())
    } else {
        Err(Error::Keyspace(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_began_before_a_migration_are_not_listed() {
        let begins = |span: u32| span * TILE_CELLS;
        for today in 20_000..20_200 {
            let first = begins(first_listed_after(today));
            assert!(
                (today + REPLACED_WITHIN_DAYS..today + REPLACED_WITHIN_DAYS + TILE_CELLS)
                    .contains(&first)
            );
        }
    }

    #[test]
    fn what_only_scylla_knows_is_for_scylla_alone() {
        let text = |server| first(&Layout::default(), server).join("\n");
        assert!(text(Server::Scylla).contains("tombstone_gc"));
        assert!(!text(Server::Cassandra).contains("tombstone_gc"));
        for name in ["", "1a", "a-b", "a;b", "é"] {
            assert!(check_keyspace(name).is_err(), "{name}");
        }
        assert!(check_keyspace("raingauge_2").is_ok());
    }
}

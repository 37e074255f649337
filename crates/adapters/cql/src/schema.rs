//! The schema: what each version adds, and how a keyspace reaches the newest one.

pub use crate::options::Layout;
use crate::session::connect;
use crate::{Error, Options, error};
use raingauge_core::bucket::DAY_S;
use raingauge_core::tile::TILE_CELLS;
use scylla::client::session::Session;

/// The schema version that this program reads and writes.
pub const VERSION: i32 = MIGRATIONS.len() as i32;

/// The steps from each schema version to the next. A released step is never edited.
const MIGRATIONS: [fn(&Layout, Server) -> Vec<String>; 4] = [first, second, third, fourth];

/// The first schema version that lists spans.
const LISTS_SPANS: i32 = 3;
/// How long writers of the previous schema may run after a migration.
const REPLACED_WITHIN_DAYS: u32 = 7;

/// Sends a read to a third replica if one of the quorum is slow. The servers' own threshold follows
/// recent latencies, and would wait for more than a second after the loss of a node.
const READS_AGAIN: &str = "speculative_retry = '50ms'";

/// The kind of server. Options that only one kind knows are used with that kind alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    Cassandra,
    Scylla,
}

/// The result of a migration.
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
            // Nothing is deleted before it expires, so expired cells need no repair before they are
            // dropped.
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

/// Large states of writers, the settings that decide what is counted, and backfill progress.
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

/// The spans of a counter's keys side by side, so that its largest keys are found without reading
/// each.
fn third(_: &Layout, _: Server) -> Vec<String> {
    vec![format!(
        "CREATE TABLE IF NOT EXISTS span_table (
             counter int, list int, period int, key text, tiles map<bigint, blob>,
             PRIMARY KEY ((counter, list), period, key)
         ) WITH compaction = {{'class': 'LeveledCompactionStrategy'}} AND {READS_AGAIN}"
    )]
}

/// The dedupe windows of the partitions, in chunks that expire. Each is written once, so nothing
/// that expired could return, and tombstones may be dropped at once.
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

/// Creates the keyspace and brings its tables to the newest version. Idempotent, also when two
/// processes run it at once.
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

/// Refuses a keyspace whose schema version this program does not know.
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

/// The first span that every writer lists, in a keyspace that had tiles before: one that begins
/// after the last writer of the previous schema has been replaced.
fn first_listed_after(today: u32) -> u32 {
    (today + REPLACED_WITHIN_DAYS).div_ceil(TILE_CELLS)
}

/// Number of the first span that `span_table` holds for every key; 0 if it always did.
pub(crate) async fn spans_listed_from(session: &Session, options: &Options) -> Result<u32, Error> {
    let statement = format!("SELECT version FROM {}.schema_version WHERE id = 1", options.keyspace);
    let found = session.query_unpaged(statement, ()).await.map_err(error::request)?;
    let rows = found.into_rows_result().map_err(error::request)?;
    let row = rows.maybe_first_row::<(i32,)>().map_err(error::request)?;
    Ok(row.map_or(0, |(first,)| first as u32))
}

/// The schema version; 0 if there is no schema.
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

/// Scylla has system tables that Cassandra lacks.
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

/// A keyspace's name is inserted into statements as text, so it must be a plain identifier.
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

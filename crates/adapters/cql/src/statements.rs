//! The statements, prepared on the connection.

use crate::Options;
use raingauge_core::bucket::Granularity;
use scylla::client::execution_profile::ExecutionProfileHandle;
use scylla::client::session::Session;
use scylla::policies::speculative_execution::SimpleSpeculativeExecutionPolicy;
use scylla::statement::prepared::PreparedStatement;
use std::sync::Arc;

/// Rows in one page of a long result.
const PAGE_ROWS: i32 = 5_000;
/// Tile rows in one page.
const PAGE_TILES: i32 = 100;
/// Span rows in one page, each with a tile of every log partition.
const PAGE_SPANS: i32 = 2_000;

const TILES: &str = "SELECT period, tiles FROM tile_table WHERE key = ? AND period IN ?";
const ALL_TILES: &str = "SELECT period, tiles FROM tile_table WHERE key = ?";
const TILES_OF: &str = "SELECT key, period, tiles FROM tile_table WHERE key IN ? AND period IN ?";
const PUT_TILE: &str =
    "UPDATE tile_table USING TIMESTAMP ? AND TTL ? SET tiles[?] = ? WHERE key = ? AND period = ?";
const DELETE_TILE: &str =
    "DELETE tiles[?] FROM tile_table USING TIMESTAMP ? WHERE key = ? AND period = ?";
const SPANS: &str = "SELECT period, key, tiles FROM span_table
    WHERE counter = ? AND list = ? AND period >= ? AND period <= ?";
const PUT_SPAN: &str = "UPDATE span_table USING TIMESTAMP ? AND TTL ? SET tiles[?] = ?
    WHERE counter = ? AND list = ? AND period = ? AND key = ?";
const DELETE_SPAN: &str = "DELETE tiles[?] FROM span_table USING TIMESTAMP ?
    WHERE counter = ? AND list = ? AND period = ? AND key = ?";

/// Those of a count table, with `{table}` and its time column `{time}`.
const COUNTS: &str = "SELECT {time}, log_partition, count FROM {table}
    WHERE key = ? AND {time} >= ? AND {time} < ?";
const PUT_COUNT: &str = "INSERT INTO {table} (key, {time}, log_partition, count)
    VALUES (?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";
const DELETE_COUNT: &str = "DELETE FROM {table} USING TIMESTAMP ?
    WHERE key = ? AND {time} = ? AND log_partition = ?";

const CHECKPOINT: &str =
    "SELECT position, stamp, state, WRITETIME(position), WRITETIME(state) FROM checkpoint_table
    WHERE log = ? AND log_partition = ?";
const CHECKPOINTS: &str =
    "SELECT log_partition, position, WRITETIME(state) FROM checkpoint_table WHERE log = ?";
const PUT_CHECKPOINT: &str =
    "INSERT INTO checkpoint_table (log, log_partition, position, stamp, state)
    VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ?";
const PUT_POSITION: &str = "INSERT INTO checkpoint_table (log, log_partition, position, stamp)
    VALUES (?, ?, ?, ?) USING TIMESTAMP ?";
const PROGRESS: &str =
    "SELECT rank, progress FROM progress_table WHERE log = ? AND log_partition = ?";
const PUT_PROGRESS: &str = "INSERT INTO progress_table (log, log_partition, rank, progress)
    VALUES (?, ?, ?, ?) USING TIMESTAMP ?";
const PUT_STATE: &str = "INSERT INTO state_table (log, log_partition, id, chunk, bytes)
    VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ?";
const GET_STATE: &str =
    "SELECT bytes FROM state_table WHERE log = ? AND log_partition = ? AND id = ? AND chunk = ?";
const DELETE_STATE: &str =
    "DELETE FROM state_table USING TIMESTAMP ? WHERE log = ? AND log_partition = ? AND id = ?";
const CHUNK: &str = "SELECT bytes FROM window_table
    WHERE log = ? AND log_partition = ? AND rules = ? AND chunk = ?";
const PUT_CHUNK: &str = "INSERT INTO window_table (log, log_partition, rules, chunk, bytes)
    VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";

const KEYS: &str = "SELECT key FROM key_table WHERE counter = ? AND shard = ?";
const PUT_KEY: &str = "INSERT INTO key_table (counter, shard, key) VALUES (?, ?, ?)";
const DELETE_KEY: &str =
    "DELETE FROM key_table USING TIMESTAMP ? WHERE counter = ? AND shard = ? AND key = ?";

pub(crate) struct Statements {
    pub tiles: PreparedStatement,
    pub all_tiles: PreparedStatement,
    pub own_tiles: PreparedStatement,
    /// For several keys.
    pub tiles_of: PreparedStatement,
    pub put_tile: PreparedStatement,
    pub delete_tile: PreparedStatement,
    pub spans: PreparedStatement,
    pub put_span: PreparedStatement,
    pub delete_span: PreparedStatement,
    /// For each granularity.
    pub counts: [PreparedStatement; 3],
    pub put_count: [PreparedStatement; 3],
    pub delete_count: [PreparedStatement; 3],
    pub checkpoint: PreparedStatement,
    pub checkpoints: PreparedStatement,
    pub put_checkpoint: PreparedStatement,
    pub put_position: PreparedStatement,
    pub put_state: PreparedStatement,
    pub get_state: PreparedStatement,
    pub delete_state: PreparedStatement,
    pub progress: PreparedStatement,
    pub put_progress: PreparedStatement,
    pub chunk: PreparedStatement,
    pub put_chunk: PreparedStatement,
    pub keys: PreparedStatement,
    pub put_key: PreparedStatement,
    pub delete_key: PreparedStatement,
}

/// The table of a granularity, and its time column.
pub(crate) const fn table_of(granularity: Granularity) -> (&'static str, &'static str) {
    match granularity {
        Granularity::Quarter => ("minutely_count_table", "minutely_timestamp"),
        Granularity::Hour => ("hourly_count_table", "hourly_timestamp"),
        Granularity::Day => ("daily_count_table", "daily_timestamp"),
    }
}

impl Statements {
    pub async fn prepare(session: &Session, options: &Options) -> Result<Self, String> {
        let mut reads = options.profile(options.read_consistency);
        if !options.speculative_after.is_zero() {
            let policy = SimpleSpeculativeExecutionPolicy {
                max_retry_count: 1,
                retry_interval: options.speculative_after,
            };
            reads = reads.speculative_execution_policy(Some(Arc::new(policy)));
        }

        let reads = reads.build().into_handle();
        let own = options.profile(options.write_consistency).build().into_handle();

        // Every statement is idempotent, so the driver may retry it.
        let prepare = async |text: &str, profile: &ExecutionProfileHandle| {
            let mut prepared = session.prepare(text).await.map_err(|error| error.to_string())?;
            prepared.set_is_idempotent(true);
            prepared.set_page_size(PAGE_ROWS);
            prepared.set_execution_profile_handle(Some(profile.clone()));
            Ok::<_, String>(prepared)
        };

        let of_each = async |text: &str, profile: &ExecutionProfileHandle| {
            let [quarter, hour, day] = Granularity::ALL
                .map(table_of)
                .map(|(table, time)| text.replace("{table}", table).replace("{time}", time));
            Ok::<_, String>([
                prepare(&quarter, profile).await?,
                prepare(&hour, profile).await?,
                prepare(&day, profile).await?,
            ])
        };

        // A row holds a tile for each log partition and each generation.
        let mut all_tiles = prepare(ALL_TILES, &own).await?;
        all_tiles.set_page_size(PAGE_TILES);
        let mut spans = prepare(SPANS, &reads).await?;
        spans.set_page_size(PAGE_SPANS);

        Ok(Self {
            tiles: prepare(TILES, &reads).await?,
            own_tiles: prepare(TILES, &own).await?,
            tiles_of: prepare(TILES_OF, &reads).await?,
            all_tiles,
            put_tile: prepare(PUT_TILE, &own).await?,
            delete_tile: prepare(DELETE_TILE, &own).await?,
            spans,
            put_span: prepare(PUT_SPAN, &own).await?,
            delete_span: prepare(DELETE_SPAN, &own).await?,
            counts: of_each(COUNTS, &reads).await?,
            put_count: of_each(PUT_COUNT, &own).await?,
            delete_count: of_each(DELETE_COUNT, &own).await?,
            checkpoint: prepare(CHECKPOINT, &own).await?,
            checkpoints: prepare(CHECKPOINTS, &reads).await?,
            put_checkpoint: prepare(PUT_CHECKPOINT, &own).await?,
            put_position: prepare(PUT_POSITION, &own).await?,
            progress: prepare(PROGRESS, &own).await?,
            put_progress: prepare(PUT_PROGRESS, &own).await?,
            put_state: prepare(PUT_STATE, &own).await?,
            get_state: prepare(GET_STATE, &own).await?,
            delete_state: prepare(DELETE_STATE, &own).await?,
            chunk: prepare(CHUNK, &own).await?,
            put_chunk: prepare(PUT_CHUNK, &own).await?,
            keys: prepare(KEYS, &reads).await?,
            put_key: prepare(PUT_KEY, &own).await?,
            delete_key: prepare(DELETE_KEY, &own).await?,
        })
    }
}

//! The connection to the cluster, and the statements prepared on it.

use crate::datacenters;
use crate::schema;
use crate::{Error, Options, Tls, error};
use raingauge_core::bucket::Granularity;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use scylla::client::execution_profile::{ExecutionProfile, ExecutionProfileBuilder};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::speculative_execution::SimpleSpeculativeExecutionPolicy;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long opening a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Rows in one page of a long result.
const PAGE_ROWS: i32 = 5_000;
/// Tile rows in one page.
const PAGE_TILES: i32 = 100;
/// Span rows in one page, each with a tile of every log partition.
const PAGE_SPANS: i32 = 2_000;

/// The cluster, with all statements prepared.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) session: Arc<Session>,
    pub(crate) statements: Arc<Statements>,
    pub options: Arc<Options>,
    /// Limits the concurrent writes of all partitions together.
    pub(crate) writes: Arc<Semaphore>,
    /// Number of the first span that `span_table` holds for every key.
    pub(crate) spans_listed_from: u32,
}

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

impl Cluster {
    /// Connects, and checks the schema version. Does not wait for an unreachable cluster: the
    /// caller decides whether to try again.
    pub async fn connect(options: Options) -> Result<Self, Error> {
        schema::check_keyspace(&options.keyspace)?;
        let session = connect(&options).await?;
        schema::check(&session, &options).await?;
        datacenters::check(&session, &options).await?;

        let altered = |error| Error::Altered { place: options.place(), reason: error };
        session.use_keyspace(&options.keyspace, false).await.map_err(error::request)?;

        let statements = Statements::prepare(&session, &options).await.map_err(altered)?;
        let spans_listed_from = schema::spans_listed_from(&session, &options).await?;
        let writes = Arc::new(Semaphore::new(options.in_flight_max));
        let session = Arc::new(session);
        let statements = Arc::new(statements);

        let options = Arc::new(options);
        Ok(Self { session, statements, options, writes, spans_listed_from })
    }

    /// The session itself, for tests that look behind the store.
    #[doc(hidden)]
    pub fn session_for_tests(&self) -> Arc<Session> {
        Arc::clone(&self.session)
    }
}

/// Opens a session that reaches at least one node, without a keyspace.
pub(crate) async fn connect(options: &Options) -> Result<Session, Error> {
    let profile = profile(options, options.write_consistency).build();
    let mut builder = SessionBuilder::new()
        .known_nodes(&options.contact_points)
        .connection_timeout(CONNECT_TIMEOUT)
        .default_execution_profile_handle(profile.into_handle());

    if let (Some(user), Some(password)) = (&options.user, &options.password) {
        builder = builder.user(user, password);
    }

    if let Some(datacenter) = &options.datacenter {
        builder = builder.prefer_datacenter(datacenter.clone());
    }

    if let Some(tls) = &options.tls {
        builder = builder.tls_context(Some(tls_config(tls)?));
    }
    builder.build().await.map_err(|failure| {
        let place = options.contact_points.join(", ");
        let reason = failure.to_string();
        let is_refused = ["Authentication", "authentication", "credentials"]
            .iter()
            .any(|word| reason.contains(word));
        if is_refused { Error::Refused { place } } else { Error::Unreachable { place, reason } }
    })
}

fn profile(options: &Options, consistency: Consistency) -> ExecutionProfileBuilder {
    ExecutionProfile::builder()
        .consistency(consistency)
        .request_timeout(Some(options.request_timeout))
}

fn tls_config(tls: &Tls) -> Result<Arc<rustls::ClientConfig>, Error> {
    let unusable =
        |path: &Path, reason: String| Error::Tls(format!("{}: {reason}", path.display()));
    let certificates = |path: &Path| -> Result<Vec<CertificateDer<'static>>, Error> {
        let read = CertificateDer::pem_file_iter(path).and_then(|found| found.collect());
        read.map_err(|error| unusable(path, error.to_string()))
    };
    let mut roots = rustls::RootCertStore::empty();

    for certificate in certificates(&tls.ca)? {
        roots.add(certificate).map_err(|error| unusable(&tls.ca, error.to_string()))?;
    }
    let builder = rustls::ClientConfig::builder().with_root_certificates(roots);
    let config = match &tls.certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let private = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| unusable(key, error.to_string()))?;
            let config = builder.with_client_auth_cert(certificates(certificate)?, private);
            config.map_err(|error| unusable(certificate, error.to_string()))?
        }
    };

    Ok(Arc::new(config))
}

impl Statements {
    async fn prepare(session: &Session, options: &Options) -> Result<Self, String> {
        let mut reads = profile(options, options.read_consistency);
        if !options.speculative_after.is_zero() {
            let policy = SimpleSpeculativeExecutionPolicy {
                max_retry_count: 1,
                retry_interval: options.speculative_after,
            };
            reads = reads.speculative_execution_policy(Some(Arc::new(policy)));
        }

        let reads = reads.build().into_handle();
        let own = profile(options, options.write_consistency).build().into_handle();

        // Every statement is idempotent, so the driver may retry it.
        let prepare = async |text: String, is_read: bool| {
            let mut prepared = session.prepare(text).await.map_err(|error| error.to_string())?;
            prepared.set_is_idempotent(true);
            prepared.set_page_size(PAGE_ROWS);
            prepared.set_execution_profile_handle(Some(if is_read {
                reads.clone()
            } else {
                own.clone()
            }));

            Ok::<_, String>(prepared)
        };

        let of_each = async |text: &dyn Fn(&str, &str) -> String, is_read| {
            let [quarter, hour, day] =
                Granularity::ALL.map(table_of).map(|(table, column)| text(table, column));
            Ok::<_, String>([
                prepare(quarter, is_read).await?,
                prepare(hour, is_read).await?,
                prepare(day, is_read).await?,
            ])
        };

        let text = |text: &str| text.to_owned();
        const TILES: &str = "SELECT period, tiles FROM tile_table WHERE key = ? AND period IN ?";

        // A row holds a tile for each log partition and each generation.
        let mut all_tiles =
            prepare(text("SELECT period, tiles FROM tile_table WHERE key = ?"), false).await?;
        all_tiles.set_page_size(PAGE_TILES);
        const SPANS: &str = "SELECT period, key, tiles FROM span_table
                             WHERE counter = ? AND list = ? AND period >= ? AND period <= ?";

        let mut spans = prepare(text(SPANS), true).await?;
        spans.set_page_size(PAGE_SPANS);
        Ok(Self {
            tiles: prepare(text(TILES), true).await?,
            own_tiles: prepare(text(TILES), false).await?,
            tiles_of: prepare(text("SELECT key, period, tiles FROM tile_table WHERE key IN ? AND period IN ?"), true)
                .await?,
            all_tiles,
            put_tile: prepare(
                text("UPDATE tile_table USING TIMESTAMP ? AND TTL ? SET tiles[?] = ? WHERE key = ? AND period = ?"),
                false,
            )
            .await?,
            delete_tile: prepare(
                text("DELETE tiles[?] FROM tile_table USING TIMESTAMP ? WHERE key = ? AND period = ?"),
                false,
            )
            .await?,
            spans,
            put_span: prepare(
                text(
                    "UPDATE span_table USING TIMESTAMP ? AND TTL ? SET tiles[?] = ?
                     WHERE counter = ? AND list = ? AND period = ? AND key = ?",
                ),
                false,
            )
            .await?,
            delete_span: prepare(
                text(
                    "DELETE tiles[?] FROM span_table USING TIMESTAMP ?
                     WHERE counter = ? AND list = ? AND period = ? AND key = ?",
                ),
                false,
            )
            .await?,
            counts: of_each(
                &|table, time| {
                    format!(
                        "SELECT {time}, log_partition, count FROM {table} WHERE key = ? AND {time} >= ? AND {time} < ?"
                    )
                },
                true,
            )
            .await?,
            put_count: of_each(
                &|table, time| {
                    format!(
                        "INSERT INTO {table} (key, {time}, log_partition, count) VALUES (?, ?, ?, ?)
                         USING TIMESTAMP ? AND TTL ?"
                    )
                },
                false,
            )
            .await?,
            delete_count: of_each(
                &|table, time| {
                    format!("DELETE FROM {table} USING TIMESTAMP ? WHERE key = ? AND {time} = ? AND log_partition = ?")
                },
                false,
            )
            .await?,
            checkpoint: prepare(
                text(
                    "SELECT position, stamp, state, WRITETIME(position), WRITETIME(state) FROM checkpoint_table
                     WHERE log = ? AND log_partition = ?",
                ),
                false,
            )
            .await?,
            checkpoints: prepare(
                text("SELECT log_partition, position, WRITETIME(state) FROM checkpoint_table WHERE log = ?"),
                true,
            )
            .await?,
            put_checkpoint: prepare(
                text(
                    "INSERT INTO checkpoint_table (log, log_partition, position, stamp, state) VALUES (?, ?, ?, ?, ?)
                     USING TIMESTAMP ?",
                ),
                false,
            )
            .await?,
            put_position: prepare(
                text(
                    "INSERT INTO checkpoint_table (log, log_partition, position, stamp) VALUES (?, ?, ?, ?)
                     USING TIMESTAMP ?",
                ),
                false,
            )
            .await?,
            progress: prepare(
                text("SELECT rank, progress FROM progress_table WHERE log = ? AND log_partition = ?"),
                false,
            )
            .await?,
            put_progress: prepare(
                text(
                    "INSERT INTO progress_table (log, log_partition, rank, progress) VALUES (?, ?, ?, ?)
                     USING TIMESTAMP ?",
                ),
                false,
            )
            .await?,
            put_state: prepare(
                text(
                    "INSERT INTO state_table (log, log_partition, id, chunk, bytes) VALUES (?, ?, ?, ?, ?)
                     USING TIMESTAMP ?",
                ),
                false,
            )
            .await?,
            get_state: prepare(
                text("SELECT bytes FROM state_table WHERE log = ? AND log_partition = ? AND id = ? AND chunk = ?"),
                false,
            )
            .await?,
            delete_state: prepare(
                text("DELETE FROM state_table USING TIMESTAMP ? WHERE log = ? AND log_partition = ? AND id = ?"),
                false,
            )
            .await?,
            chunk: prepare(
                text("SELECT bytes FROM window_table WHERE log = ? AND log_partition = ? AND rules = ? AND chunk = ?"),
                false,
            )
            .await?,
            put_chunk: prepare(
                text(
                    "INSERT INTO window_table (log, log_partition, rules, chunk, bytes) VALUES (?, ?, ?, ?, ?)
                     USING TIMESTAMP ? AND TTL ?",
                ),
                false,
            )
            .await?,
            keys: prepare(text("SELECT key FROM key_table WHERE counter = ? AND shard = ?"), true).await?,
            put_key: prepare(text("INSERT INTO key_table (counter, shard, key) VALUES (?, ?, ?)"), false).await?,
            delete_key: prepare(
                text("DELETE FROM key_table USING TIMESTAMP ? WHERE counter = ? AND shard = ? AND key = ?"),
                false,
            )
            .await?,
        })
    }
}

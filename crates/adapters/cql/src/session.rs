//! The connection to the cluster.

use crate::datacenters;
use crate::schema;
use crate::statements::Statements;
use crate::{Error, Options, Tls, error};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long opening a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

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
    let profile = options.profile(options.write_consistency).build();
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

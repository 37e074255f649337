//! New connections, to addresses that were checked.

use crate::guard::is_public;
use crate::resolve::Resolver;
use hyper::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use raingauge_ports::campaigns::sender::SendError;
use rustls_pki_types::ServerName;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower_service::Service;

/// Longest wait for one address of a name, before the next one is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection in the clear or by TLS.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Connection for Box<dyn Stream> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

#[derive(Clone)]
pub struct Connector {
    pub resolver: Arc<dyn Resolver>,
    pub tls: TlsConnector,
    /// Whether addresses may be private.
    pub allow_private: bool,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Box<dyn Stream>>;
    type Error = SendError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, SendError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.connect(&uri).await.map(TokioIo::new) })
    }
}

impl Connector {
    async fn connect(&self, uri: &Uri) -> Result<Box<dyn Stream>, SendError> {
        let host = uri.host().ok_or(SendError::Address)?.trim_matches(['[', ']']);
        let is_tls = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let unreachable = |error: io::Error| SendError::Unreachable {
            host: host.to_owned(),
            why: error.to_string(),
        };

        let addresses = self.addresses(host).await?;
        let stream = first_that_answers(&addresses, port).await.map_err(unreachable)?;
        // A request is written at once, and nothing follows that it could wait for.
        stream.set_nodelay(true).map_err(unreachable)?;

        if !is_tls {
            return Ok(Box::new(stream));
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|_| SendError::Address)?;
        let stream = self.tls.connect(name, stream).await.map_err(unreachable)?;
        Ok(Box::new(stream))
    }

    /// The addresses of a host that requests may be sent to.
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, SendError> {
        let unresolved = |why: String| SendError::Unreachable { host: host.to_owned(), why };
        let found = match host.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => {
                let found = self.resolver.resolve(host).await;
                found.map_err(|error| unresolved(format!("its name is not found: {error}")))?
            }
        };

        let is_allowed = |address: &IpAddr| self.allow_private || is_public(*address);
        let allowed: Vec<IpAddr> = found.iter().copied().filter(is_allowed).collect();
        match found.first() {
            Some(address) if allowed.is_empty() => {
                Err(SendError::Private { host: host.to_owned(), address: address.to_string() })
            }
            Some(_) => Ok(allowed),
            None => Err(unresolved("its name has no address".to_owned())),
        }
    }
}

/// Connects to the first of at least one address that answers.
async fn first_that_answers(addresses: &[IpAddr], port: u16) -> io::Result<TcpStream> {
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        let connecting = TcpStream::connect((*address, port));
        match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failure = error,
            Err(_) => failure = io::Error::from(io::ErrorKind::TimedOut),
        }
    }
    Err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_ports::BoxFuture;

    /// Answers every name with these addresses.
    struct Fixed(Vec<IpAddr>);

    impl Resolver for Fixed {
        fn resolve<'a>(&'a self, _host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            Box::pin(std::future::ready(Ok(self.0.clone())))
        }
    }

    #[tokio::test]
    async fn of_several_addresses_only_the_public_ones_are_tried() {
        let all = ["10.0.0.1", "1.1.1.1", "::1", "2606:4700::1111"];
        let all: Vec<IpAddr> = all.map(|text| text.parse().expect("an address")).into();
        let tls = crate::roots::tls(None).expect("authorities");
        let resolver = Arc::new(Fixed(all.clone()));
        let guarded = Connector { resolver, tls, allow_private: false };
        let open = Connector { allow_private: true, ..guarded.clone() };

        assert_eq!(guarded.addresses("mixed.example").await, Ok(vec![all[1], all[3]]));
        assert_eq!(open.addresses("mixed.example").await, Ok(all));
    }
}

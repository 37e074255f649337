//! Options of connections that a door has accepted.

use rustix::net::sockopt;
use std::time::Duration;
use tokio::net::TcpStream;

/// TCP keepalive: the silence before the first probe, the interval between probes, and the
/// unanswered probes after which the kernel ends the connection.
pub const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 4;

/// Sends small responses without delay, and lets the kernel detect peers that are gone.
pub fn set_options(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    // A connection without these options works too, within its time limits.
    let _ = sockopt::set_socket_keepalive(stream, true)
        .and_then(|()| sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE))
        .and_then(|()| sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL))
        .and_then(|()| sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn the_kernel_looks_for_peers_that_are_gone() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let _peer = TcpStream::connect(address).await.expect("a connection");
        let (stream, _) = listener.accept().await.expect("a connection");

        set_options(&stream);
        assert_eq!(sockopt::socket_keepalive(&stream), Ok(true));
        assert_eq!(sockopt::tcp_keepidle(&stream), Ok(KEEPALIVE_IDLE));
        assert_eq!(sockopt::tcp_keepintvl(&stream), Ok(KEEPALIVE_INTERVAL));
        assert_eq!(sockopt::tcp_keepcnt(&stream), Ok(KEEPALIVE_PROBES));
        assert!(stream.nodelay().expect("an option"));
    }
}

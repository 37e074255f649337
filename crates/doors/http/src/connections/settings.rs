//! The settings of the doors.

use super::tls::Files;
use core::time::Duration;
use raingauge_settings::{Reader, settings};
use std::net::SocketAddr;
use std::path::PathBuf;

settings! {
    pub struct Settings in "server" checked by Settings::check {
        /// Address and port of the HTTP door; port 0 takes a free one, and an address that is not
        /// loopback needs a token, or auth.required.
        listen: SocketAddr = address("127.0.0.1:8080");
        /// Address and port of the gRPC door; empty for none, port 0 takes a free one, and an
        /// address that is not loopback needs a token, or auth.required.
        grpc_listen: Option<SocketAddr> = address("");
        /// Longest wait for requests in flight when the server stops.
        drain_timeout as "drain_timeout_s": Duration = seconds(10, 1..=3_600);
        /// How long a process whose counting has failed stays, with /readyz red, before it ends
        /// with an error.
        failure_grace as "failure_grace_s": Duration = seconds(5, 0..=3_600);
        /// Most connections that each door has open at once; further ones are answered health
        /// checks, and 503.
        connections_max: usize = whole(10_000, 1..=1_000_000, "connections");
        /// Most connections that each door has open from one address; a proxy in front of it is one
        /// address.
        connections_per_address_max: usize = whole(1_000, 1..=1_000_000, "connections");
        /// Longest time from the first byte of a request, or from the beginning of a connection, to
        /// the end of its head.
        head_timeout as "head_timeout_s": Duration = seconds(10, 1..=3_600);
        /// How long a connection stays open without a request; longer than a proxy in front keeps
        /// its own connections open.
        idle_timeout as "idle_timeout_s": Duration = seconds(75, 1..=86_400);
        /// Longest time in which a client takes fewer than 16 KiB of an answer that waits for it.
        write_timeout as "write_timeout_s": Duration = seconds(30, 1..=3_600);
        /// Certificate of both doors with its chain, PEM; read again when it changes, and empty for
        /// no TLS.
        tls_certificate: Option<PathBuf> = text("");
        /// Private key of the certificate, PEM.
        tls_key: Option<PathBuf> = text("");
        /// Authority of the certificates that clients must have, PEM; empty when they need none.
        tls_client_ca: Option<PathBuf> = text("");
        /// Whether addresses that are not loopback may be served without TLS, on a network to which
        /// nobody else listens.
        plaintext: bool = switch(false);
        /// Largest request body, measured after gzip is undone.
        body_bytes_max: usize = bytes(32 * MIB, 64 * KIB..=GIB);
        /// Longest time that one request may take.
        request_timeout as "request_timeout_s": Duration = seconds(30, 1..=3_600);
    } with {
        /// The files of TLS; `None` when the doors do without it.
        tls: Option<Files> = None;
    }
}

impl Settings {
    fn check(&mut self, reader: &mut Reader) {
        let (given, missing) = match (&self.tls_certificate, &self.tls_key, &self.tls_client_ca) {
            (Some(certificate), Some(key), client_ca) => {
                self.tls = Some(Files {
                    certificate: certificate.clone(),
                    key: key.clone(),
                    client_ca: client_ca.clone(),
                });
                return;
            }
            (None, None, None) => return,
            (Some(_), None, _) => ("server.tls_certificate", "server.tls_key"),
            (None, Some(_), _) => ("server.tls_key", "server.tls_certificate"),
            (None, None, Some(_)) => {
                ("server.tls_client_ca", "server.tls_certificate and server.tls_key")
            }
        };

        let message = format!("{given} is given without {missing}");
        reader.refuse(given, message, format!("Give {missing} too, or neither"));
    }
}

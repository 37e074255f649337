//! The settings of the result cache in Redis.

use crate::options::{Identity, Options, Tls};
use core::time::Duration;
use raingauge_settings::settings;
use std::io;
use std::path::{Path, PathBuf};

settings! {
    pub struct Settings in "cache" {
        /// Where Redis is: redis://user:password@host:port, with commas; rediss:// for TLS. Of a
        /// cluster, some of its nodes.
        urls as "redis_urls": Vec<String> = secret();
        /// Whether that is a Redis Cluster.
        is_cluster as "redis_cluster": bool = one_of(&["no", "yes"]);
        /// Longest wait for Redis; counts are then read from storage.
        timeout as "redis_timeout_ms": Duration = millis(20, 1..=10_000);
        /// Certificate authority of Redis, PEM; empty for those that the machine trusts.
        ca_file as "redis_ca_file": Option<PathBuf> = text("");
        /// Own certificate for TLS, PEM, where Redis asks for one.
        certificate_file as "redis_certificate_file": Option<PathBuf> = text("");
        /// Key of that certificate, PEM.
        key_file as "redis_key_file": Option<PathBuf> = text("");
    }
}

impl Settings {
    /// Reads the certificates.
    pub fn options(&self, clock_factor: u32) -> io::Result<Options> {
        let authority = self.ca_file.as_deref().map(read).transpose()?;
        let identity = match (&self.certificate_file, &self.key_file) {
            (Some(certificate), Some(key)) => {
                Some(Identity { certificate: read(certificate)?, key: read(key)? })
            }
            _ => None,
        };

        let has_tls = authority.is_some() || identity.is_some();
        Ok(Options {
            urls: self.urls.clone(),
            cluster: self.is_cluster,
            tls: has_tls.then_some(Tls { authority, identity }),
            timeout: self.timeout,
            clock_factor,
        })
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let explained = |error: io::Error| {
        io::Error::new(error.kind(), format!("{} cannot be read: {error}", path.display()))
    };
    std::fs::read(path).map_err(explained)
}

//! The servers that are measured.

use anyhow::{Context, Result, anyhow};
use raingauge_resp_client::{Address, Connection};
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// A server with the name that it has in tables and figures, as in `redis=127.0.0.1:6379`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    pub address: Address,
}

impl FromStr for Named {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, address) =
            text.split_once('=').ok_or_else(|| anyhow!("{text:?} is not NAME=HOST:PORT"))?;
        Ok(Self { name: name.to_owned(), address: address.parse()? })
    }
}

impl Named {
    pub fn connect(&self) -> Result<Connection> {
        Ok(Connection::open(&self.address)?)
    }

    pub fn socket(&self) -> Result<SocketAddr> {
        let Address { host, port, .. } = &self.address;
        let mut found = (host.as_str(), *port).to_socket_addrs()?;
        found.next().with_context(|| format!("{host} has no address"))
    }

    /// A line of INFO; `None` where the server has none of this name.
    pub fn info(&self, field: &str) -> Result<Option<String>> {
        let answer = self.connect()?.done(&[b"INFO"])?;
        let text = String::from_utf8_lossy(answer.bytes().unwrap_or_default()).into_owned();
        let value = |line: &str| {
            let (name, value) = line.trim_end().split_once(':')?;
            (name.trim_start_matches("txt") == field).then(|| value.to_owned())
        };
        Ok(text.lines().find_map(value))
    }

    /// Resident memory of the server's process, if INFO says so, in bytes.
    pub fn memory_bytes(&self) -> Result<Option<u64>> {
        Ok(self.info("used_memory_rss")?.and_then(|text| text.parse().ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_a_name_and_an_address() {
        let named: Named = "redis=127.0.0.1:6379".parse().unwrap();
        assert_eq!((named.name.as_str(), named.address.port), ("redis", 6379));
        assert!("127.0.0.1:6379".parse::<Named>().is_err());
        assert!("redis=nowhere:x".parse::<Named>().is_err());
    }
}

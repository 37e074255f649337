//! Addresses of servers, as `redis://` URLs.

use crate::Error;
use percent_encoding::percent_decode_str;
use std::fmt;
use std::str::FromStr;

const PORT: u16 = 6379;

/// Where a server listens, and how to sign in.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub host: String,
    pub port: u16,
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: u32,
}

impl Address {
    /// A server on this machine, without a password.
    pub fn local(port: u16) -> Self {
        let host = "127.0.0.1".to_owned();
        Self { host, port, user: None, password: None, database: 0 }
    }
}

impl FromStr for Address {
    type Err = Error;

    /// Parses `redis://[[user]:password@]host[:port][/database]`, or `host:port`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::Address(text.to_owned());
        let rest = match text.split_once("://") {
            Some(("redis", rest)) => rest,
            Some(_) => return Err(wrong()),
            None => text,
        };

        let (place, database) = match rest.trim_end_matches('/').split_once('/') {
            Some((place, number)) => (place, number.parse().map_err(|_| wrong())?),
            None => (rest.trim_end_matches('/'), 0),
        };
        let (login, place) = match place.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, place),
        };

        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
            None => (place, PORT),
        };
        if host.is_empty() {
            return Err(wrong());
        }

        let decoded = |part: &str| {
            let text = percent_decode_str(part).decode_utf8().map_err(|_| wrong())?;
            Ok::<_, Error>(Some(text.into_owned()).filter(|text| !text.is_empty()))
        };
        let (user, password) = match login.map(|login| login.split_once(':')) {
            None => (None, None),
            Some(Some((user, password))) => (decoded(user)?, decoded(password)?),
            Some(None) => return Err(wrong()),
        };

        Ok(Self { host: host.to_owned(), port, user, password, database })
    }
}

/// Without the password.
impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "redis://{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_shown_without_their_password() {
        let address: Address = "redis://me:p%40ss@example.org:7000/3".parse().unwrap();
        assert_eq!(
            (address.host.as_str(), address.port, address.database),
            ("example.org", 7000, 3)
        );
        assert_eq!(
            (address.user.as_deref(), address.password.as_deref()),
            (Some("me"), Some("p@ss"))
        );
        assert_eq!(format!("{address} {address:?}").matches("ss").count(), 0);

        assert_eq!("127.0.0.1:6380".parse::<Address>().unwrap(), Address::local(6380));
        assert_eq!("redis://localhost".parse::<Address>().unwrap().port, PORT);
        assert_eq!("redis://:secret@localhost".parse::<Address>().unwrap().user, None);

        for wrong in ["rediss://a:1", "redis://", "redis://a:b", "redis://a:1/x", "redis://u@a:1"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}

//! Connection options for a MySQL server.

use super::fault::Faults;
use crate::database::Unavailable;
use raingauge_settings::settings;
use sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

const SCHEME: &str = "mysql://";
/// Parameters allowed in the query of an address. The driver ignores unknown ones, and a misspelt,
/// ignored `ssl-mode` would leave the connection readable to anyone on the network.
const PARAMETERS: [&str; 5] = ["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "socket"];

/// Most prepared statements of a connection. Books of points have one for each power of two of
/// rows.
const STATEMENTS_MAX: usize = 256;

/// Whether the connection is encrypted, and what is verified of the server. The names are those of
/// MySQL's clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MySqlTls {
    Disabled,
    /// Encrypted if the server supports it, never verified: the default of MySQL's clients.
    Preferred,
    /// Always encrypted, but the server is not verified.
    Required,
    /// The certificate of the server must come from a trusted authority.
    VerifyCa,
    /// Like `VerifyCa`, and the certificate must also match the host in the address.
    VerifyIdentity,
}

impl MySqlTls {
    fn mode(self) -> MySqlSslMode {
        match self {
            Self::Disabled => MySqlSslMode::Disabled,
            Self::Preferred => MySqlSslMode::Preferred,
            Self::Required => MySqlSslMode::Required,
            Self::VerifyCa => MySqlSslMode::VerifyCa,
            Self::VerifyIdentity => MySqlSslMode::VerifyIdentity,
        }
    }
}

settings! {
    pub struct Settings in "mysql" {
        /// Database of the catalog: mysql://user:password@host:port/database, with
        /// ?ssl-mode=VERIFY_CA&ssl-ca=FILE for TLS.
        url: String = secret();
    }
}

/// Where the catalog is, and how long it may take to answer.
#[derive(Clone)]
pub struct MySqlOptions {
    /// `mysql://user:password@host:port/database`, with the user and the password percent-encoded,
    /// and after a question mark any of `ssl-mode`, `ssl-ca`, `ssl-cert`, `ssl-key` and `socket`.
    pub url: String,
    /// Overrides the `ssl-mode` of the address.
    pub tls: Option<MySqlTls>,
    /// A PEM file with authorities to trust in addition to those of the system. Overrides the
    /// `ssl-ca` of the address.
    pub ca_path: Option<PathBuf>,
    /// Most concurrent connections. The catalog is rarely read: every role holds a copy in memory.
    pub connections_max: u32,
    /// Longest time until a new connection can be used.
    pub connect_timeout: Duration,
    /// Longest time of one call, including connecting and waiting for other changes.
    pub call_timeout: Duration,
}

impl MySqlOptions {
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            tls: None,
            ca_path: None,
            connections_max: 4,
            connect_timeout: Duration::from_secs(3),
            call_timeout: Duration::from_secs(10),
        }
    }

    /// Returns the driver's options and the explainer of its errors. No message quotes the address:
    /// a part that looks harmless may be half of a password that was not encoded.
    pub(crate) fn prepare(&self) -> Result<(MySqlConnectOptions, Faults), Unavailable> {
        let wrong = |sentence: &str| {
            Err(Unavailable(format!("the address of the MySQL server {sentence}")))
        };
        if !self.url.starts_with(SCHEME) {
            return wrong("begins with mysql://, and the one that is set does not");
        }

        if self.parameters().any(|name| !PARAMETERS.contains(&name)) {
            return wrong(
                "has a parameter other than ssl-mode, ssl-ca, ssl-cert, ssl-key and socket (a ? in a password is \
                 written %3F)",
            );
        }

        let Ok(mut connect) = self.url.parse::<MySqlConnectOptions>() else {
            return wrong(
                "cannot be read: it is mysql://user:password@host:port/database, with special characters of the \
                 password percent-encoded, and its ssl-mode is disabled, preferred, required, verify_ca or \
                 verify_identity",
            );
        };

        connect = connect.statement_cache_capacity(STATEMENTS_MAX);
        let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '@', ':']);
        let Some(database) = connect.get_database().filter(|name| is_name(name)).map(str::to_owned)
        else {
            return wrong(
                "names no database: it is mysql://user:password@host:port/database, with special characters of the \
                 password percent-encoded",
            );
        };

        if let Some(tls) = self.tls {
            connect = connect.ssl_mode(tls.mode());
        }

        if let Some(path) = &self.ca_path {
            connect = connect.ssl_ca(path);
        }
        self.check_authority(&connect)?;

        let place = match connect.get_socket() {
            Some(path) => format!("{}, database {database}", path.display()),
            None => format!("{}:{}, database {database}", connect.get_host(), connect.get_port()),
        };
        Ok((connect, Faults::of(place)))
    }

    /// Refuses authorities that would never be consulted, since the check would only seem to
    /// happen.
    fn check_authority(&self, connect: &MySqlConnectOptions) -> Result<(), Unavailable> {
        let is_set = self.ca_path.is_some() || self.parameters().any(|name| name == "ssl-ca");
        let is_asked =
            matches!(connect.get_ssl_mode(), MySqlSslMode::VerifyCa | MySqlSslMode::VerifyIdentity);
        if is_set && !is_asked {
            return Err(Unavailable(
                "a certificate authority is set for the MySQL server, and its certificate is not checked: choose \
                 ssl-mode verify_ca or verify_identity"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    fn parameters(&self) -> impl Iterator<Item = &str> {
        let query = self.url.split_once('?').map_or("", |(_, query)| query);
        query
            .split('&')
            .filter(|parameter| !parameter.is_empty())
            .map(|parameter| parameter.split_once('=').map_or(parameter, |(name, _)| name))
    }
}

/// Omits the address, which contains a password.
impl fmt::Debug for MySqlOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MySqlOptions")
            .field("tls", &self.tls)
            .field("ca_path", &self.ca_path)
            .field("connections_max", &self.connections_max)
            .field("connect_timeout", &self.connect_timeout)
            .field("call_timeout", &self.call_timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(options: &MySqlOptions) -> String {
        options.prepare().map(drop).unwrap_err().0
    }

    #[test]
    fn an_address_says_where_without_the_password() {
        let options = MySqlOptions::new(
            "mysql://rain:s3%40cret@db.example:3307/raingauge?ssl-mode=verify_ca",
        );
        let (connect, faults) = options.prepare().unwrap();
        assert_eq!(
            (connect.get_host(), connect.get_port(), connect.get_username()),
            ("db.example", 3307, "rain")
        );
        assert!(matches!(connect.get_ssl_mode(), MySqlSslMode::VerifyCa));

        let sentence = faults.refuse("x").0;
        assert!(sentence.contains("db.example:3307, database raingauge"), "{sentence}");
        assert!(
            !sentence.contains("s3") && !format!("{options:?}{faults:?}").contains("s3"),
            "{sentence}"
        );

        let options = MySqlOptions { tls: Some(MySqlTls::Required), ..options };
        assert!(matches!(options.prepare().unwrap().0.get_ssl_mode(), MySqlSslMode::Required));
    }

    #[test]
    fn a_wrong_address_is_refused_and_never_quoted() {
        for (url, sentence) in [
            ("postgres://rain:12345@h/d", "begins with mysql://"),
            ("mysql://rain:12345@h:port/d", "cannot be read"),
            ("mysql://rain:12345@h:3306/d?ssl-mode=strict", "cannot be read"),
            ("mysql://rain:12345@h:3306", "names no database"),
            ("mysql://rain:12345@h:3306/", "names no database"),
            // A password with a character that ends its part of the address.
            ("mysql://rain:12345/6@h:3306/d", "names no database"),
            ("mysql://rain:12345#6@h:3306/d", "names no database"),
            ("mysql://rain:12345?6@h:3306/d", "has a parameter other than"),
            ("mysql://rain:12345@h:3306/d?sslmode=required", "has a parameter other than"),
        ] {
            let refusal = refusal(&MySqlOptions::new(url));
            assert!(refusal.contains(sentence), "{url}: {refusal}");
            assert!(!refusal.contains("1234"), "{url}: {refusal}");
        }
    }

    #[test]
    fn an_authority_that_is_not_asked_is_refused() {
        let url = "mysql://rain:12345@h:3306/d";
        let with =
            |tls| MySqlOptions { tls, ca_path: Some("ca.pem".into()), ..MySqlOptions::new(url) };
        assert!(
            refusal(&with(None))
                .contains("is not checked: choose ssl-mode verify_ca or verify_identity")
        );
        assert!(refusal(&with(Some(MySqlTls::Required))).contains("is not checked"));
        assert!(
            refusal(&MySqlOptions::new(format!("{url}?ssl-ca=ca.pem"))).contains("is not checked")
        );
        assert!(with(Some(MySqlTls::VerifyCa)).prepare().is_ok());
    }
}

//! Explains MySQL errors to operators, and what they can do.

use crate::database::Unavailable;
use sqlx::mysql::MySqlDatabaseError;
use std::io;
use std::time::Duration;

const NO_TLS: &str = "no encrypted connection came about: look at ssl-mode and ssl-ca";

/// Explains the errors of one database.
#[derive(Clone, Debug)]
pub struct Faults {
    /// Host, port and database; nothing secret.
    place: String,
}

impl Faults {
    pub fn of(place: String) -> Self {
        Self { place }
    }

    pub fn explain(&self, error: sqlx::Error) -> Unavailable {
        let sentence = match &error {
            sqlx::Error::Database(refusal) => match number(&error).and_then(sentence_of) {
                Some(sentence) => format!("{sentence} ({})", refusal.message()),
                None => refusal.to_string(),
            },
            sqlx::Error::Io(error) => format!("{} ({error})", sentence_of_io(error)),
            sqlx::Error::Tls(error) => format!("{NO_TLS} ({error})"),
            _ => error.to_string(),
        };
        self.refuse(&sentence)
    }

    /// Explains an error during a commit. When the connection breaks then, it is unknown whether
    /// the change was committed.
    pub fn explain_commit(&self, error: sqlx::Error) -> Unavailable {
        match error {
            sqlx::Error::Database(_) => self.explain(error),
            _ => self.uncertain(),
        }
    }

    pub fn uncertain(&self) -> Unavailable {
        self.refuse(
            "the connection broke while a change was being saved, and it may have been saved or not: read it again \
             before you repeat it",
        )
    }

    pub fn too_slow(&self, waited: Duration) -> Unavailable {
        self.refuse(&format!(
            "it did not answer within {} ms: see whether it runs and can be reached",
            waited.as_millis()
        ))
    }

    /// Returns an error about the database with this sentence.
    pub fn refuse(&self, sentence: &str) -> Unavailable {
        Unavailable(format!("MySQL at {}: {sentence}", self.place))
    }
}

/// The error number, if the error comes from the server.
pub fn number(error: &sqlx::Error) -> Option<u16> {
    Some(error.as_database_error()?.try_downcast_ref::<MySqlDatabaseError>()?.number())
}

/// Whether the transaction met another one: a row is there already (1062), both waited for each
/// other (1213), or MariaDB found a row that changed behind its snapshot (1020).
pub fn is_collision(error: &sqlx::Error) -> bool {
    matches!(number(error), Some(1062 | 1213 | 1020))
}

fn sentence_of_io(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "nothing listens there: start the server, or correct host and port"
        }
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::UnexpectedEof
        | io::ErrorKind::BrokenPipe => {
            // A server disconnects in the middle of a statement that is too large, and its reason
            // may be lost on the way.
            "the connection broke: the server stopped, something between it and raingauge hung up, or the change is \
             larger than its max_allowed_packet; try again"
        }
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            "no way leads to this host"
        }
        // A rejected certificate is reported this way.
        io::ErrorKind::InvalidData => NO_TLS,
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
            "a file that the address names cannot be opened: look at socket, ssl-ca, ssl-cert and ssl-key"
        }
        // Includes an unknown host name.
        _ => "it cannot be reached: correct host and port, or start the server",
    }
}

/// Explains the error numbers of
/// <https://dev.mysql.com/doc/mysql-errors/8.0/en/server-error-reference.html> that can occur in a
/// correct program. MariaDB has the same ones.
fn sentence_of(number: u16) -> Option<&'static str> {
    Some(match number {
        // MariaDB also reports this for a user who must connect encrypted and does not.
        1045 | 1698 => {
            "it does not let this user in: correct the name and the password in the address, and do not disable \
             encryption when it asks for that"
        }
        1129 | 1130 => "it does not let this machine in: allow it on the server",
        1820 | 1862 | 3118 => {
            "this user is locked or its password has expired: renew it on the server"
        }
        1049 => "there is no such database: make it, then run `raingauge migrate`",
        1146 => "it has no tables of raingauge: run `raingauge migrate`",
        1044 | 1142 | 1143 | 1227 | 1370 => {
            "this user lacks a right: docs/operations/engines.md lists those that it needs"
        }
        1290 | 1792 | 1836 => {
            "it may only be read, as a standby: let the address lead to the primary server"
        }
        1040 | 1203 | 1226 => {
            "it has no connection left: raise its max_connections, or end other programs"
        }
        1205 | 1213 => "another change keeps it busy: try again",
        3159 => {
            "it takes encrypted connections only: set ssl-mode to required, verify_ca or verify_identity"
        }
        1053 | 1077 | 1079 => "it is shutting down: try again when it is back",
        1021 | 1114 | 3675 => "its disk is full: make room and try again",
        1153 => "the change is larger than its max_allowed_packet: raise that",
        _ => return None,
    })
}

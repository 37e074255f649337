//! Explains SQLite errors to operators, and what they can do.

use crate::database::Unavailable;
use std::path::{Path, PathBuf};

/// Explains the errors of one file.
#[derive(Debug)]
pub struct Faults {
    path: PathBuf,
}

impl Faults {
    pub fn of(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub fn explain(&self, error: sqlx::Error) -> Unavailable {
        let sentence = match &error {
            sqlx::Error::Database(refusal) => primary_code(&error)
                .and_then(sentence_of)
                .map(|sentence| format!("{sentence} ({})", refusal.message())),
            sqlx::Error::PoolTimedOut => Some("other calls keep it busy: try again".to_owned()),
            sqlx::Error::PoolClosed => {
                Some("it has been closed, because raingauge is stopping".to_owned())
            }
            _ => None,
        };
        self.refuse(&sentence.unwrap_or_else(|| error.to_string()))
    }

    /// Returns an error about the file with this sentence.
    pub fn refuse(&self, sentence: &str) -> Unavailable {
        Unavailable(format!("{}: {sentence}", self.path.display()))
    }
}

/// Whether another connection holds the requested lock.
pub fn is_busy(error: &sqlx::Error) -> bool {
    primary_code(error) == Some(5)
}

/// Whether a row with the same primary key or unique value is there.
pub fn is_known_already(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|refusal| refusal.is_unique_violation())
}

/// The low byte of the result code; the rest only refines it.
fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

/// Explains the result codes of <https://www.sqlite.org/rescode.html> that can occur in a correct
/// program.
fn sentence_of(primary_code: i32) -> Option<&'static str> {
    Some(match primary_code {
        5 | 6 => "another program holds its lock for too long: try again, or end that program",
        8 => "it may not be written: give raingauge the right to write the file and its folder",
        10 => "it could not be read or written: look at the disk",
        11 => "it is damaged: restore it from a backup",
        13 => "the disk is full: make room and try again",
        14 => {
            "it cannot be opened: the folder must exist, and raingauge must have the right to write in it"
        }
        26 => "it is no catalog of raingauge: choose another file, or restore it from a backup",
        _ => return None,
    })
}

//! A problem with a configuration: which key, where it was set, what is wrong, what to do.

use core::fmt;
use std::path::PathBuf;

/// One reason why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `section.name`; empty when it concerns the whole file.
    pub key: String,
    pub origin: Origin,
    pub message: String,
    pub advice: String,
}

/// Where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was not set.
    Default,
    /// A file, and the line in it, counted from 1; line 0 is the file as a whole.
    File { path: PathBuf, line: usize },
    /// An environment variable.
    Variable(String),
    /// An option of the command line.
    Option(String),
}

impl Origin {
    /// Returns the line of the file, if the value comes from a line.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::File { line, .. } if *line > 0 => Some(*line),
            _ => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => out.write_str("default"),
            Self::File { path, line: 0 } => write!(out, "{}", path.display()),
            Self::File { path, line } => write!(out, "{}:{line}", path.display()),
            Self::Variable(name) => write!(out, "variable {name}"),
            Self::Option(name) => write!(out, "option {name}"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            write!(out, "{}: ", self.origin)?
        } else {
            write!(out, "{} ({}): ", self.key, self.origin)?
        }
        write!(out, "{}. {}", self.message, self.advice)
    }
}

/// Quotes a value in a problem: on one line, and cut if it is long.
pub fn quote(value: &str) -> String {
    const CHARS_MAX: usize = 60;
    let shown: String = value.chars().take(CHARS_MAX).collect();
    let dots = if value.chars().nth(CHARS_MAX).is_some() { "…" } else { "" };
    format!("{shown:?}{dots}")
}

//! Both ends of a command: the HTTP client that it works with, and what it prints for people and
//! machines.

pub mod client;
pub mod table;

pub use client::{Client, Method, Trust, encoded};

use serde_json::Value;
use std::io::Write;

/// Prints a text and a line end to standard output.
pub fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Prints JSON for a machine, indented for human readers.
pub fn print_json(json: &Value) -> std::io::Result<()> {
    print(&format!("{json:#}"))
}

/// Prints a remark for people to standard error, so that standard output holds the result alone.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

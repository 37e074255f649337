//! Entries as lines.

use crate::services;
use clap::{Args, ValueEnum};
use raingauge_app::csv::cell;
use raingauge_core::time::format_rfc3339;
use raingauge_points::Entry;
use raingauge_ports::points::Books as _;
use serde_json::json;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Bytes of entries that are read at once.
const CHUNK_BYTES: usize = 4 << 20;
const COLUMNS: &str = "book,sequence,programme,member,kind,points,balanceAfter,occurredAt,\
                       recordedAt,key,source,reference,reason";

#[derive(Debug, Args)]
pub struct Export {
    /// Data folder; no server may be running on it
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// Form of a line; points are in the smallest unit of their programme
    #[arg(long, default_value = "ndjson")]
    format: Format,
    /// First sequence of each book
    #[arg(long, value_name = "SEQUENCE", default_value_t = 1)]
    from: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Ndjson,
    Csv,
}

impl Export {
    pub fn run(self) -> anyhow::Result<()> {
        let books = services::open_books(&self.data_dir)?;
        let mut out = BufWriter::new(std::io::stdout().lock());
        if self.format == Format::Csv {
            writeln!(out, "{COLUMNS}")?;
        }

        for book in 0..books.books() {
            let mut from = self.from;
            loop {
                let entries = books.read(book, from, CHUNK_BYTES)?;
                let Some(last) = entries.last() else { break };
                from = last.sequence + 1;
                for entry in &entries {
                    match self.format {
                        Format::Ndjson => writeln!(out, "{}", json!(entry))?,
                        Format::Csv => writeln!(out, "{}", line(entry))?,
                    }
                }
            }
        }
        Ok(out.flush()?)
    }
}

fn line(entry: &Entry) -> String {
    let text = |text: &Option<std::sync::Arc<str>>| {
        text.as_ref().map(|text| cell(text)).unwrap_or_default()
    };
    let time = |at_ms: i64| format_rfc3339(at_ms.div_euclid(1_000));
    let key = entry.key.as_ref();
    [
        entry.book.to_string(),
        entry.sequence.to_string(),
        cell(&entry.programme),
        text(&entry.member),
        entry.kind.name().to_owned(),
        entry.points().to_string(),
        entry.balance_after.to_string(),
        time(entry.occurred_ms),
        time(entry.recorded_ms),
        key.map(|key| cell(&key.text)).unwrap_or_default(),
        key.map(|key| cell(&key.source)).unwrap_or_default(),
        text(&entry.reference),
        text(&entry.reason),
    ]
    .join(",")
}

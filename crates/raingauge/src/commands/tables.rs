//! `raingauge tables`

use super::campaigns::tables::{number, print_rows, rows_of};
use super::campaigns::text;
use super::table::Align;
use super::{print, print_json};
use crate::commands::arguments::Place;
use anyhow::Context;
use clap::{Args, Subcommand};
use raingauge_console::{Method, encoded};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// See and load the tables and segments that rules read
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Example: raingauge tables load users demo/campaigns/users.csv"
)]
pub struct Tables {
    #[command(subcommand)]
    command: Command,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List tables and segments
    #[command(after_help = "Example: raingauge tables list")]
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Replace all rows of a table or a segment
    ///
    /// The file is CSV with a header, or NDJSON, plain or packed with gzip. Rules read the earlier
    /// rows until all new ones are there.
    #[command(after_help = "Example: raingauge tables load staff demo/campaigns/staff.csv")]
    Load {
        /// Name of the table
        name: String,
        /// CSV or NDJSON, plain or gzip
        file: PathBuf,
        #[command(flatten)]
        place: Place,
    },
}

impl Tables {
    pub fn run(self) -> anyhow::Result<()> {
        let is_json = self.json;
        match self.command {
            Command::List { place } => {
                let answer = place.with(|session| Ok(session.client.get("/v1/tables", &[])?))?;
                list(&answer, is_json)
            }
            Command::Load { name, file, place } => {
                let content = std::fs::read(&file)
                    .with_context(|| format!("{} cannot be read", file.display()))?;
                let mut headers = vec![("content-type", media_type(&file, &content))];
                if content.starts_with(&GZIP) {
                    headers.push(("content-encoding", "gzip"));
                }

                let path = format!("/v1/tables/{}", encoded(&name));
                let answer = place.with(|session| {
                    Ok(session.client.send(Method::PUT, &path, &headers, &content)?)
                })?;
                if is_json {
                    return Ok(print_json(&answer)?);
                }
                let rows = number(&answer["rows"]);
                Ok(print(&format!("{name}: {rows} rows, version {}", answer["loadedVersion"]))?)
            }
        }
    }
}

/// How gzip begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Lines of JSON begin with a brace; packed ones are known by the name of the file.
fn media_type(path: &Path, content: &[u8]) -> &'static str {
    let name = path.to_string_lossy();
    let is_named =
        [".ndjson", ".jsonl"].iter().any(|end| name.trim_end_matches(".gz").ends_with(end));
    if is_named || content.trim_ascii_start().starts_with(b"{") {
        "application/x-ndjson"
    } else {
        "text/csv"
    }
}

fn list(answer: &Value, is_json: bool) -> anyhow::Result<()> {
    if is_json {
        return Ok(print_json(answer)?);
    }
    let columns = [
        ("name", Align::Left),
        ("kind", Align::Left),
        ("key", Align::Left),
        ("rows", Align::Right),
        ("loaded", Align::Left),
    ];
    let row = |found: &Value| {
        let [name, kind, key, loaded] =
            ["name", "kind", "key", "loadedAt"].map(|member| text(&found[member]));
        vec![name, kind, key, number(&found["rows"]), loaded]
    };
    print_rows(&columns, rows_of(&answer["tables"], row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_distinguished_from_columns() {
        for (path, content, expected) in [
            ("a.csv", &b"subject,x\n"[..], "text/csv"),
            ("a.ndjson.gz", &GZIP, "application/x-ndjson"),
            ("a", b" {\"subject\": 1}", "application/x-ndjson"),
        ] {
            assert_eq!(media_type(Path::new(path), content), expected, "{path}");
        }
    }
}

//! Errors that end an import. A malformed row does not: it is rejected, and the import continues.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("cannot read {} past line {line}", path.display())]
    Read { path: PathBuf, line: u64, source: io::Error },
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("the mapping has {}:{}", count(.0.len(), "problem"), listed(.0))]
    Mapping(Vec<String>),
    #[error("{} has no header: the first line of a CSV file must name its columns ({reason})", path.display())]
    Header { path: PathBuf, reason: String },
    #[error("the mapping names columns that {} does not have: {}; it has: {}", path.display(), quoted(missing), quoted(existing))]
    ColumnsMissing { path: PathBuf, missing: Vec<String>, existing: Vec<String> },
    #[error("{} has several columns with the same name: {}; give them different names in its first line", path.display(), quoted(repeated))]
    ColumnsRepeated { path: PathBuf, repeated: Vec<String> },
    #[error("{} is not a progress file of this version: {reason}; delete it to import from the start", path.display())]
    ProgressUnreadable { path: PathBuf, reason: String },
    #[error(
        "{} belongs to a different import: {}; use another progress file, or delete this one to import from the start",
        path.display(), differences.join(", ")
    )]
    ProgressOfAnother { path: PathBuf, differences: Vec<String> },
    #[error("{} is there already and holds no rejected rows: name another file with --rejected", path.display())]
    NoRejectedRows { path: PathBuf },
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn listed(lines: &[String]) -> String {
    lines.iter().map(|line| format!("\n  - {line}")).collect()
}

/// Lists names in quotes, which makes a stray space in a header visible.
fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

//! The reference page and the commented example files, as the declarations say them.

use crate::{Kind, Setting};

/// Returns the row of a setting in the tables of docs/configuration.md.
pub fn row(setting: &Setting) -> String {
    let quoted = |words: &[&str]| {
        words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
    };
    let takes = match setting.kind {
        Kind::Whole { min, max, unit, .. } => format!("{unit}, {min} to {max}"),
        Kind::Address { .. } => "IP address or `localhost`, and port".to_owned(),
        Kind::OptionalAddress => "IP address or `localhost`, and port; or nothing".to_owned(),
        Kind::Folder { .. } => "path of a folder".to_owned(),
        Kind::OneOf { words, .. } => quoted(words),
        Kind::Text { is_secret: false, .. } => "text".to_owned(),
        Kind::Text { is_secret: true, .. } => "text, secret".to_owned(),
        Kind::Switch { .. } => quoted(&["true", "false"]),
        Kind::Tables => "list of tables".to_owned(),
    };
    format!("| `{}` | `{}` | {takes} | {} |", setting.path(), default(setting), setting.text)
}

/// Returns the lines of a setting in a commented file: its text, and its default.
pub fn example(setting: &Setting) -> String {
    format!("# {}\n{} = {}", setting.text, setting.name, default(setting))
}

/// Returns the default, as a TOML file writes it.
fn default(setting: &Setting) -> String {
    match setting.kind {
        Kind::Whole { default, .. } => default.to_string(),
        Kind::Address { default }
        | Kind::Folder { default }
        | Kind::OneOf { default, .. }
        | Kind::Text { default, .. } => format!("{default:?}"),
        Kind::OptionalAddress => "\"\"".to_owned(),
        Kind::Switch { default } => default.to_string(),
        Kind::Tables => "[]".to_owned(),
    }
}

//! Turns the given settings into values of the right type, inside their ranges, and collects every
//! problem.

use super::given::{Given, Item, Raw, parse_value};
use super::keys::{self, Key, Kind};
use super::problem::{Origin, Problem, quote};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Reads keys one by one. A key with a problem returns its default, so that the others are checked
/// too; the default is never used, because a configuration with a problem is refused.
pub struct Checker {
    given: Given,
    origins: HashMap<String, Origin>,
    pub problems: Vec<Problem>,
}

impl Checker {
    pub fn new(mut given: Given) -> Self {
        let problems = std::mem::take(&mut given.problems);
        Self { given, origins: HashMap::new(), problems }
    }

    /// Returns the origin of the value of a key that was read already.
    pub fn origin(&self, path: &str) -> Origin {
        self.origins.get(path).cloned().unwrap_or(Origin::Default)
    }

    /// Whether that key has, or may have, a problem of its own: then it is not compared with
    /// others.
    pub fn is_wrong(&self, path: &str) -> bool {
        self.given.is_torn
            || self
                .problems
                .iter()
                .any(|problem| problem.key == path || problem.key.starts_with(&format!("{path}[")))
    }

    pub fn problem(
        &mut self,
        key: impl Into<String>,
        origin: Origin,
        message: String,
        advice: impl Into<String>,
    ) {
        self.problems.push(Problem { key: key.into(), origin, message, advice: advice.into() });
    }

    /// Takes the given value of a key and remembers its origin.
    pub fn take(&mut self, section: &str, name: &str) -> (&'static Key, Option<Item>) {
        let key = keys::find(section, name).expect("the settings read keys of the table only");
        let item = self.given.take(key);
        if let Some(item) = &item {
            self.origins.insert(key.path(), item.origin.clone());
        }
        (key, item)
    }

    pub fn whole(&mut self, section: &str, name: &str) -> u64 {
        let (key, item) = self.take(section, name);
        let Kind::Whole { default, min, max, unit } = key.kind else {
            unreachable!("{} is a number", key.path())
        };
        let Some(Item { raw, origin }) = item else {
            return default;
        };
        let read = match raw {
            Raw::Whole(number) => number.ok_or_else(|| "the number is too large".to_owned()),
            Raw::Plain(text) => {
                let digits = text.trim().replace('_', "");
                digits.parse().map_err(|_| format!("{} is not a whole number", quote(&text)))
            }
            other => Err(wrong_type("a whole number", &other)),
        };

        let inside = read.and_then(|number: i128| match u64::try_from(number) {
            Ok(number) if (min..=max).contains(&number) => Ok(number),
            _ => Err(format!("{number} is out of range")),
        });
        inside.unwrap_or_else(|message| {
            let advice = format!(
                "Give a whole number of {unit} from {min} to {max}, without quotes or a unit; the default is {default}. {}",
                key.doc
            );
            self.problem(key.path(), origin, message, advice);
            default
        })
    }

    pub fn address(&mut self, section: &str, name: &str) -> SocketAddr {
        let (key, item) = self.take(section, name);
        let Kind::Address { default } = key.kind else {
            unreachable!("{} is an address", key.path())
        };
        let default: SocketAddr = default.parse().expect("the default in the table is an address");
        let Some(Item { raw, origin }) = item else {
            return default;
        };

        text_of(raw).and_then(|text| address_of(&text)).unwrap_or_else(|message| {
            let advice = format!(
                "Give an IP address or localhost, a colon and a port, such as \"{default}\". {}",
                key.doc
            );
            self.problem(key.path(), origin, message, advice);
            default
        })
    }

    pub fn optional_address(&mut self, section: &str, name: &str) -> Option<SocketAddr> {
        let (key, item) = self.take(section, name);
        let Kind::OptionalAddress = key.kind else {
            unreachable!("{} may be an address", key.path())
        };
        let Item { raw, origin } = item?;
        let read = text_of(raw).and_then(|text| {
            if text.trim().is_empty() { Ok(None) } else { address_of(&text).map(Some) }
        });

        read.unwrap_or_else(|message| {
            let advice =
                format!("Give an IP address or localhost, a colon and a port, or an empty text for none. {}", key.doc);
            self.problem(key.path(), origin, message, advice);
            None
        })
    }

    pub fn folder(&mut self, section: &str, name: &str) -> PathBuf {
        let (key, item) = self.take(section, name);
        let Kind::Folder { default } = key.kind else { unreachable!("{} is a folder", key.path()) };
        let Some(Item { raw, origin }) = item else {
            return default.into();
        };
        let read = text_of(raw).and_then(|text| {
            match text.is_empty() || text.contains(['\0', '\u{FFFD}']) {
                true => Err(format!("{} does not name a folder", quote(&text))),
                false => Ok(text.into()),
            }
        });

        read.unwrap_or_else(|message| {
            let advice = format!("Give the path of a folder, such as \"{default}\". {}", key.doc);
            self.problem(key.path(), origin, message, advice);
            default.into()
        })
    }

    pub fn text(&mut self, section: &str, name: &str) -> String {
        let (key, item) = self.take(section, name);
        let Kind::Text { default, is_secret } = key.kind else {
            unreachable!("{} is a text", key.path())
        };
        let Some(Item { raw, origin }) = item else {
            return default.to_owned();
        };
        let read = text_of(raw).and_then(|text| match text.contains(['\0', '\u{FFFD}', '\n']) {
            true if is_secret => Err("it has characters that it cannot have".to_owned()),
            true => Err(format!("{} has characters that it cannot have", quote(&text))),
            false => Ok(text.trim().to_owned()),
        });

        read.unwrap_or_else(|message| {
            self.problem(
                key.path(),
                origin,
                message,
                format!("Give a text in quotes. {}", key.doc),
            );
            default.to_owned()
        })
    }

    /// Yes or no: `true` or `false`, in quotes or without.
    pub fn switch(&mut self, section: &str, name: &str) -> bool {
        let (key, item) = self.take(section, name);
        let Kind::Switch { default } = key.kind else { unreachable!("{} is a switch", key.path()) };
        let Some(Item { raw, origin }) = item else {
            return default;
        };
        let read = match raw {
            Raw::Switch(is_on) => Ok(is_on),
            other => text_of(other).and_then(|text| match text.trim() {
                "true" => Ok(true),
                "false" => Ok(false),
                _ => Err(format!("{} is neither true nor false", quote(&text))),
            }),
        };

        read.unwrap_or_else(|message| {
            let advice = format!("Give true or false; the default is {default}. {}", key.doc);
            self.problem(key.path(), origin, message, advice);
            default
        })
    }

    /// Reads one of the words of the key, spelled exactly as in the table.
    pub fn word(&mut self, section: &str, name: &str) -> &'static str {
        let (key, item) = self.take(section, name);
        let Kind::OneOf { default, words } = key.kind else {
            unreachable!("{} is a word", key.path())
        };
        let Some(Item { raw, origin }) = item else {
            return default;
        };
        let mut hint = String::new();
        let read =
            text_of(raw).and_then(|text| match words.iter().find(|word| **word == text.trim()) {
                Some(word) => Ok(*word),
                None => {
                    let meant = keys::nearest_word(&text.to_lowercase(), words);
                    hint = meant
                        .map(|meant| format!("Did you mean \"{meant}\"? "))
                        .unwrap_or_default();
                    Err(format!("{} is not one of its words", quote(&text)))
                }
            });

        read.unwrap_or_else(|message| {
            let advice = format!(
                "{hint}Give one of {}; the default is {default}. {}",
                words.join(", "),
                key.doc
            );

            self.problem(key.path(), origin, message, advice);
            default
        })
    }

    /// Reads the list of a key; a variable gives it as one TOML value.
    pub fn list(&mut self, section: &str, name: &str, advice: &str) -> Vec<Item> {
        let (key, item) = self.take(section, name);
        let Some(Item { raw, origin }) = item else {
            return Vec::new();
        };
        let read = match raw {
            Raw::Plain(text) => parse_value(&text, &origin)
                .map_err(|message| format!("this is not TOML: {message}")),
            raw => Ok(raw),
        };

        match read {
            Ok(Raw::List(items)) => return items,
            Ok(other) => {
                self.problem(key.path(), origin, wrong_type("a list of tables", &other), advice)
            }
            Err(message) => self.problem(key.path(), origin, message, advice),
        }

        Vec::new()
    }
}

/// `HOST:PORT`, where the host is an IP address or `localhost`.
fn address_of(text: &str) -> Result<SocketAddr, String> {
    let numeric = match text.trim().strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.trim().to_owned(),
    };
    numeric.parse().map_err(|_| format!("{} is not an address with a port", quote(text)))
}

/// Reads text from any kind of value that can be text.
pub fn text_of(raw: Raw) -> Result<String, String> {
    match raw {
        Raw::Plain(text) | Raw::Text(text) => Ok(text),
        other => Err(wrong_type("text in quotes", &other)),
    }
}

pub fn wrong_type(wanted: &str, found: &Raw) -> String {
    let found = match found {
        Raw::Plain(_) | Raw::Text(_) => "text",
        Raw::Whole(_) => "a number",
        Raw::Switch(_) => "a boolean",
        Raw::List(_) => "a list",
        Raw::Table(_) => "a table",
        Raw::Other(name) => name,
    };
    format!("this wants {wanted} and is {found}")
}

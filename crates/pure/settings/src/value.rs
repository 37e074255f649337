//! Turns given settings into values of the right type, inside their limits.

use crate::nearest::nearest_word;
use crate::problem::quote;
use crate::{Item, Kind, Raw, Reader, Setting};
use core::net::SocketAddr;
use core::time::Duration;
use std::path::PathBuf;

/// A value of a setting's kind.
#[derive(Debug)]
pub enum Checked {
    Whole(u64),
    Switch(bool),
    Text(String),
    Word(&'static str),
    Address(Option<SocketAddr>),
}

/// What is wrong with a value, and what to do.
#[derive(Debug)]
pub struct Wrong {
    pub message: String,
    pub advice: String,
}

/// A type of settings.
pub trait Value: Sized {
    /// Converts a value of the setting's kind, which the declaration has chosen for this type.
    fn of(value: Checked, setting: &Setting) -> Result<Self, Wrong>;

    /// Reads a setting, and records the problem that it has.
    fn read(reader: &mut Reader, setting: &'static Setting) -> Self {
        let read = match reader.items.get(&setting.path()) {
            Some(item) => setting.kind.check(item.raw.clone(), setting),
            None => Ok(setting.kind.default()),
        };

        read.and_then(|value| Self::of(value, setting)).unwrap_or_else(|wrong| {
            reader.refuse(&setting.path(), wrong.message, wrong.advice);
            Self::of(setting.kind.default(), setting).expect("defaults are right")
        })
    }
}

/// A type that is read from a text, or from a word.
pub trait FromText: Sized {
    fn from_text(text: &str) -> Result<Self, Wrong>;
}

/// An element of a list.
pub trait Entry: Sized {
    /// Reads the whole list, and records the problems that it has.
    fn read_all(reader: &mut Reader, setting: &'static Setting) -> Vec<Self>;
}

impl Wrong {
    pub fn new(message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { message: message.into(), advice: advice.into() }
    }
}

impl Reader {
    /// Reads a list; a variable gives it as one TOML value.
    pub fn list(&mut self, setting: &Setting, advice: &str) -> Vec<Item> {
        let path = setting.path();
        let Some(Item { raw, origin }) = self.items.get(&path).cloned() else {
            return Vec::new();
        };
        let read = match raw {
            Raw::Plain(text) => {
                Raw::parse(&text, &origin).map_err(|message| format!("this is not TOML: {message}"))
            }
            raw => Ok(raw),
        };

        match read {
            Ok(Raw::List(items)) => return items,
            Ok(other) => self.refuse(&path, wrong_type("a list of tables", &other), advice),
            Err(message) => self.refuse(&path, message, advice),
        }

        Vec::new()
    }
}

impl Kind {
    fn default(self) -> Checked {
        match self {
            Self::Whole { default, .. } => Checked::Whole(default),
            Self::Address { default } => {
                Checked::Address(Some(default.parse().expect("the default is an address")))
            }
            Self::OptionalAddress => Checked::Address(None),
            Self::Folder { default } | Self::Text { default, .. } => {
                Checked::Text(default.to_owned())
            }
            Self::OneOf { default, .. } => Checked::Word(default),
            Self::Switch { default } => Checked::Switch(default),
            Self::Tables => unreachable!("lists read themselves"),
        }
    }

    fn check(self, raw: Raw, setting: &Setting) -> Result<Checked, Wrong> {
        let mut hint = String::new();
        let checked = match self {
            Self::Whole { min, max, .. } => whole(raw, min, max).map(Checked::Whole),
            Self::Address { .. } => {
                text_of(raw).and_then(|text| address(&text)).map(|it| Checked::Address(Some(it)))
            }
            Self::OptionalAddress => text_of(raw).and_then(|text| match text.trim() {
                "" => Ok(Checked::Address(None)),
                text => address(text).map(|address| Checked::Address(Some(address))),
            }),
            Self::Folder { .. } => text_of(raw).and_then(folder).map(Checked::Text),
            Self::OneOf { words, .. } => text_of(raw).and_then(|text| {
                let found = words.iter().find(|word| **word == text.trim());
                found.map(|word| Checked::Word(word)).ok_or_else(|| {
                    if let Some(meant) = nearest_word(&text.to_lowercase(), words) {
                        hint = format!("Did you mean \"{meant}\"? ");
                    }
                    format!("{} is not one of its words", quote(&text))
                })
            }),
            Self::Text { is_secret, .. } => {
                text_of(raw).and_then(|text| line(&text, is_secret)).map(Checked::Text)
            }
            Self::Switch { .. } => switch(raw).map(Checked::Switch),
            Self::Tables => unreachable!("lists read themselves"),
        };

        checked.map_err(|message| {
            Wrong::new(message, format!("{hint}{} {}", self.advice(), setting.text))
        })
    }

    /// Says which values are right.
    fn advice(self) -> String {
        match self {
            Self::Whole { default, min, max, unit } => format!(
                "Give a whole number of {unit} from {min} to {max}, without quotes or a unit; \
                 the default is {default}."
            ),
            Self::Address { default } => format!(
                "Give an IP address or localhost, a colon and a port, such as \"{default}\"."
            ),
            Self::OptionalAddress => "Give an IP address or localhost, a colon and a port, or an \
                                      empty text for none."
                .to_owned(),
            Self::Folder { default } => {
                format!("Give the path of a folder, such as \"{default}\".")
            }
            Self::OneOf { default, words } => {
                format!("Give one of {}; the default is {default}.", words.join(", "))
            }
            Self::Text { .. } => "Give a text in quotes.".to_owned(),
            Self::Switch { default } => format!("Give true or false; the default is {default}."),
            Self::Tables => "Give a list of tables.".to_owned(),
        }
    }
}

fn whole(raw: Raw, min: u64, max: u64) -> Result<u64, String> {
    let number = match raw {
        Raw::Whole(number) => number.ok_or_else(|| "the number is too large".to_owned()),
        Raw::Plain(text) => {
            let digits = text.trim().replace('_', "");
            digits.parse().map_err(|_| format!("{} is not a whole number", quote(&text)))
        }
        other => Err(wrong_type("a whole number", &other)),
    }?;

    let inside = u64::try_from(number).ok().filter(|number| (min..=max).contains(number));
    inside.ok_or_else(|| format!("{number} is out of range"))
}

/// `HOST:PORT`, where the host is an IP address or `localhost`.
fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = match text.trim().strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.trim().to_owned(),
    };
    numeric.parse().map_err(|_| format!("{} is not an address with a port", quote(text)))
}

fn folder(text: String) -> Result<String, String> {
    if text.is_empty() || text.contains(['\0', '\u{FFFD}']) {
        return Err(format!("{} does not name a folder", quote(&text)));
    }
    Ok(text)
}

fn line(text: &str, is_secret: bool) -> Result<String, String> {
    if text.contains(['\0', '\u{FFFD}', '\n']) {
        let shown = if is_secret { "it".to_owned() } else { quote(text) };
        return Err(format!("{shown} has characters that it cannot have"));
    }
    Ok(text.trim().to_owned())
}

/// `true` or `false`, in quotes or without.
fn switch(raw: Raw) -> Result<bool, String> {
    if let Raw::Switch(is_on) = raw {
        return Ok(is_on);
    }
    let text = text_of(raw)?;
    text.trim().parse().map_err(|_| format!("{} is neither true nor false", quote(&text)))
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

/// Converts values of the kinds that a type is declared with.
macro_rules! values {
    ($($Type:ty: $checked:pat => $value:expr;)+) => {
        $(
            impl Value for $Type {
                fn of(value: Checked, setting: &Setting) -> Result<Self, Wrong> {
                    match value {
                        $checked => Ok($value),
                        other => unreachable!("{} is {other:?}", setting.path()),
                    }
                }
            }
        )+
    };
}

/// The declaration keeps every number inside its type.
const FITS: &str = "the largest value fits";

values! {
    u64: Checked::Whole(number) => number;
    usize: Checked::Whole(number) => usize::try_from(number).expect(FITS);
    u32: Checked::Whole(number) => u32::try_from(number).expect(FITS);
    u16: Checked::Whole(number) => u16::try_from(number).expect(FITS);
    &'static str: Checked::Word(word) => word;
    SocketAddr: Checked::Address(Some(address)) => address;
    Option<SocketAddr>: Checked::Address(address) => address;
    // Parts of a text, with commas.
    Vec<String>: Checked::Text(text) => parts(&text);
}

/// `true` or `yes`.
impl Value for bool {
    fn of(value: Checked, setting: &Setting) -> Result<Self, Wrong> {
        match value {
            Checked::Switch(is_on) => Ok(is_on),
            Checked::Word(word) => Ok(word == "yes"),
            other => unreachable!("{} is {other:?}", setting.path()),
        }
    }
}

/// A number of the setting's unit.
impl Value for Duration {
    fn of(value: Checked, setting: &Setting) -> Result<Self, Wrong> {
        let Kind::Whole { unit, .. } = setting.kind else {
            unreachable!("{} is a number", setting.path())
        };
        let ms = match unit {
            "milliseconds" => 1,
            "seconds" => 1_000,
            "minutes" => 60_000,
            "hours" => 3_600_000,
            "days" => 86_400_000,
            unit => unreachable!("{} counts {unit}", setting.path()),
        };
        u64::of(value, setting).map(|number| Self::from_millis(number * ms))
    }
}

/// `None` is 0.
impl Value for Option<Duration> {
    fn of(value: Checked, setting: &Setting) -> Result<Self, Wrong> {
        Duration::of(value, setting).map(|time| Some(time).filter(|time| !time.is_zero()))
    }
}

impl<T: FromText> Value for T {
    fn of(value: Checked, setting: &Setting) -> Result<Self, Wrong> {
        match value {
            Checked::Text(text) => T::from_text(&text),
            Checked::Word(word) => T::from_text(word),
            other => unreachable!("{} is {other:?}", setting.path()),
        }
    }
}

/// `None` is an empty text.
impl<T: FromText> Value for Option<T> {
    fn of(value: Checked, setting: &Setting) -> Result<Self, Wrong> {
        match value {
            Checked::Text(text) if text.is_empty() => Ok(None),
            value => T::of(value, setting).map(Some),
        }
    }
}

impl<T: Entry> Value for Vec<T> {
    fn of(_: Checked, setting: &Setting) -> Result<Self, Wrong> {
        unreachable!("{} reads itself", setting.path())
    }

    fn read(reader: &mut Reader, setting: &'static Setting) -> Self {
        T::read_all(reader, setting)
    }
}

impl FromText for String {
    fn from_text(text: &str) -> Result<Self, Wrong> {
        Ok(text.to_owned())
    }
}

impl FromText for PathBuf {
    fn from_text(text: &str) -> Result<Self, Wrong> {
        Ok(text.into())
    }
}

/// Returns the parts of a text, which have commas between them.
fn parts(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

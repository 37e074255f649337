//! The tokens of `[auth]`. Their text is never quoted back: it may be a token in the place of its
//! hash.

use super::Token;
use crate::secrets::TOKEN_PREFIX;
use raingauge_core::access::{Scope, Scopes};
use raingauge_settings::{Entry, Item, Raw, Reader, Setting, Wrong, quote, text_of, wrong_type};

/// Most tokens of one configuration; every request with a token is compared with all of them.
const TOKENS_MAX: usize = 1_000;
/// Longest name of a token, in bytes.
const NAME_LEN_MAX: usize = 128;

const KEY: &str = "auth.tokens";
const ADVICE: &str = "Give a list such as [{ name = \"ingest\", sha256 = \"…\", scopes = [\"events:write\"] }]; \
                      `raingauge token` makes a token and prints its hash";
const FIELDS: &[&str] = &["name", "sha256", "scopes"];

impl Entry for Token {
    fn read_all(reader: &mut Reader, setting: &'static Setting) -> Vec<Self> {
        let items = reader.list(setting, ADVICE);
        if items.len() > TOKENS_MAX {
            let message = format!("{} tokens are too many", items.len());
            reader.refuse(KEY, message, format!("Keep at most {TOKENS_MAX}"));
            return Vec::new();
        }

        let mut tokens: Vec<Self> = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            let path = format!("{KEY}[{index}]");
            let origin = item.origin.clone();
            let Some(token) = read_token(reader, &path, item) else {
                continue;
            };

            let is_twin = |other: &&Self| other.name == token.name || other.sha256 == token.sha256;
            if let Some(twin) = tokens.iter().find(is_twin) {
                let shared = if twin.name == token.name { "name" } else { "sha256" };
                let message = format!("another token has the same {shared}");
                let advice = "Keep one of the two, or make a new token";
                reader.problem(format!("{path}.{shared}"), origin, message, advice);
            }

            tokens.push(token);
        }

        tokens
    }
}

fn read_token(reader: &mut Reader, path: &str, item: Item) -> Option<Token> {
    let fields = match item.raw {
        Raw::Table(fields) => fields,
        other => {
            reader.problem(path, item.origin, wrong_type("a table", &other), ADVICE);
            return None;
        }
    };

    let mut name = None;
    let mut sha256 = None;
    let mut scopes = None;
    let mut missing = FIELDS.to_vec();

    for (field, Item { raw, origin }) in fields {
        let field_path = format!("{path}.{field}");
        let read = match field.as_str() {
            "name" => read_name(raw).map(|read| name = Some(read)),
            "sha256" => read_hash(raw).map(|read| sha256 = Some(read)),
            "scopes" => read_scopes(reader, &field_path, raw).map(|read| scopes = Some(read)),
            _ => Err(Wrong::new(
                "a token has no such field",
                format!("Its fields are {}", FIELDS.join(", ")),
            )),
        };

        if let Err(wrong) = read {
            reader.problem(field_path, origin, wrong.message, wrong.advice);
        }
        missing.retain(|name| *name != field);
    }

    for field in missing {
        let message = "this field is missing";
        reader.problem(format!("{path}.{field}"), item.origin.clone(), message, ADVICE);
    }

    Some(Token { name: name?, sha256: sha256?, scopes: scopes? })
}

fn read_name(raw: Raw) -> Result<String, Wrong> {
    let wrong = |message: String| {
        let advice = format!(
            "Give a name of 1 to {NAME_LEN_MAX} bytes, by which logs and versions call its holder"
        );
        Wrong::new(message, advice)
    };
    let name = text_of(raw).map_err(wrong)?;
    if name.is_empty() || name.len() > NAME_LEN_MAX || name.contains(char::is_control) {
        return Err(wrong("the name is empty, too long or not printable".to_owned()));
    }
    Ok(name)
}

fn read_hash(raw: Raw) -> Result<[u8; 32], Wrong> {
    let advice = "Give the SHA-256 of the token, 64 hexadecimal digits, as `raingauge token` \
                  prints it";
    let text = text_of(raw).map_err(|message| Wrong::new(message, advice))?;
    if text.starts_with(TOKEN_PREFIX) {
        let advice = format!("Anyone who read this file may use it: make another. {advice}");
        return Err(Wrong::new("this is a token, where its hash belongs", advice));
    }

    let mut hash = [0; 32];
    match hex::decode_to_slice(&text, &mut hash) {
        Ok(()) => Ok(hash),
        Err(_) => Err(Wrong::new("this is not a SHA-256", advice)),
    }
}

fn read_scopes(reader: &mut Reader, path: &str, raw: Raw) -> Result<Scopes, Wrong> {
    let advice =
        || format!("Give a list of {}", Scope::ALL.map(|scope| format!("\"{scope}\"")).join(", "));
    let items = match raw {
        Raw::List(items) if !items.is_empty() => items,
        Raw::List(_) => {
            return Err(Wrong::new("a token without scopes may do nothing", advice()));
        }
        other => return Err(Wrong::new(wrong_type("a list", &other), advice())),
    };

    let mut scopes = Scopes::default();
    for item in items {
        let read = text_of(item.raw).and_then(|text| {
            Scope::from_name(&text).ok_or_else(|| format!("{} is no scope", quote(&text)))
        });
        match read {
            Ok(scope) => scopes.insert(scope),
            Err(message) => reader.problem(path, item.origin, message, advice()),
        }
    }

    Ok(scopes)
}

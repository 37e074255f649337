//! The tokens of `[auth]`. Their text is never quoted back: it may be a token in the place of its
//! hash.

use super::check::{Checker, text_of, wrong_type};
use super::given::{Item, Raw};
use super::problem::quote;
use raingauge_core::access::{Scope, Scopes};
use raingauge_people::secrets::TOKEN_PREFIX;
use raingauge_people::tokens::Token;

/// Most tokens of one configuration; every request with a token is compared with all of them.
const TOKENS_MAX: usize = 1_000;
/// Longest name of a token, in bytes.
const NAME_LEN_MAX: usize = 128;

const KEY: &str = "auth.tokens";
const ADVICE: &str = "Give a list such as [{ name = \"ingest\", sha256 = \"…\", scopes = [\"events:write\"] }]; \
                      `raingauge token` makes a token and prints its hash";
const FIELDS: &[&str] = &["name", "sha256", "scopes"];

/// Reads the tokens and records a problem for each mistake.
pub fn read(checker: &mut Checker) -> Vec<Token> {
    let items = checker.list("auth", "tokens", ADVICE);
    if items.len() > TOKENS_MAX {
        let message = format!("{} tokens are too many", items.len());
        checker.problem(KEY, checker.origin(KEY), message, format!("Keep at most {TOKENS_MAX}"));
        return Vec::new();
    }

    let mut tokens: Vec<Token> = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        let path = format!("{KEY}[{index}]");
        let origin = item.origin.clone();
        let Some(token) = read_token(checker, &path, item) else {
            continue;
        };
        if let Some(twin) =
            tokens.iter().find(|other| other.name == token.name || other.sha256 == token.sha256)
        {
            let shared = if twin.name == token.name { "name" } else { "sha256" };
            let message = format!("another token has the same {shared}");
            checker.problem(
                format!("{path}.{shared}"),
                origin,
                message,
                "Keep one of the two, or make a new token",
            );
        }

        tokens.push(token);
    }

    tokens
}

fn read_token(checker: &mut Checker, path: &str, item: Item) -> Option<Token> {
    let fields = match item.raw {
        Raw::Table(fields) => fields,
        other => {
            checker.problem(path, item.origin, wrong_type("a table", &other), ADVICE);
            return None;
        }
    };

    let mut name = None;
    let mut sha256 = None;
    let mut scopes = None;
    let mut seen = Vec::new();

    for (field, Item { raw, origin }) in fields {
        let field_path = format!("{path}.{field}");
        let read = match field.as_str() {
            "name" => read_name(raw).map(|read| name = Some(read)),
            "sha256" => read_hash(raw).map(|read| sha256 = Some(read)),
            "scopes" => read_scopes(checker, &field_path, raw).map(|read| scopes = Some(read)),
            _ => Err((
                "a token has no such field".to_owned(),
                format!("Its fields are {}", FIELDS.join(", ")),
            )),
        };

        if let Err((message, advice)) = read {
            checker.problem(field_path, origin, message, advice);
        }
        seen.push(field);
    }

    for missing in FIELDS.iter().filter(|field| !seen.iter().any(|seen| seen == **field)) {
        checker.problem(
            format!("{path}.{missing}"),
            item.origin.clone(),
            "this field is missing".to_owned(),
            ADVICE,
        );
    }

    Some(Token { name: name?, sha256: sha256?, scopes: scopes? })
}

/// What is wrong, and what to do.
type Wrong = (String, String);

fn read_name(raw: Raw) -> Result<String, Wrong> {
    let advice = || {
        format!(
            "Give a name of 1 to {NAME_LEN_MAX} bytes, by which logs and versions call its holder"
        )
    };
    let name = text_of(raw).map_err(|message| (message, advice()))?;
    if name.is_empty() || name.len() > NAME_LEN_MAX || name.contains(char::is_control) {
        Err(("the name is empty, too long or not printable".to_owned(), advice()))
    } else {
        Ok(name)
    }
}

fn read_hash(raw: Raw) -> Result<[u8; 32], Wrong> {
    let advice = || {
        "Give the SHA-256 of the token, 64 hexadecimal digits, as `raingauge token` prints it"
            .to_owned()
    };
    let text = text_of(raw).map_err(|message| (message, advice()))?;
    if text.starts_with(TOKEN_PREFIX) {
        let message = "this is a token, where its hash belongs".to_owned();
        return Err((
            message,
            format!("Whoever read this file may use it: make another. {}", advice()),
        ));
    }

    let mut hash = [0; 32];
    match hex::decode_to_slice(&text, &mut hash) {
        Ok(()) => Ok(hash),
        Err(_) => Err(("this is not a SHA-256".to_owned(), advice())),
    }
}

fn read_scopes(checker: &mut Checker, path: &str, raw: Raw) -> Result<Scopes, Wrong> {
    let advice =
        || format!("Give a list of {}", Scope::ALL.map(|scope| format!("\"{scope}\"")).join(", "));
    let items = match raw {
        Raw::List(items) if !items.is_empty() => items,
        Raw::List(_) => return Err(("a token without scopes may do nothing".to_owned(), advice())),
        other => return Err((wrong_type("a list", &other), advice())),
    };

    let mut scopes = Scopes::default();
    for item in items {
        let read = text_of(item.raw).and_then(|text| {
            Scope::from_name(&text).ok_or_else(|| format!("{} is no scope", quote(&text)))
        });
        match read {
            Ok(scope) => scopes.insert(scope),
            Err(message) => checker.problem(path, item.origin, message, advice()),
        }
    }

    Ok(scopes)
}

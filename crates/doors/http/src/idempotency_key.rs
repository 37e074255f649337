//! The header `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header): a quoted string (RFC
//! 8941), or, as many clients send it, the same text without quotes.

use super::problem::Problem;
use axum::http::HeaderMap;
use raingauge_core::code::Code;
use raingauge_core::limits::IDEMPOTENCY_KEY_LEN_MAX;

const NAME: &str = "idempotency-key";

/// Returns the key of a request, if it has one.
pub fn read(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all(NAME).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let malformed = || {
        let detail = format!(
            "Idempotency-Key must be one text of 1 to {IDEMPOTENCY_KEY_LEN_MAX} printable characters of ASCII, such as \
             \"8e03978e-40d5-43dd-bc93-6894a57f9324\""
        );
        Problem::new(Code::IdempotencyKeyMalformed, detail)
    };

    if values.next().is_some() {
        return Err(malformed());
    }
    let text = value.to_str().ok().map(|text| text.trim_matches(' '));
    let key =
        text.and_then(
            |text| {
                if text.starts_with('"') { unquoted(text) } else { Some(text.to_owned()) }
            },
        );

    let is_sound = |key: &String| {
        let is_printable = key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        is_printable && (1..=IDEMPOTENCY_KEY_LEN_MAX).contains(&key.len())
    };
    key.filter(is_sound).map(Some).ok_or_else(malformed)
}

/// Returns the text between quotes, where a backslash escapes a quote or another backslash.
fn unquoted(text: &str) -> Option<String> {
    let mut rest = text.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut plain = String::new();
    while let Some(next) = rest.next() {
        match next {
            '"' => return None,
            '\\' => plain.push(rest.next().filter(|escaped| matches!(escaped, '"' | '\\'))?),
            next => plain.push(next),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn read_of(values: &[&[u8]]) -> Result<Option<String>, Code> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(NAME, HeaderValue::from_bytes(value).unwrap());
        }
        read(&headers).map_err(|problem| problem.code())
    }

    #[test]
    fn a_key_may_stand_in_quotes() {
        assert_eq!(read_of(&[]), Ok(None));
        let longest = "k".repeat(IDEMPOTENCY_KEY_LEN_MAX);
        for (value, key) in [
            ("8e03978e", "8e03978e"),
            ("\"8e03978e\"", "8e03978e"),
            (r#""a \"b\" \\c""#, r#"a "b" \c"#),
            ("a b", "a b"),
            (&longest, &longest),
        ] {
            assert_eq!(read_of(&[value.as_bytes()]), Ok(Some(key.to_owned())), "{value}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let too_long = "k".repeat(IDEMPOTENCY_KEY_LEN_MAX + 1);
        let bad = [
            "", " ", "\"\"", "\"", "\"a", "\"a\"b\"", r#""a\""#, r#""a\b""#, "a\tb", "\u{e9}",
            &too_long,
        ];
        for value in bad {
            assert_eq!(read_of(&[value.as_bytes()]), Err(Code::IdempotencyKeyMalformed), "{value}");
        }
        assert_eq!(read_of(&[b"a", b"a"]), Err(Code::IdempotencyKeyMalformed));
    }
}

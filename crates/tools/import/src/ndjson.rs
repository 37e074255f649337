//! Newline-delimited JSON: one object per line.

use crate::limits::NESTING_MAX;
use crate::plan::{Columns, Value};
use raingauge_core::code::{Code, Refusal};
use raingauge_core::event::Event;
use raingauge_core::field::{Field, Scalar, extract};
use raingauge_core::limits::EVENT_LEN_MAX;
use std::borrow::Cow;
use std::str::Utf8Error;

/// Maps each column to a member; dots in a name address nested members.
pub(crate) fn members(columns: &[String]) -> Vec<Field> {
    columns.iter().map(|name| Field::Data(name.split('.').map(Box::from).collect())).collect()
}

/// The members of one line that the mapping uses.
pub(crate) struct Object<'a>(Vec<Option<Scalar<'a>>>);

impl<'a> Object<'a> {
    /// Also returns the line as text, because the whole line may be the event's data.
    pub(crate) fn read(line: &'a [u8], members: &[Field]) -> Result<(Self, &'a str), Refusal> {
        if line.len() > EVENT_LEN_MAX {
            let detail =
                format!("the line has {} bytes; at most {EVENT_LEN_MAX} are allowed", line.len());
            return Err(Refusal::new(Code::EventTooLarge, detail));
        }

        let text = std::str::from_utf8(line)
            .map_err(|_| Refusal::new(Code::RowNotUtf8, "the line holds bytes that are not UTF-8"))?
            .trim_ascii();
        if !text.starts_with('{') {
            return Err(Refusal::new(Code::RowMalformed, "the line is not a JSON object"));
        }

        if is_too_deep(text.as_bytes()) {
            let detail = format!("the line nests deeper than {NESTING_MAX} levels");
            return Err(Refusal::new(Code::RowMalformed, detail));
        }

        check(text).map_err(|error| {
            Refusal::new(Code::RowMalformed, format!("the line is not JSON: {error}"))
        })?;
        let nothing = Cow::Borrowed("");
        let event = Event {
            id: nothing.clone(),
            source: nothing.clone(),
            kind: nothing,
            subject: None,
            time_ms: 0,
            data: text,
            refused_keys: Default::default(),
        };

        let mut found = Vec::with_capacity(members.len());
        extract(&event, members, &mut found);
        Ok((Self(found), text))
    }
}

impl Columns for Object<'_> {
    fn value(&self, column: usize) -> Result<Value<'_>, Utf8Error> {
        Ok(match &self.0[column] {
            None => Value::Missing,
            Some(Scalar::Text(text)) => Value::Text(text),
            Some(Scalar::Number(text)) => Value::Number(text),
            Some(Scalar::Bool(is)) => Value::Bool(*is),
        })
    }
}

/// Checks that the whole line is valid JSON: reading the members skips the values between them.
fn check(text: &str) -> Result<(), serde_json::Error> {
    // An unpaired surrogate is grammatical but not valid text; only a full parse detects it.
    if memchr::memmem::find(text.as_bytes(), b"\\u").is_some() {
        return serde_json::from_str::<serde_json::Value>(text).map(|_| ());
    }
    serde_json::from_str::<serde::de::IgnoredAny>(text).map(|_| ())
}

/// Whether arrays and objects are nested more deeply than the parser may recurse. Runs before the
/// parser.
fn is_too_deep(json: &[u8]) -> bool {
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at = string_end(json, at + 1),
            _ => {}
        }

        if depth > NESTING_MAX {
            return true;
        }
        at += 1;
    }

    false
}

/// Returns the position of the closing quote of the string that continues at `at`, or the end of
/// the text.
fn string_end(json: &[u8], mut at: usize) -> usize {
    loop {
        match memchr::memchr2(b'"', b'\\', &json[at.min(json.len())..]) {
            Some(found) if json[at + found] == b'"' => return at + found,
            Some(found) => at += found + 2,
            None => return json.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_count_outside_of_strings() {
        let deep = |open: &str, levels: usize| is_too_deep(open.repeat(levels).as_bytes());
        assert!(
            !deep("[", NESTING_MAX)
                && deep("[", NESTING_MAX + 1)
                && deep("{\"a\":", NESTING_MAX + 1)
        );
        assert!(!deep("[]{}", 1_000));
        assert!(!is_too_deep(format!("[\"\\\\\\\"{}\"]", "[".repeat(1_000)).as_bytes()));
        assert!(is_too_deep(format!("[\"\\\\\",{}", "[".repeat(1_000)).as_bytes()));
        assert!(!is_too_deep(b"[\"open\\"));
    }
}

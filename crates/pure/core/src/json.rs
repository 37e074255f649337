//! What the parsers lack: a bound on nesting, and texts that are borrowed where possible.

use crate::limits::JSON_DEPTH_MAX;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A text of a JSON document, borrowed from it unless it holds escapes.
/// (An `Option<Cow<str>>` would be copied: serde borrows only a `Cow` that stands by itself.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor).map(Self)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text))
    }
}

/// Refuses text that is nested deeper than [`JSON_DEPTH_MAX`]: parsers that recurse would run out
/// of stack.
pub fn check_depth(text: &str) -> Result<(), String> {
    let openers =
        memchr::memchr2_iter(b'[', b'{', text.as_bytes()).take(JSON_DEPTH_MAX + 1).count();
    if openers <= JSON_DEPTH_MAX || depth(text) <= JSON_DEPTH_MAX {
        return Ok(());
    }
    Err(format!("JSON is nested deeper than {JSON_DEPTH_MAX}"))
}

/// Refuses text with more arrays and objects than these: parsed into a tree, each takes many times
/// its bytes.
pub fn check_containers(text: &[u8], containers_max: usize) -> Result<(), String> {
    let openers = memchr::memchr2_iter(b'[', b'{', text).take(containers_max + 1).count();
    if openers <= containers_max || containers(text) <= containers_max {
        return Ok(());
    }
    Err(format!("JSON has more than {containers_max} arrays and objects"))
}

/// The arrays and objects, brackets inside strings apart.
fn containers(text: &[u8]) -> usize {
    let mut containers = 0;
    let mut in_string = false;
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => {
                bytes.next();
            }
            b'[' | b'{' if !in_string => containers += 1,
            _ => {}
        }
    }

    containers
}

/// The first number in a JSON text that a parser does not keep as it is written: numbers with a
/// point, and large ones, are read into 64 bits, which do not hold all digits.
pub fn changed_number(text: &[u8]) -> Option<&str> {
    let mut rest = text;
    while let Some(place) = rest.iter().position(|byte| matches!(byte, b'"' | b'-' | b'0'..=b'9')) {
        rest = &rest[place..];
        if rest[0] == b'"' {
            rest = &rest[string_len(rest)..];
            continue;
        }

        let is_part = |byte: &u8| matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E' | b'0'..=b'9');
        let len = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let (number, behind) = rest.split_at(len);
        let number = std::str::from_utf8(number).unwrap_or_default();
        if is_changed(number) {
            return Some(number);
        }
        rest = behind;
    }
    None
}

/// The length of the string that a text begins with, with its quotes.
fn string_len(text: &[u8]) -> usize {
    let mut place = 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', text.get(place..).unwrap_or_default()) {
        place += found + 1;
        if text[place - 1] == b'"' {
            return place;
        }
        place += 1;
    }
    text.len()
}

fn is_changed(number: &str) -> bool {
    // 15 digits fit, wherever the point is.
    let is_short = number.len() <= f64::DIGITS as usize && !number.contains(['e', 'E']);
    if is_short || number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return false;
    }
    // What is no number, or too large for one, is refused by itself.
    let read = serde_json::from_str::<f64>(number);
    read.is_ok_and(|read| digits_of(number) != digits_of(&format!("{read:e}")))
}

/// The significant digits of a number, and the power of ten before them.
fn digits_of(number: &str) -> (String, i64) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let unsigned = mantissa.trim_start_matches('-');
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = format!("{whole}{fraction}");
    let kept = digits.trim_start_matches('0');
    if kept.is_empty() {
        return (String::new(), 0);
    }

    let zeros = digits.len() - kept.len();
    let power = whole.len() as i64 - zeros as i64;
    let power = power.saturating_add(exponent.parse().unwrap_or(0));
    (kept.trim_end_matches('0').to_owned(), power)
}

/// How deep arrays and objects are nested, brackets inside strings apart.
fn depth(text: &str) -> usize {
    let mut depth = 0usize;
    let mut deepest = 0;
    let mut in_string = false;
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => {
                bytes.next();
            }
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }

    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_and_objects_are_counted_outside_of_texts() {
        let text = br#"[{"a": "[[[[{\"{{"}, [], "]"]"#;
        assert_eq!(check_containers(text, 3), Ok(()));
        assert!(check_containers(text, 2).is_err());
        assert_eq!(check_containers(b"", 0), Ok(()));
    }

    #[test]
    fn numbers_that_a_parser_changes_are_found() {
        for kept in [
            r#"{"a": 99999999999999.5, "b": [-0.00000000000000000012, 1e300, 12300000000000000000]}"#,
            r#"[18446744073709551615, -9223372036854775808, 10000000000000000000000, 0.0e0, 5E+3]"#,
            r#"[0.30000000000000004, 1.50000000000000000000, 1795413600.1234567]"#,
            r#"["99999999999999.4999", "\\", "\"99999999999999.4999"]"#,
            r#""#,
            r#""99999999999999.4999"#,
            r#""99999999999999.4999\"#,
        ] {
            assert_eq!(changed_number(kept.as_bytes()), None, "{kept}");
        }
        for changed in [
            "99999999999999.4999",
            "-1.0000000000000001",
            "0.49999999999999999",
            "18446744073709551617",
            "12345678901234567.8e3",
            "1e-400",
        ] {
            let text = format!(r#"{{"\\": "a", "b\"": [1, {{"c": {changed}}}]}}"#);
            assert_eq!(changed_number(text.as_bytes()), Some(changed));
        }
    }

    #[test]
    fn texts_without_escapes_are_borrowed() {
        let texts: Vec<Option<Text>> = sonic_rs::from_str(r#"["plain", null, "a\nb"]"#).unwrap();
        assert!(matches!(&texts[0], Some(Text(Cow::Borrowed("plain")))));
        assert_eq!(texts[1], None);
        assert_eq!(texts[2], Some(Text("a\nb".into())));
    }

    #[test]
    fn brackets_count_only_outside_strings() {
        assert_eq!(depth(r#"{"a": [1, {"b": "[[[\"[["}], "c": []}"#), 3);
        let wide = format!("[{}]", "[],".repeat(1_000));
        assert_eq!(check_depth(&wide), Ok(()));
        assert_eq!(check_depth(&"[".repeat(JSON_DEPTH_MAX)), Ok(()));
        assert!(check_depth(&"[".repeat(JSON_DEPTH_MAX + 1)).is_err());
    }
}

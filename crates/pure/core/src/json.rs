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

//! What has to be known of JSON text before a parser may walk it.

use crate::limits::JSON_DEPTH_MAX;

/// Refuses text that is nested deeper than [`JSON_DEPTH_MAX`]: parsers that recurse would run out of stack.
pub fn check_depth(text: &str) -> Result<(), String> {
    let openers = memchr::memchr2_iter(b'[', b'{', text.as_bytes()).take(JSON_DEPTH_MAX + 1).count();
    if openers <= JSON_DEPTH_MAX || depth(text) <= JSON_DEPTH_MAX {
        return Ok(());
    }
    Err(format!("JSON is nested deeper than {JSON_DEPTH_MAX}"))
}

/// How deep arrays and objects are nested, brackets inside strings apart.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string) = (0usize, 0, false);
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
    fn brackets_count_only_outside_strings() {
        assert_eq!(depth(r#"{"a": [1, {"b": "[[[\"[["}], "c": []}"#), 3);
        let wide = format!("[{}]", "[],".repeat(1_000));
        assert_eq!(check_depth(&wide), Ok(()));
        assert_eq!(check_depth(&"[".repeat(JSON_DEPTH_MAX)), Ok(()));
        assert!(check_depth(&"[".repeat(JSON_DEPTH_MAX + 1)).is_err());
    }
}

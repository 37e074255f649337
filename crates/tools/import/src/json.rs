//! JSON text, written into a reusable buffer.

/// Appends `text` as a JSON string.
pub(crate) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    let mut written = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }

        // A byte that must be escaped is ASCII, so both sides of it are valid text.
        out.push_str(&text[written..at]);
        push_escaped(out, byte);
        written = at + 1;
    }

    out.push_str(&text[written..]);
    out.push('"');
}

fn push_escaped(out: &mut String, byte: u8) {
    match byte {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\t' => out.push_str("\\t"),
        _ => {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.push_str("\\u00");
            out.push(HEX[usize::from(byte >> 4)] as char);
            out.push(HEX[usize::from(byte & 0xf)] as char);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_string_reads_back(text in any::<String>(), control in 0u8..0x20) {
            let text = format!("{text}{}\"\\{text}", control as char);
            let mut json = String::new();
            push_string(&mut json, &text);
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}

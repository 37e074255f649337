//! The data of an event, from the fields and values of `RAIN.ADD`.

use raingauge_core::code::{Code, Refusal};
use raingauge_resp::Arguments;

/// Writes fields and values, one behind the other, as a JSON object in place of what the text was.
/// A value that is a number or a boolean of JSON is written as such, any other as text.
pub fn write_object(fields: Arguments<'_>, json: &mut String) -> Result<(), Refusal> {
    json.clear();
    json.push('{');

    for index in (0..fields.len()).step_by(2) {
        if index > 0 {
            json.push(',');
        }
        push_text(utf8(fields.at(index))?, json);
        json.push(':');

        let value = utf8(fields.at(index + 1))?;
        if is_plain(value) {
            json.push_str(value);
        } else {
            push_text(value, json);
        }
    }

    json.push('}');
    Ok(())
}

fn utf8(argument: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(argument)
        .map_err(|_| Refusal::new(Code::EventMalformed, "fields and values are UTF-8"))
}

fn push_text(text: &str, json: &mut String) {
    json.push('"');
    for char in text.chars() {
        match char {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            char if char < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(char))),
            char => json.push(char),
        }
    }
    json.push('"');
}

/// Whether a value is a number or a boolean of JSON (RFC 8259, section 6).
fn is_plain(value: &str) -> bool {
    value == "true" || value == "false" || is_number(value.as_bytes())
}

fn is_number(text: &[u8]) -> bool {
    let rest = text.strip_prefix(b"-").unwrap_or(text);
    let (whole, rest) = digits(rest);
    if whole == 0 || (whole > 1 && text.strip_prefix(b"-").unwrap_or(text)[0] == b'0') {
        return false;
    }

    let rest = match rest.strip_prefix(b".") {
        Some(rest) => match digits(rest) {
            (0, _) => return false,
            (_, rest) => rest,
        },
        None => rest,
    };
    let Some(rest) = rest.strip_prefix(b"e").or_else(|| rest.strip_prefix(b"E")) else {
        return rest.is_empty();
    };

    let rest = rest.strip_prefix(b"+").or_else(|| rest.strip_prefix(b"-")).unwrap_or(rest);
    matches!(digits(rest), (1.., []))
}

/// How many digits a text begins with, and what follows them.
fn digits(text: &[u8]) -> (usize, &[u8]) {
    let len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (len, &text[len..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_resp::Drain;

    fn object(fields: &[&[u8]]) -> Result<String, Code> {
        let drain = Drain::of(&[fields]);
        let mut json = "left over".to_owned();
        let written = write_object(drain.get(0).arguments, &mut json);
        written.map(|()| json).map_err(|refusal| refusal.code)
    }

    #[test]
    fn numbers_and_booleans_are_such() {
        let fields: [&[u8]; 8] =
            [b"city_id", b"7", b"dry", b"false", b"name", b"Oslo", b"mm", b"-0.5e2"];
        let expected = r#"{"city_id":7,"dry":false,"name":"Oslo","mm":-0.5e2}"#;
        assert_eq!(object(&fields).unwrap(), expected);
        assert_eq!(object(&[]).unwrap(), "{}");
    }

    #[test]
    fn what_json_does_not_call_a_number_is_text() {
        for text in
            ["", "007", "+1", "1.", ".5", "1e", "0x1", "NaN", "null", "True", "1 ", "--1", "-"]
        {
            let json = object(&[b"a", text.as_bytes()]).unwrap();
            assert_eq!(json, format!("{{\"a\":\"{text}\"}}"));
        }
        for number in ["0", "-0", "10", "1.5", "1e5", "1E+5", "-1.25e-7"] {
            let json = object(&[b"a", number.as_bytes()]).unwrap();
            assert_eq!(json, format!("{{\"a\":{number}}}"));
        }
    }

    #[test]
    fn text_is_escaped_and_must_be_utf_8() {
        let json = object(&[b"a\"b", b"x\n\\y\x01"]).unwrap();
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["a\"b"], "x\n\\y\u{1}");
        assert_eq!(object(&[b"a", b"\xff"]), Err(Code::EventMalformed));
    }
}

//! Commands that a person typed: words between spaces, with quotes.

/// Quotes that are not closed, or that end in the middle of a word.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unbalanced;

/// Splits a line into words and tells the start and length of each. Quoted words are unquoted in
/// place, which never makes them longer.
pub(crate) fn split(line: &mut [u8], mut word: impl FnMut(usize, usize)) -> Result<(), Unbalanced> {
    let mut at = 0;

    loop {
        while line.get(at).is_some_and(|byte| is_space(*byte)) {
            at += 1;
        }
        if at == line.len() {
            return Ok(());
        }

        let start = at;
        let mut end = at;
        // A word goes on behind what was quoted at its beginning only up to the next space.
        while let Some(byte) = line.get(at).copied().filter(|byte| !is_space(*byte)) {
            if byte == b'"' || byte == b'\'' {
                at = quoted(line, at, &mut end)?;
                break;
            }

            line[end] = byte;
            end += 1;
            at += 1;
        }

        word(start, end - start);
    }
}

/// Moves what is quoted from `at` on to `end`; the place behind the closing quote.
fn quoted(line: &mut [u8], at: usize, end: &mut usize) -> Result<usize, Unbalanced> {
    let quote = line[at];
    let mut at = at + 1;

    loop {
        let (byte, len) = match (&line[at.min(line.len())..], quote) {
            ([], _) => return Err(Unbalanced),
            ([first, rest @ ..], _) if *first == quote => {
                return match rest.first() {
                    Some(next) if !is_space(*next) => Err(Unbalanced),
                    _ => Ok(at + 1),
                };
            }
            ([b'\\', b'x', high, low, ..], b'"')
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (digit(*high) * 16 + digit(*low), 4)
            }
            ([b'\\', escaped, ..], b'"') => (unescaped(*escaped), 2),
            ([b'\\', b'\'', ..], b'\'') => (b'\'', 2),
            ([other, ..], _) => (*other, 1),
        };

        line[*end] = byte;
        *end += 1;
        at += len;
    }
}

fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

fn digit(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => byte - b'0',
        _ => byte.to_ascii_lowercase() - b'a' + 10,
    }
}

/// The spaces of C, and the end of a string of C.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Vec<Vec<u8>>, Unbalanced> {
        let mut line = line.as_bytes().to_vec();
        let mut places = Vec::new();
        split(&mut line, |start, len| places.push((start, len)))?;

        Ok(places.into_iter().map(|(start, len)| line[start..start + len].to_vec()).collect())
    }

    #[test]
    fn words_are_split_at_spaces_and_unquoted() {
        let good: [(&str, &[&[u8]]); 9] = [
            ("", &[]),
            ("  ", &[]),
            ("set a 1", &[b"set", b"a", b"1"]),
            ("  set\ta  1 ", &[b"set", b"a", b"1"]),
            (r#"set "a b" 'c d'"#, &[b"set", b"a b", b"c d"]),
            (r#""\x00\xfF\n\"\\" x"#, &[b"\x00\xff\n\"\\", b"x"]),
            (r#"'it\'s' '\n'"#, &[b"it's", b"\\n"]),
            (r#"a"b c""#, &[b"ab c"]),
            (r#""""#, &[b""]),
        ];
        for (line, expected) in good {
            assert_eq!(words(line).expect(line), expected, "{line}");
        }

        for line in [r#"""#, "'a", r#""a"b"#, "'a'b", r#""a\"#, r#""a\""#] {
            assert_eq!(words(line), Err(Unbalanced), "{line}");
        }
    }
}

//! Patterns as `KEYS`, `SCAN` and `PSUBSCRIBE` have them.
//!
//! `?` is any byte, `*` any bytes, `[abc]`, `[a-z]` and `[^abc]` one of a class, and `\` takes the
//! meaning from the byte behind it.

/// Whether a text matches a pattern as a whole; `nocase` compares ASCII letters in any case.
///
/// Takes time in proportion to the product of both lengths at most: only the last `*` is tried
/// again, since what an earlier one could take a later one can take as well.
pub fn matches(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
    let mut at = 0;
    let mut from = 0;
    // Where to go on after a mismatch: behind the last star, and one byte later in the text.
    let mut retry: Option<(usize, usize)> = None;

    loop {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            retry = Some((at, from));
            continue;
        }

        let step = match (text.get(from), at < pattern.len()) {
            (None, false) => return true,
            // A rest of the pattern can still match nothing only if it is stars.
            (None, true) => return false,
            (Some(_), false) => None,
            (Some(byte), true) => token(&pattern[at..], *byte, nocase),
        };

        match (step, retry) {
            (Some(len), _) => {
                at += len;
                from += 1;
            }
            (None, Some((star, start))) => {
                at = star;
                from = start + 1;
                retry = Some((star, from));
            }
            (None, None) => return false,
        }
    }
}

/// Length of the token at the front of a pattern, if it matches the byte.
fn token(pattern: &[u8], byte: u8, nocase: bool) -> Option<usize> {
    match pattern[0] {
        b'?' => Some(1),
        b'[' => {
            let (len, found) = class(pattern, byte, nocase);
            found.then_some(len)
        }
        b'\\' if pattern.len() >= 2 => {
            fold(pattern[1], nocase).eq(&fold(byte, nocase)).then_some(2)
        }
        other => (fold(other, nocase) == fold(byte, nocase)).then_some(1),
    }
}

/// Length of the class at the front of a pattern, and whether a byte is in it. A class that is not
/// closed ends with the pattern.
fn class(pattern: &[u8], byte: u8, nocase: bool) -> (usize, bool) {
    let byte = fold(byte, nocase);
    let negated = pattern.get(1) == Some(&b'^');

    let mut at = if negated { 2 } else { 1 };
    let mut found = false;

    while at < pattern.len() {
        match pattern[at..] {
            [b'\\', escaped, ..] => {
                found |= fold(escaped, nocase) == byte;
                at += 2;
            }
            [b']', ..] => return (at + 1, found != negated),
            [first, b'-', last, ..] => {
                let first = fold(first, nocase);
                let last = fold(last, nocase);
                found |= (first.min(last)..=first.max(last)).contains(&byte);
                at += 3;
            }
            [single, ..] => {
                found |= fold(single, nocase) == byte;
                at += 1;
            }
            [] => break,
        }
    }

    (pattern.len(), found != negated)
}

fn fold(byte: u8, nocase: bool) -> u8 {
    if nocase { byte.to_ascii_lowercase() } else { byte }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_redis_has_them() {
        let yes = [
            ("*", ""),
            ("", ""),
            ("h?llo", "hello"),
            ("h*llo", "heeeello"),
            ("h*llo", "hllo"),
            ("h[ae]llo", "hallo"),
            ("h[^e]llo", "hallo"),
            ("h[a-b]llo", "hbllo"),
            ("h[b-a]llo", "hallo"),
            ("h\\*llo", "h*llo"),
            ("[\\]]", "]"),
            ("a*b*c", "aXXbYYbc"),
            ("**x**", "x"),
            ("[abc", "b"),
            ("x\\", "x\\"),
        ];
        let no = [
            ("", "a"),
            ("a", ""),
            ("h?llo", "hllo"),
            ("h[^e]llo", "hello"),
            ("h\\*llo", "hello"),
            ("a*b", "acbc"),
            ("[]", "]"),
            ("abc[", "abc["),
            ("A", "a"),
        ];

        for (pattern, text) in yes {
            assert!(matches(pattern.as_bytes(), text.as_bytes(), false), "{pattern} {text}");
        }
        for (pattern, text) in no {
            assert!(!matches(pattern.as_bytes(), text.as_bytes(), false), "{pattern} {text}");
        }
        assert!(matches(b"A[B-C]\\D", b"abd", true));
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = "a*".repeat(200) + "b";
        let text = "a".repeat(5000);

        assert!(!matches(pattern.as_bytes(), text.as_bytes(), false));
    }
}

//! Passwords that guessers try first: lists of leaked passwords begin with a few words, rows of
//! keys, digits and repetitions, with digits and signs around them. Rules for these refuse more of
//! such a list than its first lines do.

/// Common words, one a line, in lower case.
const WORDS: &str = include_str!("common.txt");
/// Rows of adjacent keys.
const ROWS: [&str; 7] = [
    "qwertyuiopasdfghjklzxcvbnm",
    "qwertzuiopasdfghjklyxcvbnm",
    "azertyuiopqsdfghjklmwxcvbn",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p",
    "q1w2e3r4t5y6u7i8o9p0",
    "abcdefghijklmnopqrstuvwxyz",
    "01234567890123456789",
];
/// Fewest different characters of a password.
const DIFFERENT_MIN: usize = 5;
/// Longest unit, in characters, whose repetition is refused.
const UNIT_CHARS_MAX: usize = 5;
/// Letters that a password needs beside common words.
const OTHER_LETTERS_MIN: usize = 4;
/// Shortest part of a name, in characters, that a password must not contain.
const NAME_CHARS_MIN: usize = 3;
const NAME_PART_CHARS_MIN: usize = 4;

/// Why a password is easily guessed; `None` when no rule applies.
pub fn weakness_of(password: &str) -> Option<&'static str> {
    let lower: Vec<char> = password.to_lowercase().chars().collect();
    let mut different = lower.clone();
    different.sort_unstable();
    different.dedup();

    if different.len() < DIFFERENT_MIN {
        return Some("it has few different characters");
    }

    if lower.iter().all(|char| !char.is_alphabetic()) {
        return Some("it has no letters");
    }

    if (1..=UNIT_CHARS_MAX).any(|unit| lower.chunks(unit).all(|chunk| lower.starts_with(chunk))) {
        return Some("it repeats itself");
    }
    let text: String = lower.iter().collect();
    if is_row(&text) {
        return Some("its keys lie beside each other");
    }

    is_of_common_words(&text).then_some("it has common words alone")
}

/// Whether a password contains the name of its user, forwards or backwards, or a longer part of it.
pub fn has_name(password: &str, name: &str) -> bool {
    let password = password.to_lowercase();
    let name = name.to_lowercase();
    let own = name.split('@').next().unwrap_or_default();
    let parts = own
        .split(|char: char| !char.is_alphanumeric())
        .filter(|part| part.chars().count() >= NAME_PART_CHARS_MIN);
    let whole =
        [name.as_str(), own].into_iter().filter(|name| name.chars().count() >= NAME_CHARS_MIN);
    whole.chain(parts).any(|part| {
        let backwards: String = part.chars().rev().collect();
        password.contains(part) || password.contains(&backwards)
    })
}

/// Whether the text, apart from digits and signs at its ends, is a piece of a row in one direction.
fn is_row(text: &str) -> bool {
    let core = text.trim_matches(|char: char| !char.is_ascii_alphanumeric());
    let backwards: String = core.chars().rev().collect();
    let letters = core.trim_matches(|char: char| !char.is_ascii_alphabetic());
    let is_piece =
        |piece: &str| piece.len() >= DIFFERENT_MIN && ROWS.iter().any(|row| row.contains(piece));
    is_piece(core) || is_piece(&backwards) || is_piece(letters)
}

/// Whether hardly a letter remains without common words, in any spelling.
fn is_of_common_words(text: &str) -> bool {
    let plain: String = text.chars().map(plain).collect();
    [text, plain.as_str()].into_iter().any(|text| {
        let mut words: Vec<&str> = WORDS.lines().collect();
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        let mut left = text.to_owned();
        let mut has_one = false;
        for word in words {
            has_one |= left.contains(word);
            left = left.replace(word, " ");
        }
        has_one && left.chars().filter(|char| char.is_alphabetic()).count() < OTHER_LETTERS_MIN
    })
}

/// The letter that a digit or a sign stands for.
const fn plain(char: char) -> char {
    match char {
        '0' => 'o',
        '1' | '!' | '|' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_tried_first_is_refused() {
        for weak in [
            "1234567890",
            "0987654321",
            "2024-09-24 12",
            "password12",
            "Password123!",
            "P@ssw0rd2024",
            "passwordpassword",
            "qwertyuiop",
            "Qwertyuiop1!",
            "poiuytrewq",
            "1qaz2wsx3edc",
            "q1w2e3r4t5y6",
            "asdfghjkl;12",
            "abcdefghij",
            "iloveyou123",
            "letmein12345",
            "welcome2024!",
            "Administrator1",
            "changeme!!1",
            "superman1234",
            "abcabcabcabc",
            "12341234123412",
            "aaaaaaaaaab",
            "raingauge2024",
            "Rain-Gauge-99",
            "sunshine#2023",
        ] {
            assert!(weakness_of(weak).is_some(), "{weak}");
        }
        for fine in [
            "four words of rain",
            "four words of snow",
            "i am out of rain",
            "ÄÖÜäöüßéè☔",
            "correct horse battery",
            "x9!kQz7#pLmV",
            "wet umbrellas everywhere",
            "password hedgehogs",
        ] {
            assert_eq!(weakness_of(fine), None, "{fine}");
        }
    }

    #[test]
    fn names_are_found_in_any_direction() {
        for (password, name) in [
            ("xx ZOE xx rain", "Zoe"),
            ("eoz of the rain", "zoe"),
            ("the angstrom unit", "Zoe Angstrom"),
            ("hopper was here", "grace.hopper@rain.example"),
        ] {
            assert!(has_name(password, name), "{password}");
        }
        for (password, name) in
            [("four words of rain", "zoe@rain.example"), ("a b c d e f g", "a"), ("anything", "")]
        {
            assert!(!has_name(password, name), "{password}");
        }
    }
}

//! Templates of commands, and how one is filled in at random.
//!
//! ```text
//!   SET s value [NX|XX] [GET] [EX far|KEEPTTL]
//!   upper case: a word as it is       lower case: a slot, by its name      [ ] may be left out
//!   ( | ) one of several              { } one to four times                < > 20 to 150 times
//! ```

use super::draw::Draw;
use rand::Rng;

const MANY: std::ops::RangeInclusive<usize> = 20..=150;
const FEW: std::ops::RangeInclusive<usize> = 1..=4;

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Word(&'static str),
    Slot(&'static str),
    Optional(Vec<Vec<Part>>),
    Either(Vec<Vec<Part>>),
    Few(Vec<Vec<Part>>),
    Many(Vec<Vec<Part>>),
}

/// A template that was parsed.
#[derive(Debug, Clone)]
pub struct Template(Vec<Part>);

impl Template {
    /// Parses a template; the text is a constant, so a wrong one is a mistake of the programmer.
    pub fn new(text: &'static str) -> Self {
        let mut words = text.split_whitespace().flat_map(split).peekable();
        let mut alternatives = parse(&mut words, None);
        assert!(alternatives.len() == 1 && words.next().is_none(), "unbalanced: {text}");
        Self(alternatives.remove(0))
    }

    /// The words of a command.
    pub fn fill(&self, draw: &mut Draw) -> Vec<Vec<u8>> {
        let mut words = Vec::new();
        fill(&self.0, draw, &mut words);
        words
    }
}

/// Separates brackets and bars from the words that they touch.
fn split(word: &'static str) -> impl Iterator<Item = &'static str> {
    let is_mark = |character: char| "[](){}<>|".contains(character);
    word.split_inclusive(is_mark).flat_map(move |piece| match piece.find(is_mark) {
        Some(at) if at > 0 => vec![&piece[..at], &piece[at..]],
        _ => vec![piece],
    })
}

/// Parses alternatives up to the closing mark.
fn parse(
    words: &mut std::iter::Peekable<impl Iterator<Item = &'static str>>,
    close: Option<&str>,
) -> Vec<Vec<Part>> {
    let mut alternatives = vec![Vec::new()];
    while let Some(word) = words.next() {
        if Some(word) == close {
            break;
        }
        let part = match word {
            "|" => {
                alternatives.push(Vec::new());
                continue;
            }
            "[" => Part::Optional(parse(words, Some("]"))),
            "(" => Part::Either(parse(words, Some(")"))),
            "{" => Part::Few(parse(words, Some("}"))),
            "<" => Part::Many(parse(words, Some(">"))),
            slot if slot.starts_with(|first: char| first.is_ascii_lowercase()) => Part::Slot(slot),
            word => Part::Word(word),
        };
        if let Some(last) = alternatives.last_mut() {
            last.push(part);
        }
    }
    alternatives
}

fn fill(parts: &[Part], draw: &mut Draw, words: &mut Vec<Vec<u8>>) {
    for part in parts {
        match part {
            Part::Word(word) => words.push(word.as_bytes().to_vec()),
            Part::Slot(name) => words.push(draw.slot(name)),
            Part::Either(alternatives) => one(alternatives, draw, words),
            Part::Optional(alternatives) => {
                if draw.random.random_bool(0.35) {
                    one(alternatives, draw, words);
                }
            }
            Part::Few(alternatives) => {
                for _ in 0..draw.random.random_range(FEW) {
                    one(alternatives, draw, words);
                }
            }
            Part::Many(alternatives) => {
                draw.is_wide = true;
                for _ in 0..draw.random.random_range(MANY) {
                    one(alternatives, draw, words);
                }
                draw.is_wide = false;
            }
        }
    }
}

fn one(alternatives: &[Vec<Part>], draw: &mut Draw, words: &mut Vec<Vec<u8>>) {
    let place = draw.random.random_range(0..alternatives.len());
    fill(&alternatives[place], draw, words);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_in() {
        let template = Template::new("SET s (EX|PX) {A} <B> [C|D]");
        let mut draw = Draw::new(7);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let words = template.fill(&mut draw);
            assert_eq!(words[0], b"SET");
            assert!(words[2] == b"EX" || words[2] == b"PX");
            let count = |word: &[u8]| words.iter().filter(|one| *one == word).count();
            assert!(FEW.contains(&count(b"A")) && MANY.contains(&count(b"B")));
            seen.insert((words[2].clone(), count(b"C"), count(b"D")));
        }
        assert_eq!(seen.len(), 6, "{seen:?}");
    }
}

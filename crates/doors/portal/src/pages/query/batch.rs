//! Many ranges at once, one per line.

use super::question::Question;
use crate::Portal;
use crate::html::parts::Column::{Number, Text};
use crate::html::{parts, words};
use crate::times::moment_of;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::code::{Code, Refusal};
use raingauge_reader::{Answer, Range};
use std::time::Instant;

/// Largest number of lines in one batch; the address has room for them.
pub const BATCH_LINES_MAX: usize = 200;

/// One line: a key and its range.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    line: usize,
    key: String,
    range: Result<(i64, i64), &'static str>,
}

/// Parses the lines. A line with only a key uses the range of the form.
fn lines(text: &str, range: Option<(i64, i64)>, zone: &TimeZone, now_s: i64) -> Vec<Line> {
    let numbered = text.lines().enumerate().map(|(place, line)| (place + 1, line.trim()));
    let asked = numbered.filter(|(_, line)| !line.is_empty()).map(|(line, text)| {
        let (key, own) = match with_range(text, zone, now_s) {
            Some((key, own)) => (key, Some(own)),
            None => (text, None),
        };
        let range = match own.or(range) {
            Some((from_s, to_s)) if from_s > to_s => {
                Err("the range ends before it begins: swap its ends")
            }
            Some(range) => Ok(range),
            None => Err("the line has no range, and the form has none either: choose one above"),
        };
        Line { line, key: key.to_owned(), range }
    });
    asked.collect()
}

/// Parses `KEY FROM TO`, separated by blanks, tabs, commas or semicolons. Keys may contain blanks,
/// times may not.
fn with_range<'a>(text: &'a str, zone: &TimeZone, now_s: i64) -> Option<(&'a str, (i64, i64))> {
    let separators = [' ', '\t', ',', ';'];
    let cut = |text: &'a str| text.trim_end_matches(separators).rsplit_once(separators);
    let (rest, to) = cut(text)?;
    let (key, from) = cut(rest)?;
    let key = key.trim_end_matches(separators).trim_matches('"');

    let moment = |text: &str| moment_of(text, zone, now_s);
    Some((key, (moment(from)?, moment(to)?))).filter(|(key, _)| !key.is_empty())
}

/// Answers each line independently.
pub async fn answered(portal: &Portal, question: &Question) -> Markup {
    let asked = lines(&question.batch, question.range(), &question.zone, question.now_s);
    if asked.len() > BATCH_LINES_MAX {
        let words = format!(
            "There are {} lines, and a page takes {BATCH_LINES_MAX}. Leave some out, or use \
             POST /v1/counts, which takes 1,000.",
            asked.len()
        );
        return parts::notice(parts::Mood::Wait, &html! { (words) });
    }

    let ranges: Vec<Range<'_>> = asked
        .iter()
        .filter_map(|asked| {
            let (from_s, to_s) = asked.range.ok()?;
            Some(Range { key: &asked.key, from_s, to_s, fresh: question.fresh })
        })
        .collect();

    let began = Instant::now();
    let mut answers = portal.reader.counts(&ranges).await.into_iter();
    let took = words::duration(began.elapsed().as_secs_f64());
    let rows: Vec<(&Line, Result<Answer, Refusal>)> = asked
        .iter()
        .map(|asked| {
            let refused = |detail: &str| Refusal::new(Code::TimeInvalid, detail);
            let answer = asked.range.map_err(refused);
            (
                asked,
                answer.and_then(|_| {
                    answers.next().unwrap_or_else(|| Err(refused("there was no answer: try again")))
                }),
            )
        })
        .collect();

    let failed = rows.iter().filter(|(_, answer)| answer.is_err()).count();
    let range = format!("Range, {}", words::zone(&question.zone));
    let columns = [Number("Line"), Text("Key"), Text(&range), Number("Count")];
    html! {
        section.card aria-label="Answers" {
            p aria-live="polite" {
                (words::count_of(rows.len() as i128, "range", "ranges")) " in " strong { (took) }
                @if failed > 0 { "; " strong { (failed) } " could not be counted" } "."
            }
            (parts::named_table("Answers by line", "", &columns, &html! {
                @for (asked, answer) in &rows { (row(asked, answer, &question.zone)) }
            }))
        }
    }
}

fn row(asked: &Line, answer: &Result<Answer, Refusal>, zone: &TimeZone) -> Markup {
    html! {
        tr {
            td.number { (asked.line) }
            th scope="row" { code { (asked.key) } }
            @match answer {
                Ok(answer) => {
                    td { (words::range(answer.from_s, answer.to_s, zone)) }
                    td.number { strong { (words::number(answer.count.into())) } }
                }
                Err(failure) => { td colspan="2" { span.problem { (failure.detail) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::times::zone_of;
    use proptest::prelude::*;

    #[test]
    fn lines_are_keys_with_or_without_a_range() {
        let text = "a:1 900 1800\n\n a:São Paulo\t1970-01-01T00:15:00Z,1970-01-01T00:30\r\na:2\na:3 1800 900\n";
        let found = lines(text, Some((0, 900)), &zone_of("").unwrap(), 86_400);
        let expected = [
            (1, "a:1", Ok((900, 1_800))),
            (3, "a:São Paulo", Ok((900, 1_800))),
            (4, "a:2", Ok((0, 900))),
            (5, "a:3", Err("the range ends before it begins: swap its ends")),
        ];

        assert_eq!(
            found,
            expected.map(|(line, key, range)| Line { line, key: key.to_owned(), range })
        );
        assert!(lines("a:2", None, &zone_of("").unwrap(), 0)[0].range.is_err());
    }

    proptest! {
        #[test]
        fn any_text_has_lines(text in "(\\PC|\\n|\\t|[0-9]){0,60}") {
            let found = lines(&text, None, &zone_of("").unwrap(), 0);
            prop_assert!(found.len() <= text.lines().count());
            prop_assert!(found.iter().all(|asked| !asked.key.is_empty()));
        }
    }
}

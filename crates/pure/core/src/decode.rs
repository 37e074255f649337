//! From the body of a request, or of a message, to its events.
//!
//! ```text
//!   application/cloudevents+json        one event, or an array of them   ┐
//!   application/cloudevents-batch+json  an array                         ├──▶ &[u8], &[u8], …
//!   application/x-ndjson                one event a line                 ┘      │ Event::from_json
//!                                                                               ▼
//!   anything, with attributes beside it  the data of one event ──▶ Result<Event, Refusal>
//! ```
//!
//! Events borrow from the body. Each is found when its turn comes, so that a body of many small
//! events takes no more memory than its bytes.

use crate::code::{Code, Refusal};
use crate::event::{Attributes, Event};
use crate::json::check_depth;
use sonic_rs::ArrayJsonIter;
use std::borrow::Cow;

/// How a body holds its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One event, or an array of them.
    Json,
    /// An array of events.
    Batch,
    /// One event a line.
    Lines,
}

impl Format {
    /// The format of a media type without parameters, in small letters. A body without one is JSON.
    pub fn of(media_type: &str) -> Option<Self> {
        match media_type {
            "application/cloudevents+json" | "application/json" | "" => Some(Self::Json),
            "application/cloudevents-batch+json" => Some(Self::Batch),
            "application/x-ndjson"
            | "application/ndjson"
            | "application/jsonl"
            | "application/x-jsonlines" => Some(Self::Lines),
            _ => None,
        }
    }
}

/// The JSON texts of the events of a body, in their order, for [`Event::from_json`].
///
/// An error is about the body: nothing more can be read of it.
pub enum Events<'a> {
    One(Option<&'a [u8]>),
    Array(Array<'a>),
    Lines(Lines<'a>),
}

impl<'a> Events<'a> {
    /// Refuses an array that is not text, or is nested too deep.
    pub fn new(format: Format, body: &'a [u8]) -> Result<Self, Refusal> {
        let is_array = format == Format::Batch
            || format == Format::Json && body.trim_ascii_start().starts_with(b"[");
        match format {
            Format::Lines => Ok(Self::Lines(Lines { rest: Some(body) })),
            _ if is_array => Array::new(body).map(Self::Array),
            _ => Ok(Self::One(Some(body))),
        }
    }

    /// Whether the body is one event, and not a list of events.
    pub fn is_single(&self) -> bool {
        matches!(self, Self::One(_))
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Result<&'a [u8], Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::One(body) => body.take().map(Ok),
            Self::Lines(lines) => lines.next().map(Ok),
            Self::Array(array) => array.next(),
        }
    }
}

/// The lines of a body that are not blank.
pub struct Lines<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while let Some(rest) = self.rest.take() {
            let line = match memchr::memchr(b'\n', rest) {
                Some(end) => {
                    self.rest = Some(&rest[end + 1..]);
                    &rest[..end]
                }
                None => rest,
            };

            let line = line.trim_ascii();
            if !line.is_empty() {
                return Some(line);
            }
        }
        None
    }
}

/// The elements of an array.
pub struct Array<'a> {
    text: &'a str,
    values: ArrayJsonIter<'a>,
    /// The end of the last element in the text.
    end: usize,
    is_over: bool,
}

impl<'a> Array<'a> {
    fn new(body: &'a [u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(body).map_err(|_| malformed("it is not UTF-8"))?;
        check_depth(text).map_err(|detail| malformed(&detail))?;
        Ok(Self { text, values: sonic_rs::to_array_iter(text), end: 0, is_over: false })
    }

    /// The parser ends with the array. Refuses what follows it, which would otherwise be ignored.
    fn check_tail(&self) -> Result<(), Refusal> {
        let tail = self.text.get(self.end..).unwrap_or_default().trim_ascii();
        // Without an element, the tail is the whole array.
        let tail = match tail.strip_prefix('[') {
            Some(rest) if self.end == 0 => rest.trim_ascii_start(),
            _ => tail,
        };
        if tail == "]" { Ok(()) } else { Err(malformed("something stands behind it")) }
    }
}

impl<'a> Iterator for Array<'a> {
    type Item = Result<&'a [u8], Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let element = match self.values.next() {
            Some(Ok(value)) => match value.as_raw_cow() {
                Cow::Borrowed(raw) => Ok(raw),
                Cow::Owned(_) => Err(malformed("an element cannot be read in place")),
            },
            Some(Err(error)) => {
                Err(malformed(error.to_string().lines().next().unwrap_or_default()))
            }
            None => {
                self.is_over = true;
                return self.check_tail().err().map(Err);
            }
        };

        match element {
            Ok(raw) => {
                self.end = raw.as_ptr() as usize + raw.len() - self.text.as_ptr() as usize;
                Some(Ok(raw.as_bytes()))
            }
            Err(refusal) => {
                self.is_over = true;
                Some(Err(refusal))
            }
        }
    }
}

fn malformed(reason: &str) -> Refusal {
    let detail = format!("the body must be an array of events: {reason}");
    Refusal::new(Code::JsonMalformed, detail)
}

/// An event in binary mode: the attributes stand beside the body, which is the data. The data of an
/// event is empty unless its media type is one of JSON.
pub fn binary<'a>(
    attributes: Attributes<'a>,
    media_type: &str,
    data: &'a [u8],
) -> Result<Event<'a>, Refusal> {
    attributes.into_event(json_data(media_type, data)?)
}

fn json_data<'a>(media_type: &str, data: &'a [u8]) -> Result<&'a str, Refusal> {
    let malformed = |detail: String| Refusal::new(Code::EventMalformed, detail);
    let is_json =
        media_type.is_empty() || media_type == "application/json" || media_type.ends_with("+json");
    if !is_json || data.is_empty() {
        return Ok("");
    }

    let text =
        std::str::from_utf8(data).map_err(|_| malformed("the data is not UTF-8".to_owned()))?;
    check_depth(text).map_err(malformed)?;
    serde_json::from_str::<serde::de::IgnoredAny>(text)
        .map_err(|error| malformed(format!("the data is not JSON: {error}")))?;

    Ok(text)
}

/// A media type without its parameters, in small letters.
pub fn media_type(header: &str) -> String {
    header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::JSON_DEPTH_MAX;
    use proptest::prelude::*;

    fn event(id: &str) -> String {
        format!(
            r#"{{"specversion":"1.0","id":"{id}","source":"s","type":"t","time":"2024-09-24T22:03:50Z"}}"#
        )
    }

    /// The ids of events and the codes of refused ones; `!` and a code end a body that is refused.
    fn decoded(format: Format, body: &str) -> Vec<String> {
        let events = match Events::new(format, body.as_bytes()) {
            Ok(events) => events,
            Err(refusal) => return vec![format!("!{}", refusal.code.as_str())],
        };
        let name = |json: Result<&[u8], Refusal>| match json.map(Event::from_json) {
            Ok(Ok(event)) => event.id.into_owned(),
            Ok(Err(refusal)) => refusal.code.as_str().to_owned(),
            Err(refusal) => format!("!{}", refusal.code.as_str()),
        };
        events.map(name).collect()
    }

    #[test]
    fn a_body_is_one_event_an_array_or_lines() {
        let (a, b) = (event("a"), event("b"));
        let array = format!(" [{a} ,\n{b}] ");
        assert_eq!(decoded(Format::Json, &a), ["a"]);
        assert_eq!(decoded(Format::Json, &array), ["a", "b"]);
        assert_eq!(decoded(Format::Batch, &array), ["a", "b"]);
        assert_eq!(decoded(Format::Lines, &format!("{a}\r\n\n  \n{b}")), ["a", "b"]);
        assert_eq!(decoded(Format::Lines, &format!("{a}\n{{}}\n{b}\n")).len(), 3);

        assert!(Events::new(Format::Json, a.as_bytes()).unwrap().is_single());
        assert!(!Events::new(Format::Json, array.as_bytes()).unwrap().is_single());
        assert!(!Events::new(Format::Lines, a.as_bytes()).unwrap().is_single());
    }

    #[test]
    fn one_event_is_refused_alone_and_a_body_as_a_whole() {
        let a = event("a");
        assert_eq!(
            decoded(Format::Batch, &format!("[{{}},7,{a}]")),
            ["specversion_unsupported", "event_malformed", "a"]
        );
        assert_eq!(decoded(Format::Json, ""), ["event_malformed"]);
        assert_eq!(decoded(Format::Json, "[]"), [""; 0]);
        assert_eq!(decoded(Format::Batch, " [ ] "), [""; 0]);
        assert_eq!(decoded(Format::Lines, "\n \n"), [""; 0]);
        assert_eq!(decoded(Format::Batch, &a), ["!json_malformed"]);
        assert_eq!(decoded(Format::Batch, ""), ["!json_malformed"]);

        for tail in ["", "]]", "] x", ",]"] {
            let found = decoded(Format::Json, &format!("[{a}{tail}"));
            assert_eq!(found, ["a", "!json_malformed"], "{tail:?}");
        }

        let deep = "[".repeat(JSON_DEPTH_MAX + 1);
        assert_eq!(decoded(Format::Json, &deep), ["!json_malformed"]);
    }

    #[test]
    fn media_types_have_formats() {
        let format = |header: &str| Format::of(&media_type(header));
        assert_eq!(format("Application/CloudEvents+JSON; charset=utf-8"), Some(Format::Json));
        assert_eq!(format(""), Some(Format::Json));
        assert_eq!(format("application/cloudevents-batch+json"), Some(Format::Batch));
        assert_eq!(format(" application/x-ndjson ;x"), Some(Format::Lines));
        assert_eq!(format("text/plain"), None);
    }

    #[test]
    fn data_in_binary_mode_is_json_or_passed_over() {
        let attributes = || Attributes {
            specversion: Some("1.0".into()),
            id: Some("a".into()),
            source: Some("s".into()),
            kind: Some("t".into()),
            subject: None,
            time: Some("2024-09-24T22:03:50Z".into()),
        };

        let data = |media_type, data: &'static [u8]| {
            binary(attributes(), media_type, data)
                .map(|event| event.data)
                .map_err(|refusal| refusal.code)
        };

        assert_eq!(data("application/json", b"[1]"), Ok("[1]"));
        assert_eq!(data("application/x+json", b"{}"), Ok("{}"));
        assert_eq!(data("", b""), Ok(""));
        assert_eq!(data("image/png", b"\xff"), Ok(""));
        assert_eq!(data("", b"\xff"), Err(Code::EventMalformed));
        assert_eq!(data("", b"{"), Err(Code::EventMalformed));

        let deep = ["[".repeat(JSON_DEPTH_MAX + 1), "]".repeat(JSON_DEPTH_MAX + 1)].concat();
        let refusal = binary(attributes(), "", deep.as_bytes()).unwrap_err();
        assert_eq!(refusal.code, Code::EventMalformed);
    }

    proptest! {
        #[test]
        fn any_body_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for format in [Format::Json, Format::Batch, Format::Lines] {
                if let Ok(events) = Events::new(format, &bytes) {
                    prop_assert!(events.count() <= bytes.len() + 1);
                }
            }
        }

        /// Lines are those that `str::lines` has, without blanks.
        #[test]
        fn lines_are_those_of_the_text(text in "[ab \n\r]{0,40}") {
            let found: Vec<&[u8]> = Lines { rest: Some(text.as_bytes()) }.collect();
            let expected: Vec<&[u8]> = text
                .split('\n')
                .map(|line| line.trim_ascii().as_bytes())
                .filter(|line| !line.is_empty())
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}

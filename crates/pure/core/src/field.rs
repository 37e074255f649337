//! Fields of an event: how a counter names them, and what they hold.

use crate::event::Event;
use rust_decimal::Decimal;
use std::borrow::Cow;
use std::fmt;

/// A field as a template, a filter or a value names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    Id,
    Source,
    Type,
    Subject,
    /// A path into `data`, one name a step.
    Data(Box<[Box<str>]>),
}

impl Field {
    /// A name inside a template's braces: `{source}` and `{subject}` are the event's own,
    /// `{city_id}` and `{data.city_id}` lie in its data.
    pub fn of_template(name: &str) -> Option<Self> {
        match name {
            "source" => Some(Self::Source),
            "subject" => Some(Self::Subject),
            _ => Self::of_data(name.strip_prefix("data.").unwrap_or(name)),
        }
    }

    /// The left-hand side of a condition or the field of a value: `data.…`, or an attribute of the
    /// event.
    pub fn of_path(path: &str) -> Option<Self> {
        match path {
            "id" => Some(Self::Id),
            "source" => Some(Self::Source),
            "type" => Some(Self::Type),
            "subject" => Some(Self::Subject),
            _ => Self::of_data(path.strip_prefix("data.")?),
        }
    }

    fn of_data(path: &str) -> Option<Self> {
        let steps: Box<[Box<str>]> = path.split('.').map(Box::from).collect();
        steps.iter().all(|step| is_name(step)).then_some(Self::Data(steps))
    }
}

/// Whether a step of a path can be written in a template and in a condition.
fn is_name(step: &str) -> bool {
    !step.is_empty() && !step.contains(['{', '}', ':'])
}

impl fmt::Display for Field {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id => out.write_str("id"),
            Self::Source => out.write_str("source"),
            Self::Type => out.write_str("type"),
            Self::Subject => out.write_str("subject"),
            Self::Data(steps) => write!(out, "data.{}", steps.join(".")),
        }
    }
}

/// What a field holds. Null, arrays and objects hold nothing that can be counted by.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar<'a> {
    Text(Cow<'a, str>),
    /// The number as it was written.
    Number(Cow<'a, str>),
    Bool(bool),
}

impl<'a> Scalar<'a> {
    /// Reads the scalar out of one JSON value; `None` for null, arrays, objects and malformed text.
    fn of_json(raw: Cow<'a, str>) -> Option<Self> {
        match raw.as_bytes().first()? {
            b'"' => match raw {
                Cow::Borrowed(text) => Self::of_json_string(text),
                Cow::Owned(text) => {
                    serde_json::from_str(&text).ok().map(|text| Self::Text(Cow::Owned(text)))
                }
            },
            b't' => Some(Self::Bool(true)),
            b'f' => Some(Self::Bool(false)),
            b'-' | b'0'..=b'9' => Some(Self::Number(raw)),
            _ => None,
        }
    }

    fn of_json_string(quoted: &'a str) -> Option<Self> {
        let text = quoted.get(1..quoted.len() - 1)?;
        if memchr::memchr(b'\\', text.as_bytes()).is_none() {
            return Some(Self::Text(Cow::Borrowed(text)));
        }
        serde_json::from_str(quoted).ok().map(|text| Self::Text(Cow::Owned(text)))
    }

    /// The text that a template renders.
    pub fn as_text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Number(text) => text,
            Self::Bool(true) => "true",
            Self::Bool(false) => "false",
        }
    }

    /// The exact number, when this is one that fits 28 digits.
    pub fn as_decimal(&self) -> Option<Decimal> {
        match self {
            Self::Number(text) => parse_decimal(text),
            _ => None,
        }
    }
}

/// A JSON number as an exact decimal; `None` when it has more than 28 digits.
pub fn parse_decimal(text: &str) -> Option<Decimal> {
    match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => shifted(mantissa, exponent),
        None => Decimal::from_str_exact(text).ok(),
    }
}

/// A number with an exponent, without rounding.
fn shifted(mantissa: &str, exponent: &str) -> Option<Decimal> {
    let mantissa = Decimal::from_str_exact(mantissa).ok()?.normalize();
    if mantissa.is_zero() {
        return Some(Decimal::ZERO);
    }

    let scale = i64::from(mantissa.scale()).checked_sub(exponent.parse().ok()?)?;
    let (digits, scale) = match u32::try_from(scale) {
        Ok(scale) => (mantissa.mantissa(), scale),
        Err(_) => {
            let zeros = u32::try_from(scale.unsigned_abs()).ok()?;
            (mantissa.mantissa().checked_mul(10_i128.checked_pow(zeros)?)?, 0)
        }
    };
    Decimal::try_from_i128_with_scale(digits, scale).ok()
}

/// Reads the `fields` of an event into `found`, in their order; the data is walked once.
/// Where an object repeats a name, the last one counts, as in most parsers of JSON.
pub fn extract<'a>(event: &Event<'a>, fields: &[Field], found: &mut Vec<Option<Scalar<'a>>>) {
    found.clear();
    found.resize(fields.len(), None);

    let mut in_data = false;
    for (field, slot) in fields.iter().zip(found.iter_mut()) {
        *slot = match field {
            Field::Id => Some(Scalar::Text(event.id.clone())),
            Field::Source => Some(Scalar::Text(event.source.clone())),
            Field::Type => Some(Scalar::Text(event.kind.clone())),
            Field::Subject => event.subject.clone().map(Scalar::Text),
            Field::Data(_) => {
                in_data = true;
                None
            }
        };
    }

    if in_data {
        walk(Cow::Borrowed(event.data), fields, 0, &mut |_| true, found);
    }
}

/// Visits the members of one object and fills the fields whose path runs through it.
/// `on_path` is whether the steps above this object are those of a field.
fn walk<'a>(
    json: Cow<'a, str>,
    fields: &[Field],
    depth: usize,
    on_path: &mut dyn FnMut(&[Box<str>]) -> bool,
    found: &mut [Option<Scalar<'a>>],
) {
    let Cow::Borrowed(json) = json else { return };
    if !json.trim_ascii_start().starts_with('{') {
        return;
    }

    for member in sonic_rs::to_object_iter(json) {
        let Ok((name, value)) = member else { return };
        let mut nested = false;
        for (field, slot) in fields.iter().zip(found.iter_mut()) {
            let Field::Data(steps) = field else { continue };
            if steps.get(depth).is_none_or(|step| **step != *name) || !on_path(steps) {
                continue;
            }

            if steps.len() == depth + 1 {
                *slot = Scalar::of_json(value.as_raw_cow());
            } else {
                *slot = None;
                nested = true;
            }
        }

        if nested {
            let mut deeper = |steps: &[Box<str>]| *steps[depth] == *name && on_path(steps);
            walk(value.as_raw_cow(), fields, depth + 1, &mut deeper, found);
        }
    }
}

/// Visits every scalar in the data of an event, with its path such as `data.address.city`, down to
/// `depth_max` names. What no path can name, and what [`extract`] would not find, is passed over. A
/// repeated name is visited each time.
pub fn visit<'a>(data: &'a str, depth_max: usize, mut each: impl FnMut(&str, Scalar<'a>)) {
    visit_object(data, depth_max, &mut String::from("data"), &mut each);
}

fn visit_object<'a>(
    json: &'a str,
    depth_left: usize,
    path: &mut String,
    each: &mut dyn FnMut(&str, Scalar<'a>),
) {
    if depth_left == 0 || !json.trim_ascii_start().starts_with('{') {
        return;
    }
    for member in sonic_rs::to_object_iter(json) {
        let Ok((name, value)) = member else { return };
        if !is_name(&name) || name.contains('.') {
            continue;
        }

        let len = path.len();
        path.push('.');
        path.push_str(&name);

        match value.as_raw_cow() {
            Cow::Borrowed(object) if object.starts_with('{') => {
                visit_object(object, depth_left - 1, path, each)
            }
            raw => {
                if let Some(scalar) = Scalar::of_json(raw) {
                    each(path, scalar);
                }
            }
        }

        path.truncate(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visited(data: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        visit(data, 3, |path, scalar| found.push((path.to_owned(), scalar.as_text().to_owned())));
        found
    }

    #[test]
    fn visiting_finds_what_paths_can_name() {
        let data = r#"{"a": 12.50, "b": {"c": "x", "d": {"e": true, "f": {"g": 1}}}, "h": null, "i": [1], "j.k": 1, "l:m": 1, "": 1}"#;
        let found = visited(data);
        let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["data.a", "data.b.c", "data.b.d.e"]);
        assert_eq!(
            extracted(data, &paths),
            found.into_iter().map(|(_, text)| Some(text)).collect::<Vec<_>>()
        );
        for data in ["", "7", "[{\"a\": 1}]", "{\"a\""] {
            assert_eq!(visited(data), [], "{data}");
        }
    }

    #[test]
    fn a_number_is_exact_or_none() {
        let read = |text: &str| parse_decimal(text).map(|number| number.normalize().to_string());
        for (text, number) in [
            ("1.50e2", "150"),
            ("1.5e-2", "0.015"),
            ("1E+3", "1000"),
            ("-2.5e0", "-2.5"),
            ("0e99", "0"),
            ("1230e-3", "1.23"),
            ("7.9228162514264337593543950335e28", "79228162514264337593543950335"),
        ] {
            assert_eq!(read(text).as_deref(), Some(number), "{text}");
        }

        for text in [
            "1e29",
            "1e-29",
            "1.00000000000000000000000000000001e3",
            "1e99999999999999999999",
            "1e-9999999999",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    fn extracted(data: &str, paths: &[&str]) -> Vec<Option<String>> {
        let event = Event::of_data("t", 0, data);
        let fields: Vec<Field> = paths.iter().map(|path| Field::of_path(path).unwrap()).collect();
        let mut found = Vec::new();
        extract(&event, &fields, &mut found);
        found.iter().map(|slot| slot.as_ref().map(|scalar| scalar.as_text().to_owned())).collect()
    }

    fn some(texts: &[&str]) -> Vec<Option<String>> {
        texts.iter().map(|text| Some((*text).to_owned())).collect()
    }

    #[test]
    fn scalars_keep_the_text_they_were_written_with() {
        let data = r#"{"a": 7, "b": 12.50, "c": "x\"\u00e9", "d": true, "e": null, "f": [1], "g": {"h": {"i": "deep"}}}"#;
        assert_eq!(
            extracted(data, &["data.a", "data.b", "data.c", "data.d", "data.g.h.i"]),
            some(&["7", "12.50", "x\"é", "true", "deep"])
        );
        assert_eq!(
            extracted(data, &["data.e", "data.f", "data.g", "data.none", "data.a.x"]),
            vec![None; 5]
        );
    }

    #[test]
    fn paths_do_not_leak_into_other_objects() {
        let data = r#"{"a": {"x": 1}, "b": {"x": 2, "y": {"x": 3}}, "x": 4}"#;
        assert_eq!(
            extracted(data, &["data.a.x", "data.b.x", "data.b.y.x", "data.x"]),
            some(&["1", "2", "3", "4"])
        );
        assert_eq!(extracted(data, &["data.a.y.x"]), vec![None]);
    }

    #[test]
    fn the_last_of_repeated_names_counts() {
        assert_eq!(extracted(r#"{"a": 1, "a": 2}"#, &["data.a"]), some(&["2"]));
        assert_eq!(extracted(r#"{"a": {"b": 1}, "a": {}}"#, &["data.a.b"]), vec![None]);
    }

    #[test]
    fn names_of_fields() {
        assert_eq!(Field::of_template("data.a.b"), Field::of_path("data.a.b"));
        assert_eq!(Field::of_template("subject"), Some(Field::Subject));
        for wrong in ["", "data.", "a..b", "data", "amount"] {
            assert_eq!(Field::of_path(wrong), None, "{wrong}");
        }
    }
}

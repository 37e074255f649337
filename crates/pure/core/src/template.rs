//! Templates: how an event's fields become a key, and how a key leads back to its counter.
//!
//! A template is a row of segments separated by `:`. A segment is literal text, or holds one
//! `{field}` with optional literal text before and behind it. In values, `:`, `%` and control
//! characters are percent-encoded, so a value never spans segments: the segments of a key are those
//! of its template.
//!
//! ```text
//! rain_drops:city:{city_id}     city_id = "a:b"     rain_drops:city:a%3Ab
//! ```

use crate::field::{Field, Scalar};
use crate::limits::{KEY_LEN_MAX, TEMPLATE_FIELDS_MAX, TEMPLATE_LEN_MAX};

/// A template that has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: Box<str>,
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(Box<str>),
    Field { prefix: Box<str>, field: Field, suffix: Box<str> },
}

impl Template {
    /// Checks a template. All problems are reported together.
    pub fn parse(text: &str) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        if text.is_empty() || text.len() > TEMPLATE_LEN_MAX {
            problems.push(format!("template must have 1 to {TEMPLATE_LEN_MAX} bytes"));
        }

        if text.chars().any(|char| char.is_control()) {
            problems.push("template must not hold control characters".to_owned());
        }
        let mut segments = Vec::new();
        for part in text.split(':') {
            match parse_segment(part) {
                Ok(segment) => segments.push(segment),
                Err(problem) => problems.push(problem),
            }
        }

        let fields =
            segments.iter().filter(|segment| matches!(segment, Segment::Field { .. })).count();
        if fields > TEMPLATE_FIELDS_MAX {
            problems.push(format!("template has more than {TEMPLATE_FIELDS_MAX} fields"));
        }
        if problems.is_empty() { Ok(Self { text: text.into(), segments }) } else { Err(problems) }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The fields, in the order in which [`render`](Self::render) asks for them.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Field { field, .. } => Some(field),
            Segment::Literal(_) => None,
        })
    }

    /// Appends the key for these field values to `key`. Answers `false`, and the key is of no use,
    /// when a value is missing or the key grows too long.
    pub fn render<'v, 'a: 'v>(
        &self,
        mut values: impl Iterator<Item = Option<&'v Scalar<'a>>>,
        key: &mut String,
    ) -> bool {
        for (index, segment) in self.segments.iter().enumerate() {
            if index > 0 {
                key.push(':');
            }
            match segment {
                Segment::Literal(text) => key.push_str(text),
                Segment::Field { prefix, suffix, .. } => {
                    let Some(Some(value)) = values.next() else {
                        return false;
                    };
                    key.push_str(prefix);
                    push_escaped(value.as_text(), key);
                    key.push_str(suffix);
                }
            }
        }
        key.len() <= KEY_LEN_MAX
    }

    /// Whether this template could have rendered `key`.
    pub fn matches(&self, key: &str) -> bool {
        let mut parts = key.split(':');
        let all = self
            .segments
            .iter()
            .all(|segment| parts.next().is_some_and(|part| segment.matches(part)));
        all && parts.next().is_none()
    }

    /// The field values that render to `key`, unescaped; `None` when the template does not match.
    pub fn values_of(&self, key: &str) -> Option<Vec<String>> {
        if !self.matches(key) {
            return None;
        }
        let parts = self.segments.iter().zip(key.split(':'));
        Some(parts.filter_map(|(segment, part)| segment.value_in(part).map(unescape)).collect())
    }

    /// Whether some key could be rendered by both templates.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.segments.len() == other.segments.len()
            && self.segments.iter().zip(&other.segments).all(|(left, right)| left.overlaps(right))
    }

    /// The text of each segment; `None` for one that holds a field.
    pub fn literals(&self) -> impl Iterator<Item = Option<&str>> {
        self.segments.iter().map(|segment| match segment {
            Segment::Literal(text) => Some(&**text),
            Segment::Field { .. } => None,
        })
    }
}

impl Segment {
    /// The escaped value inside a segment of a key that fits this segment's literals.
    fn value_in<'k>(&self, part: &'k str) -> Option<&'k str> {
        match self {
            Self::Literal(_) => None,
            Self::Field { prefix, suffix, .. } => {
                part.strip_prefix(&**prefix)?.strip_suffix(&**suffix)
            }
        }
    }

    fn matches(&self, part: &str) -> bool {
        match self {
            Self::Literal(text) => **text == *part,
            Self::Field { .. } => self.value_in(part).is_some_and(is_escaped),
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Literal(left), Self::Literal(right)) => left == right,
            (Self::Literal(text), field) | (field, Self::Literal(text)) => {
                field.value_in(text).is_some()
            }
            (
                Self::Field { prefix: left_prefix, suffix: left_suffix, .. },
                Self::Field { prefix: right_prefix, suffix: right_suffix, .. },
            ) => {
                (left_prefix.starts_with(&**right_prefix)
                    || right_prefix.starts_with(&**left_prefix))
                    && (left_suffix.ends_with(&**right_suffix)
                        || right_suffix.ends_with(&**left_suffix))
            }
        }
    }
}

fn parse_segment(part: &str) -> Result<Segment, String> {
    let Some(open) = part.find('{') else {
        if part.contains('}') {
            return Err(format!("segment `{part}` has a `}}` without a `{{`"));
        }
        return Ok(Segment::Literal(part.into()));
    };

    let prefix = &part[..open];
    let rest = &part[open + 1..];
    let Some(close) = rest.find('}') else {
        return Err(format!("segment `{part}` has a `{{` without a `}}`"));
    };
    let name = &rest[..close];
    let suffix = &rest[close + 1..];
    if prefix.contains('}') || suffix.contains(['{', '}']) {
        return Err(format!(
            "segment `{part}` must hold one {{field}} at most: separate two fields by `:`, or no key could be led back"
        ));
    }

    let Some(field) = Field::of_template(name) else {
        return Err(format!(
            "`{{{name}}}` is not a field: write {{city_id}}, {{address.city}}, {{source}} or {{subject}}"
        ));
    };
    Ok(Segment::Field { prefix: prefix.into(), field, suffix: suffix.into() })
}

fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || matches!(byte, b':' | b'%' | 0x7f)
}

/// Appends a value with `:`, `%` and ASCII control characters percent-encoded in upper case.
pub fn push_escaped(value: &str, key: &mut String) {
    if !value.bytes().any(needs_escape) {
        return key.push_str(value);
    }
    for char in value.chars() {
        if char.is_ascii() && needs_escape(char as u8) {
            key.push('%');
            for digit in [char as u32 / 16, char as u32 % 16] {
                key.extend(char::from_digit(digit, 16).map(|digit| digit.to_ascii_uppercase()));
            }
        } else {
            key.push(char);
        }
    }
}

/// Whether a text is what [`push_escaped`] makes of some value, and of that value alone.
fn is_escaped(text: &str) -> bool {
    if !text.bytes().any(needs_escape) {
        return true;
    }
    let mut again = String::with_capacity(text.len());
    push_escaped(&unescape(text), &mut again);
    again == text
}

fn unescape(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        value.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code.filter(u8::is_ascii) {
            Some(code) => {
                value.push(char::from(code));
                rest = &rest[at + 3..];
            }
            None => {
                value.push('%');
                rest = &rest[at + 1..];
            }
        }
    }

    value.push_str(rest);
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn template(text: &str) -> Template {
        Template::parse(text).unwrap()
    }

    fn render(template: &Template, values: &[&str]) -> Option<String> {
        let scalars: Vec<Scalar> =
            values.iter().map(|value| Scalar::Text((*value).into())).collect();
        let mut key = String::new();
        template.render(scalars.iter().map(Some), &mut key).then_some(key)
    }

    #[test]
    fn rendering_and_escaping() {
        let drops = template("rain_drops:city:{city_id}");
        assert_eq!(render(&drops, &["111222"]).unwrap(), "rain_drops:city:111222");
        assert_eq!(render(&drops, &["a:b%\n"]).unwrap(), "rain_drops:city:a%3Ab%25%0A");
        assert_eq!(render(&drops, &["São Paulo"]).unwrap(), "rain_drops:city:São Paulo");
        assert_eq!(render(&drops, &[&"x".repeat(KEY_LEN_MAX)]), None);
        assert_eq!(render(&drops, &[]), None);
    }

    #[test]
    fn only_canonical_keys_match() {
        let drops = template("rain_drops:city:{city_id}");
        for key in ["rain_drops:city:1", "rain_drops:city:", "rain_drops:city:a%3Ab"] {
            assert!(drops.matches(key), "{key}");
        }

        for key in [
            "rain_drops:city",
            "rain_drops:city:1:2",
            "rain_drops:town:1",
            "rain_drops:city:a%3ab",
            "rain_drops:city:%",
            "rain_drops:city:%41",
        ] {
            assert!(!drops.matches(key), "{key}");
        }
    }

    #[test]
    fn conflicts() {
        for (left, right, overlap) in [
            ("a:{x}", "a:{y}", true),
            ("a:{x}", "a:b", true),
            ("a:{x}", "b:{x}", false),
            ("a:{x}", "a:{x}:{y}", false),
            ("a:{x}:c", "a:b:{y}", true),
            ("a:{x}:c", "a:b:d", false),
            ("a:v{x}", "a:w{x}", false),
            ("a:v{x}", "a:v1{x}", true),
            ("a:{x}_day", "a:{x}_hour", false),
            ("{x}:b", "a:{y}", true),
        ] {
            assert_eq!(template(left).overlaps(&template(right)), overlap, "{left} {right}");
            assert_eq!(template(right).overlaps(&template(left)), overlap, "{right} {left}");
        }
    }

    #[test]
    fn wrong_templates_say_all_that_is_wrong() {
        assert_eq!(Template::parse("a:{x}{y}:{").unwrap_err().len(), 2);
        for wrong in ["", "a:}", "a:{}", "a:{x", "a:\u{1}", "a:{x}-{y}", "a:{.}"] {
            assert!(Template::parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn rendering_then_matching_leads_back(
            values in proptest::collection::vec(any::<String>(), 3),
        ) {
            let template = template("t:{a}:x{b}y:{c.d}");
            let texts: Vec<&str> = values.iter().map(String::as_str).collect();
            if let Some(key) = render(&template, &texts) {
                prop_assert!(template.matches(&key));
                prop_assert_eq!(template.values_of(&key).unwrap(), values);
            }
        }

        /// Different values never make the same key, and no value makes a key of another template.
        #[test]
        fn no_value_forges_another_key(
            left in proptest::collection::vec("[a:%3A{}x\\PC]{0,6}", 2),
            right in proptest::collection::vec("[a:%3A{}x\\PC]{0,6}", 2),
        ) {
            let template = template("k:{a}:{b}");
            let of = |values: &[String]| render(&template, &[&values[0], &values[1]]).unwrap();
            prop_assert_eq!(of(&left) == of(&right), left == right);
            let other = Template::parse("k:{a}:{b}:{c}").unwrap();
            prop_assert!(!other.matches(&of(&left)));
        }

        #[test]
        fn any_text_is_parsed_or_refused(
            text in "[{}:a.%\\PC]{0,24}",
            key in "[{}:a.%3A\\PC]{0,24}",
        ) {
            if let Ok(template) = Template::parse(&text) {
                let _ = (template.matches(&key), template.values_of(&key));
            }
        }

        /// When a key matches two templates, those templates were refused as conflicting.
        #[test]
        fn a_shared_key_means_a_conflict(
            left in "([ab]{0,2}(\\{x\\})?[ab]{0,2})(:[ab]{0,1}(\\{y\\})?[ab]{0,1}){0,2}",
            right in "([ab]{0,2}(\\{x\\})?[ab]{0,2})(:[ab]{0,1}(\\{y\\})?[ab]{0,1}){0,2}",
            key in "[ab]{0,3}(:[ab]{0,3}){0,2}",
        ) {
            if let (Ok(left), Ok(right)) = (Template::parse(&left), Template::parse(&right))
                && left.matches(&key)
                && right.matches(&key)
            {
                prop_assert!(left.overlaps(&right));
            }
        }
    }
}

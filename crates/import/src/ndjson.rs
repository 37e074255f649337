//! One JSON object a line.

use crate::plan::{Columns, Value};
use raingauge_core::event::{Event, Rejection};
use raingauge_core::field::{Field, Scalar, extract};
use raingauge_core::limits::EVENT_LEN_MAX;
use std::borrow::Cow;
use std::str::Utf8Error;

/// A member for each column; dots in a name reach inside.
pub(crate) fn members(columns: &[String]) -> Vec<Field> {
    columns.iter().map(|name| Field::Data(name.split('.').map(Box::from).collect())).collect()
}

/// The members of one line that the mapping names.
pub(crate) struct Object<'a>(Vec<Option<Scalar<'a>>>);

impl<'a> Object<'a> {
    /// Answers the line as text, too, for it may be the event's data as a whole.
    pub(crate) fn read(line: &'a [u8], members: &[Field]) -> Result<(Self, &'a str), Rejection> {
        if line.len() > EVENT_LEN_MAX {
            let detail = format!("the line has {} bytes; at most {EVENT_LEN_MAX} are taken", line.len());
            return Err(Rejection::new("event_too_large", detail));
        }
        let text = std::str::from_utf8(line)
            .map_err(|_| Rejection::new("row_not_utf8", "the line holds bytes that are not UTF-8"))?
            .trim_ascii();
        if !text.starts_with('{') {
            return Err(Rejection::new("row_malformed", "the line is not a JSON object"));
        }
        // The walk below does not look at what it passes over, but what is kept must be JSON throughout.
        sonic_rs::from_str::<serde::de::IgnoredAny>(text).map_err(|error| {
            let reason = error.to_string();
            let detail = format!("the line is not JSON: {}", reason.lines().next().unwrap_or_default());
            Rejection::new("row_malformed", detail)
        })?;
        let nothing = Cow::Borrowed("");
        let event = Event {
            id: nothing.clone(),
            source: nothing.clone(),
            kind: nothing,
            subject: None,
            time_ms: 0,
            data: text,
        };
        let mut found = Vec::with_capacity(members.len());
        extract(&event, members, &mut found);
        Ok((Self(found), text))
    }
}

impl Columns for Object<'_> {
    fn value(&self, column: usize) -> Result<Value<'_>, Utf8Error> {
        Ok(match &self.0[column] {
            None => Value::Missing,
            Some(Scalar::Text(text)) => Value::Text(text),
            Some(Scalar::Number(text)) => Value::Number(text),
            Some(Scalar::Bool(is)) => Value::Bool(*is),
        })
    }
}

//! Events: CloudEvents 1.0, read without copying what need not be copied.

use crate::code::{Code, Refusal};
use crate::json::Text;
use crate::limits::{ATTRIBUTE_LEN_MAX, EVENT_LEN_MAX};
use crate::time::{is_countable_s, parse_rfc3339_ms};
use serde::Deserialize;
use sonic_rs::LazyValue;
use std::borrow::Cow;

/// One thing that happened. `source` and `id` together identify it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    pub id: Cow<'a, str>,
    pub source: Cow<'a, str>,
    /// The CloudEvents attribute `type`.
    pub kind: Cow<'a, str>,
    pub subject: Option<Cow<'a, str>>,
    /// When it happened, in milliseconds since 1970.
    pub time_ms: i64,
    /// The event's data as JSON text; empty when there is none, or none in JSON.
    pub data: &'a str,
    /// Keys under which the event does not count, because their counters were full when it was
    /// accepted: the [hash](key_hash) of each in 8 bytes, little-endian.
    pub refused_keys: Cow<'a, [u8]>,
}

/// XXH3-64 of a key. Templates of different counters never render the same key, so that the hash
/// identifies the counter too.
pub fn key_hash(key: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key.as_bytes())
}

/// The attributes that are read. All others, extensions among them, are ignored.
#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    specversion: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    source: Option<Text<'a>>,
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    subject: Option<Text<'a>>,
    #[serde(borrow)]
    time: Option<Text<'a>>,
    #[serde(borrow)]
    data: Option<LazyValue<'a>>,
}

impl<'a> Event<'a> {
    /// Reads one event in the JSON format of CloudEvents 1.0.
    pub fn from_json(json: &'a [u8]) -> Result<Self, Refusal> {
        check_len(json.len())?;
        Self::from_accepted_json(json)
    }

    /// Reads an event that was accepted before. It may be longer in this form than in the one in
    /// which it came.
    pub fn from_accepted_json(json: &'a [u8]) -> Result<Self, Refusal> {
        // Checked here, because the parser does not look at the bytes that it skips.
        let json = std::str::from_utf8(json).map_err(|error| malformed(&error.to_string()))?;
        crate::json::check_depth(json)
            .map_err(|detail| Refusal::new(Code::EventMalformed, detail))?;

        let wire: Wire<'a> =
            sonic_rs::from_str(json).map_err(|error| malformed(&error.to_string()))?;
        let data = match wire.data.as_ref().map(LazyValue::as_raw_cow) {
            Some(Cow::Borrowed(text)) => text,
            // The parser copies only a lone string, which has no fields to count by.
            Some(Cow::Owned(_)) | None => "",
        };

        check_escapes(data)?;
        let attributes = Attributes {
            specversion: wire.specversion.map(|text| text.0),
            id: wire.id.map(|text| text.0),
            source: wire.source.map(|text| text.0),
            kind: wire.kind.map(|text| text.0),
            subject: wire.subject.map(|text| text.0),
            time: wire.time.map(|text| text.0),
        };
        attributes.into_event(data)
    }

    /// An event of a type with this data, for tests.
    #[doc(hidden)]
    pub fn of_data(kind: &'a str, time_ms: i64, data: &'a str) -> Self {
        let refused_keys = Cow::default();
        Self {
            id: "1".into(),
            source: "test".into(),
            kind: kind.into(),
            subject: None,
            time_ms,
            data,
            refused_keys,
        }
    }

    /// Whether the event does not count under a key, because the key was one too many.
    pub fn refuses(&self, key: &str) -> bool {
        if self.refused_keys.is_empty() {
            return false;
        }
        let hash = key_hash(key).to_le_bytes();
        self.refused_keys.chunks_exact(hash.len()).any(|refused| refused == hash)
    }

    /// When it happened, in whole seconds since 1970.
    pub fn time_s(&self) -> i64 {
        self.time_ms.div_euclid(1_000)
    }

    /// Refuses an event that claims to come from later than `now_s + allowance_s`.
    pub fn check_not_future(&self, now_s: i64, allowance_s: i64) -> Result<(), Refusal> {
        if self.time_s() <= now_s + allowance_s {
            return Ok(());
        }
        let ahead_s = self.time_s() - now_s;
        Err(Refusal::new(
            Code::TimeInFuture,
            format!(
                "time lies {ahead_s} s ahead of this server's clock; at most {allowance_s} s are allowed: check the producer's clock"
            ),
        ))
    }
}

/// The attributes of an event before they are checked.
#[derive(Clone, Debug, Default)]
pub struct Attributes<'a> {
    pub specversion: Option<Cow<'a, str>>,
    pub id: Option<Cow<'a, str>>,
    pub source: Option<Cow<'a, str>>,
    pub kind: Option<Cow<'a, str>>,
    pub subject: Option<Cow<'a, str>>,
    pub time: Option<Cow<'a, str>>,
}

impl<'a> Attributes<'a> {
    /// Checks the attributes and joins them with `data`, which must be JSON text or empty.
    pub fn into_event(self, data: &'a str) -> Result<Event<'a>, Refusal> {
        check_len(data.len())?;

        if self.specversion.as_deref() != Some("1.0") {
            return Err(Refusal::new(Code::SpecversionUnsupported, "specversion must be \"1.0\""));
        }
        let time = self.time.ok_or_else(|| missing("time"))?;
        let time_ms = parse_rfc3339_ms(time.as_bytes())
            .filter(|time_ms| is_countable_s(time_ms.div_euclid(1_000)))
            .ok_or_else(|| {
                Refusal::new(
                    Code::TimeInvalid,
                    "time must be RFC 3339, such as 2024-09-24T22:03:50Z, from 1970 on",
                )
            })?;

        let subject = self.subject.map(|subject| bounded("subject", subject)).transpose()?;
        Ok(Event {
            id: required("id", self.id)?,
            source: required("source", self.source)?,
            kind: required("type", self.kind)?,
            subject,
            time_ms,
            data,
            refused_keys: Default::default(),
        })
    }
}

/// Checks escapes in strings that the parser skips.
fn check_escapes(data: &str) -> Result<(), Refusal> {
    if memchr::memchr(b'\\', data.as_bytes()).is_none() {
        return Ok(());
    }
    serde_json::from_str::<serde::de::IgnoredAny>(data)
        .map(|_| ())
        .map_err(|error| malformed(&error.to_string()))
}

fn malformed(reason: &str) -> Refusal {
    let reason = reason.lines().next().unwrap_or_default();
    Refusal::new(Code::EventMalformed, format!("not a CloudEvent in JSON: {reason}"))
}

/// Refuses an event of more bytes than [`EVENT_LEN_MAX`].
pub fn check_len(len: usize) -> Result<(), Refusal> {
    if len <= EVENT_LEN_MAX {
        return Ok(());
    }
    let detail = format!("the event has {len} bytes; at most {EVENT_LEN_MAX} are taken");
    Err(Refusal::new(Code::EventTooLarge, detail))
}

fn missing(name: &str) -> Refusal {
    Refusal::new(Code::AttributeMissing, format!("the attribute `{name}` is missing or empty"))
}

fn required<'a>(name: &str, value: Option<Cow<'a, str>>) -> Result<Cow<'a, str>, Refusal> {
    bounded(name, value.filter(|value| !value.is_empty()).ok_or_else(|| missing(name))?)
}

fn bounded<'a>(name: &str, value: Cow<'a, str>) -> Result<Cow<'a, str>, Refusal> {
    if value.len() > ATTRIBUTE_LEN_MAX {
        let detail = format!("the attribute `{name}` is longer than {ATTRIBUTE_LEN_MAX} bytes");
        return Err(Refusal::new(Code::AttributeTooLong, detail));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = r#"{"specversion":"1.0","id":"7","source":"s","type":"rain_drop","time":"2024-09-24T22:03:50.25Z","subject":"x","extension":[1,{"a":2}],"data":{"city_id":7}}"#;

    #[test]
    fn a_whole_event() {
        let event = Event::from_json(GOOD.as_bytes()).unwrap();
        assert_eq!((&*event.id, &*event.source, &*event.kind), ("7", "s", "rain_drop"));
        assert_eq!((event.time_ms, event.data), (1_727_215_430_250, r#"{"city_id":7}"#));
        assert_eq!(event.subject.as_deref(), Some("x"));
    }

    #[test]
    fn each_fault_has_its_code() {
        for (from, to, code) in [
            (r#""id":"7","#, "", "attribute_missing"),
            (r#""id":"7""#, r#""id":"""#, "attribute_missing"),
            (r#""id":"7""#, r#""id":7"#, "event_malformed"),
            (r#""source":"s","#, "", "attribute_missing"),
            (r#""type":"rain_drop","#, "", "attribute_missing"),
            (r#""specversion":"1.0""#, r#""specversion":"0.3""#, "specversion_unsupported"),
            ("2024-09-24T22:03:50.25Z", "yesterday", "time_invalid"),
            ("2024-09-24T22:03:50.25Z", "1969-12-31T23:59:59Z", "time_invalid"),
            (r#"{"city_id":7}"#, r#"{"city_id":}"#, "event_malformed"),
            (r#"{"city_id":7}}"#, r#"{"city_id":7}"#, "event_malformed"),
            (r#"{"a":2}"#, r#"{"a"2}"#, "event_malformed"),
            (r#"{"city_id":7}"#, r#"{"city_id":"\u0e9"}"#, "event_malformed"),
        ] {
            let wrong = GOOD.replace(from, to);
            assert_ne!(wrong, GOOD);
            assert_eq!(
                Event::from_json(wrong.as_bytes()).unwrap_err().code.as_str(),
                code,
                "{wrong}"
            );
        }

        let long = GOOD.replace(r#""s""#, &format!("\"{}\"", "s".repeat(ATTRIBUTE_LEN_MAX + 1)));
        assert_eq!(
            Event::from_json(long.as_bytes()).unwrap_err().code.as_str(),
            "attribute_too_long"
        );

        let large = GOOD.replace(r#""7""#, &format!("\"{}\"", "7".repeat(EVENT_LEN_MAX)));
        assert_eq!(
            Event::from_json(large.as_bytes()).unwrap_err().code.as_str(),
            "event_too_large"
        );

        let data = format!(r#"{{"text":"{}"}}"#, "7".repeat(EVENT_LEN_MAX - 20));
        let large = GOOD.replace(r#"{"city_id":7}"#, &data);
        assert!(Event::from_json(large.as_bytes()).is_err());
        assert_eq!(Event::from_accepted_json(large.as_bytes()).unwrap().data, data);
    }

    /// The parser walks what it passes over by recursion; without a bound these would end the
    /// process.
    #[test]
    fn deep_nesting_is_refused() {
        for opening in ["[", "{\"a\":"] {
            let deep = GOOD.replace(r#"{"city_id":7}"#, &opening.repeat(EVENT_LEN_MAX / 8));
            assert_eq!(
                Event::from_json(deep.as_bytes()).unwrap_err().code.as_str(),
                "event_malformed"
            );
        }
    }

    #[test]
    fn data_may_be_anything_or_nothing() {
        for (data, kept) in
            [(r#""text""#, r#""text""#), ("[1]", "[1]"), ("null", ""), (r#""\n""#, "")]
        {
            let json = GOOD.replace(r#"{"city_id":7}"#, data);
            assert_eq!(Event::from_json(json.as_bytes()).unwrap().data, kept, "{data}");
        }
    }

    #[test]
    fn the_future_is_refused_beyond_the_allowance() {
        let event = Event::of_data("t", 1_000_000, "");
        assert!(event.check_not_future(990, 10).is_ok());
        assert_eq!(event.check_not_future(989, 10).unwrap_err().code.as_str(), "time_in_future");
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_event_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let _ = Event::from_json(&bytes);
        }

        /// An event with one byte changed is read or refused; what it holds is still JSON that can
        /// be walked.
        #[test]
        fn a_changed_byte_is_read_or_refused(at in 0..GOOD.len(), byte in any::<u8>()) {
            let mut bytes = GOOD.as_bytes().to_vec();
            bytes[at] = byte;
            if let Ok(event) = Event::from_json(&bytes) {
                let mut found = Vec::new();
                crate::field::extract(
                    &event,
                    &[crate::field::Field::of_path("data.city_id").unwrap()],
                    &mut found,
                );
                if !event.data.is_empty() {
                    prop_assert!(
                        serde_json::from_str::<serde_json::Value>(event.data).is_ok(),
                        "{}",
                        event.data
                    );
                }
            }
        }
    }
}

//! Events as text, in the JSON format of CloudEvents.

use raingauge_core::event::Event;
use raingauge_core::time::format_rfc3339;
use serde::Serialize;
use serde_json::value::RawValue;

/// An event as it is written.
#[derive(Serialize)]
struct Written<'a> {
    specversion: &'static str,
    id: &'a str,
    source: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    time: String,
    /// The data exactly as it came: numbers keep their digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
}

/// An event as JSON, from which [`Event::from_json`] reads it again.
pub fn to_json(event: &Event<'_>) -> Box<RawValue> {
    let written = Written {
        specversion: "1.0",
        id: &event.id,
        source: &event.source,
        kind: &event.kind,
        subject: event.subject.as_deref(),
        time: rfc3339_ms(event.time_ms),
        data: RawValue::from_string(event.data.to_owned()).ok(),
    };
    serde_json::value::to_raw_value(&written).expect("texts are JSON")
}

/// A time with milliseconds, in UTC.
pub fn rfc3339_ms(time_ms: i64) -> String {
    let seconds = format_rfc3339(time_ms.div_euclid(1_000));
    format!("{}.{:03}Z", seconds.trim_end_matches('Z'), time_ms.rem_euclid(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_lead_back() {
        let data = r#"{"amount": 15.00, "note": "a\"b"}"#;
        let event = Event::of_data("order.completed", 1_727_136_000_250, data);
        for event in [Event { subject: Some("bob".into()), ..event.clone() }, event] {
            let json = to_json(&event);
            assert_eq!(Event::from_json(json.get().as_bytes()), Ok(event));
        }
        let bare = Event::of_data("order.completed", 0, "");
        assert_eq!(Event::from_json(to_json(&bare).get().as_bytes()), Ok(bare));
    }
}

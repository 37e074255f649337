//! Events as messages, by the Kafka binding of CloudEvents 1.0.
//!
//! Written in binary mode: attributes are headers (`ce_id`, `ce_source`, …), the value is the data,
//! and the key is the identity as 32 hexadecimal digits. Read in binary and structured mode. A
//! control entry is a message with the header `raingauge-control`; [`control`] decides whether it
//! is obeyed.

use crate::control;
use crate::options::Options;
use raingauge_core::code::{Code, Refusal};
use raingauge_core::decode::{self, Format};
use raingauge_core::event::{Attributes, Event};
use raingauge_core::time::format_rfc3339;
use raingauge_ports::log::Partition;
use raingauge_ports::record::{self, Identity};
use rdkafka::Message;
use rdkafka::message::{Header, Headers, OwnedHeaders};
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

const CONTROL: &str = "raingauge-control";
const CONTENT_TYPE: &str = "content-type";
const SPECVERSION: &str = "ce_specversion";
/// Hashes of keys under which the event does not count, 16 hexadecimal digits each.
const REFUSED_KEYS: &str = "raingauge-refused-keys";

/// A decoded message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading<'a> {
    Event(Event<'a>),
    /// A control entry, with its identity if it is signed.
    Control(&'a [u8], Option<Identity>),
    Refused(Refusal),
}

/// The headers of an event.
pub fn headers_of(event: &Event<'_>) -> OwnedHeaders {
    let time = rfc3339_ms(event.time_ms);
    let mut headers = OwnedHeaders::new_with_capacity(7)
        .insert(header(SPECVERSION, "1.0"))
        .insert(header("ce_id", &event.id))
        .insert(header("ce_source", &event.source))
        .insert(header("ce_type", &event.kind))
        .insert(header("ce_time", &time));

    if let Some(subject) = &event.subject {
        headers = headers.insert(header("ce_subject", subject));
    }

    if !event.data.is_empty() {
        headers = headers.insert(header(CONTENT_TYPE, "application/json"));
    }

    if event.refused_keys.is_empty() {
        return headers;
    }
    let hashes: String = event.refused_keys.iter().map(|byte| format!("{byte:02x}")).collect();
    headers.insert(header(REFUSED_KEYS, &hashes))
}

/// Parses the hashes of that header. Malformed ones refuse no key.
fn refused_keys(value: Option<&[u8]>) -> Cow<'static, [u8]> {
    let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes = value.map(|value| value.chunks(2).map(digits).collect::<Option<Vec<u8>>>());
    bytes.flatten().filter(|bytes| bytes.len().is_multiple_of(8)).unwrap_or_default().into()
}

/// The headers of a control entry.
pub fn control_headers(signature: Option<&str>) -> OwnedHeaders {
    let headers = OwnedHeaders::new_with_capacity(2).insert(header(CONTROL, "1"));
    match signature {
        Some(signature) => headers.insert(header(control::SIGNATURE, signature)),
        None => headers,
    }
}

/// The key of an event's message.
pub fn key_of(identity: Identity) -> String {
    format!("{identity:032x}")
}

fn header<'a>(key: &'a str, value: &'a str) -> Header<'a, &'a str> {
    Header { key, value: Some(value) }
}

fn rfc3339_ms(time_ms: i64) -> String {
    let whole = format_rfc3339(time_ms.div_euclid(1_000));
    match time_ms.rem_euclid(1_000) {
        0 => whole,
        fraction_ms => format!("{}.{fraction_ms:03}Z", whole.trim_end_matches('Z')),
    }
}

/// Decodes a message that was appended at `appended_ms`. A pure function of its arguments.
pub fn read<'a, M: Message>(message: &'a M, appended_ms: i64, options: &Options) -> Reading<'a> {
    // rdkafka panics at a header name that is not UTF-8. Such a message must not end the counting.
    let Ok(headers) = catch_unwind(AssertUnwindSafe(|| KnownHeaders::of(message))) else {
        return Reading::Refused(Refusal::new(
            Code::HeaderMalformed,
            "the name of a header is not UTF-8",
        ));
    };

    let body = message.payload().unwrap_or_default();
    if headers.control {
        let judged = control::judge(
            options,
            message.partition() as u16,
            appended_ms,
            headers.signature,
            body,
        );
        return judged.map_or_else(Reading::Refused, |identity| Reading::Control(body, identity));
    }

    let refused_keys = refused_keys(headers.refused_keys);
    let event =
        headers.into_event(body).map(|event| Event { refused_keys, ..event }).and_then(|event| {
            event.check_not_future(appended_ms.div_euclid(1_000), options.future_allowance_s)?;
            check_partition(&event, message.partition(), options)?;
            Ok(event)
        });
    event.map_or_else(Reading::Refused, Reading::Event)
}

/// Refuses an event that lies in another partition than its repetitions.
fn check_partition(event: &Event<'_>, partition: i32, options: &Options) -> Result<(), Refusal> {
    let Some(partitions) = options.partitions.filter(|_| options.checks_partitions) else {
        return Ok(());
    };
    let own = partition_of(record::identity(&event.source, &event.id), partitions);
    if i32::from(own) == partition {
        return Ok(());
    }
    let detail = format!(
        "the event belongs to partition {own} of {partitions}, by xxh3-128 of its source and id"
    );
    Err(Refusal::new(Code::PartitionWrong, detail))
}

/// The partition of an identity.
pub fn partition_of(identity: Identity, partitions: Partition) -> Partition {
    (identity % Identity::from(partitions)) as Partition
}

/// The headers that are read; the first one of each name counts.
#[derive(Default)]
struct KnownHeaders<'a> {
    control: bool,
    signature: Option<&'a [u8]>,
    content_type: Option<&'a [u8]>,
    specversion: Option<&'a [u8]>,
    id: Option<&'a [u8]>,
    source: Option<&'a [u8]>,
    kind: Option<&'a [u8]>,
    subject: Option<&'a [u8]>,
    time: Option<&'a [u8]>,
    refused_keys: Option<&'a [u8]>,
}

impl<'a> KnownHeaders<'a> {
    fn of<M: Message>(message: &'a M) -> Self {
        let mut known = Self::default();
        let Some(headers) = message.headers() else {
            return known;
        };
        for Header { key, value } in headers.iter() {
            let place = match key {
                SPECVERSION => &mut known.specversion,
                "ce_id" => &mut known.id,
                "ce_source" => &mut known.source,
                "ce_type" => &mut known.kind,
                "ce_subject" => &mut known.subject,
                "ce_time" => &mut known.time,
                control::SIGNATURE => &mut known.signature,
                REFUSED_KEYS => &mut known.refused_keys,
                CONTROL => {
                    known.control = true;
                    continue;
                }
                _ if key.eq_ignore_ascii_case(CONTENT_TYPE) => &mut known.content_type,
                _ => continue,
            };
            *place = place.or(value);
        }

        known
    }

    fn into_event(self, body: &'a [u8]) -> Result<Event<'a>, Refusal> {
        let content_type = self.content_type.map(String::from_utf8_lossy).unwrap_or_default();
        let media_type = decode::media_type(&content_type);
        if self.specversion.is_some() || self.id.is_some() {
            return decode::binary(self.attributes()?, &media_type, body);
        }

        match Format::of(&media_type) {
            Some(Format::Json) => Event::from_json(body),
            Some(Format::Batch) => Err(Refusal::new(
                Code::BatchUnsupported,
                "a message holds one event, since the Kafka binding of CloudEvents has no batches: \
                 send each event as a message",
            )),
            Some(Format::Lines) | None => Err(Refusal::new(
                Code::MediaTypeUnknown,
                format!(
                    "content-type {media_type:?} is not application/cloudevents+json, \
                     and there are no ce_ headers"
                ),
            )),
        }
    }

    fn attributes(&self) -> Result<Attributes<'a>, Refusal> {
        Ok(Attributes {
            specversion: text("ce_specversion", self.specversion)?,
            id: text("ce_id", self.id)?,
            source: text("ce_source", self.source)?,
            kind: text("ce_type", self.kind)?,
            subject: text("ce_subject", self.subject)?,
            time: text("ce_time", self.time)?,
        })
    }
}

fn text<'a>(name: &str, value: Option<&'a [u8]>) -> Result<Option<Cow<'a, str>>, Refusal> {
    let text = value.map(std::str::from_utf8).transpose();
    let text = text.map_err(|_| {
        Refusal::new(Code::EventMalformed, format!("the header {name} is not UTF-8"))
    })?;
    Ok(text.map(Cow::Borrowed))
}

#[cfg(test)]
mod tests;

//! Events, in the protobuf format of CloudEvents.

use super::guard::MessageShare;
use super::proto::io::cloudevents::v1::CloudEvent;
use super::proto::io::cloudevents::v1::cloud_event::CloudEventAttributeValue;
use super::proto::io::cloudevents::v1::cloud_event::Data;
use super::proto::io::cloudevents::v1::cloud_event::cloud_event_attribute_value::Attr;
use super::proto::raingauge::v1 as proto;
use crate::status::refused;
use bytes::{Buf, BufMut, Bytes};
use prost::encoding::{self, DecodeContext, WireType};
use prost::{DecodeError, Message};
use raingauge_app::budget::decoded;
use raingauge_app::{App, Deadline};
use raingauge_core::code::{Code, Refusal};
use raingauge_core::decode::{binary, media_type};
use raingauge_core::event::{Attributes, Event, check_len};
use raingauge_core::limits::EVENTS_PER_REQUEST_MAX;
use raingauge_core::time::{format_rfc3339, is_countable_s};
use raingauge_writer::ingest::{Completion, Intake};
use std::borrow::Cow;
use std::sync::Arc;
use tonic::{Request, Response, Status};

pub struct Service {
    pub app: Arc<App>,
}

#[tonic::async_trait]
impl proto::events_server::Events for Service {
    async fn publish(
        &self,
        request: Request<PublishRequest>,
    ) -> Result<Response<proto::PublishResponse>, Status> {
        let share = request.extensions().get::<Arc<MessageShare>>().cloned();
        let deadline = request.extensions().get::<Deadline>().copied();
        let PublishRequest { events, wait_applied } = request.into_inner();
        let ingest = &self.app.ingest;
        let mut intake = ingest.begin().map_err(refused)?;

        let len = events.iter().map(Bytes::len).sum();
        let taken =
            decoded(len, || events.into_iter().try_for_each(|event| take(&mut intake, event)));
        taken.map_err(refused)?;

        // From here on the events lie in the intake.
        share.inspect(|share| share.release());
        let finished = match (wait_applied, deadline) {
            (true, Some(deadline)) => ingest.finish_by(intake, deadline.for_counting()).await,
            _ => ingest
                .finish(intake, wait_applied)
                .await
                .map(|receipt| Completion { receipt, lag: None }),
        };
        Ok(Response::new(response_of(finished.map_err(refused)?)))
    }
}

/// `raingauge.v1.PublishRequest` with its events still encoded: each is decoded when its turn
/// comes, so that a message of many small parts does not take many times its bytes, and one
/// malformed event is refused alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishRequest {
    /// One more than a request may hold, at most.
    pub events: Vec<Bytes>,
    pub wait_applied: bool,
}

impl Message for PublishRequest {
    fn encode_raw(&self, buffer: &mut impl BufMut) {
        encoding::bytes::encode_repeated(1, &self.events, buffer);
        if self.wait_applied {
            encoding::bool::encode(2, &self.wait_applied, buffer);
        }
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buffer: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        match tag {
            1 if self.events.len() <= EVENTS_PER_REQUEST_MAX => {
                encoding::bytes::merge_repeated(wire_type, &mut self.events, buffer, context)
            }
            2 => encoding::bool::merge(wire_type, &mut self.wait_applied, buffer, context),
            _ => encoding::skip_field(wire_type, tag, buffer, context),
        }
    }

    fn encoded_len(&self) -> usize {
        let flag =
            if self.wait_applied { encoding::bool::encoded_len(2, &self.wait_applied) } else { 0 };
        encoding::bytes::encoded_len_repeated(1, &self.events) + flag
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Decodes one event and takes it, or notes why not.
fn take(intake: &mut Intake, bytes: Bytes) -> Result<(), raingauge_writer::ingest::Error> {
    if let Err(refusal) = check_len(bytes.len()) {
        return intake.push(Err(refusal));
    }
    match CloudEvent::decode(bytes) {
        Ok(event) => intake.push(event_of(&event)),
        Err(error) => {
            let detail = format!("not a CloudEvent in protobuf: {error}");
            intake.push(Err(Refusal::new(Code::EventMalformed, detail)))
        }
    }
}

fn event_of(event: &CloudEvent) -> Result<Event<'_>, Refusal> {
    let kind = attribute(event, "datacontenttype")?.unwrap_or_default();
    let data = match &event.data {
        Some(Data::BinaryData(data)) => data,
        Some(Data::TextData(data)) => data.as_bytes(),
        // A message of a type that is not known here has no fields to count by.
        Some(Data::ProtoData(_)) | None => &[],
    };

    let attributes = Attributes {
        specversion: Some(event.spec_version.as_str().into()),
        id: Some(event.id.as_str().into()),
        source: Some(event.source.as_str().into()),
        kind: Some(event.r#type.as_str().into()),
        subject: attribute(event, "subject")?,
        time: attribute(event, "time")?,
    };
    binary(attributes, &media_type(&kind), data)
}

/// An optional attribute as text, in the form that it has in JSON.
fn attribute<'a>(event: &'a CloudEvent, name: &str) -> Result<Option<Cow<'a, str>>, Refusal> {
    let Some(CloudEventAttributeValue { attr: Some(value) }) = event.attributes.get(name) else {
        return Ok(None);
    };
    match value {
        Attr::CeString(text) | Attr::CeUri(text) | Attr::CeUriRef(text) => {
            Ok(Some(Cow::Borrowed(text)))
        }
        Attr::CeTimestamp(time) if name == "time" => Ok(Some(Cow::Owned(rfc3339_of(time)))),
        _ => Err(Refusal::new(
            Code::EventMalformed,
            format!("the attribute `{name}` has a value of another type"),
        )),
    }
}

/// A timestamp as text; one that no calendar has becomes a text that is no time.
fn rfc3339_of(time: &prost_types::Timestamp) -> String {
    if !is_countable_s(time.seconds) || !(0..1_000_000_000).contains(&time.nanos) {
        return String::new();
    }
    let seconds = format_rfc3339(time.seconds);
    format!("{}.{:03}Z", seconds.trim_end_matches('Z'), time.nanos / 1_000_000)
}

fn response_of(Completion { receipt, lag }: Completion) -> proto::PublishResponse {
    if lag.is_some() {
        metrics::counter!("raingauge_errors_total", "code" => Code::NotAppliedYet.as_str())
            .increment(1);
    }

    let rejected = receipt.rejected.into_iter().map(|refused| proto::Rejected {
        index: refused.index as u32,
        code: refused.refusal.code.as_str().to_owned(),
        detail: refused.refusal.detail,
    });

    proto::PublishResponse {
        accepted: receipt.accepted as u64,
        duplicates: receipt.duplicates as u64,
        rejected: rejected.collect(),
        not_applied_yet: lag.is_some(),
        lag: lag.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same message, as the compiler of protobuf would have it.
    #[derive(Clone, PartialEq, Message)]
    struct Plain {
        #[prost(message, repeated, tag = "1")]
        events: Vec<CloudEvent>,
        #[prost(bool, tag = "2")]
        wait_applied: bool,
    }

    proptest! {
        #[test]
        fn a_request_is_read_as_its_definition_says(
            ids in prop::collection::vec(".{0,9}", 0..9),
            wait_applied: bool,
        ) {
            let event = |id: &String| CloudEvent { id: id.clone(), ..CloudEvent::default() };
            let plain = Plain { events: ids.iter().map(event).collect(), wait_applied };
            let bytes = plain.encode_to_vec();
            let request = PublishRequest::decode(&bytes[..]).unwrap();
            prop_assert_eq!(&request.encode_to_vec(), &bytes);
            prop_assert_eq!(request.encoded_len(), bytes.len());
            let events = request
                .events
                .into_iter()
                .map(|event| CloudEvent::decode(event).unwrap())
                .collect();
            prop_assert_eq!(Plain { events, wait_applied: request.wait_applied }, plain);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = PublishRequest::decode(&bytes[..]);
            if let Ok(event) = CloudEvent::decode(&bytes[..]) {
                let _ = event_of(&event);
            }
        }
    }

    #[test]
    fn no_more_events_are_kept_than_it_takes_to_refuse_them() {
        let mut bytes = [0x0a, 0].repeat(EVENTS_PER_REQUEST_MAX + 100);
        bytes.extend([0x10, 1]);
        let request = PublishRequest::decode(&bytes[..]).unwrap();
        assert_eq!(
            (request.events.len(), request.wait_applied),
            (EVENTS_PER_REQUEST_MAX + 1, true)
        );
    }

    #[test]
    fn a_timestamp_is_a_time_of_the_calendar_or_none() {
        let text = |seconds, nanos| rfc3339_of(&prost_types::Timestamp { seconds, nanos });
        assert_eq!(text(1_727_215_430, 250_999_999), "2024-09-24T22:03:50.250Z");
        assert_eq!(text(0, 0), "1970-01-01T00:00:00.000Z");
        for (seconds, nanos) in [(i64::MAX, 0), (i64::MIN, 0), (-1, 0), (0, -1), (0, 1_000_000_000)]
        {
            assert_eq!(text(seconds, nanos), "", "{seconds} {nanos}");
        }
    }
}

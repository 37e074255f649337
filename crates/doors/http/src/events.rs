//! `POST /v1/events`: one event, an array, lines, or attributes in headers.

use super::Routes;
use super::body::{self, Body};
use super::caller::Answer;
use super::contract::events as doc;
use super::problem::Problem;
use axum::Json;
use axum::extract::{Extension, Query, State};
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use flate2::read::MultiGzDecoder;
use raingauge_app::Role;
use raingauge_app::budget::{BodyShare, decoded};
use raingauge_app::{App, Deadline, Wait};
use raingauge_core::access::Scope;
use raingauge_core::code::{Code, Refusal};
use raingauge_core::decode::{self, Events, Format};
use raingauge_core::event::Attributes;
use raingauge_writer::Ingest;
use raingauge_writer::ingest::{Completion, Intake, Receipt};
use serde_json::json;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;
use tokio::time::timeout_at;

/// Bytes that are unpacked before memory is reserved for them.
const UNPACKED_AT_ONCE: u64 = 256 * 1_024;

pub fn routes() -> Routes {
    Routes::of(Role::Writer).post_unlogged("/v1/events", Scope::EventsWrite, post, doc::post)
}

pub async fn post(
    State(app): State<Arc<App>>,
    Query(parameters): Query<HashMap<String, String>>,
    Extension(deadline): Extension<Deadline>,
    headers: HeaderMap,
    body: Body<body::Events>,
) -> Answer {
    let awaited = Awaited::of(&app, parameters.get("wait").map(String::as_str))?;
    let intake = app.ingest.begin()?;

    // From here on the intake holds the events, and the body returns its share of the budget.
    let (intake, is_single) = take(&headers, body, intake, app.limits.body_bytes_max)?;
    let Completion { receipt, lag } = awaited.finish(&app.ingest, intake, deadline).await?;
    if let Some(lag) = lag {
        return Ok(awaited.not_yet(&receipt, lag).into_response());
    }

    // A single refused event is an error of the whole request, with the same content as in a batch.
    if is_single && let Some(refused) = receipt.rejected.first() {
        return Err(with_receipt(refused.refusal.clone().into(), &receipt));
    }
    Ok(Json(receipt).into_response())
}

/// What the caller waits for after its events are durable.
#[derive(Clone, Copy)]
enum Awaited<'a> {
    Nothing,
    Counting,
    Stage(&'a Wait),
}

impl<'a> Awaited<'a> {
    fn of(app: &'a App, name: Option<&str>) -> Result<Self, Problem> {
        let name = match name {
            None => return Ok(Self::Nothing),
            Some("applied") => return Ok(Self::Counting),
            Some(name) => name,
        };
        let stage = app.waits.iter().find(|wait| wait.name == name);
        stage.map(Self::Stage).ok_or_else(|| {
            let stages = app.waits.iter().map(|wait| format!(" or `{}`", wait.name));
            let detail = format!("wait may be `applied`{}", stages.collect::<String>());
            Problem::new(Code::WaitUnknown, detail)
        })
    }

    /// Makes the events durable, and waits as long as the request may.
    async fn finish(
        self,
        ingest: &Ingest,
        intake: Intake,
        deadline: Deadline,
    ) -> Result<Completion, Problem> {
        let by = deadline.for_counting();
        match self {
            Self::Nothing => {
                Ok(Completion { receipt: ingest.finish(intake, false).await?, lag: None })
            }
            Self::Counting => Ok(ingest.finish_by(intake, by).await?),
            Self::Stage(Wait { stage, .. }) => {
                let (receipt, ends) = ingest.append(intake).await?;
                match timeout_at(by, stage.passed(&ends)).await {
                    Ok(Ok(())) => Ok(Completion { receipt, lag: None }),
                    Ok(Err(reason)) => {
                        Err(with_receipt(Problem::new(Code::Unavailable, reason), &receipt))
                    }
                    Err(_) => Ok(Completion { receipt, lag: Some(stage.lag(&ends)) }),
                }
            }
        }
    }

    /// The events are durable and will be processed, so this is no failure; but the caller waited
    /// for something that has not happened yet.
    fn not_yet(self, receipt: &Receipt, lag: u64) -> Problem {
        let code = match self {
            Self::Stage(wait) => wait.late,
            Self::Nothing | Self::Counting => Code::NotAppliedYet,
        };
        let detail = "the events are durable and will be processed; that takes longer than this request may: to send \
                      them again does not help";
        with_receipt(Problem::new(code, detail), receipt).with("lag", json!(lag))
    }
}

fn with_receipt(problem: Problem, receipt: &Receipt) -> Problem {
    problem
        .with("accepted", json!(receipt.accepted))
        .with("duplicates", json!(receipt.duplicates))
        .with("rejected", json!(receipt.rejected))
}

/// Reads the events of a body, which may be packed. Returns whether it is a single event.
fn take(
    headers: &HeaderMap,
    body: Body<body::Events>,
    mut intake: Intake,
    bytes_max: usize,
) -> Result<(Intake, bool), Problem> {
    match headers.get(header::CONTENT_ENCODING).map(|value| value.as_bytes()) {
        None | Some(b"identity") => {
            let is_single = decoded(body.bytes.len(), || read(headers, &body.bytes, &mut intake))?;
            Ok((intake, is_single))
        }
        // A short body may be long when it is unpacked.
        Some(b"gzip") => tokio::task::block_in_place(|| {
            let Body { bytes, mut share, .. } = body;
            let plain = unpacked(&bytes, &mut share, bytes_max)?;
            drop(bytes);
            share.resize(plain.len())?;

            let is_single = read(headers, &plain, &mut intake)?;
            Ok((intake, is_single))
        }),
        Some(_) => {
            Err(Problem::new(Code::EncodingUnknown, "content-encoding may be gzip, or be left out"))
        }
    }
}

/// Unpacks gzip, and reserves memory for the result.
fn unpacked(packed: &[u8], share: &mut BodyShare, bytes_max: usize) -> Result<Vec<u8>, Problem> {
    let mut decoder = MultiGzDecoder::new(packed);
    let mut plain = Vec::new();

    loop {
        let read = (&mut decoder).take(UNPACKED_AT_ONCE).read_to_end(&mut plain).map_err(|_| {
            Problem::new(Code::GzipMalformed, "the body is not gzip, as its content-encoding says")
        })?;
        if plain.len() > bytes_max {
            let detail = format!(
                "the body has more than {bytes_max} bytes when it is unpacked: send it in parts"
            );
            return Err(Problem::new(Code::BodyTooLarge, detail));
        }

        share.resize(packed.len() + plain.len())?;

        if read == 0 {
            return Ok(plain);
        }
    }
}

/// Reads the events of a body. Returns whether the body is one event, rather than a list.
fn read(headers: &HeaderMap, body: &[u8], intake: &mut Intake) -> Result<bool, Problem> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = decode::media_type(content_type.unwrap_or_default());
    if headers.contains_key("ce-specversion") || headers.contains_key("ce-id") {
        let attributes = attributes_of(headers);
        intake.push(attributes.and_then(|found| decode::binary(found, &media_type, body)))?;
        return Ok(true);
    }

    let format = Format::of(&media_type).ok_or_else(|| {
        let detail = "content-type must be application/cloudevents+json, \
                      application/cloudevents-batch+json or application/x-ndjson, \
                      or the attributes must come in ce- headers";
        Problem::new(Code::MediaTypeUnknown, detail)
    })?;

    if format == Format::Lines {
        // An entry of the log has no attribute names, and is shorter than its line.
        intake.reserve(body.len());
    }

    let events = Events::new(format, body)?;
    let is_single = events.is_single();

    for json in events {
        intake.push_json(json?)?;
    }
    Ok(is_single)
}

/// The attributes of an event in the binary mode of the CloudEvents HTTP binding.
fn attributes_of(headers: &HeaderMap) -> Result<Attributes<'_>, Refusal> {
    let malformed = |detail: &str| Refusal::new(Code::EventMalformed, detail);
    let attribute = |name: &str| -> Result<Option<Cow<'_, str>>, Refusal> {
        let Some(value) = headers.get(name) else {
            return Ok(None);
        };
        let text = value
            .to_str()
            .map_err(|_| malformed("attributes in headers must be percent-encoded ASCII"))?;
        percent_decoded(text)
            .map(Some)
            .ok_or_else(|| malformed("an attribute in a header is badly percent-encoded"))
    };

    Ok(Attributes {
        specversion: attribute("ce-specversion")?,
        id: attribute("ce-id")?,
        source: attribute("ce-source")?,
        kind: attribute("ce-type")?,
        subject: attribute("ce-subject")?,
        time: attribute("ce-time")?,
    })
}

fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;

        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }

        let (hex, tail) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?);
        rest = tail;
    }

    String::from_utf8(bytes).ok().map(Cow::Owned)
}

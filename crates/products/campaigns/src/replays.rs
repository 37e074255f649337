//! Campaigns over events that happened, or that the caller brings.

use crate::Campaigns;
use crate::Table;
use crate::contract::replays as doc;
use crate::jobs::accepted;
use crate::refused::{Answer, Refused};
use crate::upload::Stream;
use axum::Json;
use axum::extract::{Extension, Path};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_core::json::check_containers;
use raingauge_core::limits::CONFIGURATION_BODY_BYTES_MAX;
use raingauge_http::{Body, Configuration, Trial, Upload};
use raingauge_people::Principal;
use raingauge_replay::request::{AuditRequest, BacktestRequest, ExplainRequest, TestRequest};
use raingauge_replay::{Explained, Feed, Job, feed};
use std::sync::Arc;

/// Most arrays and objects in a test: its events are parsed one by one.
const TEST_CONTAINERS_MAX: usize = 200_000;
/// Longest request of a replay, the line before its events.
const REQUEST_BYTES_MAX: usize = 8 * CONFIGURATION_BODY_BYTES_MAX;

type Services = Extension<Arc<Campaigns>>;

pub fn add(table: Table) -> Table {
    use Scope::{CampaignsRead as Read, CampaignsWrite as Write};
    table
        .ask("/v1/campaigns/test", Write, test, doc::test)
        .ask("/v1/campaigns/backtest", Write, backtest, doc::backtest)
        .uploaded()
        .ask("/v1/campaigns/compare", Write, compare, doc::compare)
        .uploaded()
        .ask("/v1/campaigns/audit", Write, audit, doc::audit)
        .ask("/v1/campaigns/{id}/explain", Read, explain, doc::explain)
}

/// `POST /v1/campaigns/test`
async fn test(Extension(campaigns): Services, body: Body<Trial>) -> Answer {
    check_containers(&body.bytes, TEST_CONTAINERS_MAX)
        .map_err(|detail| Refused::new(Code::JsonMalformed, detail))?;
    let request = TestRequest::parse(&body.bytes)?;
    Ok(Json(campaigns.replay.test(request).await?).into_response())
}

/// `POST /v1/campaigns/backtest`
async fn backtest(
    Extension(campaigns): Services,
    Extension(who): Extension<Principal>,
    headers: HeaderMap,
    upload: Upload,
) -> Answer {
    let body = Lines::read(upload, &headers).await?;
    let (fed, lines) = feed();
    let lines = body.has_events().then_some(lines);
    let job = campaigns.replay.backtest(&who.name, body.request()?, lines)?;
    body.finish(job, fed).await
}

/// `POST /v1/campaigns/compare`
async fn compare(
    Extension(campaigns): Services,
    Extension(who): Extension<Principal>,
    headers: HeaderMap,
    upload: Upload,
) -> Answer {
    let body = Lines::read(upload, &headers).await?;
    let (fed, lines) = feed();
    let lines = body.has_events().then_some(lines);
    let job = campaigns.replay.compare(&who.name, body.request()?, lines)?;
    body.finish(job, fed).await
}

/// `POST /v1/campaigns/audit`
async fn audit(
    Extension(campaigns): Services,
    Extension(who): Extension<Principal>,
    body: Body<Configuration>,
) -> Answer {
    let request = if body.bytes.trim_ascii().is_empty() {
        AuditRequest::default()
    } else {
        serde_json::from_slice(&body.bytes)
            .map_err(|error| Refused::new(Code::JsonMalformed, error.to_string()))?
    };
    Ok(accepted(campaigns.replay.audit(&who.name, request).await?))
}

/// `POST /v1/campaigns/{id}/explain`
async fn explain(
    Extension(campaigns): Services,
    Extension(who): Extension<Principal>,
    Path(id): Path<u32>,
    body: Body<Configuration>,
) -> Answer {
    let request = ExplainRequest::parse(&body.bytes)?;
    match campaigns.replay.explain(&who.name, id, request).await? {
        Explained::Now(explanation) => Ok(Json(explanation).into_response()),
        Explained::Job(job) => Ok(accepted(*job)),
    }
}

/// A request of a replay, and the events that may follow it, a line each.
struct Lines {
    request: Vec<u8>,
    /// What was read behind the request.
    rest: Vec<u8>,
    stream: Stream,
    has_ended: bool,
}

impl Lines {
    /// Reads the request: the first line, or the whole body where it is one JSON text.
    async fn read(upload: Upload, headers: &HeaderMap) -> Answer<Self> {
        let mut stream = Stream::new(upload, headers)?;
        let mut whole: Vec<u8> = Vec::new();
        loop {
            if let Some((request, rest)) = split(&whole) {
                let request = request.to_vec();
                return Ok(Self { request, rest: rest.to_vec(), stream, has_ended: false });
            }
            if whole.len() > REQUEST_BYTES_MAX {
                let detail = format!("the request has more than {REQUEST_BYTES_MAX} bytes");
                return Err(Refused::new(Code::BodyTooLarge, detail));
            }
            match stream.next().await? {
                Some(bytes) => whole.extend_from_slice(&bytes),
                None => {
                    return Ok(Self { request: whole, rest: Vec::new(), stream, has_ended: true });
                }
            }
        }
    }

    /// Whether events follow.
    fn has_events(&self) -> bool {
        !self.has_ended
    }

    fn request(&self) -> Answer<BacktestRequest> {
        Ok(BacktestRequest::parse(&self.request)?)
    }

    /// Hands the events to the job, as fast as it takes them.
    async fn finish(mut self, job: Job, feed: Feed) -> Answer<Response> {
        let mut is_taken = !self.has_ended && feed.push(std::mem::take(&mut self.rest)).await;
        while is_taken {
            match self.stream.next().await? {
                Some(bytes) => is_taken = feed.push(bytes.to_vec()).await,
                None => break,
            }
        }
        Ok(accepted(job))
    }
}

/// The first line that ends a JSON text, and what follows it; `None` while it has not ended.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut from = 0;
    while let Some(end) = bytes[from..].iter().position(|byte| *byte == b'\n') {
        let (text, rest) = bytes.split_at(from + end + 1);
        let may_end = text.trim_ascii_end().ends_with(b"}");
        if may_end && serde_json::from_slice::<&serde_json::value::RawValue>(text).is_ok() {
            let is_blank = rest.iter().all(u8::is_ascii_whitespace);
            return if is_blank { None } else { Some((text, rest)) };
        }
        from = text.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_follow_the_line_that_ends_the_request() {
        assert_eq!(split(b"{\"a\":1}\n{\"id\":"), Some((&b"{\"a\":1}\n"[..], &b"{\"id\":"[..])));
        assert_eq!(split(b"{\n\"a\":1}\n{"), Some((&b"{\n\"a\":1}\n"[..], &b"{"[..])));
        for unended in [&b"{\"a\":1}"[..], b"{\n\"a\":1", b"{\"a\":1}\n", b"{\"a\":1}\n \n", b""] {
            assert_eq!(split(unended), None);
        }
    }
}

//! Counts, series and recounts.

use super::Routes;
use super::body::{self, Body};
use super::caller::{Answer, Caller};
use super::contract::counts as doc;
use super::parameters::Parameters;
use super::problem::Problem;
use super::times::Time;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use raingauge_app::App;
use raingauge_app::Role;
use raingauge_app::budget::decoded;
use raingauge_app::counts::{check_len, granularity_unknown};
use raingauge_app::largest::{self, KEYS_MAX};
use raingauge_core::access::Scope;
use raingauge_core::code::{Code, Refusal};
use raingauge_core::json::{Text, check_depth};
use raingauge_core::limits::COUNTS_PER_REQUEST_MAX;
use raingauge_core::moment::Moment;
use raingauge_core::plan::Plan;
use raingauge_counters::recount::Recount;
use raingauge_reader as reader;
use raingauge_reader::{Key, LargestKeys, Range, Series, Sources, Step, midnight_s};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

pub fn routes() -> Routes {
    let portal = Routes::of(Role::Portal)
        .get("/v1/recount", Scope::CountsRead, recount, doc::recount)
        .get("/v1/counters/{id}/keys", Scope::CountsRead, keys, doc::keys);
    Routes::of(Role::Reader)
        .post_unlogged("/v1/counts", Scope::CountsRead, batch, doc::batch)
        .get("/v1/counts", Scope::CountsRead, one, doc::one)
        .get("/v1/series", Scope::CountsRead, series, doc::series)
        .join(portal)
}

#[derive(Deserialize)]
struct BatchBody<'a> {
    #[serde(borrow)]
    requests: Items<'a>,
    #[serde(default)]
    fresh: bool,
}

/// The ranges of a batch; at most one more than a batch may hold.
struct Items<'a>(Vec<Item<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ItemsVisitor)
    }
}

struct ItemsVisitor;

impl<'de> Visitor<'de> for ItemsVisitor {
    type Value = Items<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array of ranges")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<Items<'de>, A::Error> {
        let mut items =
            Vec::with_capacity(members.size_hint().unwrap_or(16).min(COUNTS_PER_REQUEST_MAX));
        while items.len() <= COUNTS_PER_REQUEST_MAX {
            match members.next_element()? {
                Some(item) => items.push(item),
                None => return Ok(Items(items)),
            }
        }
        // The batch will be refused: the rest is read and dropped.
        while members.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Items(items))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a> {
    #[serde(borrow, default)]
    key: Option<Text<'a>>,
    #[serde(default)]
    from_time: Time,
    #[serde(default)]
    to_time: Time,
    #[serde(default)]
    fresh: bool,
}

impl Item<'_> {
    /// The range at the moment of the request.
    fn range(&self, fresh: bool, now_s: i64) -> Result<Range<'_>, Refusal> {
        let key = self
            .key
            .as_ref()
            .map(|key| &*key.0)
            .ok_or_else(|| Refusal::new(Code::KeyMissing, "key is missing"))?;
        let from_s = self.from_time.at_s("fromTime", now_s)?;
        let to_s = self.to_time.at_s("toTime", now_s)?;
        Ok(Range { key, from_s, to_s, fresh: fresh || self.fresh })
    }
}

/// `POST /v1/counts`
pub async fn batch(State(app): State<Arc<App>>, body: Body<body::Counts>) -> Answer {
    let BatchBody { requests: Items(requests), fresh } =
        decoded(body.bytes.len(), || batch_of(&body.bytes))?;
    check_len(requests.len())?;

    let mut ranges = Vec::with_capacity(requests.len());
    let mut wrong = Vec::new();
    let now_s = app.clock.now_s();
    for (index, item) in requests.iter().enumerate() {
        match item.range(fresh, now_s) {
            Ok(range) => ranges.push(range),
            Err(refusal) => wrong.push((index, refusal)),
        }
    }

    let (answers, served) = app.reader.counts_with_sources(&ranges).await;
    let mut answers = answers.into_iter();
    let mut wrong = wrong.into_iter().peekable();
    let mut json = Vec::with_capacity(32 + requests.len() * 128);

    json.extend_from_slice(b"{\"results\":[");

    for (index, item) in requests.iter().enumerate() {
        if index > 0 {
            json.push(b',');
        }
        let answer = match wrong.next_if(|(at, _)| *at == index) {
            Some((_, refusal)) => Err(refusal),
            None => answers.next().unwrap_or_else(|| Err(Refusal::new(Code::Unavailable, ""))),
        };
        push_result(item.key.as_ref().map_or("", |key| &key.0), &answer, &mut json);
    }

    json.extend_from_slice(b"]}");
    let mut response = answer(json);
    response.headers_mut().insert(SERVER_TIMING, timing(served));

    Ok(response)
}

fn batch_of(body: &[u8]) -> Result<BatchBody<'_>, Problem> {
    let text = std::str::from_utf8(body)
        .map_err(|_| Problem::new(Code::JsonMalformed, "the body is not UTF-8"))?;
    check_depth(text).map_err(|detail| Problem::new(Code::JsonMalformed, detail))?;
    sonic_rs::from_str(text).map_err(|error| {
        let reason = error.to_string();
        let reason = reason.lines().next().unwrap_or_default();
        let shape = r#"{"requests": [{"key": "…", "fromTime": …, "toTime": …}]}"#;
        Problem::new(Code::JsonMalformed, format!("the body must be {shape}: {reason}"))
    })
}

/// Returns the sources of a batch's counts in the form of `Server-Timing`
/// (<https://www.w3.org/TR/server-timing/>).
fn timing(Sources { memory, cache, store }: Sources) -> HeaderValue {
    let text = format!("memory;desc={memory}, cache;desc={cache}, store;desc={store}");
    HeaderValue::from_maybe_shared(Bytes::from(text))
        .unwrap_or_else(|_| unreachable!("it is ASCII"))
}

/// Returns a JSON response.
fn answer(json: Vec<u8>) -> Response {
    let mut response = Response::new(json.into());
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Appends one result to the response.
fn push_result(key: &str, answer: &Result<reader::Answer, Refusal>, json: &mut Vec<u8>) {
    json.extend_from_slice(b"{\"key\":");
    push_text(key, json);

    let mut digits = itoa::Buffer::new();
    let mut push_number = |name: &str, number: i64| {
        json.extend_from_slice(name.as_bytes());
        json.extend_from_slice(digits.format(number).as_bytes());
    };

    match answer {
        Ok(answer) => {
            push_number(",\"fromTime\":", answer.from_s);
            push_number(",\"toTime\":", answer.to_s);
            push_number(",\"count\":", answer.count);
        }
        Err(refusal) => {
            let code = refusal.code.as_str();
            metrics::counter!("raingauge_errors_total", "code" => code).increment(1);
            json.extend_from_slice(b",\"error\":{\"code\":");
            push_text(code, json);
            json.extend_from_slice(b",\"detail\":");
            push_text(&refusal.detail, json);
            json.push(b'}');
        }
    }

    json.push(b'}');
}

fn push_text(text: &str, json: &mut Vec<u8>) {
    let plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    if text.bytes().all(plain) {
        json.push(b'"');
        json.extend_from_slice(text.as_bytes());
        json.push(b'"');
    } else {
        // Writing a string into memory does not fail.
        let _ = serde_json::to_writer(json, text);
    }
}

/// `GET /v1/counts`
pub async fn one(State(app): State<Arc<App>>, uri: Uri) -> Answer {
    let parameters = Parameters::of(&uri);
    let item = item_of(&parameters);
    let range = item.range(false, app.clock.now_s())?;
    let count = app.reader.counts(std::slice::from_ref(&range)).await.remove(0)?;
    let mut json = Vec::with_capacity(128 + range.key.len());
    push_result(range.key, &Ok(count), &mut json);
    Ok(answer(json))
}

fn item_of<'a>(parameters: &'a Parameters<'_>) -> Item<'a> {
    let time = |name: &str| parameters.get(name).map(Time::parse).unwrap_or_default();
    Item {
        key: parameters.get("key").map(|key| Text(Cow::Borrowed(key))),
        from_time: time("fromTime"),
        to_time: time("toTime"),
        fresh: parameters.get("fresh").is_some_and(|fresh| fresh == "true" || fresh == "1"),
    }
}

/// `GET /v1/series`
pub async fn series(State(app): State<Arc<App>>, uri: Uri) -> Answer {
    let parameters = Parameters::of(&uri);
    let zone = parameters.get("timezone").unwrap_or("UTC");
    let now_s = app.clock.now_s();

    // The days of a series are those of its zone.
    let mut item = item_of(&parameters);
    let midnight = |days_ago| midnight_s(days_ago, now_s, zone);
    item.from_time = item.from_time.with_midnight(midnight);
    item.to_time = item.to_time.with_midnight(midnight);

    let range = item.range(false, now_s)?;
    let name = parameters.get("granularity").unwrap_or("hour");
    let step = Step::from_name(name).ok_or_else(granularity_unknown)?;
    Ok(answer(series_json(&app.reader.series(&range, step, zone).await?)))
}

/// Writes the same text as serde, in less time.
fn series_json(Series { key, granularity, points }: &Series) -> Vec<u8> {
    let mut json = Vec::with_capacity(64 + key.len() + points.len() * 48);
    json.extend_from_slice(b"{\"key\":");
    push_text(key, &mut json);
    json.extend_from_slice(b",\"granularity\":");
    push_text(granularity.name(), &mut json);
    json.extend_from_slice(b",\"points\":[");

    for (index, point) in points.iter().enumerate() {
        json.extend_from_slice(if index == 0 { b"{\"time\":" } else { b",{\"time\":" });
        json.extend_from_slice(itoa::Buffer::new().format(point.time).as_bytes());
        json.extend_from_slice(b",\"count\":");
        json.extend_from_slice(itoa::Buffer::new().format(point.count).as_bytes());
        json.push(b'}');
    }

    json.extend_from_slice(b"]}");
    json
}

/// `GET /v1/recount`
pub async fn recount(Caller { app, who }: Caller, uri: Uri) -> Answer<Json<Recount>> {
    let parameters = Parameters::of(&uri);
    let item = item_of(&parameters);
    let range = item.range(false, app.clock.now_s())?;
    let plan = Plan::new(range.from_s, range.to_s).map_err(Refusal::from)?;
    // The recount ends with its turn, even when the caller disconnects or the request times out.
    let turn = app.counted.scans.turn(&who.name).await?;
    let recount = app.counted.recounter.recount(range.key, plan, turn.stop()).await?;
    recount.map(Json).ok_or_else(|| {
        let detail = format!("no counter has a template that renders `{}`", range.key);
        Problem::new(Code::KeyUnknown, detail)
    })
}

/// `GET /v1/counters/{id}/keys`, as JSON or as CSV.
pub async fn keys(
    Caller { app, who }: Caller,
    Path(id): Path<u32>,
    headers: HeaderMap,
    uri: Uri,
) -> Answer {
    let parameters = Parameters::of(&uri);
    let item = item_of(&parameters);
    let now_s = app.clock.now_s();
    let from_s = item.from_time.or(Moment::At(0)).at_s("fromTime", now_s)?;
    let to_s = item.to_time.or(Moment::Ago(0)).at_s("toTime", now_s)?;
    let limit = parameters.get("limit").map_or(Ok(20), |limit| limit.parse::<usize>());
    let limit = limit.ok().filter(|limit| (1..=KEYS_MAX).contains(limit)).ok_or_else(|| {
        Problem::new(Code::LimitOutOfRange, format!("limit must lie between 1 and {KEYS_MAX}"))
    })?;
    let found = largest::keys(&app, &who.name, id, from_s, to_s).await?;
    let keys: Vec<Key> = found.keys.iter().take(limit).cloned().collect();
    let is_complete = found.is_complete;
    let vary = [(header::VARY, HeaderValue::from_static("accept"))];

    if !wants_csv(&headers) {
        return Ok((vary, Json(LargestKeys { keys, is_complete })).into_response());
    }
    let about = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8")),
        (largest::COMPLETE, largest::complete(is_complete)),
    ];
    Ok((vary, about, largest::to_csv(&keys)).into_response())
}

/// Whether the caller accepts CSV rather than JSON: it is the first of the two in `Accept`.
fn wants_csv(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let ranges = accept.unwrap_or_default().split(',');
    let mut kinds = ranges.map(|range| range.split(';').next().unwrap_or_default().trim());
    let first = kinds.find(|kind| ["text/csv", "application/json", "*/*"].contains(kind));
    first == Some("text/csv")
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_reader::Point;

    #[test]
    fn csv_is_for_callers_who_prefer_it() {
        let wants = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            wants_csv(&headers)
        };
        for csv in ["text/csv", "text/html, text/csv;q=0.9, */*;q=0.1"] {
            assert!(wants(csv), "{csv}");
        }
        for json in ["", "*/*", "application/json, text/csv", "text/*"] {
            assert!(!wants(json), "{json}");
        }
        assert!(!wants_csv(&HeaderMap::new()));
    }

    #[test]
    fn a_series_is_written_as_serde_would() {
        let points = vec![Point { time: 0, count: i64::MIN }, Point { time: 86_400, count: 7 }];
        for (key, points) in [("rain:oslo", points), ("a \"b\"\n\u{e9}", Vec::new())] {
            let series = Series { key: key.to_owned(), granularity: Step::Week, points };
            assert_eq!(series_json(&series), serde_json::to_vec(&series).unwrap());
        }
    }
}

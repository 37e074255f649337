//! Sets buckets to counts that were computed elsewhere.

use super::audit::AuditDetails;
use super::body::{self, Body};
use super::caller::{Answer, Caller};
use super::contract::events as doc;
use super::{Routes, idempotency_key};
use axum::Json;
use axum::extract::Extension;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use raingauge_app::App;
use raingauge_app::Role;
use raingauge_app::budget::decoded;
use raingauge_core::access::Scope;
use raingauge_counters::{Outcome, RequestKey};
use raingauge_writer::bucket_list;
use raingauge_writer::control::Bucket;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;

/// Most counters and keys of a request that the audit log names; it keeps 4 KiB of an entry.
const COUNTERS_NAMED_MAX: usize = 20;
const KEYS_NAMED_MAX: usize = 4;

pub fn routes() -> Routes {
    use Scope::BucketsWrite;
    Routes::of(Role::Writer).post("/v1/buckets", BucketsWrite, "buckets.set", set, doc::set_buckets)
}

/// `POST /v1/buckets`
pub async fn set(
    Caller { app, who }: Caller,
    headers: HeaderMap,
    body: Body<body::Buckets>,
) -> Answer {
    let key =
        idempotency_key::read(&headers)?.map(|key| RequestKey::new(&who.recorded_name(), &key));
    let members = decoded(body.bytes.len(), || bucket_list::read(&body.bytes))?;

    // The buckets own what they need of the body.
    drop(body);

    let Outcome { answer, set, is_repetition } = app.counters.set_buckets(members, key).await?;
    let mut details = if set.is_empty() { json!({}) } else { touched(&app, set.iter()) };
    details["accepted"] = json!(answer.accepted);
    details["rejected"] = json!(answer.rejected.len());

    if is_repetition {
        details["repetition"] = json!(true);
    } else {
        metrics::counter!("raingauge_buckets_set_total").increment(answer.accepted as u64);
    }

    Ok((Extension(AuditDetails(details)), Json(answer)).into_response())
}

/// Returns what the audit log records of buckets that were set: their counters, some of their keys,
/// the range of their times, and a digest of all of them by which a copy of the request can be
/// recognized.
fn touched<'a>(app: &App, buckets: impl Iterator<Item = &'a Bucket>) -> Value {
    let view = app.counted.published.view();
    let mut counters = BTreeSet::new();
    let mut keys = BTreeSet::new();
    let (mut from_time, mut to_time) = (None::<i64>, None::<i64>);
    let mut digest = Sha256::new();

    for bucket in buckets {
        let counter = view
            .ruleset
            .index_of_key(&bucket.key)
            .map(|index| view.ruleset.rules()[index].counter.id);
        counters.extend(counter);
        keys.insert(bucket.key.as_str());

        let end_s = bucket.time + bucket.granularity.width_s();
        from_time = Some(from_time.map_or(bucket.time, |from_s| from_s.min(bucket.time)));
        to_time = Some(to_time.map_or(end_s, |to_s| to_s.max(end_s)));

        digest.update(format!(
            "{}\n{}\n{}\n{}\n",
            bucket.key,
            bucket.granularity.name(),
            bucket.time,
            bucket.count
        ));
    }

    let some_keys: Vec<&&str> = keys.iter().take(KEYS_NAMED_MAX).collect();
    json!({
        "counters": counters.iter().take(COUNTERS_NAMED_MAX).collect::<Vec<_>>(),
        "keys": keys.len(),
        "someKeys": some_keys,
        "fromTime": from_time,
        "toTime": to_time,
        "sha256": hex::encode(digest.finalize()),
    })
}

//! Sets buckets to counts that were computed elsewhere.
//!
//! A request with a key can be repeated, whatever was counted in between. The key is part of the
//! log entries, and each partition remembers it in order with the events: see
//! [`raingauge_writer::state::Requests`]. A repetition whose key every partition remembers gets the
//! stored answer. An earlier repetition goes into the log, where readers ignore it.

use super::{Counters, Error};
use raingauge_core::code::{Code, Refusal};
use raingauge_core::counter::Counter;
use raingauge_core::event::key_hash;
use raingauge_core::limits::{BUCKETS_PER_REQUEST_MAX, KEY_LEN_MAX, KEYED_ANSWER_LEN_MAX};
use raingauge_core::tile::OVERFLOWED;
use raingauge_core::time::{format_rfc3339, is_countable_s};
use raingauge_ports::log::Partition;
use raingauge_ports::published::Standing;
use raingauge_ports::record::{Identity, identity};
use raingauge_writer::control::{Bucket, Control};
use raingauge_writer::state::{Answer, RefusedBucket, Request, json_len};
use std::collections::BTreeMap;
use tokio::sync::{Mutex, MutexGuard};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Most requests with a key that are processed at a time: far fewer than a partition remembers.
const TURNS: usize = 64;

/// The key that a caller gave a request. Two callers may choose the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestKey(Identity);

impl RequestKey {
    pub fn new(caller: &str, key: &str) -> Self {
        Self(identity(caller, key))
    }

    fn id(self) -> String {
        format!("{:032x}", self.0)
    }
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub answer: Answer,
    /// The buckets that were set.
    pub set: Vec<Bucket>,
    /// The answer is that of an earlier request with the same key; nothing was set.
    pub is_repetition: bool,
}

/// Serializes requests with the same key, so that all but the first find the stored answer.
pub(super) struct Turns(Vec<Mutex<()>>);

impl Default for Turns {
    fn default() -> Self {
        Self((0..TURNS).map(|_| Mutex::default()).collect())
    }
}

impl Turns {
    async fn of(&self, RequestKey(id): RequestKey) -> MutexGuard<'_, ()> {
        self.0[(id % TURNS as Identity) as usize].lock().await
    }
}

/// What the partitions remember of a request.
struct RequestMemory {
    request: Request,
    /// Whether every partition remembers it.
    is_everywhere: bool,
}

impl Counters {
    /// Sets buckets to counts that were computed elsewhere. Returns once they can be read. A bucket
    /// that could not be read is passed as the reason.
    pub async fn set_buckets(
        &self,
        asked: Vec<Result<Bucket, &'static str>>,
        key: Option<RequestKey>,
    ) -> Result<Outcome, Error> {
        if asked.len() > BUCKETS_PER_REQUEST_MAX {
            return Err(Error::TooMany);
        }
        self.sink.check()?;
        if let Some(key) = key {
            return self.set_once(asked, key).await;
        }
        let (set, answer) = self.checked(asked);
        if !set.is_empty() {
            self.write(&set, None).await?;
        }
        Ok(Outcome { answer, set, is_repetition: false })
    }

    /// Sets the buckets of a request unless an earlier attempt did.
    async fn set_once(
        &self,
        asked: Vec<Result<Bucket, &'static str>>,
        key: RequestKey,
    ) -> Result<Outcome, Error> {
        let _turn = self.turns.of(key).await;
        let id = key.id();
        let digest = digest_of(&asked);

        match self.remembered(&id)? {
            Some(RequestMemory { request, .. }) if request.digest != digest => {
                return Err(Error::KeyReused);
            }
            Some(RequestMemory { request, is_everywhere: true }) => {
                return Ok(Outcome {
                    answer: request.answer,
                    set: Vec::new(),
                    is_repetition: true,
                });
            }
            _ => {}
        }

        let (set, answer) = self.checked(asked);
        if json_len(&answer) > KEYED_ANSWER_LEN_MAX {
            return Err(Error::TooManyRefused);
        }

        let request = Request { id, digest, answer };
        self.write(&set, Some(&request)).await?;

        // An abandoned earlier attempt or another process may have been first: the log decides.
        let answer = match self.remembered(&request.id)? {
            Some(first) if first.request.digest != request.digest => return Err(Error::KeyReused),
            Some(first) => first.request.answer,
            None => request.answer,
        };
        Ok(Outcome { answer, set, is_repetition: false })
    }

    fn remembered(&self, id: &str) -> Result<Option<RequestMemory>, Error> {
        let states = self
            .writer_states
            .as_ref()
            .ok_or_else(|| Error::Stopped("nobody shows what was counted".into()))?;
        let shown = states.shown();
        let mut found = shown.values().filter_map(|shown| shown.state.requests.find(id));
        let Some(request) = found.next().cloned() else {
            return Ok(None);
        };
        let is_everywhere = 1 + found.count() >= usize::from(self.sink.partitions());
        Ok(Some(RequestMemory { request, is_everywhere }))
    }

    /// Writes buckets to every partition, or to none, and waits until they can be read.
    async fn write(&self, buckets: &[Bucket], request: Option<&Request>) -> Result<(), Error> {
        for (standing, counter) in self.counters_of(buckets).into_values() {
            self.introduce(standing, &counter).await?;
        }
        let partitions = u64::from(self.sink.partitions().max(1));
        let buckets = buckets.to_vec();
        let request = request.cloned().map(Box::new);
        let of_partition = move |partition: Partition| {
            // One partition holds the counts that were set and the others hold none of them: a
            // count is the sum over all partitions.
            let count = |bucket: &Bucket| {
                if xxh3_64(bucket.key.as_bytes()) % partitions == u64::from(partition) {
                    bucket.count
                } else {
                    0
                }
            };

            let buckets = buckets
                .iter()
                .map(|bucket| Bucket { count: count(bucket), ..bucket.clone() })
                .collect();
            Control::Buckets { buckets, request: request.clone() }
        };

        self.send(of_partition).await
    }

    /// Returns the buckets to set and the answer to the request.
    fn checked(&self, asked: Vec<Result<Bucket, &'static str>>) -> (Vec<Bucket>, Answer) {
        let mut good = Vec::with_capacity(asked.len());
        let mut answer = Answer::default();
        for (index, bucket) in asked.into_iter().enumerate() {
            let checked = match bucket {
                Ok(bucket) => self.check_bucket(&bucket).map(|()| bucket),
                Err(reason) => Err(Refusal::new(Code::BucketMalformed, reason)),
            };
            match checked {
                Ok(bucket) => good.push(bucket),
                Err(Refusal { code, detail }) => {
                    let code = code.as_str().to_owned();
                    answer.rejected.push(RefusedBucket { index, code, detail });
                }
            }
        }

        answer.accepted = good.len();
        (good, answer)
    }

    fn check_bucket(&self, bucket: &Bucket) -> Result<(), Refusal> {
        if bucket.key.len() > KEY_LEN_MAX {
            let len = bucket.key.len();
            let detail = format!("a key has at most {KEY_LEN_MAX} bytes; this one has {len}");
            return Err(Refusal::new(Code::KeyTooLong, detail));
        }

        let view = self.published.view();
        let Some(index) = view.ruleset.index_of_key(&bucket.key) else {
            let detail = format!("no counter has a template that renders `{}`", bucket.key);
            return Err(Refusal::new(Code::KeyUnknown, detail));
        };

        let id = view.ruleset.rules()[index].counter.id;
        if self.keys.full().refuses(id, key_hash(&bucket.key)) {
            let keys_max = self.keys.keys_max();
            let detail = format!(
                "counter {id} has {keys_max} keys or more, which is the most: it takes no new ones"
            );
            return Err(Refusal::new(Code::TooManyKeys, detail));
        }

        if !is_countable_s(bucket.time) || !bucket.granularity.starts_at(bucket.time) {
            let width = bucket.granularity.name();
            let detail = format!("no {width} begins at {}: times are UTC", bucket.time);
            return Err(Refusal::new(Code::TimeNotAligned, detail));
        }

        let now_s = self.clock.now_s();
        if bucket.time > now_s {
            let ahead_s = bucket.time - now_s;
            let detail = format!("this bucket begins {ahead_s} s ahead of this server's clock");
            return Err(Refusal::new(Code::TimeInFuture, detail));
        }

        let horizons = view.horizons(index, now_s);
        if !horizons.keeps(bucket.granularity, bucket.time) {
            let width = bucket.granularity.name();
            let kept = format_rfc3339(horizons.of(bucket.granularity));
            let detail = format!("this counter keeps its {width} buckets since {kept}");
            return Err(Refusal::new(Code::TooLate, detail));
        }

        if bucket.count == OVERFLOWED {
            return Err(Refusal::new(
                Code::CountOutOfRange,
                format!("{OVERFLOWED} is not a count"),
            ));
        }

        Ok(())
    }

    /// Returns the counters of some buckets, each once, with their versions.
    fn counters_of(&self, buckets: &[Bucket]) -> BTreeMap<u32, (Standing, Counter)> {
        let view = self.published.view();
        let mut found = BTreeMap::new();
        for index in buckets.iter().filter_map(|bucket| view.ruleset.index_of_key(&bucket.key)) {
            let counter = &view.ruleset.rules()[index].counter;
            let standing = || view.versions.get(&counter.id).copied().unwrap_or_default();
            found.entry(counter.id).or_insert_with(|| (standing(), counter.clone()));
        }
        found
    }
}

/// Returns a hash of what a caller requested, independent of its spelling.
fn digest_of(asked: &[Result<Bucket, &'static str>]) -> String {
    let mut hasher = Xxh3::new();
    for bucket in asked {
        match bucket {
            Ok(Bucket { key, granularity, time, count }) => {
                hasher.update(&(key.len() as u64).to_le_bytes());
                hasher.update(key.as_bytes());
                hasher.update(&granularity.width_s().to_le_bytes());
                hasher.update(&time.to_le_bytes());
                hasher.update(&count.to_le_bytes());
            }
            Err(reason) => {
                // No key is this long.
                hasher.update(&u64::MAX.to_le_bytes());
                hasher.update(reason.as_bytes());
            }
        }
    }

    format!("{:032x}", hasher.digest128())
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_core::bucket::Granularity;

    #[test]
    fn two_requests_have_the_same_digest_only_when_they_ask_for_the_same() {
        let bucket = |key: &str, granularity, time, count| {
            Ok(Bucket { key: key.to_owned(), granularity, time, count })
        };
        let requests = [
            vec![],
            vec![Err("no key")],
            vec![Err("no key"), Err("no key")],
            vec![bucket("a", Granularity::Day, 0, 1)],
            vec![bucket("b", Granularity::Day, 0, 1)],
            vec![bucket("a", Granularity::Hour, 0, 1)],
            vec![bucket("a", Granularity::Day, 86_400, 1)],
            vec![bucket("a", Granularity::Day, 0, 2)],
            vec![bucket("a", Granularity::Day, 0, 1), Err("no key")],
            vec![Err("no key"), bucket("a", Granularity::Day, 0, 1)],
        ];

        for (place, request) in requests.iter().enumerate() {
            assert_eq!(digest_of(request), digest_of(&request.clone()));
            assert!(
                requests[..place].iter().all(|other| digest_of(other) != digest_of(request)),
                "{place}"
            );
        }
    }

    #[test]
    fn the_same_key_of_two_callers_names_two_requests() {
        assert_eq!(RequestKey::new("ops", "1"), RequestKey::new("ops", "1"));
        assert_ne!(RequestKey::new("ops", "1"), RequestKey::new("dev", "1"));
        assert_ne!(RequestKey::new("ops", "1").id(), RequestKey::new("ops1", "").id());
    }
}

//! Requests with a key that were obeyed, so that their repetitions change nothing.
//!
//! An entry whose request is remembered has no effect: neither the worker nor later readers of the
//! log, which find its offset here, obey it. So the log decides what a repetition is, once, and a
//! crash or another worker changes nothing.

use raingauge_core::limits::{
    REQUEST_REPETITIONS_MAX, REQUESTS_BYTES_MAX, REQUESTS_REMEMBERED_MAX, REQUESTS_REMEMBERED_S,
};
use raingauge_ports::log::Offset;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The request that an entry belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// A hash of the caller and of the key that it chose.
    pub id: String,
    /// A hash of what the caller asked for.
    pub digest: String,
    pub answer: Answer,
}

/// The answer to a request to set buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub accepted: usize,
    pub duplicates: usize,
    pub rejected: Vec<RefusedBucket>,
}

/// One refused bucket, by its place in the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedBucket {
    pub index: usize,
    pub code: String,
    pub detail: String,
}

/// The requests that one partition of the log remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// Oldest first.
    obeyed: VecDeque<RememberedRequest>,
    /// Offsets of entries that repeat a request, in order.
    repetitions: VecDeque<Offset>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RememberedRequest {
    request: Request,
    /// Length of the request as JSON.
    bytes: usize,
    /// When its entry was appended, in seconds since 1970.
    appended_s: i64,
}

/// Returns the length of a value as JSON, in bytes.
pub fn json_len(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len())
}

impl Requests {
    pub fn is_empty(&self) -> bool {
        self.obeyed.is_empty() && self.repetitions.is_empty()
    }

    /// Returns the request of this id while it is remembered.
    pub fn find(&self, id: &str) -> Option<&Request> {
        self.obeyed.iter().map(|obeyed| &obeyed.request).find(|request| request.id == id)
    }

    /// Remembers the request of an entry. Returns whether the entry is to be obeyed.
    pub fn take(&mut self, request: Request, offset: Offset, appended_s: i64) -> bool {
        let oldest_s = appended_s - REQUESTS_REMEMBERED_S;
        while self.obeyed.front().is_some_and(|obeyed| obeyed.appended_s < oldest_s) {
            self.obeyed.pop_front();
        }

        if self.find(&request.id).is_some() {
            self.repetitions.push_back(offset);

            if self.repetitions.len() > REQUEST_REPETITIONS_MAX {
                self.repetitions.pop_front();
            }
            return false;
        }

        let bytes = json_len(&request);
        self.obeyed.push_back(RememberedRequest { request, bytes, appended_s });

        while self.obeyed.len() > REQUESTS_REMEMBERED_MAX || self.bytes() > REQUESTS_BYTES_MAX {
            self.obeyed.pop_front();
        }
        true
    }

    /// Returns the offsets of entries that repeat a request, in order; they have no effect.
    pub fn repetitions(&self) -> impl Iterator<Item = Offset> + '_ {
        self.repetitions.iter().copied()
    }

    pub fn is_repetition(&self, offset: Offset) -> bool {
        self.repetitions.binary_search(&offset).is_ok()
    }

    /// Forgets repetitions that the log no longer holds.
    pub fn forget_before(&mut self, start: Offset) {
        self.repetitions.drain(..self.repetitions.partition_point(|offset| *offset < start));
    }

    fn bytes(&self) -> usize {
        self.obeyed.iter().map(|obeyed| obeyed.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: usize) -> Request {
        Request { id: format!("{id:032x}"), digest: "d".to_owned(), answer: Answer::default() }
    }

    fn refused(len: usize) -> Request {
        let refused = RefusedBucket { index: 0, code: "c".to_owned(), detail: "x".repeat(len) };
        Request { answer: Answer { rejected: vec![refused], ..Answer::default() }, ..request(0) }
    }

    #[test]
    fn a_request_is_obeyed_once_and_its_repetitions_are_known_by_their_offsets() {
        let mut requests = Requests::default();
        assert!(requests.is_empty());
        assert!(requests.take(request(1), 5, 100));
        assert!(!requests.take(Request { digest: "other".to_owned(), ..request(1) }, 7, 100));
        assert!(requests.take(request(2), 8, 101));
        assert!(!requests.take(request(1), 9, 102));
        assert_eq!(requests.find(&request(1).id), Some(&request(1)), "the first one counts");
        assert_eq!(
            [5, 7, 8, 9].map(|offset| requests.is_repetition(offset)),
            [false, true, false, true]
        );

        let json = serde_json::to_vec(&requests).unwrap();
        assert_eq!(serde_json::from_slice::<Requests>(&json).unwrap(), requests);
        requests.forget_before(9);
        assert_eq!(requests.repetitions().collect::<Vec<_>>(), [9]);
    }

    #[test]
    fn requests_are_remembered_for_a_day_by_the_times_of_the_log() {
        let mut requests = Requests::default();
        assert!(requests.take(request(1), 0, 100));
        assert!(!requests.take(request(1), 1, 100 + REQUESTS_REMEMBERED_S));
        assert!(
            requests.take(request(1), 2, 101 + REQUESTS_REMEMBERED_S),
            "it was forgotten, and is remembered again"
        );
        assert!(!requests.take(request(1), 3, 102 + REQUESTS_REMEMBERED_S));
    }

    #[test]
    fn what_is_remembered_has_a_bounded_size() {
        let mut requests = Requests::default();
        for id in 0..=REQUESTS_REMEMBERED_MAX {
            assert!(requests.take(request(id), id as Offset, 0));
        }
        assert_eq!(requests.obeyed.len(), REQUESTS_REMEMBERED_MAX);
        assert!(requests.find(&request(0).id).is_none() && requests.find(&request(1).id).is_some());

        for offset in 0..=REQUEST_REPETITIONS_MAX as Offset {
            assert!(!requests.take(request(7), 10_000 + offset, 0));
        }
        assert_eq!(requests.repetitions.len(), REQUEST_REPETITIONS_MAX);

        assert!(requests.take(refused(REQUESTS_BYTES_MAX / 2), 90_000, 0));
        assert!(requests.bytes() <= REQUESTS_BYTES_MAX);
        assert!(requests.find(&refused(0).id).is_some());

        // No door accepts this, but a program that writes to the log can send it.
        let huge = Request { id: "huge".to_owned(), ..refused(REQUESTS_BYTES_MAX) };
        assert!(requests.take(huge, 90_001, 0));
        assert_eq!(requests.obeyed.len(), 0);
    }
}

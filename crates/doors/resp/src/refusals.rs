//! Commands and logins that were refused: `ACL LOG`.

use std::collections::VecDeque;

use parking_lot::Mutex;
use raingauge_resp::Replies;

use crate::limits::RESP_REFUSALS_MAX;

/// The newest refusals, newest first.
#[derive(Default)]
pub(crate) struct Refusals {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    next_id: i64,
    all: VecDeque<Entry>,
}

/// A refusal; equal ones are counted.
struct Entry {
    id: i64,
    count: i64,
    refusal: Refusal,
    client: String,
    first_ms: i64,
    last_ms: i64,
}

/// What was refused, and to whom.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// `command` or `auth`.
    pub(crate) reason: &'static str,
    /// The command, or the name of a login.
    pub(crate) object: String,
    pub(crate) user: String,
}

impl Refusals {
    pub(crate) fn note(&self, refusal: Refusal, client: String, now_ms: i64) {
        let mut entries = self.entries.lock();

        if let Some(entry) = entries.all.iter_mut().find(|entry| entry.refusal == refusal) {
            entry.count += 1;
            entry.last_ms = now_ms;
            entry.client = client;
            return;
        }

        let id = entries.next_id;
        entries.next_id += 1;
        entries.all.truncate(RESP_REFUSALS_MAX - 1);
        entries.all.push_front(Entry {
            id,
            count: 1,
            refusal,
            client,
            first_ms: now_ms,
            last_ms: now_ms,
        });
    }

    pub(crate) fn reset(&self) {
        self.entries.lock().all.clear();
    }

    pub(crate) fn reply(&self, len_max: usize, now_ms: i64, replies: &mut Replies) {
        let entries = self.entries.lock();
        let len = entries.all.len().min(len_max);

        replies.array(len);
        for entry in entries.all.iter().take(len) {
            replies.map(10);
            replies.bulk(b"count");
            replies.integer(entry.count);

            let texts = [
                ("reason", entry.refusal.reason),
                // Refusals inside a transaction are not kept.
                ("context", "toplevel"),
                ("object", &entry.refusal.object),
                ("username", &entry.refusal.user),
            ];
            for (name, text) in texts {
                replies.bulk(name.as_bytes());
                replies.bulk(text.as_bytes());
            }

            replies.bulk(b"age-seconds");
            replies.double((now_ms - entry.last_ms).max(0) as f64 / 1000.0);
            replies.bulk(b"client-info");
            replies.bulk(entry.client.as_bytes());

            let numbers = [
                ("entry-id", entry.id),
                ("timestamp-created", entry.first_ms),
                ("timestamp-last-updated", entry.last_ms),
            ];
            for (name, number) in numbers {
                replies.bulk(name.as_bytes());
                replies.integer(number);
            }
        }
    }
}

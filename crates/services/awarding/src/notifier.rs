//! Tells members what happened to their points, through a signed webhook of the operator.
//!
//! A notification has the id of its entry and the same body each time. It is sent at least once,
//! and never before its entry is durable.

use crate::backoff::RetryOptions;
use crate::cloud_event::to_json;
use crate::deps::{Deps, NotifyOptions};
use crate::error::Error;
use crate::letterbox::{Letterbox, MALFORMED, Outcome};
use crate::letters::FailedNotice;
use crate::limits::NOTIFIED_MEMBERS_MAX;
use crate::publisher::{SOURCE, data_of, event_type, id_of};
use crate::shared::Shared;
use crate::tail::Reader;
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use raingauge_campaigns::retry::Verdict;
use raingauge_campaigns::sign::signature;
use raingauge_core::event::Event;
use raingauge_points::{Entry, WalletId};
use raingauge_ports::campaigns::sender::{Method, Request, Sender};
use raingauge_ports::clock::Clock;
use raingauge_ports::points::{QueueName, Queues, send_all};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The name under which the place is noted.
pub const NOTIFIER: &str = "notifier";
/// Requests at a time.
const SENDING_MAX: usize = 16;
/// Most letters that are tried again together.
const LETTERS_MAX: usize = 100;
/// Longest wait for the first letter.
const WAIT: Duration = Duration::from_secs(1);
/// Pause after an error of the queue.
const PAUSE: Duration = Duration::from_secs(1);
/// Most bytes of a response that are read. Its status is what counts.
const RESPONSE_LEN_MAX: usize = 64 * 1_024;
const DAY_MS: i64 = 86_400_000;
/// The reason of letters that the receiver will never take.
const REFUSED: &str = "refused";

/// Sends notifications.
pub struct Notifier {
    sender: Arc<dyn Sender>,
    queues: Arc<dyn Queues>,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    letterbox: Letterbox,
    options: NotifyOptions,
    notified: Mutex<Notified>,
}

/// How often members were notified on a day.
#[derive(Debug, Default)]
struct Notified {
    /// Days of UTC since 1970.
    day: i64,
    members: HashMap<WalletId, MemberNotices>,
}

/// The notifications of a member on a day.
#[derive(Debug, Default)]
struct MemberNotices {
    times: u32,
    /// The last entry that was notified.
    last: u64,
}

impl Notifier {
    pub fn new(
        deps: Deps,
        options: NotifyOptions,
        retry: RetryOptions,
        shared: Arc<Shared>,
    ) -> Self {
        let queues = Arc::clone(&deps.queues);
        let clock = Arc::clone(&deps.clock);
        let letterbox = Letterbox::new(queues, clock, QueueName::Notify, retry);
        Self {
            sender: deps.sender,
            queues: deps.queues,
            clock: deps.clock,
            shared,
            letterbox,
            options,
            notified: Mutex::default(),
        }
    }

    /// Sends again what failed, until the process ends.
    pub async fn run_again(self: Arc<Self>) {
        loop {
            if let Err(error) = self.step_again(WAIT).await {
                tracing::warn!(%error, "notifications that failed are not sent again");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Sends the letters that are visible. Answers whether there were any.
    pub async fn step_again(&self, wait: Duration) -> Result<bool, Error> {
        let received = self.letterbox.receive(LETTERS_MAX, wait).await?;
        if received.is_empty() {
            return Ok(false);
        }
        let outcomes = futures_util::stream::iter(received).map(|received| async move {
            let outcome = self.outcome(&received.letter.body).await;
            (received, outcome)
        });
        let outcomes = outcomes.buffer_unordered(SENDING_MAX).collect().await;
        self.letterbox.settle(outcomes).await?;
        Ok(true)
    }

    async fn outcome(&self, body: &str) -> Outcome {
        let notice: FailedNotice = match serde_json::from_str(body) {
            Ok(notice) => notice,
            Err(error) => return Outcome::Dead { reason: MALFORMED, why: error.to_string() },
        };
        match self.send(&notice).await {
            Ok(()) => Outcome::Done,
            Err((Verdict::Refused | Verdict::Gone, why)) => Outcome::Dead { reason: REFUSED, why },
            Err((_, why)) => Outcome::Again(why),
        }
    }

    async fn send(&self, notice: &FailedNotice) -> Result<(), (Verdict, String)> {
        let request = self.request(notice);
        let (verdict, note) = match self.sender.send(&request).await {
            Ok(response) => {
                (Verdict::of_status(response.status), format!("status {}", response.status))
            }
            Err(error) => (Verdict::Retry, error.to_string()),
        };
        let is_delivered = verdict == Verdict::Delivered;
        let outcome = if is_delivered { "delivered" } else { "failed" };
        metrics::counter!("raingauge_points_notify_total", "outcome" => outcome).increment(1);
        if is_delivered { Ok(()) } else { Err((verdict, note)) }
    }

    fn request(&self, notice: &FailedNotice) -> Request {
        let now_s = self.clock.machine_ms().div_euclid(1_000);
        let body = notice.body.clone().into_bytes();
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("webhook-id", notice.id.clone()),
            ("idempotency-key", notice.id.clone()),
            ("webhook-timestamp", now_s.to_string()),
        ];
        if !self.options.secrets.is_empty() {
            let signed = signature(&self.options.secrets, &notice.id, now_s, &body);
            headers.push(("webhook-signature", signed));
        }
        Request {
            method: Method::Post,
            url: self.options.url.clone(),
            headers,
            body,
            timeout: self.options.timeout,
            response_len_max: RESPONSE_LEN_MAX,
            allow_private: self.options.allow_private,
        }
    }

    /// The notification of an entry; `None` for one that stays quiet.
    fn notice(&self, entry: &Entry) -> Option<FailedNotice> {
        let kind = event_type(entry.kind).filter(|_| !self.options.quiet.contains(&entry.kind))?;
        let wallet = entry.wallet()?;
        if !self.may_notify(wallet, entry.member_sequence) {
            metrics::counter!("raingauge_points_notify_total", "outcome" => "too_many")
                .increment(1);
            return None;
        }

        let snapshot = self.shared.snapshot();
        let data = data_of(entry, snapshot.programmes());
        let id = id_of(entry);
        let event = Event {
            id: id.as_str().into(),
            source: SOURCE.into(),
            subject: entry.member.as_deref().map(Into::into),
            ..Event::of_data(kind, entry.recorded_ms, &data)
        };
        let body = to_json(&event).get().to_owned();
        Some(FailedNotice { id, body })
    }

    /// Counts a notification of a member, unless there were too many that day. One that is repeated
    /// because it could be neither sent nor kept is not counted again.
    fn may_notify(&self, wallet: WalletId, sequence: u64) -> bool {
        let day = self.clock.now_ms().div_euclid(DAY_MS);
        let mut notified = self.notified.lock();
        if notified.day != day {
            *notified = Notified { day, members: HashMap::new() };
        }
        if notified.members.len() >= NOTIFIED_MEMBERS_MAX && !notified.members.contains_key(&wallet)
        {
            return false;
        }

        let member = notified.members.entry(wallet).or_default();
        if sequence <= member.last {
            return true;
        }
        if member.times >= self.options.per_day_max {
            return false;
        }
        member.times += 1;
        member.last = sequence;
        true
    }
}

impl Reader for Notifier {
    fn name(&self) -> &'static str {
        NOTIFIER
    }

    /// Sends the notifications of entries, and keeps those that failed in a queue.
    async fn deliver(&self, entries: Vec<Arc<Entry>>) -> Result<(), Error> {
        let notices: Vec<FailedNotice> =
            entries.iter().filter_map(|entry| self.notice(entry)).collect();
        let sent = futures_util::stream::iter(notices).map(|notice| async move {
            let sent = self.send(&notice).await;
            sent.err().map(|(_, why)| notice.letter(&why))
        });
        let failed: Vec<_> = sent.buffer_unordered(SENDING_MAX).collect().await;
        let failed: Vec<_> = failed.into_iter().flatten().collect();

        send_all(&*self.queues, QueueName::Notify, failed, Duration::from_secs(1)).await?;
        Ok(())
    }
}

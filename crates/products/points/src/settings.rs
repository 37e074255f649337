//! The settings of points.

use core::time::Duration;
use raingauge_settings::{FromText, Wrong, settings};

settings! {
    /// How points are awarded, kept and announced.
    pub struct Settings in "points" {
        /// Whether this process keeps a ledger of points; over the engines of a cluster it is kept
        /// in MySQL, and only where this is given.
        enabled: bool = switch(true);
        /// Where priced events wait: `direct` awards them from the event log itself, `queued`
        /// sends each through the queue of awards.
        awarding: Awarding = one_of(&["direct", "queued"]);
        /// Bytes of wallets in memory. What waits for its tables may take a quarter more.
        cache_bytes: usize = bytes(128 * MIB, MIB..=64 * GIB);
        /// Most commands that wait for the ledger; beyond, requests are answered 429.
        waiting_max: usize = whole(50_000, 100..=1_000_000, "commands");
        /// First wait before an event that could not be priced is tried again.
        retry_first as "retry_first_s": Duration = seconds(1, 1..=3_600);
        /// Longest wait between two tries.
        retry_most as "retry_most_s": Duration = seconds(3_600, 1..=43_200);
        /// After this time, what still cannot be priced becomes a dead letter.
        retry_age_max as "retry_age_max_s": Duration = seconds(259_200, 60..=1_209_600);
        /// Most wallets that a sweep settles in a second.
        sweep_per_s: usize = whole(50_000, 1..=10_000_000, "wallets");
        /// The largest adjustment that one person alone may make, beyond which a second one
        /// approves a draft; 0 for no limit.
        adjust_review: u64 = whole(0, 0..=1_000_000_000_000, "points");
        /// Whether each entry of a member is also an event of the log, of a type that begins with
        /// `raingauge.points.`.
        publish: bool = switch(true);
        /// Topic of Kafka that receives the same events under the member as their key, over the
        /// engines of a cluster; `raingauge migrate` makes it; empty for none.
        kafka_topic: Option<String> = text("");
        /// Address that receives a webhook for each entry of a member; empty for none.
        notify_url: Option<String> = text("");
        /// The secret that signs those webhooks.
        notify_secret: Option<String> = secret();
        /// Most webhooks about one member in a day.
        notify_per_day: usize = whole(10, 1..=10_000, "webhooks");
        /// Whether those webhooks may go to private networks and to this machine.
        notify_allow_private: bool = switch(false);
    }
}

/// Where priced events wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awarding {
    /// In the event log.
    Direct,
    /// In the queue of awards.
    Queued,
}

impl FromText for Awarding {
    fn from_text(word: &str) -> Result<Self, Wrong> {
        Ok(if word == "queued" { Self::Queued } else { Self::Direct })
    }
}

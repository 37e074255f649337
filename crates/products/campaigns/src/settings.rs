//! The settings of campaigns.

use core::time::Duration;
use raingauge_settings::settings;

settings! {
    /// How campaigns are decided and delivered.
    pub struct Settings in "campaigns" {
        /// Whether this process decides campaigns; over the engines of a cluster it cannot yet.
        enabled: bool = switch(true);
        /// Shortest time between two commits of decisions, unless there are more events than fit
        /// into one.
        commit_interval as "commit_ms": Duration = millis(50, 1..=10_000);
        /// Most events that one commit decides.
        batch_events: usize = whole(5_000, 1..=50_000, "events");
        /// How long a commit waits for lookups; an evaluation that lacks an answer then is put off.
        lookup_patience as "lookup_patience_ms": Duration = millis(200, 0..=10_000);
        /// Events that arrive later than this after they happened are counted, and decide nothing.
        late_after as "late_after_s": Duration = seconds(86_400, 60..=31_536_000);
        /// Bytes of states of subjects in memory.
        state_cache_bytes: usize = bytes(128 * MIB, MIB..=64 * GIB);
        /// How long decisions and ended deliveries are kept in the ledger.
        decisions_keep as "decisions_keep_days": Duration = days(30, 1..=400);
        /// How long ids of actions are kept: an event that comes back later may act again.
        actions_keep as "actions_keep_days": Duration = days(400, 1..=3_660);
        /// Whether decisions and ended deliveries are written to files before they are forgotten.
        history: bool = switch(true);
        /// How long those files are kept, from the days that they are about.
        history_keep as "history_keep_days": Duration = days(400, 1..=3_660);
        /// The largest budget that one person alone may give to a campaign, beyond which a second
        /// one approves; 0 for no limit.
        approval_above: u64 = whole(0, 0..=1_000_000_000_000, "units");
        /// Whether destinations and lookups may have addresses of private networks and of this
        /// machine.
        allow_private_addresses: bool = switch(false);
    }
}

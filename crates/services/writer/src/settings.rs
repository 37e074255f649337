//! The settings of taking and counting events.

use core::time::Duration;
use raingauge_settings::settings;

settings! {
    /// How far counting may lag behind the log.
    pub struct Lag in "log" {
        /// Most durable events that wait to be counted; beyond it, events are refused with 503.
        lag_events_max: u64 = whole(5_000_000, 1_000..=10_000_000_000, "events");
    }
}

settings! {
    /// How long the identities of events are remembered. The logs of all engines follow these.
    pub struct Dedupe in "dedupe" {
        /// How long the source and id of an event are remembered, so that a repetition is not
        /// counted.
        window as "window_hours": Duration = hours(24, 1..=8_760);
        /// Most events that the window remembers; when there are more, the oldest are forgotten
        /// early.
        ids_max: u64 = whole(64_000_000, 1_000..=10_000_000_000, "events");
    }
}

settings! {
    /// Which events and keys are taken.
    pub struct Events in "events" {
        /// How far ahead of this clock the time of an event may be.
        future_allowance as "future_allowance_s": Duration = seconds(300, 0..=86_400);
        /// Most keys that a counter takes; beyond it, events of its keys count on and new keys do
        /// not; 0 for no limit.
        keys_per_counter_max: u64 = whole(10_000_000, 0..=1_000_000_000, "keys");
    }
}

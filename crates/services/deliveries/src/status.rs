//! What is known about a destination while its deliveries are sent.

use crate::destination::Destination;
use crate::shared::Shared;
use parking_lot::Mutex;
use raingauge_policy::breaker;
use raingauge_ports::campaigns::{Backlog, Error};

/// A destination at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestinationStatus {
    pub name: String,
    pub activity: Activity,
    pub backlog: Backlog,
}

/// How a destination is sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// The version of its document.
    pub version: u32,
    /// Why nothing is sent, in a sentence.
    pub obstacle: Option<String>,
    /// Requests per second, as they are sent now; `None` if they are not bounded.
    pub per_second: Option<u32>,
    /// Requests per second, as the schedule says.
    pub scheduled_per_second: Option<u32>,
    pub breaker: breaker::State,
    /// Requests that may be under way, and those that are.
    pub concurrency: u16,
    pub in_flight: usize,
    pub last_failure: Option<Failure>,
}

/// An attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In milliseconds since 1970.
    pub at_ms: i64,
    /// A status, or an error.
    pub note: String,
}

/// Where the task of a destination shows what it does, and finds out whether it may.
#[derive(Default)]
pub struct Place {
    activity: Mutex<Activity>,
    switch: Mutex<Switch>,
}

/// Whether anything is to be sent.
#[derive(Default)]
struct Switch {
    /// The version of the document that is followed.
    version: Option<u32>,
    /// Why nothing is sent.
    disabled: Option<String>,
}

impl Default for Activity {
    fn default() -> Self {
        Self {
            version: 0,
            obstacle: None,
            per_second: None,
            scheduled_per_second: None,
            breaker: breaker::State::Closed,
            concurrency: 0,
            in_flight: 0,
            last_failure: None,
        }
    }
}

impl Place {
    pub fn show(&self, change: impl FnOnce(&mut Activity)) {
        change(&mut self.activity.lock());
    }

    /// Sends nothing until the document of the destination changes.
    pub fn disable(&self, why: String) {
        self.switch.lock().disabled = Some(why);
    }

    /// Follows a document. An answer that disabled the destination counts until there is another
    /// version.
    pub fn follow(&self, destination: &Destination) {
        let mut switch = self.switch.lock();
        if switch.version.replace(destination.version) != Some(destination.version) {
            switch.disabled = destination.disabled.clone();
        }
    }

    pub fn disabled(&self) -> Option<String> {
        self.switch.lock().disabled.clone()
    }

    pub fn is_enabled(&self) -> bool {
        self.switch.lock().disabled.is_none()
    }

    /// The status, with what waits.
    pub async fn status(&self, name: &str, shared: &Shared) -> Result<DestinationStatus, Error> {
        let backlog = shared.outbox.backlog(name).await?;
        let mut activity = self.activity.lock().clone();
        activity.obstacle = self.disabled().or(activity.obstacle);
        Ok(DestinationStatus { name: name.to_owned(), activity, backlog })
    }
}

impl DestinationStatus {
    /// Writes the metrics of a destination.
    pub fn measure(&self, now_ms: i64) {
        let name = || self.name.clone();
        let late_ms = self.backlog.oldest_ms.map_or(0, |oldest_ms| (now_ms - oldest_ms).max(0));
        metrics::gauge!("raingauge_campaign_outbox_pending", "destination" => name())
            .set(self.backlog.pending as f64);
        metrics::gauge!("raingauge_campaign_outbox_oldest_seconds", "destination" => name())
            .set(late_ms as f64 / 1e3);

        let state = match self.activity.breaker {
            breaker::State::Closed => 0.0,
            breaker::State::HalfOpen => 1.0,
            breaker::State::Open => 2.0,
        };
        metrics::gauge!("raingauge_campaign_breaker_state", "destination" => name()).set(state);

        let is_disabled = f64::from(u8::from(self.activity.obstacle.is_some()));
        metrics::gauge!("raingauge_campaign_destination_stopped", "destination" => name())
            .set(is_disabled);
    }
}

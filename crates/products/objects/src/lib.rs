//! What people see of the objects of Redis clients: a page of the portal, and gauges.
//!
//! ```text
//!   Objects, engine, Observed ──▶ Board ──┬──▶ page
//!                                         └──▶ History, gauges, every few seconds
//! ```

mod gauges;
mod history;
mod page;
mod parts;

use history::History;
use parking_lot::Mutex;
use raingauge_core::access::Role;
use raingauge_objects::{Objects, Stats};
use raingauge_portal::{Needs, Pages};
use raingauge_ports::clock::Clock;
use raingauge_ports::objects::{ObjectControl, Status};
use raingauge_resp_door::{Observed, Settings};
use std::sync::Arc;
use std::time::Duration;

/// The page, and the link of the navigation.
const HOME: &str = "/objects";
/// Time between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);

/// What the page is about.
pub struct Services {
    pub objects: Arc<Objects>,
    pub control: Arc<dyn ObjectControl>,
    pub observed: Arc<Observed>,
    pub settings: Settings,
    /// What objects and their engine may take.
    pub memory_bytes: usize,
    pub clock: Arc<dyn Clock>,
}

/// The services, as the page uses them.
#[derive(Clone)]
pub struct Board(Option<Arc<Open>>);

/// The board of a door that is open.
struct Open {
    services: Services,
    history: Mutex<History>,
}

impl Board {
    /// Of a process whose door for Redis clients is closed.
    pub fn closed() -> Self {
        Self(None)
    }

    pub fn open(services: Services) -> Self {
        Self(Some(Arc::new(Open { services, history: Mutex::default() })))
    }

    /// The pages of the portal. The navigation leads there where the door is open.
    pub fn pages(&self) -> Pages {
        let pages = Pages::default();
        let pages = match self.0 {
            Some(_) => pages.group("Redis").link(HOME, "Objects", Role::Viewer),
            None => pages,
        };
        let viewer = Needs::Role(Role::Viewer);
        pages.get(HOME, viewer, raingauge_portal::page(self, page::page))
    }

    /// Samples the services, and publishes gauges, while it is polled.
    pub async fn follow(self) {
        let Some(open) = self.0 else { return };
        let mut ticks = tokio::time::interval(SAMPLE_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            open.sample();
        }
    }
}

impl Open {
    fn sample(&self) {
        let (stats, status) = self.look();
        let at_ms = self.services.clock.elapsed_ms();
        let mut history = self.history.lock();
        gauges::publish(&history.last(), &stats, &status);
        history.note(history::Sample {
            at_ms,
            at_s: self.services.clock.now_s(),
            stats,
            syncs: status.syncs,
        });
    }

    fn look(&self) -> (Stats, Status) {
        (self.services.objects.stats(), self.services.control.status())
    }
}

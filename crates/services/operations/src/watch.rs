//! The processes of the deployment: each announces what it is and what it measured, and portals
//! read the announcements.
//!
//! ```text
//!   every process, every few seconds:  own metrics ──▶ announce ──▶ instances
//!   portals:                           instances ──▶ list ──▶ Measures, KnownInstance
//! ```
//!
//! Any portal thus shows the whole system, without a metrics server and without network requests to
//! the other processes.

mod activity;

pub use activity::{ACTIVITY_BYTES_MAX, RecentActivity};

use crate::measures::{Measures, Reading, SAMPLE_INTERVAL, Values};
use parking_lot::Mutex;
use raingauge_policy::cache::Choice;
use raingauge_ports::catalog;
use raingauge_ports::clock::{Clock, every};
use raingauge_ports::instances::{Instance, Instances};
use raingauge_ports::published::Published;
use raingauge_reader::{CachePolicies, Reader};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An instance without an announcement for this long counts as gone: six announcements.
pub const GONE_AFTER_S: i64 = 30;
/// An instance without an announcement for this long is removed.
pub const FORGOTTEN_AFTER_S: i64 = 24 * 3_600;
/// Announcements between two removals of old instances.
const FORGET_EVERY: u64 = 120;
/// Series of one metric in an announcement, those with the largest values.
const LABELS_ANNOUNCED_MAX: usize = 200;

/// Characters of an id that distinguish processes of one name.
const ID_CHARS: usize = 6;

/// What a process is, for as long as it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The name in its configuration.
    pub name: String,
    pub roles: Vec<String>,
    pub version: String,
    /// Where it serves HTTP.
    pub address: String,
    pub started_s: i64,
}

/// A process that announced itself.
#[derive(Clone, Debug)]
pub struct KnownInstance {
    pub instance: Instance,
    pub announcement: Announcement,
    /// Its last announcement is too old.
    pub is_gone: bool,
    /// It is this process.
    pub is_own: bool,
}

impl KnownInstance {
    /// The name of the process, where it has one, and the beginning of its id.
    pub fn title(&self) -> String {
        let id: String = self.instance.id.chars().take(ID_CHARS).collect();
        match self.instance.name.as_str() {
            "" => format!("The process {id}"),
            name => format!("{name} ({id})"),
        }
    }
}

/// What a process announces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Announcement {
    pub at_ms: i64,
    pub values: Values,
    /// Its cache policy; `None` when another version announces it in a way that cannot be read.
    pub choice: Option<Choice>,
    /// Why it has stopped counting.
    pub failure: Option<String>,
    /// Approximate number of queries per counter.
    pub asked: BTreeMap<u32, u64>,
    /// Its recent activity; empty once it is added to that of the others.
    activity: RecentActivity,
}

impl Announcement {
    fn to_json(&self) -> Json {
        let mut said = json!({ "atMs": self.at_ms, "values": self.values.to_json(), "choice": self.choice,
            "failure": self.failure, "asked": self.asked });
        if !self.activity.is_empty() {
            said["activity"] = self.activity.to_json(self.at_ms.div_euclid(1_000));
        }
        said
    }

    fn parse(text: &str) -> Self {
        let json: Json = serde_json::from_str(text).unwrap_or_default();
        Self {
            at_ms: json["atMs"].as_i64().unwrap_or_default(),
            values: Values::from_json(&json["values"]),
            choice: serde_json::from_value(json["choice"].clone()).ok(),
            failure: json["failure"].as_str().map(str::to_owned),
            asked: serde_json::from_value(json["asked"].clone()).unwrap_or_default(),
            activity: RecentActivity::from_json(&json["activity"]),
        }
    }
}

/// The dependencies of a watch.
pub struct Deps {
    pub about: About,
    pub measures: Arc<Measures>,
    pub instances: Arc<dyn Instances>,
    pub reader: Arc<Reader>,
    pub policies: Arc<CachePolicies>,
    pub published: Arc<Published>,
    pub clock: Arc<dyn Clock>,
}

/// Announces this process, and keeps the announcements of the others.
pub struct Watch {
    deps: Deps,
    id: String,
    seen: Mutex<Announcements>,
}

#[derive(Default)]
struct Announcements {
    seen: Vec<KnownInstance>,
    /// Why the announcements could not be read.
    failure: Option<String>,
    announcements: u64,
    /// Recent activity of the other processes, including those that are gone.
    activity: RecentActivity,
}

impl Watch {
    pub fn new(deps: Deps) -> Self {
        let id = hex::encode(rand::random::<[u8; 16]>());
        Self { deps, id, seen: Mutex::default() }
    }

    /// The unique id of this process.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Announces this process every few seconds, for as long as it is polled. With `listens`, also
    /// reads the announcements of the others.
    pub async fn run(&self, listens: bool) {
        let round = || async {
            self.announce().await;
            if listens {
                self.listen().await;
            }
        };
        every(SAMPLE_INTERVAL, round).await;
    }

    /// Announces this process once.
    pub async fn announce(&self) {
        if let Err(error) = self.try_announce().await {
            tracing::debug!(%error, "this process could not be announced");
        }
    }

    async fn try_announce(&self) -> Result<(), catalog::Error> {
        let Deps { instances, clock, .. } = &self.deps;
        let announcements = {
            let mut heard = self.seen.lock();
            heard.announcements += 1;
            heard.announcements
        };
        if announcements % FORGET_EVERY == 1 {
            instances.forget(clock.now_s() - FORGOTTEN_AFTER_S).await?;
        }
        instances.announce(self.own(&self.say())).await
    }

    fn say(&self) -> Announcement {
        let Deps { measures, reader, policies, published, .. } = &self.deps;
        let Reading { at_ms, values, .. } = measures.read();
        let choice = Some(Choice::clone(&policies.choice()));
        let failure = published.failure().map(|reason| reason.to_string());
        let mut asked: Vec<(u32, u64)> = reader.frequencies().into_iter().collect();

        asked.sort_by_key(|(_, often)| std::cmp::Reverse(*often));
        asked.truncate(LABELS_ANNOUNCED_MAX);

        let values = values.bounded(LABELS_ANNOUNCED_MAX);
        let activity = published.activity().all().into();
        Announcement {
            at_ms,
            values,
            choice,
            failure,
            asked: asked.into_iter().collect(),
            activity,
        }
    }

    fn own(&self, said: &Announcement) -> Instance {
        let About { name, roles, version, address, started_s } = self.deps.about.clone();
        let seen_s = said.at_ms.div_euclid(1_000);
        let measures = said.to_json().to_string();
        Instance { id: self.id.clone(), name, roles, version, address, started_s, seen_s, measures }
    }

    /// Reads all announcements and adds a moment to the measures. While the catalog is unreachable,
    /// only this process is known.
    pub async fn listen(&self) {
        let listed = self.deps.instances.list().await;
        let now_s = self.deps.clock.now_s();
        let own = self.say();
        let (listed, failure) = match listed {
            Ok(listed) => (listed, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let mut activity = RecentActivity::default();

        let others = listed.into_iter().filter(|instance| instance.id != self.id).map(|instance| {
            KnownInstance {
                announcement: Announcement::parse(&instance.measures),
                is_gone: instance.seen_s < now_s - GONE_AFTER_S,
                is_own: false,
                instance,
            }
        });

        let own = KnownInstance {
            instance: self.own(&own),
            announcement: own,
            is_gone: false,
            is_own: true,
        };

        let mut seen: Vec<KnownInstance> = others.chain([own]).collect();
        for seen in &mut seen {
            let told = std::mem::take(&mut seen.announcement.activity);
            if !seen.is_own {
                activity.join(&told);
            }
        }

        seen.sort_by(|one, other| {
            (&one.instance.name, &one.instance.id).cmp(&(&other.instance.name, &other.instance.id))
        });
        let reading = |seen: &KnownInstance| Reading {
            process: seen.instance.id.clone(),
            at_ms: seen.announcement.at_ms,
            values: seen.announcement.values.clone(),
        };

        self.deps.measures.record(seen.iter().filter(|seen| !seen.is_gone).map(reading).collect());
        let mut heard = self.seen.lock();
        (heard.seen, heard.failure, heard.activity) = (seen, failure, activity);
    }

    /// Recent activity of all processes: of the others as last announced, of this one as it is now.
    pub fn activity(&self) -> RecentActivity {
        let mut activity = self.seen.lock().activity.clone();
        activity.join(&self.deps.published.activity().all().into());
        activity
    }

    /// The known processes, by name, including those that are gone for less than a day.
    pub fn instances(&self) -> Vec<KnownInstance> {
        self.seen.lock().seen.clone()
    }

    /// Why the announcements could not be read; the known processes are then incomplete.
    pub fn failure(&self) -> Option<String> {
        self.seen.lock().failure.clone()
    }

    /// Withdraws the announcement of this process, which is about to end.
    pub async fn leave(&self) {
        if let Err(error) = self.deps.instances.leave(&self.id).await {
            tracing::debug!(%error, "the announcement of this process could not be withdrawn; it expires");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measures::values::RANGE_COUNTS;
    use raingauge_memory as memory;
    use raingauge_policy::cache::Strategy;
    use raingauge_ports::clock::ManualClock;
    use raingauge_reader::Engines;

    const NOW_S: i64 = 1_727_215_200;

    struct Process {
        watch: Watch,
        measures: Arc<Measures>,
        counts: Arc<Mutex<u64>>,
    }

    fn process(
        name: &str,
        instances: &Arc<memory::Instances>,
        clock: &Arc<ManualClock>,
    ) -> Process {
        let counts = Arc::<Mutex<u64>>::default();
        let told = Arc::clone(&counts);
        let render = move || format!("raingauge_range_counts_total {}", told.lock());
        let clock = Arc::clone(clock) as Arc<dyn Clock>;
        let measures = Arc::new(Measures::new(render, Arc::clone(&clock)));

        let about = About { name: name.to_owned(), version: "1".to_owned(), ..About::default() };
        let deps = Deps {
            about,
            measures: Arc::clone(&measures),
            instances: Arc::clone(instances) as _,
            reader: Arc::new(Reader::new(
                Engines::new(Arc::<memory::Buckets>::default(), Arc::default(), Arc::clone(&clock)),
                Default::default(),
            )),
            policies: Arc::new(CachePolicies::new(name)),
            published: Arc::default(),
            clock,
        };
        Process { watch: Watch::new(deps), measures, counts }
    }

    #[tokio::test]
    async fn each_sees_the_whole() {
        let instances = Arc::new(memory::Instances::default());
        let clock = Arc::new(ManualClock::at_s(NOW_S));
        let [a, b] = ["a", "b"].map(|name| process(name, &instances, &clock));
        b.watch.deps.published.fail("the disk is full");

        for step in 1..=3 {
            clock.set_s(NOW_S + step * 5);
            *a.counts.lock() += 10;
            *b.counts.lock() += 40;

            for process in [&a, &b] {
                process.watch.announce().await;
            }

            for process in [&a, &b] {
                process.watch.listen().await;
            }
        }

        for process in [&a, &b] {
            assert_eq!(process.measures.present().rate(RANGE_COUNTS), 10.0);
            let seen = process.watch.instances();
            let names: Vec<&str> = seen.iter().map(|seen| seen.instance.name.as_str()).collect();
            assert_eq!(names, ["a", "b"]);
            assert_eq!(seen[1].announcement.failure.as_deref(), Some("the disk is full"));

            assert_eq!(
                seen[0].announcement.choice.as_ref().map(|choice| choice.strategy),
                Some(Strategy::Live)
            );
        }
    }

    /// A portal adds up the activity of all writers; each process knows its own at once.
    #[tokio::test]
    async fn activity_is_added_up() {
        let instances = Arc::new(memory::Instances::default());
        let clock = Arc::new(ManualClock::at_s(NOW_S));
        let [portal, one, other] =
            ["portal", "one", "other"].map(|name| process(name, &instances, &clock));
        let count = |process: &Process, events| {
            process.watch.deps.published.activity().counted(7, NOW_S, events)
        };

        portal.watch.listen().await;
        assert_eq!(portal.watch.activity().of(7), None);
        count(&one, 2);
        count(&other, 3);
        one.watch.deps.published.activity().skipped(7, "filtered", 1);

        for _ in 0..2 {
            one.watch.announce().await;
            other.watch.announce().await;
            portal.watch.listen().await;
        }

        let known = portal.watch.activity().of(7).expect("two have told of it");
        assert_eq!((known.day_up_to(NOW_S)[95], known.skipped["filtered"]), (5, 1));
        one.watch.listen().await;
        count(&one, 10);
        assert_eq!(one.watch.activity().of(7).map(|known| known.day_up_to(NOW_S)[95]), Some(15));

        // A process that ended without leave still counted.
        clock.set_s(NOW_S + GONE_AFTER_S + 1);
        portal.watch.listen().await;
        assert_eq!(portal.watch.activity().of(7).map(|known| known.day_up_to(NOW_S)[95]), Some(5));
    }

    #[tokio::test]
    async fn who_is_silent_is_gone_and_later_forgotten() {
        let instances = Arc::new(memory::Instances::default());
        let clock = Arc::new(ManualClock::at_s(NOW_S));
        let [a, b] = ["a", "b"].map(|name| process(name, &instances, &clock));
        b.watch.announce().await;
        clock.set_s(NOW_S + GONE_AFTER_S + 1);
        a.watch.listen().await;

        let gone: Vec<bool> = a.watch.instances().iter().map(|seen| seen.is_gone).collect();
        assert_eq!(gone, [false, true]);
        clock.set_s(NOW_S + FORGOTTEN_AFTER_S + 1);
        a.watch.announce().await;
        a.watch.listen().await;
        assert_eq!(a.watch.instances().len(), 1);
        b.watch.announce().await;
        b.watch.leave().await;
        a.watch.listen().await;
        assert_eq!(a.watch.instances().len(), 1);
    }

    #[test]
    fn what_another_version_says_is_read_as_far_as_it_is_understood() {
        for text in [
            "",
            "[]",
            "{\"values\":{\"raingauge_new_total\":{\"\":1}},\"choice\":{\"strategy\":\"new\"}}",
            "{\"values\":3}",
        ] {
            assert_eq!(Announcement::parse(text), Announcement::default(), "{text}");
        }
    }
}

//! A portal over engines in memory, and a browser that sends requests to it.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use raingauge_app::budget::BodyBudgets;
use raingauge_app::{App, CountedData, Limits, Node, Operations, Samples};
use raingauge_core::bucket::DAY_S;
use raingauge_core::counter::Counter;
use raingauge_core::event::Event;
use raingauge_counters::documents::CounterKind;
use raingauge_counters::recount::Recounter;
use raingauge_counters::{Counters, Drafts, RecentEvents};
use raingauge_memory as memory;
use raingauge_operations::rollouts::{self, STILL_MAX};
use raingauge_operations::self_audit;
use raingauge_operations::watch::{self, About};
use raingauge_operations::{Conductor, Measures, SelfAudit, Watch};
use raingauge_people::Options;
use raingauge_people::audit::AuditLog;
use raingauge_people::openid::OpenId;
use raingauge_people::tokens::{Auth, Tokens};
use raingauge_portal::{Pages, Portal, router};
use raingauge_ports::clock::{Clock, ManualClock};
use raingauge_ports::log::{EventLog, Offset, Partition};
use raingauge_ports::people::People;
use raingauge_ports::published::Published;
use raingauge_ports::scans::Scans;
use raingauge_reader::{CachePolicies, Engines, Reader};
use raingauge_writer::states::{Part, States};
use raingauge_writer::worker::Backfill;
use raingauge_writer::{Ingest, worker};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use tower::ServiceExt as _;

/// A day in 2024, when every test begins.
pub const NOW_S: i64 = 20_000 * DAY_S + 12 * 3_600;

const ROLES: [&str; 3] = ["reader", "writer", "portal"];

type MakeOpenId<'a> = Box<dyn FnOnce(Arc<dyn Clock>) -> OpenId + 'a>;

pub struct World {
    pub portal: Portal,
    pub clock: Arc<ManualClock>,
    /// What the process says of itself in the text format of Prometheus.
    pub metrics: Arc<Mutex<String>>,
    pub instances: Arc<memory::Instances>,
    /// The bucket store, to be changed behind the log's back.
    pub buckets: Arc<memory::Buckets>,
    pub people: Arc<dyn People>,
    pub drafts: Arc<memory::Drafts>,
    pub rollouts: Arc<memory::Rollouts>,
    /// A backfill that runs for every counter for as long as it stands here.
    pub running: Arc<Mutex<Option<Backfill>>>,
    router: Router,
}

/// What a page answered.
#[derive(Debug)]
pub struct Page {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

/// What the writer knows, and the backfill of a test.
struct KnownStates {
    writer: Arc<worker::Handle>,
    running: Arc<Mutex<Option<Backfill>>>,
}

impl States for KnownStates {
    fn parts(&self, counter: u32) -> Vec<(Partition, Vec<Part>)> {
        States::parts(&*self.writer, counter)
    }

    fn backfills(&self, counter: u32) -> Vec<(Partition, Backfill)> {
        let own = self.running.lock().clone();
        own.map_or_else(|| self.writer.backfills(counter), |backfill| vec![(0, backfill)])
    }

    fn repetitions(&self, partition: Partition) -> Vec<Offset> {
        self.writer.repetitions(partition)
    }
}

impl World {
    /// A portal in which nobody needs to sign in.
    pub fn new() -> Self {
        Self::build(false, Options::default(), None)
    }

    /// A portal in which a second person has to approve drafts, or not.
    pub fn with_approval(approval: bool) -> Self {
        Self::build(approval, Options::default(), None)
    }

    pub fn with(people_options: Options) -> Self {
        Self::build(false, people_options, None)
    }

    /// A portal with a provider, which is made with the clock of the portal.
    pub fn with_openid(
        people_options: Options,
        openid: impl FnOnce(Arc<dyn Clock>) -> OpenId,
    ) -> Self {
        Self::build(false, people_options, Some(Box::new(openid)))
    }

    /// A portal in which people sign in, and a second one has to approve drafts.
    pub fn with_people_and_approval(people_options: Options) -> Self {
        Self::build(true, people_options, None)
    }

    /// A portal in which people sign in and see what these options let them see of events.
    pub fn with_samples(samples: Samples) -> Self {
        Self::build_with(true, Options { sign_in: true, ..Options::default() }, None, samples)
    }

    fn build(approval: bool, people_options: Options, openid: Option<MakeOpenId<'_>>) -> Self {
        Self::build_with(approval, people_options, openid, Samples::default())
    }

    fn build_with(
        approval: bool,
        people_options: Options,
        openid: Option<MakeOpenId<'_>>,
        samples: Samples,
    ) -> Self {
        let clock = Arc::new(ManualClock::at_s(NOW_S));
        let openid = openid.map(|make| make(Arc::clone(&clock) as _));
        let log = Arc::new(memory::Log::dated(Arc::clone(&clock) as _));
        let buckets = Arc::new(memory::Buckets::default());
        let published = Arc::new(Published::default());

        let logs = vec![Arc::clone(&log) as Arc<dyn EventLog>];
        let clock_port = Arc::clone(&clock) as Arc<dyn Clock>;
        let options = worker::Options::default();
        let store = Arc::clone(&buckets) as _;
        let writer = worker::Handle::start(
            Arc::clone(&logs[0]),
            store,
            Arc::clone(&published),
            clock_port.clone(),
            options,
        );

        let running = Arc::<Mutex<Option<Backfill>>>::default();
        let writer = Arc::new(writer.expect("a writer starts"));
        let states =
            Arc::new(KnownStates { writer: Arc::clone(&writer), running: Arc::clone(&running) });
        let sink = Arc::clone(&log) as Arc<_>;
        let ingest = Ingest::new(
            sink,
            logs.clone(),
            Arc::clone(&published),
            clock_port.clone(),
            300,
            u64::MAX,
        );

        let counters = Counters::new(
            Arc::new(memory::Catalog::default()),
            log,
            Arc::clone(&published),
            clock_port.clone(),
        );

        let counters = Arc::new(counters.with_conductor(writer));
        let backfills = counters.conductor().expect("a conductor of backfills");
        tokio::spawn(async move { backfills.run().await });

        let policies = Arc::new(CachePolicies::new(""));
        let engines =
            Engines::new(Arc::clone(&buckets) as _, Arc::clone(&published), clock_port.clone());
        let engines = Engines { policies: Arc::clone(&policies), ..engines };
        let reader = Reader::new(engines, Default::default());
        let recounter = Recounter {
            logs: logs.clone(),
            buckets: Arc::clone(&buckets) as _,
            published: Arc::clone(&published),
            states: Arc::clone(&states) as _,
            clock: clock_port.clone(),
            future_allowance_s: 300,
        };

        let metrics = Arc::<Mutex<String>>::default();
        let told = Arc::clone(&metrics);
        let measures = Arc::new(Measures::new(move || told.lock().clone(), clock_port.clone()));
        let reader = Arc::new(reader);
        let recounter = Arc::new(recounter);

        let instances = Arc::<memory::Instances>::default();
        let rollouts = Arc::<memory::Rollouts>::default();
        let watch = Arc::new(Watch::new(watch::Deps {
            about: About {
                name: "all-1".to_owned(),
                roles: ROLES.map(str::to_owned).to_vec(),
                version: "0.0.1".to_owned(),
                address: "127.0.0.1:8080".to_owned(),
                started_s: NOW_S,
            },
            measures: Arc::clone(&measures),
            instances: Arc::clone(&instances) as _,
            reader: Arc::clone(&reader),
            policies: Arc::clone(&policies),
            published: Arc::clone(&published),
            clock: clock_port.clone(),
        }));

        let audit = Arc::new(SelfAudit::new(self_audit::Deps {
            recounter: Arc::clone(&recounter),
            reader: Arc::clone(&reader),
            checks: Arc::new(memory::Checks::default()),
            lease: Arc::new(memory::Lease),
            logs: logs.clone(),
            published: Arc::clone(&published),
            clock: clock_port.clone(),
            options: self_audit::Options::default(),
        }));

        let conductor = Conductor::new(rollouts::Deps {
            rollouts: Arc::clone(&rollouts) as _,
            counters: Arc::clone(&counters),
            policies: Arc::clone(&policies),
            measures: Arc::clone(&measures),
            watch: Arc::clone(&watch),
            clock: clock_port.clone(),
            still_max: STILL_MAX,
        });

        let people: Arc<dyn People> = Arc::<memory::People>::default();
        let drafts = Arc::new(memory::Drafts::default());
        let workflow = Drafts::new(
            Arc::clone(&drafts) as _,
            Arc::clone(&people),
            Arc::clone(&clock_port),
            approval,
        );

        let workflow = workflow.with(Arc::new(CounterKind::new(Arc::clone(&counters))));
        let scans = Scans::default();
        let app = App {
            node: Node {
                roles: raingauge_app::Role::ALL.to_vec(),
                draining: tokio::sync::watch::channel(false).1,
                failure: Box::new(|| None),
                troubles: Box::new(Vec::new),
                metrics: Arc::new(String::new),
            },
            clock: Arc::clone(&clock_port),
            ingest: Arc::new(ingest),
            waits: Vec::new(),
            counters,
            drafts: Arc::new(workflow),
            reader,
            counted: CountedData {
                published,
                states,
                recent: RecentEvents::new(logs.clone(), scans.clone(), Arc::clone(&clock_port)),
                logs,
                log_kept: None,
                recounter,
                scans,
            },
            people: raingauge_app::People {
                store: Arc::clone(&people),
                tokens: Arc::new(Tokens::new(&Auth::default())),
                options: people_options,
                audit: AuditLog::new(people.clone(), clock_port),
            },
            operations: Operations {
                policies,
                maintenance: None,
                measures,
                watch,
                self_audit: audit,
                rollouts: Arc::new(conductor),
            },
            limits: Limits {
                body_bytes_max: 1 << 20,
                bodies: BodyBudgets::new(1 << 20),
                request_timeout: std::time::Duration::from_secs(30),
                samples,
            },
            largest: raingauge_app::largest::Memory::default(),
        };

        let app = Arc::new(app);
        let portal = Portal::new(app, openid);
        Self {
            router: router(portal.clone(), Pages::default()),
            portal,
            clock,
            metrics,
            instances,
            buckets,
            people,
            drafts,
            rollouts,
            running,
        }
    }

    /// A counter of the drops of each city, with what differs from it.
    pub async fn counter(&self, changes: Json) -> u32 {
        let mut counter = json!({ "name": "count_rain_drops", "template": "rain:city:{city_id}", "eventType": "rain_drop",
            "owner": "weather" });
        for (name, value) in changes.as_object().expect("an object") {
            counter[name] = value.clone();
        }
        let counter = Counter::from_json(&counter).expect("a counter");
        self.portal.counters.create(counter, "test", "").await.expect("a counter").counter.id
    }

    /// Counts events of a type, given when each happened and its data.
    pub async fn events(&self, event_type: &str, events: impl IntoIterator<Item = (i64, Json)>) {
        let mut intake = self.portal.ingest.begin().expect("events are taken");
        for (time_s, data) in events {
            let time = raingauge_core::time::format_rfc3339(time_s);
            let id = format!("{:032x}", rand::random::<u128>());
            let event = json!({ "specversion": "1.0", "id": id, "source": "/test", "type": event_type, "time": time,
                "data": data });
            intake.push(Event::from_json(event.to_string().as_bytes())).expect("an event");
        }
        let receipt = self.portal.ingest.finish(intake, true).await.expect("events are counted");
        assert!(receipt.rejected.is_empty(), "{receipt:?}");
    }

    pub async fn get(&self, address: &str) -> Page {
        self.send(Request::get(address).body(Body::empty()).expect("a request")).await
    }

    /// Sends a form as a page of the portal sends it, with the secret that pages carry.
    pub async fn post(&self, address: &str, fields: &[(&str, &str)]) -> Page {
        let csrf = self.csrf().await;
        let fields = fields.iter().copied().chain([("csrf", csrf.as_str())]);
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = Request::post(address)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header("sec-fetch-site", "same-origin");
        self.send(request.body(Body::from(form)).expect("a request")).await
    }

    pub async fn send(&self, request: Request<Body>) -> Page {
        let response = self.router.clone().oneshot(request).await.expect("a page answers");
        let status = response.status();
        let headers = response.headers().clone();
        let bytes = response.into_body().collect().await.expect("the page is read").to_bytes();
        Page { status, headers, text: String::from_utf8(bytes.to_vec()).expect("pages are UTF-8") }
    }

    /// The headers and the bytes of an answer, which may be compressed.
    pub async fn fetch(&self, request: Request<Body>) -> (HeaderMap, Vec<u8>) {
        let response = self.router.clone().oneshot(request).await.expect("a page answers");
        let headers = response.headers().clone();
        let bytes = response.into_body().collect().await.expect("the page is read").to_bytes();
        (headers, bytes.to_vec())
    }

    /// What the forms of this person carry.
    pub async fn csrf(&self) -> String {
        let page = self.get("/").await;
        let (_, rest) =
            page.text.split_once("name=\"csrf\" content=\"").expect("a page with its secret");
        rest.split('"').next().unwrap_or_default().to_owned()
    }
}

impl Page {
    #[track_caller]
    pub fn shows(&self, text: &str) -> &Self {
        assert!(self.text.contains(text), "`{text}` is not in {}: {}", self.status, self.text);
        self
    }

    #[track_caller]
    pub fn lacks(&self, text: &str) -> &Self {
        assert!(!self.text.contains(text), "`{text}` is in {}: {}", self.status, self.text);
        self
    }

    /// Where the answer sends the browser.
    pub fn location(&self) -> &str {
        self.headers.get(header::LOCATION).and_then(|place| place.to_str().ok()).unwrap_or_default()
    }
}

//! Documents of campaigns over engines in memory, with a worker that applies control entries.

use raingauge_campaigns::documents::Kind;
use raingauge_counters::Drafts;
use raingauge_counters::documents::{self as drafts, DocumentKind};
use raingauge_counters::drafts::{self as workflow, Actor, Decision, Proposal};
use raingauge_documents::{
    CampaignRules, Deps, Documents, Error, Format, InEffect, Options, ProductKind, Provenance,
    Uploads,
};
use raingauge_memory as memory;
use raingauge_ports::campaigns::{
    DocumentStore, Put, StoredDocument, TableLoads, TableRow, Tables,
};
use raingauge_ports::clock::ManualClock;
use raingauge_ports::drafts::Draft;
use raingauge_ports::log::EventLog;
use raingauge_ports::record::Entry;
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

const BY: Provenance<'static> = Provenance { by: "zoe", reason: "" };

/// A worker that applies what it is given.
struct Worker {
    versions: Mutex<HashMap<(String, String), u32>>,
    changes: watch::Sender<u64>,
}

impl Default for Worker {
    fn default() -> Self {
        Self { versions: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl Worker {
    fn apply(&self, document: &Json) {
        let text = |member: &str| document[member].as_str().unwrap().to_owned();
        let version = document["version"].as_u64().unwrap() as u32;
        self.versions.lock().unwrap().insert((text("kind"), text("id")), version);
        self.changes.send_modify(|changes| *changes += 1);
    }
}

impl InEffect for Worker {
    fn version_of(&self, kind: &str, id: &str) -> Option<u32> {
        self.versions.lock().unwrap().get(&(kind.to_owned(), id.to_owned())).copied()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

struct World {
    log: Arc<memory::Log>,
    store: Arc<memory::Documents>,
    worker: Arc<Worker>,
    documents: Arc<Documents>,
}

impl World {
    fn new() -> Self {
        Self::with(Options { patience: Duration::from_secs(30), ..Options::default() })
    }

    fn with(options: Options) -> Self {
        let log = Arc::<memory::Log>::default();
        Self::over(log, Arc::default(), Arc::default(), options)
    }

    /// A process over engines that are there already.
    fn over(
        log: Arc<memory::Log>,
        store: Arc<memory::Documents>,
        worker: Arc<Worker>,
        options: Options,
    ) -> Self {
        let deps = Deps {
            store: Arc::clone(&store) as Arc<dyn DocumentStore>,
            rules: Arc::new(CampaignRules::new(Some(1_000), vec!["crm".to_owned()])),
            sink: Arc::clone(&log) as Arc<dyn raingauge_ports::log::EventSink>,
            in_effect: Arc::clone(&worker) as Arc<dyn InEffect>,
            clock: Arc::new(ManualClock::at_s(1_727_136_000)),
        };
        let documents = Arc::new(Documents::new(deps, options));
        Self { log, store, worker, documents }
    }

    /// The control entries of the log.
    fn entries(&self) -> Vec<Json> {
        let mut entries = Vec::new();
        for block in self.log.read(0, usize::MAX).unwrap() {
            for entry in block.entries(0) {
                if let (_, Entry::Control(payload)) = entry.unwrap() {
                    entries.push(serde_json::from_slice(payload).unwrap());
                }
            }
        }
        entries
    }

    /// Applies entries as they come, until the test ends.
    fn work(&self) -> tokio::task::JoinHandle<()> {
        let log = Arc::clone(&self.log);
        let worker = Arc::clone(&self.worker);
        tokio::task::spawn_blocking(move || {
            let mut next = 0;
            loop {
                log.wait_beyond(next, Duration::from_millis(20));
                for block in log.read(next, usize::MAX).unwrap_or_default() {
                    next = block.end();
                    for entry in block.entries(0) {
                        if let Ok((_, Entry::Control(payload))) = entry {
                            let entry: Json = serde_json::from_slice(payload).unwrap();
                            worker.apply(&entry["document"]);
                        }
                    }
                }
                if Arc::strong_count(&worker) == 1 {
                    return;
                }
            }
        })
    }

    async fn create(&self, kind: Kind, document: Json) -> StoredDocument {
        self.documents.create(kind, &document, BY).await.unwrap()
    }

    /// The documents that [`campaign`] names.
    async fn prepared(self) -> Self {
        self.create(Kind::Destination, destination()).await;
        self
    }
}

fn destination() -> Json {
    json!({ "name": "messages", "url": "https://messages.example/" })
}

fn campaign(max: i64, state: &str) -> Json {
    json!({ "name": "mart", "eventTypes": ["mart.order"], "state": state,
            "steps": [ { "name": "s", "actions": [ { "name": "m", "kind": "message",
                "to": "messages", "template": "t", "cost": { "budget": "b", "amount": 1 } } ] } ],
            "budgets": { "b": { "unit": "cents", "max": max } },
            "templates": { "t": { "en": "Hello {{ subject }}" } } })
}

/// The same as version of campaign 1.
fn numbered(mut campaign: Json) -> Json {
    campaign["id"] = json!(1);
    campaign
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_is_stored_and_takes_effect_through_the_log() {
    let world = World::new();
    let _worker = world.work();
    let world = world.prepared().await;
    let created = world.create(Kind::Campaign, campaign(10, "draft")).await;
    assert_eq!((created.id.as_str(), created.version), ("1", 1));
    assert_eq!(created.configuration["id"], 1);
    assert_eq!(created.changed_ms, 1_727_136_000_000);

    let entries = world.entries();
    let named = json!({ "kind": "campaign", "id": "1", "version": 1 });
    let expected = json!({ "for": "campaigns", "kind": "document", "document": named });
    assert_eq!(entries.last(), Some(&expected));
    assert_eq!(world.worker.version_of("campaign", "1"), Some(1));

    // An equal document is no change, whatever it is based on.
    let same = numbered(campaign(10, "draft"));
    let again = world.documents.replace(Kind::Campaign, "1", &same, None, BY).await.unwrap();
    assert_eq!(again, created);
    assert_eq!(world.entries().len(), entries.len());

    let active = world.documents.set_state(Kind::Campaign, "1", "active", Some(1), BY).await;
    assert_eq!(active.unwrap().configuration["state"], "active");
    let versions = world.documents.versions(Kind::Campaign, "1").await.unwrap();
    assert_eq!(versions.iter().map(|found| found.version).collect::<Vec<_>>(), [2, 1]);
    let first = world.documents.get(Kind::Campaign, "1", Some(1)).await.unwrap();
    assert_eq!(first, created);
    assert_eq!(world.documents.list(Kind::Campaign).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_names_the_version_it_is_based_on() {
    let world = World::new();
    let _worker = world.work();
    let world = world.prepared().await;
    let documents = &world.documents;
    world.create(Kind::Campaign, campaign(10, "draft")).await;
    let next = numbered(campaign(11, "draft"));
    documents.replace(Kind::Campaign, "1", &next, Some(1), BY).await.unwrap();

    let other = numbered(campaign(12, "draft"));
    let late = documents.replace(Kind::Campaign, "1", &other, Some(1), BY).await;
    assert!(matches!(late, Err(Error::Conflict { current: 2, .. })), "{late:?}");
    let taken = documents.create(Kind::Campaign, &next, BY).await;
    assert!(matches!(taken, Err(Error::Taken { .. })), "{taken:?}");
    let other = documents.replace(Kind::Campaign, "2", &next, None, BY).await;
    assert!(matches!(other, Err(Error::Invalid { .. })), "{other:?}");
    let unknown = documents.delete(Kind::Campaign, "9", None, BY).await;
    assert!(matches!(unknown, Err(Error::NotFound { .. })), "{unknown:?}");
    let unknown = documents.get("programme", "1", None).await;
    assert!(matches!(unknown, Err(Error::KindUnknown(_))), "{unknown:?}");
    let unknown = documents.get(Kind::Campaign, "1", Some(9)).await;
    assert!(matches!(unknown, Err(Error::VersionUnknown { version: 9, .. })), "{unknown:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_are_checked_among_each_other() {
    let world = World::new();
    let _worker = world.work();
    let documents = &world.documents;
    let fields = |error: Error| match error {
        Error::Invalid { problems, .. } => {
            problems.into_iter().map(|problem| problem.field).collect::<Vec<_>>()
        }
        other => panic!("{other}"),
    };

    let missing = documents.check(Kind::Campaign, &campaign(10, "draft")).await.unwrap_err();
    assert_eq!(fields(missing), ["steps[0].actions[0].to"]);
    world.create(Kind::Destination, destination()).await;
    let stored_form = documents.check(Kind::Campaign, &campaign(10, "draft")).await.unwrap();
    assert_eq!(stored_form["subject"], "subject");
    assert_eq!(documents.list(Kind::Campaign).await.unwrap(), []);

    let mut malformed = campaign(10, "draft");
    malformed["templates"]["t"]["en"] = json!("{{ nobody }}");
    let refused = documents.create(Kind::Campaign, &malformed, BY).await.unwrap_err();
    assert_eq!(fields(refused), ["templates"]);

    let lookup = |connection: &str| json!({ "name": "crm", "class": "db", "connection": connection, "sql": "SELECT a FROM b WHERE c = ?" });
    let refused = documents.create(Kind::Lookup, &lookup("other"), BY).await.unwrap_err();
    assert_eq!(fields(refused), ["connection"]);
    world.create(Kind::Lookup, lookup("crm")).await;

    // What is in use stays until nothing needs it.
    world.create(Kind::Campaign, campaign(10, "draft")).await;
    let refused = documents.delete(Kind::Destination, "messages", None, BY).await.unwrap_err();
    assert!(refused.to_string().contains("campaign 1"), "{refused}");
    documents.delete(Kind::Campaign, "1", Some(1), BY).await.unwrap();
    documents.delete(Kind::Destination, "messages", None, BY).await.unwrap();
    let gone = documents.get(Kind::Destination, "messages", None).await;
    assert!(matches!(gone, Err(Error::NotFound { .. })));
    assert_eq!(documents.versions(Kind::Destination, "messages").await.unwrap().len(), 2);

    // A name may return, a number may not.
    assert_eq!(world.create(Kind::Destination, destination()).await.version, 3);
    assert_eq!(world.create(Kind::Campaign, campaign(10, "draft")).await.id, "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_budgets_need_a_second_person() {
    let world = World::new();
    let _worker = world.work();
    let world = world.prepared().await;
    let documents = &world.documents;
    let needs = |answer: Result<StoredDocument, Error>| match answer {
        Err(Error::ApprovalNeeded(_)) => true,
        Ok(_) => false,
        Err(other) => panic!("{other}"),
    };

    assert!(needs(documents.create(Kind::Campaign, &campaign(1_001, "active"), BY).await));
    assert!(needs(documents.create(Kind::Campaign, &campaign(1_001, "paused"), BY).await));
    assert!(!needs(documents.create(Kind::Campaign, &campaign(1_001, "draft"), BY).await));
    let set =
        async |state: &str| needs(documents.set_state(Kind::Campaign, "1", state, None, BY).await);
    assert!(set("active").await);
    assert!(set("paused").await);
    assert!(!set("shadow").await);
    assert!(set("active").await);

    // A draft that was approved takes effect, and may then be stopped and resumed.
    let kind = ProductKind::campaigns(Arc::clone(documents));
    let proposed = numbered(campaign(1_001, "active"));
    assert!(kind.needs_second(&proposed).await.unwrap());
    let applied = kind.replace(&proposed, 2, BY).await.unwrap();
    assert_eq!((applied.id, applied.version), (1, 3));
    assert!(!set("paused").await);
    assert!(!set("active").await);
    assert!(!set("archived").await);
    assert!(set("active").await);

    let more = numbered(campaign(2_000, "active"));
    assert!(needs(documents.replace(Kind::Campaign, "1", &more, None, BY).await));
    let less = numbered(campaign(1_000, "active"));
    assert!(!needs(documents.replace(Kind::Campaign, "1", &less, None, BY).await));
    assert!(!kind.needs_second(&less).await.unwrap());

    // A budget that is shared has no draft.
    let shared = json!({ "name": "all", "unit": "cents", "max": 1_001 });
    let refused = documents.create(Kind::Budget, &shared, BY).await;
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaigns_are_documents_of_drafts() {
    let world = World::new();
    let _worker = world.work();
    let world = world.prepared().await;
    let kind = ProductKind::campaigns(Arc::clone(&world.documents));
    let stored_form = kind.check(&campaign(10, "draft")).unwrap();
    assert!(matches!(kind.check(&json!({})), Err(drafts::Error::Invalid(_))));

    let created = kind.create(&stored_form, BY).await.unwrap();
    assert_eq!((created.id, created.version), (1, 1));
    assert_eq!(kind.read(1, None).await.unwrap(), created);
    assert!(matches!(kind.read(2, None).await, Err(drafts::Error::NotFound(_))));
    let again = kind.create(&created.configuration, BY).await;
    assert!(matches!(again, Err(drafts::Error::IdTaken { id: 1, .. })), "{again:?}");

    let next = numbered(campaign(11, "active"));
    let replaced = kind.replace(&next, 1, BY).await.unwrap();
    let late = kind.replace(&numbered(campaign(12, "active")), 1, BY).await;
    assert!(matches!(late, Err(drafts::Error::Conflict { current: 2, .. })), "{late:?}");
    let differing = kind.differences(&created.configuration, &replaced.configuration);
    let fields: Vec<&str> = differing.iter().map(|change| change.field).collect();
    assert_eq!(fields, ["state", "budgets"]);
}

/// Where drafts need no approval, those with large budgets do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draft_with_a_large_budget_takes_effect_by_a_second_person() {
    let world = World::new();
    let _worker = world.work();
    let world = world.prepared().await;
    let kind = Arc::new(ProductKind::campaigns(Arc::clone(&world.documents)));
    let flow = Drafts::new(
        Arc::new(memory::Drafts::default()),
        Arc::new(memory::People::default()),
        Arc::new(ManualClock::at_s(7)),
        false,
    )
    .with(kind);
    let [zoe, max] = [Actor::person("zoe"), Actor::person("max")];
    let propose = async |configuration: Json| {
        let proposal = Proposal { kind: "campaign", configuration, base_version: 0 };
        flow.create(proposal, zoe).await.unwrap().draft
    };
    let decide =
        |draft: &Draft, by| Decision { id: draft.id, revision: draft.revision, text: "autumn", by };

    let small = propose(campaign(1_000, "active")).await;
    let applied = flow.apply(decide(&small, zoe)).await.unwrap().draft;
    assert_eq!((applied.document_id(), applied.applied_version), (1, 1));

    let large = propose(campaign(1_001, "active")).await;
    let alone = flow.apply(decide(&large, zoe)).await;
    assert!(matches!(alone, Err(workflow::Error::ApprovalNeeded)), "{alone:?}");
    let sent = flow.submit(decide(&large, zoe)).await.unwrap().draft;
    let alone = flow.approve(decide(&sent, zoe)).await;
    assert!(matches!(alone, Err(workflow::Error::NotSecond(_))), "{alone:?}");
    assert_eq!(world.documents.list(Kind::Campaign).await.unwrap().len(), 1);

    let approved = flow.approve(decide(&sent, max)).await.unwrap().draft;
    assert_eq!((approved.document_id(), approved.applied_version), (2, 1));
    let stored = world.documents.get(Kind::Campaign, "2", None).await.unwrap();
    assert_eq!(stored.changed_by, "zoe");
    assert!(stored.reason.contains("max"), "{}", stored.reason);
}

/// A process ended between storing a version and announcing it, or another one stored it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reconciler_announces_what_is_not_in_effect() {
    let world = World::new();
    let document = StoredDocument {
        kind: "destination".to_owned(),
        id: "messages".to_owned(),
        version: 0,
        configuration: destination(),
        is_deleted: false,
        changed_by: "max".to_owned(),
        reason: String::new(),
        changed_ms: 0,
    };
    let foreign = StoredDocument { kind: "programme".to_owned(), ..document.clone() };
    world.store.put(document.clone(), 0).await.unwrap();
    world.store.put(foreign, 0).await.unwrap();
    assert_eq!(world.entries(), Vec::<Json>::new());

    // Once, however often it looks before the worker has applied it.
    for _ in 0..3 {
        world.documents.reconcile().await.unwrap();
    }
    assert_eq!(world.entries().len(), 1);
    assert_eq!(world.entries()[0]["document"]["id"], "messages");
    world.worker.apply(&world.entries()[0]["document"]);

    // The next process finds everything in effect, and nothing to announce.
    let World { log, store, worker, .. } = world;
    let world = World::over(log, store, worker, Options::default());
    world.documents.reconcile().await.unwrap();
    assert_eq!(world.entries().len(), 1);

    // What another process stores is known to checks, and announced here.
    let put = world.store.put(StoredDocument { is_deleted: true, ..document }, 1).await.unwrap();
    assert!(matches!(put, Put::Stored(_)));
    let refused = world.documents.check(Kind::Campaign, &campaign(1, "draft")).await;
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    assert_eq!(world.entries().len(), 2);
}

#[tokio::test]
async fn a_change_that_does_not_take_effect_is_saved_all_the_same() {
    let world = World::with(Options { patience: Duration::from_millis(1), ..Options::default() });
    let late = world.documents.create(Kind::Destination, &destination(), BY).await;
    assert!(matches!(late, Err(Error::NotInEffect { version: 1, .. })), "{late:?}");
    let found = world.documents.get(Kind::Destination, "messages", None).await.unwrap();
    assert_eq!(found.version, 1);

    // It is in the log already, and waits for the worker there.
    world.documents.reconcile().await.unwrap();
    assert_eq!(world.entries().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_uploaded_whole_or_not_at_all() {
    let world = World::new();
    let _worker = world.work();
    let tables = Arc::<memory::Tables>::default();
    let uploads = Uploads::new(
        Arc::clone(&world.documents),
        Arc::clone(&tables) as Arc<dyn Tables>,
        Arc::clone(&tables) as Arc<dyn TableLoads>,
        Arc::new(ManualClock::at_s(7)),
    );
    assert!(matches!(uploads.begin("users", Format::Csv).await, Err(Error::NotFound { .. })));
    let users = json!({ "name": "users", "columns": { "tier": "text" } });
    world.create(Kind::Table, users).await;

    let mut upload = uploads.begin("users", Format::Csv).await.unwrap();
    upload.feed(b"subject,tier\n").await.unwrap();
    for number in 0..5_000 {
        upload.feed(format!("u-{number},gold\n").as_bytes()).await.unwrap();
    }
    let version = upload.finish().await.unwrap();
    assert_eq!((version.rows, version.loaded_ms), (5_000, 7_000));
    assert_eq!(uploads.loaded().await.unwrap(), [version]);
    let tier = async |key: &str| {
        let found = tables.get("users", &[key.to_owned()]).await.unwrap().remove(0);
        found.map(|row: TableRow| row["tier"].as_str().unwrap().to_owned())
    };
    assert_eq!(tier("u-4999").await.as_deref(), Some("gold"));

    // A wrong row ends an upload, and the table stays as it was.
    let mut upload = uploads.begin("users", Format::Lines).await.unwrap();
    upload.feed(b"{\"subject\":\"u-1\",\"tier\":\"none\"}\n").await.unwrap();
    let refused = upload.feed(b"{\"subject\":\"u-2\",\"tier\":7}\n").await;
    assert!(matches!(refused, Err(Error::Row { line: 2, .. })), "{refused:?}");
    drop(upload);
    assert_eq!(tier("u-1").await.as_deref(), Some("gold"));

    let lines = b"{\"subject\":\"u-1\",\"tier\":\"none\"}\n{\"subject\":\"u-2\",\"deleted\":true}";
    assert_eq!(uploads.change("users", lines).await.unwrap(), 2);
    assert_eq!((tier("u-1").await.as_deref(), tier("u-2").await), (Some("none"), None));

    uploads.delete("users", None, BY).await.unwrap();
    assert_eq!(tier("u-1").await, None);
    tables.change("users", vec![("u-1".to_owned(), Some(TableRow::new()))]).await.unwrap();
    uploads.remove_orphans().await.unwrap();
    assert_eq!(uploads.loaded().await.unwrap(), []);
}

//! The workflow of drafts: over counters, and against a model over documents of another kind.

use crate::support::{NOON_S, Services, counter};
use parking_lot::Mutex;
use proptest::prelude::*;
use raingauge_counters::Drafts;
use raingauge_counters::difference::FieldChange;
use raingauge_counters::documents::{self, CounterKind, Document, DocumentKind, Provenance};
use raingauge_counters::drafts::{Actor, Decision, DraftChange, Error, NotSecond, Proposal};
use raingauge_memory as memory;
use raingauge_ports::BoxFuture;
use raingauge_ports::clock::ManualClock;
use raingauge_ports::drafts::{Draft, State};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const ADA: Actor = Actor::person("ada");
const ZOE: Actor = Actor::person("zoe");
/// A token that ada made in the portal.
const TOKEN_OF_ADA: Actor = Actor { name: "token:ci", person: Some("ada") };
/// A token of the configuration.
const TOKEN_OF_NOBODY: Actor = Actor { name: "token:ops", person: None };
const ACTORS: [Actor; 4] = [ADA, ZOE, TOKEN_OF_ADA, TOKEN_OF_NOBODY];

/// Documents in memory, each a text with versions.
#[derive(Default)]
struct Notes(Mutex<BTreeMap<u64, Vec<Document>>>);

impl Notes {
    fn write(
        &self,
        configuration: &Json,
        base: u32,
        by: &str,
    ) -> Result<Document, documents::Error> {
        let mut notes = self.0.lock();
        let next = notes.keys().next_back().map_or(1, |last| last + 1);
        let id = configuration["id"].as_u64().filter(|id| *id > 0).unwrap_or(next);
        let versions = notes.entry(id).or_default();
        let current = versions.len() as u32;
        match (base, current) {
            (0, 1..) => return Err(documents::Error::IdTaken { kind: "note", id }),
            _ if base != current => {
                return Err(documents::Error::Conflict { current, detail: String::new() });
            }
            _ => {}
        }

        let configuration = json!({ "id": id, "name": configuration["name"] });
        let changed_by = by.to_owned();
        let reason = String::new();
        let version = current + 1;

        versions.push(Document { id, version, configuration, changed_by, reason });
        Ok(versions[current as usize].clone())
    }

    fn versions(&self, id: u64) -> u32 {
        self.0.lock().get(&id).map_or(0, |versions| versions.len() as u32)
    }
}

impl DocumentKind for Notes {
    fn name(&self) -> &'static str {
        "note"
    }

    fn check(&self, configuration: &Json) -> Result<Json, documents::Error> {
        let name = configuration["name"].as_str().ok_or(documents::Error::Invalid(Vec::new()))?;
        Ok(json!({ "id": configuration["id"].as_u64().unwrap_or(0), "name": name }))
    }

    fn read(
        &self,
        id: u64,
        version: Option<u32>,
    ) -> BoxFuture<'_, Result<Document, documents::Error>> {
        let notes = self.0.lock();
        let versions = notes.get(&id).map_or(&[][..], Vec::as_slice);
        let place = version.map_or(versions.len(), |version| version as usize);
        let found = place.checked_sub(1).and_then(|place| versions.get(place)).cloned();
        let found = found.ok_or_else(|| documents::Error::NotFound(format!("no note {id}")));
        Box::pin(async { found })
    }

    fn create<'a>(
        &'a self,
        configuration: &'a Json,
        provenance: Provenance<'a>,
    ) -> BoxFuture<'a, Result<Document, documents::Error>> {
        Box::pin(async move { self.write(configuration, 0, provenance.by) })
    }

    fn replace<'a>(
        &'a self,
        configuration: &'a Json,
        base: u32,
        provenance: Provenance<'a>,
    ) -> BoxFuture<'a, Result<Document, documents::Error>> {
        Box::pin(async move { self.write(configuration, base, provenance.by) })
    }

    fn differences(&self, before: &Json, after: &Json) -> Vec<FieldChange> {
        let [before, after] = [before, after].map(|side| side["name"].to_string());
        let changed = (before != after).then_some(FieldChange {
            field: "name",
            label: "Name",
            before,
            after,
        });
        changed.into_iter().collect()
    }
}

fn workflow(kind: Arc<dyn DocumentKind>, needs_approval: bool) -> Drafts {
    let store = Arc::<memory::Drafts>::default();
    let people = Arc::<memory::People>::default();
    let clock = Arc::new(ManualClock::at_s(NOON_S));
    Drafts::new(store, people, clock, needs_approval).with(kind)
}

fn decision<'a>(draft: &Draft, text: &'a str, by: Actor<'a>) -> Decision<'a> {
    Decision { id: draft.id, revision: draft.revision, text, by }
}

async fn propose(drafts: &Drafts, configuration: Json, base: u32, by: Actor<'_>) -> Draft {
    let kind = if configuration["template"].is_null() { "note" } else { "counter" };
    let proposal = Proposal { kind, configuration, base_version: base };
    drafts.create(proposal, by).await.expect("a draft").draft
}

#[tokio::test]
async fn a_counter_is_proposed_approved_and_counts() {
    let services = Services::start();
    let drafts = workflow(Arc::new(CounterKind::new(Arc::clone(&services.counters))), true);
    let proposed = propose(&drafts, counter(0, json!({ "template": "new:{k}" })), 0, ADA).await;
    let sent = drafts.submit(decision(&proposed, "we need it", ADA)).await.unwrap().draft;
    let applied = drafts.approve(decision(&sent, "fine", ZOE)).await.unwrap().draft;

    assert_eq!(
        (applied.state, applied.document_id(), applied.applied_version),
        (State::Applied, 1, 1)
    );
    let made = services.counters.get(1).await.unwrap();
    assert_eq!((&*made.changed_by, &*made.reason), ("ada", "we need it (approved by zoe: fine)"));
    assert!(services.published.view().ruleset.index_of_key("new:x").is_some());

    // A change of it, which tells what differs.
    let edited = counter(1, json!({ "template": "new:{k}", "owner": "rain" }));
    let change = drafts
        .create(Proposal { kind: "counter", configuration: edited, base_version: 1 }, ZOE)
        .await
        .unwrap();
    let changes = change.changes.expect("changes of version 1");
    assert_eq!(changes.iter().map(|change| change.field).collect::<Vec<_>>(), ["owner"]);

    let standing = drafts.standing(&change.draft).await.unwrap();
    assert!(standing.conflict().is_none());

    // Another person is faster, and their change is not overwritten.
    let mut direct = services.counters.get(1).await.unwrap().counter;
    direct.description = "direct".to_owned();
    services.counters.replace(direct, Some(1), "max", "").await.unwrap();

    let standing = drafts.standing(&change.draft).await.unwrap();
    assert_eq!(standing.conflict().map(|(base, now)| (base.version, now.version)), Some((1, 2)));

    let sent = drafts.submit(decision(&change.draft, "ours", ZOE)).await.unwrap().draft;
    let refused = drafts.approve(decision(&sent, "", ADA)).await;
    assert!(matches!(refused, Err(Error::Conflict { id: 2, current: 2 })), "{refused:?}");
    assert_eq!(services.counters.get(1).await.unwrap().counter.description, "direct");
}

#[tokio::test]
async fn what_cannot_be_proposed_is_refused() {
    let drafts = workflow(Arc::new(Notes::default()), false);
    let propose = async |kind, configuration, base_version| {
        drafts.create(Proposal { kind, configuration, base_version }, ADA).await.map(drop)
    };
    let unknown = propose("campaign", json!({ "name": "a" }), 0).await;
    assert!(matches!(unknown, Err(Error::KindUnknown(kind)) if kind == "campaign"));

    let invalid = propose("note", json!({}), 0).await;
    assert!(matches!(invalid, Err(Error::Document(documents::Error::Invalid(_)))));

    let absent = propose("note", json!({ "id": 7, "name": "a" }), 3).await;
    assert!(matches!(absent, Err(Error::Document(documents::Error::NotFound(_)))));
    assert_eq!(drafts.list(true, 9).await.unwrap(), []);

    // What is no object is refused, too, where the id of the document is put into it.
    let notes = Arc::<Notes>::default();
    notes.write(&json!({ "name": "a" }), 0, "max").unwrap();

    let drafts = workflow(notes, false);
    let proposal =
        Proposal { kind: "note", configuration: json!({ "id": 1, "name": "b" }), base_version: 1 };
    let draft = drafts.create(proposal, ADA).await.unwrap().draft;

    for configuration in [json!("b"), json!(["b"]), json!(7), Json::Null] {
        let refused = drafts.edit(draft.id, 1, &configuration, 1, ADA).await;
        assert!(matches!(refused, Err(Error::Document(documents::Error::Invalid(_)))));
    }
}

#[tokio::test]
async fn a_token_acts_for_its_maker() {
    let drafts = workflow(Arc::new(Notes::default()), true);
    let reviewed = async |by: Actor<'static>| {
        let draft = propose(&drafts, json!({ "name": "a" }), 0, by).await;
        drafts.submit(decision(&draft, "because", by)).await.unwrap().draft
    };
    let refused = async |draft: &Draft, by: Actor<'static>| match drafts
        .approve(decision(draft, "", by))
        .await
    {
        Err(Error::NotSecond(reason)) => reason,
        other => panic!("{other:?}"),
    };

    let by_token = reviewed(TOKEN_OF_ADA).await;
    assert_eq!(refused(&by_token, ADA).await, NotSecond::Contributor);
    assert_eq!(refused(&by_token, TOKEN_OF_ADA).await, NotSecond::Contributor);

    let by_ada = reviewed(ADA).await;
    assert_eq!(refused(&by_ada, TOKEN_OF_ADA).await, NotSecond::Contributor);
    assert_eq!(refused(&by_ada, TOKEN_OF_NOBODY).await, NotSecond::Nobody);

    let by_zoe = reviewed(ZOE).await;
    let approved = drafts.approve(decision(&by_zoe, "", TOKEN_OF_ADA)).await.unwrap();
    assert_eq!((approved.draft.state, &*approved.draft.reviewer), (State::Applied, "token:ci"));
}

/// A process that dies between the document and the draft leaves one that is applied again.
#[tokio::test]
async fn a_document_that_was_made_already_is_noted() {
    let notes = Arc::<Notes>::default();
    let drafts = workflow(Arc::clone(&notes) as _, false);
    for (base, name) in [(0, "a"), (1, "b")] {
        let draft = propose(&drafts, json!({ "id": 5, "name": name }), base, ADA).await;
        notes.write(&json!({ "id": 5, "name": name }), base, "ada").unwrap();

        let applied = drafts.apply(decision(&draft, "again", ADA)).await.unwrap().draft;
        assert_eq!((applied.state, applied.applied_version), (State::Applied, base + 1));
        assert_eq!(notes.versions(5), base + 1);
    }

    // Another document under its id is none of its own.
    let draft = propose(&drafts, json!({ "id": 5, "name": "c" }), 0, ADA).await;
    let refused = drafts.apply(decision(&draft, "mine", ADA)).await;
    assert!(matches!(refused, Err(Error::Document(documents::Error::IdTaken { id: 5, .. }))));
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Propose,
    Edit,
    Submit,
    Reject,
    Withdraw,
    Approve,
    Apply,
    /// The document is changed without a draft.
    Change,
}

/// One attempt: what, by whom, on which draft, and whether with an outdated revision.
type Attempt = (Act, usize, usize, bool);

fn attempts() -> impl Strategy<Value = Vec<Attempt>> {
    use Act::{Apply, Approve, Change, Edit, Propose, Reject, Submit, Withdraw};
    let act = prop_oneof![
        2 => Just(Propose), 2 => Just(Edit), 5 => Just(Submit), 1 => Just(Reject),
        1 => Just(Withdraw), 5 => Just(Approve), 2 => Just(Apply), 1 => Just(Change),
    ];
    proptest::collection::vec((act, 0..ACTORS.len(), 0..4_usize, prop::bool::weighted(0.1)), 1..40)
}

/// What a draft should be.
#[derive(Clone, Debug)]
struct Model {
    id: u64,
    revision: u32,
    state: State,
    base: u32,
    name: String,
    /// The people behind the names of those who wrote a part of it.
    writers: Vec<&'static str>,
}

/// What an attempt should come to.
fn may(act: Act, by: Actor<'_>, model: &Model, needs_approval: bool, current: u32) -> bool {
    let is_second = by.person.is_some_and(|person| !model.writers.contains(&person));
    let fits = model.base == current;
    model.state.is_open()
        && match act {
            Act::Propose | Act::Change => unreachable!("these are of no draft"),
            Act::Edit | Act::Submit | Act::Withdraw => true,
            Act::Reject => model.state == State::Review,
            Act::Approve => model.state == State::Review && fits && (is_second || !needs_approval),
            Act::Apply => fits && !needs_approval,
        }
}

async fn play(needs_approval: bool, attempts: Vec<Attempt>) {
    let notes = Arc::<Notes>::default();
    let drafts = workflow(Arc::clone(&notes) as _, needs_approval);
    notes.write(&json!({ "name": "first" }), 0, "max").unwrap();

    let mut models = Vec::<Model>::new();
    let mut current = 1;

    for (turn, (act, who, place, is_outdated)) in attempts.into_iter().enumerate() {
        let by = ACTORS[who];

        // Names are of their turn alone, so that no two versions are alike.
        let name = format!("turn {turn}");
        let configuration = json!({ "id": 1, "name": name });
        match act {
            Act::Change => {
                notes.write(&configuration, current, "max").unwrap();
                current += 1;
            }
            Act::Propose => {
                let draft = propose(&drafts, configuration, current, by).await;
                let writers = by.person.into_iter().collect();
                let id = draft.id;
                let state = State::Draft;

                models.push(Model { id, revision: 1, state, base: current, name, writers });
            }
            _ if models.is_empty() => {}
            _ => {
                let place = place % models.len();
                let model = &mut models[place];
                let is_allowed = !is_outdated && may(act, by, model, needs_approval, current);
                let revision = model.revision - u32::from(is_outdated);
                let done =
                    attempt(&drafts, act, model, revision, &configuration, by, current).await;

                assert_eq!(done.is_ok(), is_allowed, "{act:?} by {by:?} of {model:?}: {done:?}");

                if let Ok(DraftChange { draft, .. }) = done {
                    advance(model, act, by, &draft, current, &name);
                    current += u32::from(model.state == State::Applied);
                }
            }
        }

        // Nothing but what was allowed has changed, and every version is one allowed change.
        assert_eq!(notes.versions(1), current);

        for model in &models {
            let draft = drafts.get(model.id).await.unwrap();
            assert_eq!((draft.state, draft.revision), (model.state, model.revision));
            assert_eq!((draft.base_version, draft.name()), (model.base, &*model.name));
        }
    }
}

async fn attempt(
    drafts: &Drafts,
    act: Act,
    model: &Model,
    revision: u32,
    configuration: &Json,
    by: Actor<'_>,
    current: u32,
) -> Result<DraftChange, Error> {
    let decision = Decision { id: model.id, revision, text: "because", by };
    match act {
        Act::Propose | Act::Change => unreachable!("these are of no draft"),
        Act::Edit => drafts.edit(model.id, revision, configuration, current, by).await,
        Act::Submit => drafts.submit(decision).await,
        Act::Reject => drafts.reject(decision).await,
        Act::Withdraw => drafts.withdraw(decision).await,
        Act::Approve => drafts.approve(decision).await,
        Act::Apply => drafts.apply(decision).await,
    }
}

fn advance(
    model: &mut Model,
    act: Act,
    by: Actor<'static>,
    draft: &Draft,
    current: u32,
    name: &str,
) {
    model.revision += 1;
    model.state = match act {
        Act::Propose | Act::Edit | Act::Change => State::Draft,
        Act::Submit => State::Review,
        Act::Reject => State::Rejected,
        Act::Withdraw => State::Withdrawn,
        Act::Approve | Act::Apply => State::Applied,
    };

    if matches!(act, Act::Edit) {
        model.base = current;
        model.name = name.to_owned();
        model.writers.extend(by.person);
    }

    let applied_version = if model.state == State::Applied { current + 1 } else { 0 };
    assert_eq!(draft.applied_version, applied_version);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn drafts_are_what_a_model_says(needs_approval: bool, attempts in attempts()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(play(needs_approval, attempts));
    }
}

//! Drafts, their reviews, and what is done to counters as they stand.

use crate::browser::options;
use crate::edit::{applied, rides, saved};
use crate::forms::Sent;
use crate::world::{NOW_S, World};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use raingauge_core::access::Role;
use raingauge_core::counter::{Counter, State};
use raingauge_ports::drafts::{self, Draft, Drafts as _};
use raingauge_ports::people::NewUser;
use raingauge_writer::worker::{Backfill, BackfillStatus};
use serde_json::json;

/// A draft of a new counter, by someone.
async fn draft_of(world: &World, author: &str) -> Draft {
    let json = json!({ "name": "snow", "template": "snow:{city}", "eventType": "snow" });
    let counter = Counter::from_json(&json).expect("a counter");
    world
        .drafts
        .create(Draft::new("counter", json!(counter), 0, author, NOW_S))
        .await
        .expect("a draft")
}

/// The counter that a draft proposes.
pub fn counter_of(draft: &Draft) -> Counter {
    Counter::from_json(&draft.configuration).expect("a counter")
}

async fn state_of(world: &World, id: u64) -> drafts::State {
    world.drafts.get(id).await.expect("a draft").state
}

async fn decided(world: &World, id: u64, what: &str, field: &str, text: &str) -> String {
    let draft = world.drafts.get(id).await.expect("a draft");
    let revision = draft.revision.to_string();
    let page = world
        .post(&format!("/drafts/{id}/{what}"), &[("revision", &revision), (field, text)])
        .await;
    if page.status == StatusCode::SEE_OTHER {
        page.location().to_owned()
    } else {
        page.status.to_string()
    }
}

#[tokio::test]
async fn an_empty_list_says_what_to_do() {
    let world = World::new();
    world.get("/drafts").await.shows("No drafts").shows("/counters/new");
    world.get("/").await.lacks("draft waits");
    for address in ["/drafts/7", "/drafts/7/edit", "/drafts/7/preview"] {
        assert_eq!(world.get(address).await.status, StatusCode::NOT_FOUND, "{address}");
    }
}

#[tokio::test]
async fn where_approval_is_asked_a_second_person_gives_it() {
    let world = World::with_approval(true);
    let own = draft_of(&world, "anonymous").await.id;
    world
        .get("/drafts/1")
        .await
        .shows("A second person has to approve it")
        .lacks("Apply the draft");
    assert_eq!(decided(&world, own, "apply", "reason", "now").await, "403 Forbidden");
    assert_eq!(decided(&world, own, "send", "reason", "").await, "/drafts/1?note=reason-missing");
    assert_eq!(
        decided(&world, own, "send", "reason", "we need it").await,
        "/drafts/1?note=draft-sent"
    );

    // Not by its author.
    world.get("/drafts/1").await.shows("waits for a second person").lacks("Approve");
    assert_eq!(decided(&world, own, "approve", "comment", "fine").await, "403 Forbidden");
    world.get("/").await.shows("1 draft waits for a review");

    // Nor by a person who changed what another wrote.
    let helped = draft_of(&world, "ada").await;
    let helped =
        Draft { changed_by: "anonymous".to_owned(), state: drafts::State::Review, ..helped };
    let helped = world.drafts.replace(helped).await.expect("a draft");
    assert_eq!(decided(&world, helped.id, "approve", "comment", "fine").await, "403 Forbidden");

    // By another.
    let others = draft_of(&world, "ada").await;
    let others = Draft { state: drafts::State::Review, reason: "we need it".to_owned(), ..others };
    let id = world.drafts.replace(others).await.expect("a draft").id;
    world.get(&format!("/drafts/{id}")).await.shows("Approve and apply");
    assert_eq!(
        decided(&world, id, "approve", "comment", "looks good").await,
        "/counters/1?note=saved"
    );

    let version = world.portal.counters.get(1).await.expect("a counter");
    assert_eq!(version.changed_by, "ada");
    assert_eq!(version.reason, "we need it (approved by anonymous: looks good)");
    world.get(&format!("/drafts/{id}")).await.shows("anonymous approved it").shows("looks good");
}

/// Through the pages alone, by two people who signed in.
#[tokio::test]
async fn of_two_people_the_second_approves() {
    let world = World::with_people_and_approval(options());
    rides(&world).await;

    let mut ada = world.signed_in("ada", Role::Editor).await;
    let mut zoe = world.signed_in("zoe", Role::Editor).await;
    let mut max = world.signed_in("max", Role::Viewer).await;
    let form = Sent::of(&ada.get("/counters/new").await.text, "draft-form");
    let form = form.set("name", "rides").set("template", "rides:{zone}").set("eventType", "ride");

    ada.post("/drafts", &form.pairs()).await.leads_to("/drafts/1?note=draft-saved");

    // The author has no button for it, and cannot do without one.
    let page = ada.get("/drafts/1").await;
    page.shows("A second person has to approve it")
        .lacks("Apply the draft")
        .lacks("/drafts/1/approve");

    let apply = [("revision", "1"), ("reason", "now")];
    ada.post("/drafts/1/apply", &apply)
        .await
        .is(StatusCode::FORBIDDEN)
        .shows("This has to be approved");

    let form = Sent::of(&page.text, "/drafts/1/send").set("reason", "we need it");
    ada.post("/drafts/1/send", &form.pairs()).await.leads_to("/drafts/1?note=draft-sent");
    ada.get("/drafts/1").await.shows("waits for a second person").lacks("/drafts/1/approve");

    let approve = [("revision", "2"), ("comment", "mine is good")];
    ada.post("/drafts/1/approve", &approve)
        .await
        .is(StatusCode::FORBIDDEN)
        .shows("ask another editor");
    max.get("/drafts/1").await.is(StatusCode::OK).lacks("/drafts/1/approve");
    max.post("/drafts/1/approve", &approve).await.is(StatusCode::FORBIDDEN);
    assert_eq!(state_of(&world, 1).await, drafts::State::Review);
    zoe.get("/").await.shows("1 draft waits for a review");

    let form = Sent::of(&zoe.get("/drafts/1").await.text, "/drafts/1/approve")
        .set("comment", "looks good");
    zoe.post("/drafts/1/approve", &form.pairs()).await.leads_to("/counters/1?note=saved");

    let version = world.portal.counters.get(1).await.expect("a counter");
    assert_eq!(
        (&*version.changed_by, &*version.reason),
        ("ada", "we need it (approved by zoe: looks good)")
    );

    // Who edited a draft is one of its authors.
    let form = Sent::of(&ada.get("/counters/1/edit").await.text, "draft-form").set("owner", "ada");
    ada.post("/drafts", &form.pairs()).await.leads_to("/drafts/2?note=draft-saved");

    let form = Sent::of(&zoe.get("/drafts/2/edit").await.text, "draft-form").set("owner", "taxis");
    zoe.post("/drafts", &form.pairs()).await.leads_to("/drafts/2?note=draft-saved");
    ada.post("/drafts/2/send", &[("revision", "2"), ("reason", "she knows")]).await;

    for author in [&mut ada, &mut zoe] {
        let page =
            author.post("/drafts/2/approve", &[("revision", "3"), ("comment", "fine")]).await;
        page.is(StatusCode::FORBIDDEN);
    }

    // Nor does a later edit of someone else make her a second person for her own words.
    let form = Sent::of(&ada.get("/drafts/2/edit").await.text, "draft-form")
        .set("description", "of taxis");
    ada.post("/drafts", &form.pairs()).await.leads_to("/drafts/2?note=draft-saved");
    ada.post("/drafts/2/send", &[("revision", "4"), ("reason", "she knows")]).await;

    let approve = [("revision", "5"), ("comment", "fine")];
    zoe.get("/drafts/2").await.shows("Edited by").lacks("/drafts/2/approve");
    zoe.post("/drafts/2/approve", &approve).await.is(StatusCode::FORBIDDEN);

    let mut eva = world.signed_in("eva", Role::Editor).await;
    eva.post("/drafts/2/approve", &approve).await.leads_to("/counters/1?note=saved");

    let version = world.portal.counters.get(1).await.expect("a counter");
    let reason = "she knows (edited by zoe; approved by eva: fine)";
    assert_eq!((&*version.changed_by, &*version.reason), ("ada", reason));
}

/// A provider makes an account for an address that no account has, and the human may have one
/// without an address.
#[tokio::test]
async fn two_accounts_that_may_be_one_humans_are_no_two_people() {
    let world = World::with_people_and_approval(options());
    let [mut zoe, mut max] =
        [world.signed_in("zoe", Role::Editor).await, world.signed_in("max", Role::Editor).await];
    let [name, email, openid] =
        ["zoe@rain.example", "zoe@rain.example", "https://login.example zoe"].map(str::to_owned);
    let role = Role::Editor;
    let password = String::new();
    let new = NewUser { name, email, role, password, openid, at_s: NOW_S };
    let second = world.people.add_user(new).await.expect("a user");
    let mut second = world.browser_of(&second).await;

    let draft = draft_of(&world, "zoe").await;
    zoe.post("/drafts/1/send", &[("revision", "1"), ("reason", "we need it")])
        .await
        .leads_to("/drafts/1?note=draft-sent");

    let approve = [("revision", "2"), ("comment", "fine")];
    second.get("/drafts/1").await.shows("may be one person").lacks("/drafts/1/approve");
    second
        .post("/drafts/1/approve", &approve)
        .await
        .is(StatusCode::FORBIDDEN)
        .shows("invite zoe again with an address");
    assert_eq!(state_of(&world, draft.id).await, drafts::State::Review);
    max.post("/drafts/1/approve", &approve).await.leads_to("/counters/1?note=saved");
}

#[tokio::test]
async fn a_draft_that_is_sent_back_can_be_edited_and_sent_again() {
    let world = World::with_approval(true);
    let id = draft_of(&world, "ada").await.id;
    assert_eq!(
        decided(&world, id, "reject", "comment", "no").await,
        "/drafts/1?note=draft-changed",
        "not in review"
    );
    decided(&world, id, "send", "reason", "we need it").await;
    assert_eq!(decided(&world, id, "reject", "comment", "").await, "/drafts/1?note=reason-missing");
    assert_eq!(
        decided(&world, id, "reject", "comment", "which <b>city</b>?").await,
        "/drafts/1?note=draft-rejected"
    );
    world
        .get("/drafts/1")
        .await
        .shows("sent it back")
        .shows("which &lt;b&gt;city")
        .shows("Send to review");

    let form = Sent::of(&world.get("/drafts/1/edit").await.text, "draft-form")
        .set("description", "of Oslo");
    saved(&world, &form).await;

    let draft = world.drafts.get(id).await.expect("a draft");
    assert_eq!(
        (draft.state, draft.comment.as_str(), draft.changed_by.as_str()),
        (drafts::State::Draft, "", "anonymous")
    );
    assert_eq!(draft.author, "ada");
    assert_eq!(
        decided(&world, id, "withdraw", "comment", "").await,
        "/drafts/1?note=draft-withdrawn"
    );
    world.get("/drafts").await.shows("withdrawn");
    assert_eq!(world.get("/drafts/1/edit").await.status, StatusCode::CONFLICT);
    assert_eq!(world.post("/drafts", &form.pairs()).await.status, StatusCode::CONFLICT);
}

/// What is decided is what was seen.
#[tokio::test]
async fn a_draft_that_changed_since_it_was_seen_is_looked_at_again() {
    let world = World::new();
    let seen = draft_of(&world, "ada").await;
    let id = seen.id;
    world.drafts.replace(Draft { state: drafts::State::Review, ..seen }).await.expect("a draft");

    for what in ["apply", "send", "approve", "reject", "withdraw"] {
        let fields = [("revision", "1"), ("reason", "r"), ("comment", "c")];
        let page = world.post(&format!("/drafts/{id}/{what}"), &fields).await;
        assert_eq!(page.location(), format!("/drafts/{id}?note=draft-changed"), "{what}");
    }

    assert_eq!(state_of(&world, id).await, drafts::State::Review);
    world.get("/drafts/1?note=draft-changed").await.shows("This is its current content");

    let long = "x".repeat(2_001);
    assert_eq!(decided(&world, id, "apply", "reason", &long).await, "/drafts/1?note=reason-long");
}

/// A process that dies between the counter and the draft leaves a draft that can be applied again.
#[tokio::test]
async fn a_change_that_was_made_already_is_noted_in_its_draft() {
    let world = World::new();
    let id = world.counter(json!({})).await;
    let form = Sent::of(&world.get(&format!("/counters/{id}/edit")).await.text, "draft-form")
        .set("owner", "ada");
    saved(&world, &form).await;

    let draft = world.drafts.get(1).await.expect("a draft");
    world.portal.counters.replace(counter_of(&draft), Some(1), "ada", "").await.expect("made");
    assert_eq!(
        decided(&world, 1, "apply", "reason", "again").await,
        format!("/counters/{id}?note=saved")
    );

    let draft = world.drafts.get(1).await.expect("a draft");
    assert_eq!((draft.state, draft.applied_version), (drafts::State::Applied, 2));
}

#[tokio::test]
async fn a_counter_is_paused_and_resumed_for_a_reason() {
    let world = World::new();
    let id = world.counter(json!({})).await;
    let state = async || world.portal.counters.get(id).await.expect("a counter");
    let steps = [
        ("pause", "paused", State::Paused),
        ("resume", "resumed", State::Active),
        ("archive", "archived", State::Archived),
    ];

    for (what, note, becomes) in steps {
        let address = format!("/counters/{id}/{what}");

        // A button that does not ask for a reason leads to the page that does.
        let asked = world.post(&address, &[]).await;
        assert_eq!(asked.status, StatusCode::OK);
        asked.shows("name=\"reason\"").lacks("must say why");

        let form = Sent::of(&world.get(&address).await.text, &format!("/{what}\""));
        let page = world.post(&address, &form.pairs()).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        page.shows("must say why");

        let form = form.set("reason", "<i>because</i>");
        assert_eq!(
            world.post(&address, &form.pairs()).await.location(),
            format!("/counters/{id}?note={note}")
        );

        let now = state().await;
        assert_eq!(
            (now.counter.state, &*now.changed_by, &*now.reason),
            (becomes, "anonymous", "<i>because</i>")
        );

        // The same form again would undo what someone else did in between.
        assert_eq!(world.post(&address, &form.pairs()).await.status, StatusCode::CONFLICT);
    }

    let without = world.get(&format!("/counters/{id}/roll-back")).await;
    assert_eq!(without.status, StatusCode::BAD_REQUEST);
    assert_eq!(
        world.get(&format!("/counters/{id}/roll-back?version=99")).await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn counts_are_erased_and_an_archived_counter_is_purged_for_a_reason() {
    let world = World::new();
    let id = world.counter(json!({ "eventType": "ride", "template": "rides:{zone}" })).await;
    rides(&world).await;

    let page = format!("/counters/{id}");
    world.get(&page).await.shows("rides:0").shows(&format!("{page}/erase"));

    // One key.
    let address = format!("{page}/erase");
    let form = Sent::of(&world.get(&format!("{address}?key=rides:0")).await.text, "/erase-key\"");
    assert_eq!(form.get("key"), "rides:0");

    let to = format!("{page}/erase-key");
    let one = form.set("key-reason", "asked to");
    let unnamed = Sent::of(&world.get(&address).await.text, "/erase-key\"").set("key", "rides:0");
    let refused = world.post(&to, &unnamed.pairs()).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    refused.shows("must say why").shows("rides:0");

    let other = Sent::of(&world.get(&address).await.text, "/erase-key\"")
        .set("key", "tips:1")
        .set("key-reason", "x");
    world.post(&to, &other.pairs()).await.shows("is no key of this counter");
    assert_eq!(world.post(&to, &one.pairs()).await.location(), format!("{page}?note=key-erased"));

    // All of them, of the counter whose name is typed.
    let form = Sent::of(&world.get(&address).await.text, "/erase\"").set("reason", "a mistake");
    let form = form.set("name", "another");
    world
        .post(&address, &form.pairs())
        .await
        .shows("is not the name of this counter")
        .shows("a mistake");

    let name = world.portal.counters.get(id).await.expect("a counter").counter.name;
    let form = form.set("name", &name);
    assert_eq!(world.post(&address, &form.pairs()).await.location(), format!("{page}?note=erased"));
    world.get(&page).await.shows("Nothing has been counted yet");

    // What an archived one keeps; a form that was opened before it was archived purges nothing
    // else.
    let to = format!("{page}/purge");
    assert_eq!(world.post(&to, &form.pairs()).await.status, StatusCode::CONFLICT);

    let archive = Sent::of(&world.get(&format!("{page}/archive")).await.text, "/archive\"")
        .set("reason", "done");
    world.post(&format!("{page}/archive"), &archive.pairs()).await;
    world.get(&page).await.shows("Its versions and its counts are kept").shows("Purge");

    let form = Sent::of(&world.get(&address).await.text, "/purge\"")
        .set("name", &name)
        .set("reason", "space");
    assert_eq!(world.post(&to, &form.pairs()).await.location(), format!("{page}?note=purged"));

    for verb in ["counter.erase_key", "counter.erase", "counter.purge"] {
        world.get(&format!("/audit?what={verb}")).await.shows(&format!("counter {id}"));
    }
}

#[tokio::test]
async fn a_backfill_is_begun_followed_and_told_of() {
    let world = World::new();
    rides(&world).await;

    let id = world.counter(json!({ "eventType": "ride", "template": "rides:{zone}" })).await;
    let address = format!("/counters/{id}/backfill");
    world.get(&address).await.shows("There has been no backfill").shows("Start a backfill");
    world.clock.set_s(NOW_S + 10);
    world.get(&format!("/counters/{id}")).await.shows("Nothing has been counted yet");
    assert_eq!(world.post(&address, &[]).await.location(), address);

    let ended = async || world.get(&address).await.text.contains("The newest backfill ended");
    while !ended().await {
        tokio::task::yield_now().await;
    }

    // What was found before is not remembered of the counts of now.
    world
        .get(&format!("/counters/{id}"))
        .await
        .shows("rides:0")
        .lacks("Nothing has been counted yet");
    world.clock.set_s(NOW_S + 70);
    world
        .get(&address)
        .await
        .shows("ended 1 min ago")
        .shows("60 events were counted again")
        .lacks("hx-trigger=\"every");

    let page = format!("/counters/{id}");
    world
        .get(&page)
        .await
        .shows("60 events were counted again")
        .lacks("hx-get=\"/counters/1/backfill");
    world.clock.set_s(NOW_S + 3_700);
    world.get(&page).await.lacks("counted again");

    let form = Sent::of(&world.get(&format!("/counters/{id}/archive")).await.text, "/archive\"")
        .set("reason", "done");
    world.post(&format!("/counters/{id}/archive"), &form.pairs()).await;
    assert_eq!(world.post(&address, &[]).await.status, StatusCode::CONFLICT);
}

#[tokio::test]
async fn a_backfill_that_runs_follows_itself_on_the_page_of_its_counter() {
    let world = World::new();
    rides(&world).await;

    let id = world.counter(json!({ "eventType": "ride", "template": "rides:{zone}" })).await;
    let page = format!("/counters/{id}");
    world.get(&page).await.lacks("id=\"backfill\"");
    *world.running.lock() = Some(Backfill {
        status: BackfillStatus::Running,
        generation: 2,
        position: 30,
        counted: 29,
        ..Backfill::default()
    });

    let follows = format!("hx-get=\"/counters/{id}/backfill\" hx-trigger=\"every 1s\"");

    // A reload shows the same again.
    for _ in 0..2 {
        world.get(&page).await.shows(&follows).shows("29 events so far").lacks("Start a backfill");
    }
    let part =
        Request::get(format!("{page}/backfill")).header("hx-request", "true").body(Body::empty());
    world.send(part.expect("a request")).await.shows(&follows).lacks("<html");
}

#[tokio::test]
async fn a_draft_of_a_counter_that_is_applied_twice_conflicts() {
    let world = World::new();
    let form = Sent::of(&world.get("/counters/new").await.text, "draft-form");
    let form = form.set("name", "n").set("template", "n").set("eventType", "t");
    let (one, two) = (saved(&world, &form).await, saved(&world, &form).await);
    assert_eq!(applied(&world, &one).await, "/counters/1?note=saved");
    let form = Sent::of(&world.get(&two).await.text, "/apply").set("reason", "again");
    assert_eq!(
        world.post(&format!("{two}/apply"), &form.pairs()).await.status,
        StatusCode::BAD_REQUEST
    );
}

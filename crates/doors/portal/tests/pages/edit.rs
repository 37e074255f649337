//! Making and changing counters with the form.

use crate::drafts::counter_of;
use crate::forms::{Sent, plain};
use crate::world::{NOW_S, World};
use axum::http::{Request, StatusCode, header};
use raingauge_core::counter::{Counter, State};
use raingauge_ports::drafts::Drafts as _;
use serde_json::{Value as Json, json};

/// Rides: 60 of three zones, a third of them paid in cash.
pub async fn rides(world: &World) {
    let ride = |n: i64| {
        let paid = ["cash", "card", "app"][n as usize / 20];
        (NOW_S - n * 60, json!({ "zone": n % 3, "fare": 5.5 + n as f64, "paid": paid }))
    };
    world.events("ride", (0..60).map(ride)).await;
}

fn filled(form: Sent) -> Sent {
    form.set("eventType", "ride")
        .set("template", "rides:zone:{zone}")
        .set("name", "rides")
        .set("owner", "taxis")
}

async fn new_form(world: &World) -> Sent {
    Sent::of(&world.get("/counters/new").await.text, "draft-form")
}

/// Saves a form, and answers the draft's address.
pub async fn saved(world: &World, form: &Sent) -> String {
    let page = world.post("/drafts", &form.pairs()).await;
    assert_eq!(page.status, StatusCode::SEE_OTHER, "{}", page.text);
    page.location().split('?').next().expect("an address").to_owned()
}

/// Lets a draft take effect, and answers where that leads.
pub async fn applied(world: &World, draft: &str) -> String {
    let form = Sent::of(&world.get(draft).await.text, "/apply").set("reason", "it is wanted");
    world.post(&format!("{draft}/apply"), &form.pairs()).await.location().to_owned()
}

async fn counter(world: &World, id: u32) -> Counter {
    world.portal.counters.get(id).await.expect("a counter").counter
}

#[tokio::test]
async fn a_counter_is_made_tried_changed_and_archived_without_scripts() {
    let world = World::new();
    rides(&world).await;

    // New: the type, its fields and the keys that come of them are offered.
    let form = filled(new_form(&world).await).press("add-condition");
    let page = world.post("/drafts/form", &form.pairs()).await;
    page.shows("<option value=\"ride\">").shows("{zone}").shows("rides:zone:2").shows("data.paid");

    let form = Sent::of(&page.text, "draft-form")
        .set("field.1", "paid")
        .set("value.1", "cash")
        .press("preview");
    let page = world.post("/drafts/form", &form.pairs()).await;
    page.shows("have this type")
        .shows("<dd>20</dd>")
        .shows("did not pass the filter")
        .shows("Storage cost");
    assert_eq!(
        world.portal.counters.list().await.expect("counters").len(),
        0,
        "a preview saves nothing"
    );

    // A draft, and its effect.
    let draft = saved(&world, &Sent::of(&page.text, "draft-form")).await;
    world
        .get(&draft)
        .await
        .shows("New counter rides")
        .shows("paid is &quot;cash&quot;")
        .shows("Apply the draft");
    world.get(&format!("{draft}/preview")).await.shows("<dd>20</dd>");
    assert_eq!(applied(&world, &draft).await, "/counters/1?note=saved");

    let first = counter(&world, 1).await;
    assert_eq!((first.state, first.template.as_str()), (State::Active, "rides:zone:{zone}"));
    world.get(&draft).await.shows("It became version 1").lacks("Apply the draft");

    // A change, beside what it changes.
    let form = Sent::of(&world.get("/counters/1/edit").await.text, "draft-form");
    assert_eq!(
        (form.get("field.1"), form.get("value.1"), form.get("value_type.1")),
        ("data.paid", "cash", "text")
    );

    let form = form.set("value.1", "card").press("preview");
    let page = world.post("/drafts/form", &form.pairs()).await;
    page.shows("after the change").shows("Keys that differ");

    let draft = saved(&world, &Sent::of(&page.text, "draft-form")).await;
    world
        .get(&draft)
        .await
        .shows("<del>paid is &quot;cash&quot;</del>")
        .shows("<ins>paid is &quot;card&quot;</ins>");
    assert_eq!(applied(&world, &draft).await, "/counters/1?note=saved");

    // Back to what it was: a new version.
    let page = world.get("/counters/1/roll-back?version=1").await;
    page.shows("<del>paid is &quot;card&quot;</del>");

    let form = Sent::of(&page.text, "/roll-back").set("reason", "cash after all");
    assert_eq!(
        world.post("/counters/1/roll-back", &form.pairs()).await.location(),
        "/counters/1?note=rolled-back"
    );
    assert_eq!(counter(&world, 1).await, first);

    let versions = world.portal.counters.versions(1).await.expect("versions");
    assert_eq!((versions.len(), versions[0].reason.as_str()), (3, "cash after all"));

    // And gone.
    let form =
        Sent::of(&world.get("/counters/1/archive").await.text, "/archive").set("reason", "done");
    assert_eq!(
        world.post("/counters/1/archive", &form.pairs()).await.location(),
        "/counters/1?note=archived"
    );
    assert_eq!(counter(&world, 1).await.state, State::Archived);
}

#[tokio::test]
async fn problems_are_shown_beside_their_field_and_input_is_kept() {
    let world = World::new();
    let form = new_form(&world)
        .await
        .set("template", "a:{x}{y}")
        .set("quarter", "ten")
        .set("description", "kept");

    let form = form.set("activeFrom", "soon").press("add-condition");
    let form = Sent::of(&world.post("/drafts/form", &form.pairs()).await.text, "draft-form");
    let page = world.post("/drafts", &form.pairs()).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    page.shows("Nothing was saved")
        .shows("must have 1 to 128 bytes")
        .shows("must hold one {field} at most");
    page.shows("must be a number of days")
        .shows("the field must name a field")
        .shows("must be a time in UTC");

    let again = Sent::of(&page.text, "draft-form");
    let kept =
        ["template", "quarter", "description", "activeFrom"].map(|name| again.get(name).to_owned());
    assert_eq!(kept, ["a:{x}{y}", "ten", "kept", "soon"]);
    assert_eq!(world.drafts.list(true, 9).await.expect("drafts"), []);
}

#[tokio::test]
async fn a_new_counter_may_have_an_id_of_ones_choice() {
    let world = World::new();
    rides(&world).await;

    let form = filled(new_form(&world).await);
    for wrong in ["0", "-1", "x", "1000000"] {
        let page = world.post("/drafts", &form.clone().set("chosenId", wrong).pairs()).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}");
        page.shows("must be a whole number from 1 to 999999");
    }

    let chosen = form.clone().set("chosenId", "34");
    let (one, two) = (
        saved(&world, &chosen).await,
        saved(&world, &chosen.set("template", "other:{zone}")).await,
    );
    world.get(&one).await.shows("Its id is 34").lacks("href=\"/counters/34\"");

    // It is the draft's until it takes effect, and may still become another one.
    let again = Sent::of(&world.get(&format!("{one}/edit")).await.text, "draft-form");
    assert_eq!((again.get("chosenId"), again.get("id")), ("34", "0"));
    saved(&world, &again.set("chosenId", "35")).await;
    assert_eq!(applied(&world, &one).await, "/counters/35?note=saved");
    assert_eq!(applied(&world, &two).await, "/counters/34?note=saved");

    // A copy, a preview and a draft that comes too late are answered with what to do.
    let copy = Sent::of(&world.get("/counters/new?copy=34").await.text, "draft-form");
    assert_eq!(copy.get("chosenId"), "");

    let late = copy.set("template", "late:{zone}").set("chosenId", "36");
    let draft = saved(&world, &late).await;
    world.counter(json!({ "id": 36, "template": "first:{city_id}" })).await;

    let form = Sent::of(&world.get(&draft).await.text, "/apply").set("reason", "it is wanted");
    let page = world.post(&format!("{draft}/apply"), &form.pairs()).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    page.shows("There is a counter 36 already").shows("choose another id");

    let page = world.post("/drafts", &late.pairs()).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    page.shows("is the id of the counter count_rain_drops: choose another");
    world
        .post("/drafts/preview", &late.pairs())
        .await
        .shows("is the id of the counter count_rain_drops");
    world.get("/counters/36/edit").await.lacks("chosenId");
}

#[tokio::test]
async fn conditions_come_and_go_without_scripts() {
    let world = World::new();
    let press = async |form: Sent, button: &str| {
        Sent::of(&world.post("/drafts/form", &form.press(button).pairs()).await.text, "draft-form")
    };
    let form = press(new_form(&world).await, "add-condition").await;
    let form = press(form, "add-group").await;
    let form = press(form.set("operator.0", "or").set("field.1", "a"), "add-condition:2").await;
    let shape = |form: &Sent| {
        (0..9)
            .filter(|n| form.has(&format!("depth.{n}")))
            .map(|n| form.get(&format!("depth.{n}")).to_owned())
            .collect::<String>()
    };

    assert_eq!(
        (shape(&form).as_str(), form.get("operator.0"), form.get("field.1")),
        ("01122", "or", "a")
    );
    let form = press(press(form, "remove:3").await, "remove:3").await;
    assert_eq!(shape(&form), "01", "a group that is empty goes, too");
    assert_eq!(shape(&press(form, "remove:0").await), "");

    let form = new_form(&world).await.set("template", "rides");
    assert_eq!(press(form, "field:zone").await.get("template"), "rides:{zone}");
}

/// The page itself leads back to what it shows, however a configuration looks.
#[tokio::test]
async fn an_edit_that_changes_nothing_is_the_same_configuration() {
    let world = World::new();
    let id = world
        .counter(json!({ "name": "<b>\"&'", "filter": { "operator": "and", "conditions": [
            { "operator": "in", "lhs": "data.a", "rhs": ["5", "a, b", true] },
            { "operator": "in", "lhs": "data.a", "rhs": ["x", "y"] },
            { "operator": "not", "conditions": [{ "operator": "exists", "lhs": "subject", "rhs": false }] },
            { "operator": "or", "conditions": [
                { "operator": "eq", "lhs": "data.a.b", "rhs": "" },
                { "operator": "exists", "lhs": "data.c", "rhs": true },
                { "operator": "prefix", "lhs": "data.d", "rhs": "\"quoted\"" },
                { "operator": "gte", "lhs": "data.e", "rhs": 12.5 }] }] },
            "value": { "field": "data.amount", "scale": 100 }, "retentionDays": { "quarter": 1, "hour": 2, "day": null },
            "activeFrom": 1_727_215_201, "description": "two\nlines <&>", "state": "paused" }))
        .await;

    let before = counter(&world, id).await;
    let draft = saved(
        &world,
        &Sent::of(&world.get(&format!("/counters/{id}/edit")).await.text, "draft-form"),
    )
    .await;

    assert_eq!(counter_of(&world.drafts.get(1).await.expect("a draft")), before);
    world.get(&draft).await.shows("Nothing differs");

    // The same as a new one.
    let copy = Sent::of(&world.get(&format!("/counters/new?copy={id}")).await.text, "draft-form");
    assert_eq!((copy.get("id"), copy.get("base"), copy.get("state")), ("0", "0", "active"));
}

#[tokio::test]
async fn of_two_editors_the_second_is_warned_and_shown_the_difference() {
    let world = World::new();
    let id = world.counter(json!({ "owner": "weather", "description": "old" })).await;
    let edit = format!("/counters/{id}/edit");
    let (one, two) = (
        Sent::of(&world.get(&edit).await.text, "draft-form"),
        Sent::of(&world.get(&edit).await.text, "draft-form"),
    );
    let first = saved(&world, &one.set("description", "first").set("owner", "ada")).await;

    world
        .get(&edit)
        .await
        .shows("is also changing this counter")
        .shows(&format!("href=\"{first}\""));
    let second = saved(&world, &two.set("description", "second").set("name", "renamed")).await;
    let stale = Sent::of(&world.get(&second).await.text, "/apply").set("reason", "mine");
    assert_eq!(applied(&world, &first).await, format!("/counters/{id}?note=saved"));

    // Neither a form that was open nor a new look lets the second one take effect.
    let page = world.post(&format!("{second}/apply"), &stale.pairs()).await;
    assert_eq!(page.location(), format!("{second}?note=draft-conflict"));

    let page = world.get(&second).await;
    page.shows("The counter was changed while you edited it")
        .shows("<ins>first</ins>")
        .shows("<ins>second</ins>")
        .shows("both");
    page.shows("<ins>ada</ins>").shows("<ins>renamed</ins>").lacks("Apply the draft");
    assert_eq!(counter(&world, id).await.description, "first");

    // On top of theirs: their owner, my name, my description.
    let form = Sent::of(&world.get(&format!("{second}/edit?on_top=1")).await.text, "draft-form");
    assert_eq!(
        [form.get("owner"), form.get("name"), form.get("description"), form.get("base")],
        ["ada", "renamed", "second", "2"]
    );
    assert_eq!(saved(&world, &form).await, second);
    assert_eq!(applied(&world, &second).await, format!("/counters/{id}?note=saved"));

    let merged = counter(&world, id).await;
    assert_eq!([merged.owner, merged.name, merged.description], ["ada", "renamed", "second"]);
}

#[tokio::test]
async fn two_people_who_edit_one_draft_learn_of_each_other() {
    let world = World::new();
    let draft = saved(&world, &filled(new_form(&world).await)).await;
    let edit = format!("{draft}/edit");
    let (one, two) = (
        Sent::of(&world.get(&edit).await.text, "draft-form"),
        Sent::of(&world.get(&edit).await.text, "draft-form"),
    );

    saved(&world, &one.set("owner", "ada")).await;
    let page = world.post("/drafts", &two.set("owner", "bob").pairs()).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    page.shows("saved this draft while you edited it")
        .shows("<del>ada</del>")
        .shows("<ins>bob</ins>");
    assert_eq!(counter_of(&world.drafts.get(1).await.expect("a draft")).owner, "ada");

    // Saving again is a decision.
    assert_eq!(saved(&world, &Sent::of(&page.text, "draft-form")).await, draft);
    assert_eq!(counter_of(&world.drafts.get(1).await.expect("a draft")).owner, "bob");
}

#[tokio::test]
async fn conflicts_with_other_counters_are_shown_before_anything_is_saved() {
    let world = World::new();
    world.counter(json!({ "template": "rides:zone:{other}" })).await;

    let form = filled(new_form(&world).await);
    world
        .post("/drafts/preview", &form.pairs())
        .await
        .shows("could render the same key")
        .shows("of counter 1");

    let draft = saved(&world, &form).await;
    let form = Sent::of(&world.get(&draft).await.text, "/apply").set("reason", "it is wanted");
    let page = world.post(&format!("{draft}/apply"), &form.pairs()).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    page.shows("could render the same key");
}

#[tokio::test]
async fn a_preview_for_scripts_is_the_part_alone() {
    let world = World::new();
    rides(&world).await;
    let page = world.post("/drafts/preview", &filled(new_form(&world).await).pairs()).await;
    assert!(
        page.text.starts_with("<p class=\"quiet\">All of the newest 60 events"),
        "{}",
        page.text
    );
    page.shows("id=\"example-keys\"").shows("hx-swap-oob=\"true\"").lacks("<html");
    let incomplete = new_form(&world).await;
    world.post("/drafts/preview", &incomplete.pairs()).await.shows("Choose an event type");
}

/// Markup, in every way in which it could be typed or sent.
const EVIL: &str = "\"><script>alert(1)</script><img src=x onerror=alert(2)>'";

#[tokio::test]
async fn markup_in_any_field_stays_text() {
    let world = World::new();
    let form = new_form(&world).await.press("add-condition");
    let form = Sent::of(&world.post("/drafts/form", &form.pairs()).await.text, "draft-form");
    let names: Vec<String> = form.0.iter().map(|(name, _)| name.clone()).collect();
    for name in names.iter().filter(|name| *name != "csrf" && !name.starts_with("depth")) {
        for address in ["/drafts/form", "/drafts", "/drafts/preview"] {
            let page = world.post(address, &filled(form.clone()).set(name, EVIL).pairs()).await;
            page.lacks("<script>alert").lacks("<img").lacks("onerror=alert(2)>'\"");
        }
    }

    for button in ["field:", "add-condition:", "remove:", ""] {
        world
            .post("/drafts/form", &form.clone().press(&format!("{button}{EVIL}")).pairs())
            .await
            .lacks("<script>alert");
    }

    for address in ["/counters/new?type=", "/drafts/1?note=", "/counters/1/roll-back?version="] {
        let encoded: String = form_urlencoded::byte_serialize(EVIL.as_bytes()).collect();
        world.get(&format!("{address}{encoded}")).await.lacks("<script>alert");
    }
}

#[tokio::test]
async fn markup_in_events_stays_text() {
    let world = World::new();
    let mut data = json!({ "zone": EVIL });
    data[EVIL] = json!(EVIL);
    world.events(EVIL, [(NOW_S, data)]).await;

    let form = filled(new_form(&world).await).set("eventType", EVIL).press("add-condition");
    let page = world.post("/drafts/form", &form.pairs()).await;
    page.lacks("<script>alert").lacks("<img").shows("&lt;script&gt;");

    let form =
        Sent::of(&page.text, "draft-form").set("field.1", "zone").set("operator.1", "exists");
    let page = world.post("/drafts/form", &form.clone().press("preview").pairs()).await;
    page.lacks("<script>alert").lacks("<img");
    assert!(
        plain(&page.text).contains(&format!("rides:zone:{}", EVIL.replace(':', "%3A"))),
        "the key is shown"
    );

    let draft = saved(&world, &Sent::of(&page.text, "draft-form")).await;
    for address in [
        draft.clone(),
        format!("{draft}/preview"),
        format!("{draft}/edit"),
        "/drafts".to_owned(),
        "/".to_owned(),
    ] {
        world.get(&address).await.lacks("<script>alert").lacks("<img");
    }
}

#[tokio::test]
async fn a_form_of_another_place_is_not_taken() {
    let world = World::new();
    for address in [
        "/drafts",
        "/drafts/form",
        "/drafts/preview",
        "/drafts/1/apply",
        "/counters/1/archive",
        "/counters/1/backfill",
    ] {
        let request = Request::post(address)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body("name=a&csrf=guessed".into())
            .expect("a request");
        assert_eq!(world.send(request).await.status, StatusCode::FORBIDDEN, "{address}");
    }
}

#[tokio::test]
async fn what_is_seen_of_events_is_kept_for_a_moment() {
    let world = World::new();
    rides(&world).await;
    let observed = async || world.portal.observed().await.expect("seen").events;
    assert_eq!(observed().await, 60);
    world.events("ride", [(NOW_S, Json::Null)]).await;
    assert_eq!(observed().await, 60);
    world.clock.set_s(NOW_S + 6);
    assert_eq!(observed().await, 61);
}

//! Who may do what: scopes, tokens of partners, and two people.

use super::{award, code, correct, create, transact};
use crate::client::{Client, drops_counter};
use crate::server::Home;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The token of a name.
pub fn secret(name: &str) -> String {
    format!("rg_{}", hex::encode(Sha256::digest(name)))
}

/// The setting of tokens with these names and scopes.
pub fn setting_of(tokens: &[(&str, &str)]) -> String {
    let tokens: Vec<String> = tokens
        .iter()
        .map(|(name, scopes)| {
            let hash = hex::encode(Sha256::digest(secret(name)));
            format!("{{ name = \"{name}\", sha256 = \"{hash}\", scopes = [{scopes}] }}")
        })
        .collect();
    format!("[{}]", tokens.join(", "))
}

/// A home with tokens of these names and scopes.
fn home(tokens: &[(&str, &str)]) -> Home {
    Home::with(&[("auth.tokens", &setting_of(tokens))])
}

fn programme() -> Value {
    json!({
        "programme": "shop", "expiry": {"kind": "never"}, "adjustReview": 100,
        "partners": [{"name": "skyair", "ownFactors": {"max": 10}, "perAwardMax": 500}],
    })
}

fn with(server: &Client, name: &str) -> Client {
    server.with_token(&secret(name))
}

#[test]
fn a_partner_names_its_source_and_sees_only_it() {
    let partner = "\"points:award\", \"points:read\", \"points:spend\", \"points:admin\"";
    let correcting = "\"points:award\", \"points:correct\"";
    let home = home(&[("boss", "\"admin\""), ("skyair", partner), ("skyair/2", correcting)]);
    let server = home.start();
    let boss = with(&server, "boss");
    let skyair = with(&server, "skyair");
    create(&boss, &programme());

    let own = json!({"programme": "shop", "member": "ann", "key": "flight-1", "amount": 100,
                     "factors": [1.5, 2]});
    let first = award(&skyair, &own);
    assert_eq!(first["points"], 300, "{first}");
    // Its other token has the same keys; the operator's are others.
    assert_eq!(award(&with(&server, "skyair/2"), &own)["replayed"], true);
    let operators = json!({"programme": "shop", "member": "ann", "key": "flight-1", "points": 7});
    let second = award(&boss, &operators);
    assert_eq!(second["replayed"], false, "{second}");

    // What it takes back, it names by its key, also where that is the reference too.
    let seat = json!({"programme": "shop", "member": "ann", "key": "seat-1", "points": 20,
                      "reference": "seat-1"});
    award(&skyair, &seat);
    let back = json!({"kind": "reverse", "programme": "shop", "member": "ann", "key": "back-1",
                      "reference": "seat-1", "reason": "not taken"});
    assert_eq!(correct(&with(&server, "skyair/2"), &back)["points"], -20);

    // Beyond its bounds it is refused.
    let much = json!({"programme": "shop", "member": "ann", "key": "flight-2", "points": 501});
    assert_eq!(code(&award(&skyair, &much)), "partner_limit");
    let wild = json!({"programme": "shop", "member": "ann", "key": "flight-3", "amount": 1,
                      "factors": [11]});
    assert!(award(&skyair, &wild)["error"].is_object());

    // It sees its own entries, and nobody's balance.
    let entries = skyair.get("/v1/points/entries?programme=shop&key=flight-1").expect(200);
    assert_eq!(entries["entries"].as_array().map(Vec::len), Some(1), "{entries}");
    let place = |result: &Value| {
        let place = result["entry"].as_str().expect("a place").replace(':', "/");
        format!("/v1/points/entries/{place}")
    };
    skyair.get(&place(&first)).expect(200);
    skyair.get(&place(&second)).expect_problem(404, "entry_unknown");
    skyair.get("/v1/points/shop/members/ann").expect_problem(403, "source_foreign");
    skyair.get("/v1/points/shop/liability").expect_problem(403, "source_foreign");
    skyair.get("/v1/points/shop/partners/skyair/settlement").expect(200);
    // Whatever its scopes are: queues hold what others sent.
    for place in ["queues", "queues/award/messages", "sweeps", "audits", "seals"] {
        let answer = skyair.get(&format!("/v1/points/{place}"));
        answer.expect_problem(403, "source_foreign");
    }
    for place in ["queues/award/redrive", "queues/award/discard", "sweeps", "audits"] {
        let answer = skyair.post(&format!("/v1/points/{place}"), &json!({}));
        answer.expect_problem(403, "source_foreign");
    }
    let other = json!({"kind": "exchangeOut", "programme": "shop", "member": "ann", "key": "x",
                       "points": 1, "partner": "other"});
    assert_eq!(code(&transact(&skyair, &other)), "source_foreign");

    // In a programme that does not name it, it is nobody.
    create(&boss, &json!({"programme": "mall", "expiry": {"kind": "never"}}));
    let given = json!({"programme": "mall", "member": "ann", "key": "g-1", "points": 50});
    award(&boss, &given);
    assert_eq!(code(&award(&skyair, &given)), "source_foreign");
    let spent = json!({"kind": "burn", "programme": "mall", "member": "ann", "key": "s-1",
                       "points": 5});
    assert_eq!(code(&transact(&skyair, &spent)), "source_foreign");
    let coffee = json!({"programme": "mall", "member": "ann", "key": "c-1", "reward": "coffee"});
    skyair.post("/v1/points/redemptions", &coffee).expect_problem(403, "source_foreign");

    let correction = json!({ "corrections": [] });
    skyair.post("/v1/points/corrections", &correction).expect_problem(403, "scope_missing");
}

#[test]
fn a_partner_reads_the_rewards_of_programmes_that_name_it() {
    let home = home(&[("boss", "\"admin\""), ("skyair", "\"points:read\"")]);
    let server = home.start();
    let [boss, skyair] = ["boss", "skyair"].map(|name| with(&server, name));
    for (name, partners) in [("shop", json!([{"name": "skyair"}])), ("mall", json!([]))] {
        create(
            &boss,
            &json!({
                "programme": name, "expiry": {"kind": "never"}, "partners": partners,
                "rewards": [{"name": "coffee", "points": 100}],
            }),
        );
    }

    let programmes = |client: &Client| -> Vec<Value> {
        let answer = client.get("/v1/points/rewards").expect(200);
        let rewards = answer["rewards"].as_array().expect("rewards").iter();
        rewards.map(|reward| reward["programme"].clone()).collect()
    };
    assert_eq!(programmes(&boss), ["mall", "shop"]);
    assert_eq!(programmes(&skyair), ["shop"]);
    skyair.get("/v1/points/rewards?programme=shop").expect(200);
    let foreign = skyair.get("/v1/points/rewards?programme=mall");
    foreign.expect_problem(403, "source_foreign");
}

/// Drafts ask a token for what the routes of their kind ask it for.
#[test]
fn drafts_open_nothing_that_the_routes_refuse() {
    let partner = "\"counts:read\", \"counters:write\", \"points:read\", \"points:correct\", \
                   \"points:write\"";
    let clerk = "\"counts:read\", \"counters:write\", \"points:read\", \"points:correct\"";
    let reader = "\"counts:read\"";
    let home =
        home(&[("boss", "\"admin\""), ("clerk", clerk), ("reader", reader), ("skyair", partner)]);
    let server = home.start();
    let [boss, clerk, reader, skyair] =
        ["boss", "clerk", "reader", "skyair"].map(|name| with(&server, name));
    create(&boss, &programme());

    let adjustment = json!({"programme": "shop", "member": "ann", "key": "a-1", "points": 50,
                            "reason": "the machine was broken"});
    let proposed = |kind: &str, configuration: &Value| json!({ "kind": kind, "configuration": configuration, "baseVersion": 0 });
    let mall = json!({"programme": "mall", "expiry": {"kind": "never"}});
    let of_counter = proposed("counter", &drops_counter());
    let of_programme = proposed("programme", &mall);
    let of_adjustment = proposed("adjustment", &adjustment);
    let drafts = [&of_counter, &of_programme, &of_adjustment];
    let drafts = drafts.map(|draft| boss.post("/v1/drafts", draft).expect(201));
    let paths = drafts.each_ref().map(|draft| format!("/v1/drafts/{}", draft["id"]));
    let listed = |client: &Client| {
        let answer = client.get("/v1/drafts").expect(200);
        answer["drafts"].as_array().expect("drafts").len()
    };

    // Who may read points may read what is proposed of them; others read what is left.
    assert_eq!([&boss, &clerk, &reader, &skyair].map(listed), [3, 3, 1, 1]);
    for path in &paths {
        clerk.get(path).expect(200);
    }
    reader.get(&paths[0]).expect(200);
    for path in &paths[1..] {
        reader.get(path).expect_problem(403, "scope_missing");
    }

    // A partner corrects nothing but its own awards, and changes no programme, whatever its scopes
    // are.
    for (path, draft) in [(&paths[1], &of_programme), (&paths[2], &of_adjustment)] {
        skyair.get(path).expect_problem(403, "source_foreign");
        skyair.post("/v1/drafts", draft).expect_problem(403, "source_foreign");
        let apply = format!("{path}/apply");
        let headers = [("if-match", "\"1\""), ("x-reason", "now")];
        skyair.send("POST", &apply, &headers, b"").expect_problem(403, "source_foreign");
    }
    assert_eq!(boss.get("/v1/points/shop/members/ann").expect(200)["available"], 0);
}

#[test]
fn a_large_adjustment_needs_a_second_person() {
    let correcting = "\"points:correct\", \"points:read\", \"counters:write\", \"counts:read\"";
    let home = home(&[("boss", "\"admin\""), ("clerk", correcting)]);
    let server = home.start();
    create(&with(&server, "boss"), &programme());
    let clerk = with(&server, "clerk");
    let adjust = |points: i64, key: &str| {
        json!({"kind": "adjust", "programme": "shop", "member": "ann", "key": key,
               "points": points, "reason": "the machine was broken"})
    };
    assert_eq!(correct(&clerk, &adjust(99, "a-1"))["balance"], 99);
    assert_eq!(code(&correct(&clerk, &adjust(100, "a-2"))), "approval_needed");
    assert_eq!(code(&correct(&clerk, &adjust(-100, "a-3"))), "approval_needed");

    let configuration = json!({"programme": "shop", "member": "ann", "key": "a-4", "points": 500,
                               "reason": "the machine was broken"});
    let draft = json!({ "kind": "adjustment", "configuration": configuration, "baseVersion": 0 });
    let draft = clerk.post("/v1/drafts", &draft).expect(201);
    let decide = |draft: &Value, what: &str| {
        let path = format!("/v1/drafts/{}/{what}", draft["id"]);
        let revision = format!("\"{}\"", draft["revision"]);
        clerk.send("POST", &path, &[("if-match", &revision), ("x-reason", "it was broken")], b"")
    };
    decide(&draft, "apply").expect_problem(403, "approval_needed");
    let sent = decide(&draft, "submit").expect(200);
    decide(&sent, "approve").expect_problem(403, "second_person_needed");
    let ann = clerk.get("/v1/points/shop/members/ann").expect(200);
    assert_eq!(ann["available"], 99);

    // What the member does not have yet can be taken later.
    let taken = json!({"programme": "shop", "member": "bob", "key": "a-5", "points": -60,
                       "reason": "the machine was broken"});
    let draft = json!({ "kind": "adjustment", "configuration": taken, "baseVersion": 0 });
    let draft = clerk.post("/v1/drafts", &draft).expect(201);
    let refused = decide(&draft, "apply").expect_problem(422, "configuration_invalid");
    assert!(refused["detail"].as_str().is_some_and(|why| why.contains("insufficient_points")));
    let given = json!({"programme": "shop", "member": "bob", "key": "g-1", "points": 70});
    with(&server, "boss").post("/v1/points/awards", &json!({ "awards": [given] })).expect(200);
    let draft = clerk.get(&format!("/v1/drafts/{}", draft["id"])).expect(200);
    decide(&draft, "apply").expect(200);
    assert_eq!(clerk.get("/v1/points/shop/members/bob").expect(200)["available"], 10);
}

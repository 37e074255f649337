//! Secrets of destinations and passwords of databases are in no page, answer, metric or log, and
//! not in the data folder: neither those that are used, nor those that a person wrote into a
//! document, which is refused.

use super::example::{Example, campaign, orders, wait_until_active};
use super::receiver::Receiver;
use crate::client::Client;
use crate::portal::{Browser, first_link};
use crate::server::until;
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

/// Of a destination, in its variable.
const USED: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// In the variable of another destination, where it is no secret of webhooks.
const MALFORMED: &str = "malformed-4711-umbrella";
/// Of a database that does not answer.
const PASSWORD: &str = "password-4712-umbrella";
/// Written into documents themselves.
const LITERAL: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
const ALL: [&str; 4] = [USED, MALFORMED, PASSWORD, LITERAL];

/// Most pages that are followed from the first one.
const PAGES_MAX: usize = 1_000;

#[test]
fn secrets_are_used_and_never_shown() {
    let connections = format!("crm=mysql://rain:{PASSWORD}@127.0.0.1:1/crm");
    let mut example = Example::new();
    example.home.set("campaigns.connections", &connections);
    example.home.set("observe.log_level", "trace");
    example.home.export("RAINGAUGE_SECRET_USED", &format!("whsec_{USED}"));
    example.home.export("RAINGAUGE_SECRET_MALFORMED", MALFORMED);
    let Example { home, receiver } = example;
    let server = home.start();
    let zoe = Browser::welcome(&server, &first_link(&home).expect("a link"), "zoe");

    create(&server, &receiver);
    let typed = write_literals(&server, &zoe, &receiver);
    for answer in typed {
        assert!(!answer.contains(LITERAL), "{answer}");
    }
    for order in orders() {
        server.lines("/v1/events?wait=decided", &[order]).expect(200);
    }
    until("messages are delivered with a signature", || {
        let received = receiver.received();
        let signed = received.iter().filter(|one| one.headers.contains_key("webhook-signature"));
        (signed.count() > 0).then_some(())
    });
    until("the other destination has no secret", || {
        let status = server.get("/v1/destinations/rewards/status").expect(200);
        status["obstacle"].is_string().then_some(())
    });

    let pages = follow(&zoe);
    for path in [
        "/audit",
        "/campaigns/7/versions",
        "/campaigns/destinations/messages",
        "/campaigns/documents/destination/rewards",
        "/campaigns/documents/lookup/crm",
        "/drafts/1",
    ] {
        assert!(pages.contains(path), "{path} is not among {pages:?}");
    }
    read_answers(&server);
    let log = server.errors();
    assert!(log.contains("RAINGAUGE_SECRET_MALFORMED"), "the log says which variable it is");
    check("the log", &log);
    server.terminate();
    check_files(&home.data());
}

/// Fails if a text has one of the secrets.
#[track_caller]
fn check(place: &str, text: &str) {
    for secret in ALL {
        assert!(!text.contains(secret), "{place} shows {secret}: {text}");
    }
}

/// Two destinations, one without a secret that can be used; a lookup that has no answer; the
/// campaign of the example, and one that asks the lookup.
fn create(server: &Client, receiver: &Receiver) {
    for (name, variable) in [("messages", "USED"), ("rewards", "MALFORMED")] {
        let variable = format!("RAINGAUGE_SECRET_{variable}");
        let url = receiver.url(&format!("/{name}"));
        let document = json!({ "name": name, "url": url, "secretEnv": variable });
        server.post("/v1/destinations", &document).expect(201);
    }
    let sql = "SELECT tier FROM members WHERE id = ?";
    let lookup = json!({
        "name": "crm", "class": "db", "connection": "crm", "sql": sql, "timeoutMs": 1_000,
        "onError": "false",
    });
    server.post("/v1/lookups", &lookup).expect(201);

    let mut asking = campaign();
    asking["id"] = json!(8);
    asking["name"] = json!("gold");
    asking["rule"] = json!({ "operator": "eq", "lhs": "db.crm.tier", "rhs": "gold" });
    for document in [campaign(), asking] {
        server.post("/v1/campaigns", &document).expect(201);
        wait_until_active(server, document["id"].as_u64().expect("an id") as u32);
    }
    // Versions to look at.
    for path in ["destinations/messages/disable", "destinations/messages/enable"] {
        server.post(&format!("/v1/{path}"), &Value::Null).expect(200);
    }
    for path in ["campaigns/7/pause", "campaigns/7/resume"] {
        server.post(&format!("/v1/{path}"), &Value::Null).expect(200);
    }
    wait_until_active(server, 7);
}

/// Writes a secret itself where documents name its place. Returns the answers.
fn write_literals(server: &Client, zoe: &Browser, receiver: &Receiver) -> Vec<String> {
    let secret = format!("whsec_{LITERAL}");
    let url = receiver.url("/literal");
    let user = url.replacen("http://", &format!("http://rain:{secret}@"), 1);
    let documents = [
        json!({ "name": "literal", "url": url, "secretEnv": secret }),
        json!({ "name": "literal", "url": url, "secretFile": secret }),
        json!({ "name": "literal", "url": url, "secret": secret }),
        json!({ "name": "literal", "url": url, "secretEnv": [secret] }),
        json!({ "name": "literal", "url": user }),
    ];

    let mut answers = Vec::new();
    for document in documents {
        let refused = server.post("/v1/destinations", &document);
        assert!((400..500).contains(&refused.status), "{document}: {}", refused.text());
        answers.push(refused.text());
        let draft = json!({ "kind": "destination", "configuration": document });
        let refused = server.post("/v1/drafts", &draft);
        assert!((400..500).contains(&refused.status), "{document}: {}", refused.text());
        answers.push(refused.text());

        // The form comes back with the text in it, for the person who typed it.
        let text = document.to_string();
        let fields = [("text", text.as_str()), ("version", "0"), ("reason", "try")];
        let refused = zoe.post("/campaigns/documents/destination/new", &fields);
        assert_eq!(refused.status, 422, "{document}: {}", refused.text());
    }

    // Destinations are no kind of drafts; a campaign is, so that there is one to look at.
    let mut later = campaign();
    later["id"] = json!(9);
    let draft = json!({ "kind": "campaign", "configuration": later });
    answers.push(server.post("/v1/drafts", &draft).expect(201).to_string());
    answers
}

/// Reads every page that links lead to. Returns their paths.
fn follow(zoe: &Browser) -> BTreeSet<String> {
    let mut waiting = VecDeque::from(["/".to_owned(), "/campaigns".to_owned()]);
    let mut known: BTreeSet<String> = waiting.iter().cloned().collect();
    let mut pages = BTreeSet::new();
    while let Some(address) = waiting.pop_front() {
        let answer = zoe.get(&address);
        assert_ne!(answer.status, 404, "a link leads to {address}");
        let text = answer.text();
        check(&address, &text);
        pages.insert(address.split(['?', '#']).next().unwrap_or_default().to_owned());
        if !answer.header("content-type").starts_with("text/html") {
            continue;
        }

        let links = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        for link in links.filter(|link| link.starts_with('/')) {
            let link = link.replace("&amp;", "&");
            if known.insert(link.clone()) {
                waiting.push_back(link);
            }
        }
        assert!(known.len() < PAGES_MAX, "links lead to too many pages: {known:?}");
    }
    pages
}

/// Reads every answer of the API that needs no more than the names of these documents.
fn read_answers(server: &Client) {
    let contract = server.get("/openapi.json").json();
    let routes = contract["paths"].as_object().expect("paths");
    let readable = routes.iter().filter(|(_, route)| route["get"].is_object());
    let mut read = BTreeSet::new();
    for path in readable.flat_map(|(path, _)| places_of(path)) {
        let answer = server.get(&path);
        check(&path, &answer.text());
        if answer.status == 200 {
            read.insert(path);
        }
    }
    for path in ["/v1/destinations/rewards/status", "/v1/campaigns/7/versions", "/v1/decisions"] {
        assert!(read.contains(path), "{path} is not among {read:?}");
    }

    for name in ["messages", "rewards"] {
        let path = format!("/v1/destinations/{name}/probe");
        check(&path, &server.post(&path, &Value::Null).text());
    }
    check("/metrics", &server.get("/metrics").text());
}

/// The addresses of a route, for the documents of this test.
fn places_of(route: &str) -> Vec<String> {
    let fill = |place: &str, names: &[&str]| {
        names.iter().map(|name| route.replace(place, name)).collect::<Vec<_>>()
    };
    let paths = if route.starts_with("/v1/campaigns/{id}") {
        fill("{id}", &["7", "8"])
    } else if route.starts_with("/v1/destinations/") {
        fill("{name}", &["messages", "rewards"])
    } else if route.starts_with("/v1/lookups/") {
        fill("{name}", &["crm"])
    } else {
        fill("{id}", &["1"])
    };
    paths.into_iter().map(|path| path.replace("{version}", "1")).collect()
}

/// Looks into every file of a folder, byte by byte.
fn check_files(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            check_files(&path);
        } else {
            let bytes = std::fs::read(&path).expect("a file");
            check(&path.display().to_string(), &String::from_utf8_lossy(&bytes));
        }
    }
}

//! Tokens: what each scope allows, which principal a request has, and where a server may listen
//! without tokens.

use crate::client::{Client, at, drop_event, drops_counter, event, now_s};
use crate::server::Home;
use serde_json::json;
use sha2::{Digest, Sha256};

pub const SCOPES: [&str; 17] = [
    "events:write",
    "counts:read",
    "counters:write",
    "buckets:write",
    "metrics:read",
    "campaigns:read",
    "campaigns:write",
    "campaigns:operate",
    "points:read",
    "points:award",
    "points:spend",
    "points:correct",
    "points:write",
    "points:admin",
    "objects:read",
    "objects:write",
    "admin",
];

/// Routes beside the contract, open to all.
const OPEN: [(&str, &str); 4] =
    [("GET", "/"), ("HEAD", "/healthz"), ("GET", "/v1/nothing"), ("PATCH", "/v1/counts")];

/// Every route of the contract, applied to an existing counter, and the scope that it needs. Routes
/// that change a counter use a different one than routes that read.
fn routes_of(server: &Client) -> Vec<(String, String, Option<String>)> {
    let contract = server.get("/openapi.json").expect(200);
    let mut routes = Vec::new();
    for (path, methods) in contract["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            if method == "parameters" {
                continue;
            }
            let method = method.to_uppercase();
            let id = if method == "GET" { "34" } else { "35" };
            let path = path.replace("{id}", id).replace("{key}", "other");
            let path = path.replace("{name}", "other").replace("{subject}", "other");
            let path = path.replace("{action}", "act_0123456789abcdef0123456789abcdef");
            let path = path.replace("{programme}", "other").replace("{member}", "other");
            let path = path.replace("{queue}", "retry").replace("{book}", "0");
            let path = path.replace("{sequence}", "1");
            let scope = operation["security"][0]["bearer"][0].as_str();

            routes.push((method, path, scope.map(str::to_owned)));
        }
    }

    routes
}

/// A token that is 67 characters long, as those that `raingauge token` makes.
pub fn token(scope: &str) -> String {
    format!("rg_{}", hex::encode(Sha256::digest(scope)))
}

/// A home with one token for each scope.
pub fn home_with_tokens() -> Home {
    let tokens = SCOPES.map(|scope| {
        let hash = hex::encode(Sha256::digest(token(scope)));
        format!("{{ name = \"{scope} holder\", sha256 = \"{hash}\", scopes = [\"{scope}\"] }}")
    });
    Home::with(&[("auth.tokens", &format!("[{}]", tokens.join(", ")))])
}

#[test]
fn every_route_asks_for_its_scope() {
    let home = home_with_tokens();
    let server = home.start();
    let admin = server.with_token(&token("admin"));
    admin.create(drops_counter());
    admin.create(json!({"id": 35, "name": "other", "template": "other", "eventType": "other"}));

    let send = |client: &Client, method: &str, path: &str| client.send(method, path, &[], b"{}");
    let mut routes = routes_of(&server);
    routes.extend(OPEN.map(|(method, path)| (method.to_owned(), path.to_owned(), None)));
    routes.push(("HEAD".to_owned(), "/v1/counters".to_owned(), Some("counts:read".to_owned())));

    for (method, path, needed) in &routes {
        let Some(needed) = needed else {
            let answer = send(&server, method, path);
            assert!(
                ![401, 403].contains(&answer.status),
                "{method} {path} is open: {}",
                answer.status
            );
            continue;
        };

        if method != "HEAD" {
            send(&server, method, path).expect_problem(401, "token_missing");
            send(&server.with_token(&token("nobody")), method, path)
                .expect_problem(401, "token_unknown");
        }

        for scope in SCOPES {
            let answer = send(&server.with_token(&token(scope)), method, path);
            let is_more = scope == "admin" || (needed == "metrics:read" && scope == "counts:read");
            if scope == needed || is_more {
                let is_let_in = ![401, 403].contains(&answer.status);
                assert!(is_let_in, "{method} {path} with {scope}: {}", answer.text());
            } else if method == "HEAD" {
                assert_eq!(answer.status, 403);
            } else {
                answer.expect_problem(403, "scope_missing");
            }
        }
    }
}

#[test]
fn a_version_names_the_holder_of_the_token() {
    let home = home_with_tokens();
    let server = home.start();
    server.with_token(&token("counters:write")).create(drops_counter());
    let versions =
        server.with_token(&token("counts:read")).get("/v1/counters/34/versions").expect(200);
    let version = &versions["versions"][0];
    assert_eq!(
        (&version["changedBy"], &version["changedByKind"]),
        (&json!("counters:write holder"), &json!("token"))
    );
}

/// Keys contain values of events: a token that only defines counters sees none of them.
#[test]
fn a_preview_lists_keys_to_readers_of_counts_alone() {
    let home = home_with_tokens();
    let server = home.start();
    let signup =
        event("signup", "1", now_s() - 60, json!({ "email": "zoe@rain.example" })).to_string();
    let writer = server.with_token(&token("events:write"));
    let headers = [("content-type", "application/x-ndjson")];
    let receipt =
        writer.send("POST", "/v1/events?wait=applied", &headers, signup.as_bytes()).expect(200);

    assert_eq!(receipt["accepted"], 1, "{receipt}");

    let draft =
        json!({ "name": "mails", "template": "mail:{email}", "eventType": "signup" }).to_string();
    let preview = |client: &Client| {
        client.send("POST", "/v1/counters/preview", &[], draft.as_bytes()).expect(200)
    };
    let [blind, seeing] =
        [token("counters:write"), token("admin")].map(|token| preview(&server.with_token(&token)));
    assert_eq!(
        (&blind["counted"], &blind["hottest"], &blind["keysHidden"]),
        (&json!(1), &json!([]), &json!(true))
    );

    assert_eq!(
        (&seeing["hottest"][0]["key"], &seeing["keysHidden"]),
        (&json!("mail:zoe@rain.example"), &json!(false))
    );
}

/// A producer's token may send events, but not set counts. Buckets that were set show in the audit
/// log and in a recount.
#[test]
fn setting_buckets_is_a_right_of_its_own_and_shows() {
    let home = home_with_tokens();
    let server = home.start();
    let with = |scope: &str| server.with_token(&token(scope));
    with("counters:write").create(drops_counter());

    let noon = at("2024-09-24T12:00:00Z");
    let events: Vec<_> = (0..10).map(|id| drop_event(&id.to_string(), noon, "oslo")).collect();
    with("events:write").count_events(&events);

    let day = at("2024-09-24T00:00:00Z");
    let buckets = json!([{"key": "drops:oslo", "granularity": "day", "time": day, "count": 0}]);
    for scope in ["events:write", "counters:write", "counts:read"] {
        let refused =
            with(scope).post("/v1/buckets", &buckets).expect_problem(403, "scope_missing");
        assert!(
            refused["detail"].as_str().is_some_and(|detail| detail.contains("buckets:write")),
            "{refused}"
        );
    }

    let recount = format!("/v1/recount?key=drops:oslo&fromTime={day}&toTime={}", day + 86_400);
    assert_eq!(with("counts:read").get(&recount).json()["setBuckets"], json!(null));
    with("buckets:write").post("/v1/buckets", &buckets).expect(200);

    let after = with("counts:read").get(&recount).json();
    assert_eq!(
        (&after["equal"], &after["stored"], &after["setBuckets"]),
        (&json!(true), &json!(0), &json!(1))
    );
    assert_eq!(with("metrics:read").metric("raingauge_buckets_set_total"), 1.0);
}

#[test]
fn answers_have_the_headers_of_an_interface() {
    let home = home_with_tokens();
    let server = home.start();
    let admin = server.with_token(&token("admin"));
    let answers = [
        admin.get("/v1/counters"),
        admin.get("/v1/counters/7"),
        admin.get("/v1/nothing"),
        admin.send("PATCH", "/v1/counts", &[], b""),
        server.get("/v1/counters"),
        server.get("/metrics"),
        server.get("/healthz"),
        server.get("/readyz"),
        server.get("/openapi.json"),
    ];

    for answer in answers {
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{}", answer.text());
        assert_eq!(answer.header("cache-control"), "no-store", "{}", answer.text());
        assert!(
            answer.header("content-security-policy").starts_with("default-src 'none'"),
            "{}",
            answer.text()
        );

        let challenge = if answer.status == 401 { "Bearer" } else { "" };
        assert_eq!(answer.header("www-authenticate"), challenge);
    }

    // Pages have a policy of their own.
    assert!(server.get("/sign-in").header("content-security-policy").contains("script-src 'self'"));
}

/// A refused request is not read, and the answer says what to do.
#[test]
fn a_refusal_comes_before_the_body() {
    let home = home_with_tokens();
    let server = home.start();
    let head = "POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n";
    let answer = server.raw(head.as_bytes());

    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");

    // The connection cannot be reused, and the answer tells the client.
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(
        server.errors().lines().all(|line| !line.contains(&token("admin"))),
        "no secret is logged"
    );

    for header in ["Basic cm9vdDpyb290", "Bearer", "bearer  ", "rg_", ""] {
        server
            .send("GET", "/v1/counters", &[("authorization", header)], b"")
            .expect_problem(401, "token_missing");
    }

    let lower = format!("bearer {}", token("admin"));
    assert_eq!(server.send("GET", "/v1/counters", &[("authorization", &lower)], b"").status, 200);

    // The hash in the configuration grants no access.
    let hash = hex::encode(Sha256::digest(token("admin")));
    server.with_token(&hash).get("/v1/counters").expect_problem(401, "token_unknown");
}

#[test]
fn an_address_beyond_loopback_needs_a_token() {
    let home = Home::new();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let refused = home.try_start_on(address).err().expect("it is refused");
        assert!(!refused.status.success());
        assert!(
            refused.errors.contains("server.listen") && refused.errors.contains("token"),
            "{}",
            refused.errors
        );
    }

    let mut home = home_with_tokens();
    let refused =
        home.try_start_on("0.0.0.0:0").err().expect("tokens do not cross a network in clear");
    assert!(refused.errors.contains("server.plaintext"), "{}", refused.errors);
    home.set("server.plaintext", "true");

    let server = home.try_start_on("0.0.0.0:0").expect("the operator wants it so");
    let port = server.address.rsplit(':').next().unwrap_or_default().to_owned();
    let local = Client::new(&format!("127.0.0.1:{port}"));
    assert_eq!(local.get("/healthz").status, 200);
    local.get("/v1/counters").expect_problem(401, "token_missing");
    assert!(server.errors().contains("cross that network in clear"), "{}", server.errors());
}

//! A server that requires no token: which requests it accepts, and which configurations it refuses.

use crate::auth::{home_with_tokens, token};
use crate::client::{Answer, Client, drops_counter};
use crate::server::Home;
use serde_json::json;

const JSON: (&str, &str) = ("content-type", "application/json");

/// Sends a request with the given `Host`, which the ordinary client sets by itself.
fn raw(client: &Client, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    client.raw(format!("{head}{body}").as_bytes())
}

/// Every sign of a request from elsewhere, on routes that read, change and count.
#[test]
fn without_a_token_only_requests_of_this_machine_are_taken() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let host = server.address.clone();
    let own = format!("http://{host}");
    let name = ("host", host.as_str());
    let routes = [
        ("GET", "/v1/counters", ""),
        ("PUT", "/v1/cache-policy", r#"{"strategy": "none"}"#),
        ("POST", "/v1/buckets", "[]"),
        ("POST", "/v1/counters/34/backfill", ""),
        ("POST", "/v1/events", "[]"),
        ("POST", "/v1/counts", r#"{"requests": []}"#),
        ("GET", "/metrics", ""),
    ];

    for (method, path, body) in routes {
        let send =
            |more: &[(&str, &str)]| raw(&server, method, path, &[more, &[JSON]].concat(), body);
        for local in [
            &[name][..],
            &[("host", "localhost:8080")],
            &[("host", "[::1]")],
            &[name, ("origin", &own), ("sec-fetch-site", "same-origin")],
            &[name, ("sec-fetch-site", "none")],
        ] {
            let answer = send(local);
            assert!(answer.starts_with("HTTP/1.1 2"), "{method} {path} {local:?}: {answer}");
        }

        for foreign in [
            &[("host", "rain.example:8080")][..],
            &[("host", "192.0.2.7")],
            &[name, ("x-forwarded-for", "192.0.2.7")],
            &[name, ("forwarded", "for=192.0.2.7")],
            &[name, ("via", "1.1 proxy")],
            &[name, ("origin", "https://evil.example")],
            &[name, ("origin", "null")],
            &[name, ("sec-fetch-site", "cross-site")],
            &[name, ("sec-fetch-site", "same-site")],
            // A page whose name resolves to this server may send any header, including a token that
            // is not required.
            &[("host", "evil.example"), ("authorization", "Bearer rg_whatever")],
        ] {
            let answer = send(foreign);
            assert!(answer.starts_with("HTTP/1.1 403"), "{method} {path} {foreign:?}: {answer}");
            assert!(answer.contains("foreign_request"), "{method} {path} {foreign:?}: {answer}");
        }
    }

    // Health is public: monitoring may come through a proxy.
    let probe =
        raw(&server, "GET", "/readyz", &[("host", "rain.example"), ("via", "1.1 proxy")], "");
    assert!(probe.starts_with("HTTP/1.1 200"), "{probe}");
    assert!(server.errors().contains("no token is asked for"), "{}", server.errors());
}

/// With tokens, a server accepts any host name and any proxy.
#[test]
fn with_a_token_it_does_not_matter_where_a_request_comes_from() {
    let home = home_with_tokens();
    let server = home.start();
    let bearer = format!("Bearer {}", token("counts:read"));
    let headers = [
        ("host", "rain.example"),
        ("x-forwarded-for", "192.0.2.7"),
        ("origin", "https://tool.example"),
        ("authorization", &bearer),
    ];
    let answer = raw(&server, "GET", "/v1/counters", &headers, "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(!server.errors().contains("no token is asked for"), "{}", server.errors());
}

/// Browsers send three media types to other sites without a preflight: none of them is JSON.
#[test]
fn a_body_that_claims_not_to_be_json_is_refused() {
    let open = Home::new();
    let closed = home_with_tokens();
    let open = open.start();
    let closed = closed.start();
    let admin = closed.with_token(&token("admin"));

    let send = |client: &Client, path: &str, kind: &str, body: &str| -> Answer {
        client.send("POST", path, &[("content-type", kind)], body.as_bytes())
    };
    let form = "application/x-www-form-urlencoded";
    let changes = [("/v1/buckets", "[]"), ("/v1/counters", &drops_counter().to_string())];
    for (path, body) in changes {
        for client in [&*open, &admin] {
            for kind in
                ["text/plain", "text/plain;charset=UTF-8", "multipart/form-data; boundary=x"]
            {
                send(client, path, kind, body).expect_problem(415, "media_type_unknown");
            }
        }

        send(&open, path, form, body).expect_problem(415, "media_type_unknown");
        // A browser adds no token by itself.
        assert!([200, 201].contains(&send(&admin, path, form, body).status), "{path}");
    }

    send(&open, "/v1/buckets", "application/json; charset=utf-8", "[]").expect(200);
    send(&open, "/v1/buckets", "application/vnd.rain+json", "[]").expect(200);
    open.send("POST", "/v1/buckets", &[], b"[]").expect(200);

    // Counts change nothing, and are queried with curl.
    send(&open, "/v1/counts", form, r#"{"requests": []}"#).expect(200);
    send(&open, "/v1/counts", "text/plain", r#"{"requests": []}"#)
        .expect_problem(415, "media_type_unknown");
    send(&open, "/v1/events", form, "[]").expect_problem(415, "media_type_unknown");
}

/// Every sign that others are expected is refused while no authentication is required.
#[test]
fn a_configuration_that_would_let_strangers_in_is_refused() {
    let url = ("portal.public_url", "https://rain.example");
    let cases: [(&str, &[(&str, &str)]); 5] = [
        ("portal.public_url", &[url]),
        (
            "openid.issuer",
            &[url, ("openid.issuer", "https://login.example"), ("openid.client_id", "rain")],
        ),
        ("portal.address_header", &[("portal.address_header", "X-Forwarded-For")]),
        ("portal.approval", &[("portal.approval", "true")]),
        ("portal.sign_in", &[url, ("portal.sign_in", "false"), ("auth.required", "true")]),
    ];

    for (key, settings) in cases {
        let home = Home::with(settings);
        let checked = home.run(&["check-config", "--json"]);
        assert!(!checked.status.success(), "{key}");

        let problems: serde_json::Value = serde_json::from_str(&checked.output).expect("JSON");
        let keys = problems["problems"]
            .as_array()
            .expect("problems")
            .iter()
            .map(|problem| problem["key"].clone());

        assert!(keys.collect::<Vec<_>>().contains(&json!(key)), "{problems}");
        let refused = home.try_start().err().expect("it does not start");
        assert!(refused.errors.contains(key), "{}", refused.errors);
        assert!(!home.data().exists(), "nothing was begun");
    }

    let mut home = Home::with(&[
        url,
        ("portal.approval", "true"),
        ("portal.address_header", "X-Forwarded-For"),
    ]);

    home.set("auth.required", "true");
    assert!(home.run(&["check-config"]).status.success());
}

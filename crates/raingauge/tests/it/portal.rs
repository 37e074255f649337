//! The portal of the real binary: from the first link to an audited change.

use crate::client::{Answer, Client, at, drops_counter};
use crate::server::{Home, Server, until};
use raingauge_console::encoded;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const PASSWORD: &str = "four words of rain";

/// A browser with a person's session.
pub struct Browser {
    client: Client,
    cookie: String,
    csrf: String,
}

/// The path of the link that a server wrote for the first administrator.
pub fn first_link(home: &Home) -> Option<String> {
    let written = std::fs::read_to_string(home.data().join("first-admin-link")).ok()?;
    let (_, rest) = written.split_once("/welcome/")?;
    Some(format!("/welcome/{}", rest.trim_end()))
}

fn form(fields: &[(&str, &str)]) -> String {
    let pairs: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    pairs.join("&")
}

pub fn post(client: &Client, path: &str, cookie: &str, fields: &[(&str, &str)]) -> Answer {
    let origin = format!("http://{}", client.address);
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("origin", &origin),
        ("cookie", cookie),
        ("user-agent", "Firefox/132.0 on Linux"),
    ];
    client.send("POST", path, &headers, form(fields).as_bytes())
}

/// Returns the text of a page between a beginning and a quote or a tag.
pub fn between<'a>(page: &'a str, begin: &str) -> &'a str {
    let (_, rest) = page.split_once(begin).unwrap_or_else(|| panic!("{begin} is not in {page}"));
    rest.split(['"', '<', '\'']).next().unwrap_or_default()
}

impl Browser {
    /// Follows a one-time link.
    pub fn welcome(server: &Server, path: &str, name: &str) -> Self {
        let client = (**server).clone();
        let fields = [("name", name), ("password", PASSWORD), ("again", PASSWORD)];
        Self::of(client.clone(), &post(&client, path, "", &fields))
    }

    fn sign_in(server: &Server, name: &str, password: &str) -> Self {
        let client = (**server).clone();
        Self::of(
            client.clone(),
            &post(&client, "/sign-in", "", &[("name", name), ("password", password)]),
        )
    }

    fn of(client: Client, answer: &Answer) -> Self {
        assert_eq!(answer.status, 303, "{}", answer.text());
        let cookie = answer.header("set-cookie").split(';').next().unwrap_or_default().to_owned();
        assert!(cookie.starts_with("raingauge_session="), "{cookie}");
        let mut browser = Self { client, cookie, csrf: String::new() };
        browser.csrf =
            between(&browser.get("/account").text(), "name=\"csrf\" content=\"").to_owned();
        browser
    }

    pub fn get(&self, path: &str) -> Answer {
        self.client.send("GET", path, &[("cookie", &self.cookie)], b"")
    }

    pub fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let fields: Vec<(&str, &str)> =
            fields.iter().copied().chain([("csrf", self.csrf.as_str())]).collect();
        post(&self.client, path, &self.cookie, &fields)
    }

    /// The audit log, oldest first.
    pub fn audit(&self) -> Vec<Value> {
        let answer = self.get("/audit.ndjson");
        assert_eq!(answer.status, 200);
        let mut entries: Vec<Value> = answer
            .text()
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line of JSON"))
            .collect();
        entries.reverse();
        entries
    }
}

#[test]
fn from_the_first_link_to_an_audited_change() {
    let home = Home::with(&[("auth.required", "true"), ("observe.log_level", "trace")]);
    let server = home.start();
    server.get("/v1/counters").expect_problem(401, "token_missing");

    let link = first_link(&home).expect("a link for the first administrator");
    let zoe = Browser::welcome(&server, &link, "zoe");
    assert_eq!(server.get(&link).status, 410);

    let made = zoe.post(
        "/tokens",
        &[("name", "shop"), ("scope", "counters:write"), ("scope", "counts:read")],
    );
    assert_eq!(made.status, 200, "{}", made.text());

    let token = format!("rg_{}", between(&made.text(), "rg_"));
    let shop = server.with_token(&token);
    until("the token is known", || (shop.get("/v1/counters").status == 200).then_some(()));
    shop.create(drops_counter());
    shop.send("PUT", "/v1/cache-policy", &[], b"{}").expect_problem(403, "scope_missing");

    let versions = shop.get("/v1/counters/34/versions").expect(200);
    assert_eq!(versions["versions"][0]["changedBy"], "shop");

    let entry = zoe
        .audit()
        .into_iter()
        .find(|entry| entry["verb"] == "counter.create")
        .expect("it is written down");

    assert_eq!(
        (&entry["who"], &entry["object"], &entry["outcome"]),
        (&json!("shop"), &json!("counter 34"), &json!("done"))
    );
    assert_eq!((&entry["address"], &entry["details"]["version"]), (&json!("127.0.0.1"), &json!(1)));
    zoe.post("/tokens/1/revoke", &[]);
    until("the token opens nothing any more", || {
        (shop.get("/v1/counters").status == 401).then_some(())
    });

    // The process printed nothing secret except the link, which is used up.
    let failed =
        post(&zoe.client, "/sign-in", "", &[("name", "zoe"), ("password", "some wrong password")]);
    assert_eq!(failed.status, 422);
    zoe.post("/sign-out", &[]);

    let errors = server.errors();
    let session = zoe.cookie.split('=').nth(1).unwrap_or_default();
    for secret in [PASSWORD, "some wrong password", session, &zoe.csrf, &token, "$argon2"] {
        assert!(!secret.is_empty() && !errors.contains(secret), "{secret} is in the log");
    }
    assert_eq!(zoe.get("/account").status, 303);
}

#[test]
fn the_first_link_is_made_again_until_a_person_exists() {
    let home = Home::new();
    let server = home.start();
    let first = first_link(&home).expect("a link");

    // Reading a log makes no one an administrator.
    let errors = server.errors();
    assert!(errors.contains("first-admin-link") && !errors.contains("/welcome/"), "{errors}");
    assert_eq!(server.get(&first).status, 200);
    server.terminate();

    let server = home.start();
    let second = first_link(&home).expect("a link");
    assert_ne!(first, second);
    assert_eq!(server.get(&first).status, 410, "the later link spends the earlier one");
    Browser::welcome(&server, &second, "zoe");
    assert_eq!(server.get(&first).status, 410);
    server.terminate();

    let server = home.start();
    assert_eq!(first_link(&home), None);

    // Sessions and passwords outlast a restart.
    Browser::sign_in(&server, "zoe", PASSWORD);
}

#[test]
fn the_command_line_is_the_way_back_in() {
    let home = Home::new();
    let server = home.start();
    Browser::welcome(&server, &first_link(&home).expect("a link"), "zoe");

    let data = home.data().display().to_string();
    let invited = home
        .run(&["portal", "invite", "zoe", "--role", "admin", "--data-dir", &data, "--json"])
        .json();
    let link = invited["link"].as_str().expect("a link").to_owned();
    assert!(link.starts_with("http://127.0.0.1:8080/welcome/"), "{link}");

    let path = format!("/welcome/{}", link.rsplit('/').next().unwrap_or_default());
    let zoe = Browser::welcome(&server, &path, "");
    assert!(zoe.get("/people").text().contains("zoe"));

    let plain = home.run(&["portal", "invite", "max", "--data-dir", &data]);
    assert!(
        plain.status.success()
            && plain.output.trim().contains("/welcome/")
            && plain.output.lines().count() == 1
    );
    assert!(plain.errors.contains("within 24 hours"), "{}", plain.errors);

    let invited: Vec<String> = zoe
        .audit()
        .iter()
        .filter(|entry| entry["verb"] == "person.invite")
        .map(|entry| {
            format!(
                "{} {} {} {}",
                entry["who"], entry["object"], entry["outcome"], entry["details"]
            )
        })
        .collect();

    let expected = [("zoe", "admin"), ("max", "viewer")].map(|(name, role)| {
        format!(r#""the command line" "person {name}" "done" {{"role":"{role}"}}"#)
    });
    assert_eq!(invited, expected);

    for wrong in [&["a;b"][..], &["max", "--role", "king"], &["max", "--email", "nowhere"]] {
        let arguments: Vec<&str> = ["portal", "invite"]
            .iter()
            .chain(wrong)
            .chain(&["--data-dir", &data])
            .copied()
            .collect();
        assert!(!home.run(&arguments).status.success(), "{wrong:?}");
    }
}

#[test]
fn who_need_not_sign_in_sits_at_this_machine() {
    let home = Home::with(&[("portal.sign_in", "false")]);
    let server = home.start();
    let page = server.get("/");
    assert!(page.status == 200 && page.text().contains("anonymous"), "{}", page.text());
    assert_eq!(first_link(&home), None);

    // A page from elsewhere whose name resolves to this server is no administrator.
    assert_eq!(server.send("GET", "/", &[("host", "evil.example")], b"").status, 403);
    let open = Home::with(&[("portal.sign_in", "false"), ("auth.required", "true")]);
    let refused = open.try_start_on("0.0.0.0:0").err().expect("it is refused");
    assert!(refused.errors.contains("portal.sign_in"), "{}", refused.errors);

    let home = Home::with(&[("auth.required", "true"), ("server.plaintext", "true")]);
    let server = home.try_start_on("0.0.0.0:0").expect("people sign in, programs have tokens");
    assert!(first_link(&home).is_some(), "{}", server.errors());
}

#[test]
fn every_change_through_the_api_is_written_down() {
    let home = Home::new();
    let server = home.start();
    let zoe = Browser::welcome(&server, &first_link(&home).expect("a link"), "zoe");
    let reason = [("x-reason", "because")];

    server
        .send("POST", "/v1/counters", &reason, drops_counter().to_string().as_bytes())
        .expect(201);
    let mut edited = drops_counter();
    edited["description"] = json!("edited");
    server.send("PUT", "/v1/counters/34", &reason, edited.to_string().as_bytes()).expect(200);
    server
        .send(
            "PUT",
            "/v1/counters/34",
            &[("if-match", "\"1\"")],
            drops_counter().to_string().as_bytes(),
        )
        .expect_problem(412, "version_mismatch");
    server.send("POST", "/v1/counters/34/backfill", &[], b"").expect(202);
    server.send("POST", "/v1/buckets", &[], b"[{}]").expect(200);

    let day = at("2024-09-24T00:00:00Z");
    let buckets = json!([{"key": "drops:oslo", "granularity": "day", "time": day, "count": 7}]);
    for _ in 0..2 {
        let key = [("idempotency-key", "once")];
        server.send("POST", "/v1/buckets", &key, buckets.to_string().as_bytes()).expect(200);
    }

    let digest = hex::encode(Sha256::digest(format!("drops:oslo\nday\n{day}\n7\n")));
    server.send("PUT", "/v1/cache-policy", &reason, br#"{"strategy": "none"}"#).expect(200);
    assert_eq!(server.send("POST", "/v1/maintenance/compaction", &[], b"").status, 202);
    server.send("DELETE", "/v1/counters/34", &reason, b"").expect(200);

    // Queries do not appear in the audit log.
    server.send("POST", "/v1/counters/34/preview", &[], b"");
    server.send("POST", "/v1/counts", &[], br#"{"requests": []}"#);

    let written: Vec<String> = zoe
        .audit()
        .iter()
        .filter(|entry| entry["who"] == "anonymous")
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            format!("{} {} {} {}", text("verb"), text("object"), text("outcome"), entry["details"])
        })
        .collect();

    let set = json!({"accepted": 1, "rejected": 0, "counters": [34], "keys": 1, "someKeys": ["drops:oslo"],
        "fromTime": day, "toTime": day + 86_400, "sha256": digest});
    let set = format!("buckets.set buckets done {}", json!({"answer": set}));
    let expected = [
        r#"counter.create counter 34 done {"reason":"because","version":1}"#,
        r#"counter.replace counter 34 done {"reason":"because","version":2}"#,
        r#"counter.replace counter 34 refused_412 {}"#,
        r#"counter.backfill counter 34 done {}"#,
        r#"buckets.set buckets done {"answer":{"accepted":0,"rejected":1}}"#,
        &set,
        r#"buckets.set buckets done {"answer":{"accepted":1,"rejected":0,"repetition":true}}"#,
        r#"cache_policy.replace cache policy done {"reason":"because","version":1}"#,
        r#"compaction.begin compaction done {}"#,
        r#"counter.archive counter 34 done {"reason":"because","version":3}"#,
    ];
    assert_eq!(written, expected);
}

#[test]
fn other_accounts_of_the_machine_read_nothing() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let mode = |path: &std::path::Path| {
        std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    };
    let mut folders = vec![home.data()];
    let mut files = 0;

    while let Some(folder) = folders.pop() {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        for found in std::fs::read_dir(&folder).expect("a folder") {
            let path = found.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files += 1;
                assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
            }
        }
    }

    assert!(files > 3, "{files} files");
    assert!(!server.errors().contains("other accounts"), "{}", server.errors());
    server.terminate();

    let wide = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.data(), wide).expect("it is ours");

    let server = home.start();
    assert!(server.errors().contains("other accounts of this machine may enter the data folder"));
}

//! A product that exists in these tests alone, added by one registration: it has a setting, a
//! consumer, a route, a page and a kind of document. Where adding a product needs more than its
//! registration, they fail.

mod sample;

use super::{Additions, Product};
use crate::serve::Server;
use crate::services::{Engines, Process, Startup, Surroundings};
use crate::settings::{Problem, Settings};
use metrics_exporter_prometheus::PrometheusBuilder;
use raingauge_core::access::{Role, Scope, Scopes};
use raingauge_core::time::format_rfc3339;
use raingauge_people::Origin;
use raingauge_people::accounts::Accounts;
use raingauge_people::invitations::Invitee;
use raingauge_people::tokens::TokenRequest;
use raingauge_settings::page;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use ureq::http::Response;

const PRODUCTS: &[Product] = &[sample::PRODUCT];

/// What a person or a program proves itself by.
#[derive(Clone, Copy)]
enum Proof<'a> {
    None,
    Token(&'a str),
    Cookie(&'a str),
}

/// A server in this process, over a folder of its own.
struct TestServer {
    runtime: Runtime,
    server: Server,
    agent: ureq::Agent,
}

impl TestServer {
    fn start(folder: &Path) -> Self {
        let settings = load(
            PRODUCTS,
            "[auth]\nrequired = true\n[portal]\napproval = true\n[sample]\ndrops_max = 5\n",
            &[
                ("RAINGAUGE__STORAGE__DATA_DIR", folder.to_str().unwrap()),
                ("RAINGAUGE__SERVER__LISTEN", "127.0.0.1:0"),
            ],
        );

        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let metrics = PrometheusBuilder::new().build_recorder().handle();
        let server = runtime.block_on(Server::start(&settings.unwrap(), metrics)).unwrap();
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        Self { runtime, server, agent }
    }

    fn stop(self) {
        self.runtime.block_on(self.server.stop()).unwrap();
    }

    /// Makes an account of this role, and returns its session.
    fn person(&self, name: &str, role: Role) -> String {
        let accounts = self.accounts();
        let invitee = Invitee { name: name.to_owned(), email: String::new(), role };
        self.runtime.block_on(async {
            let link = accounts.invite(invitee, "the test").await.unwrap();
            let secret = link.path.trim_start_matches("/welcome/");
            let password = "it rains on the roof";
            let admitted = accounts.welcome(secret, "", password, &Origin::default()).await;
            admitted.unwrap().session
        })
    }

    /// Makes a token of a person, and waits until the server knows it.
    fn token(&self, person: &str, scopes: &[Scope]) -> String {
        let name = format!("{person} {scopes:?}");
        let scopes: Scopes = scopes.iter().copied().collect();
        let request = TokenRequest { name, scopes, lifetime_s: None };
        let made = self.runtime.block_on(self.accounts().create_token(request, person));
        let token = made.unwrap().secret;
        self.wait_for_token(&token);
        token
    }

    fn wait_for_token(&self, token: &str) {
        while self.get("/v1/drafts", Proof::Token(token)).status() == 401 {}
    }

    fn accounts(&self) -> Accounts {
        let app = self.server.app();
        let people = Arc::clone(&app.people.store);
        Accounts::new(people, Arc::clone(&app.clock), app.people.options.clone())
    }

    fn get(&self, path: &str, proof: Proof<'_>) -> Response<ureq::Body> {
        let request = self.agent.get(format!("http://{}{path}", self.server.address));
        proof.on(request).call().unwrap()
    }

    /// Reads a JSON answer of this status.
    fn json(&self, path: &str, proof: Proof<'_>) -> Value {
        answer(self.get(path, proof), 200)
    }

    fn text(&self, path: &str, proof: Proof<'_>) -> String {
        let mut answer = self.get(path, proof);
        let text = answer.body_mut().read_to_string().unwrap();
        assert_eq!(answer.status(), 200, "{path}: {text}");
        text
    }

    /// Sends three events to the log.
    fn drop_three(&self, token: &str) {
        let time = format_rfc3339(self.server.app().clock.now_s());
        let event = |id: &str| {
            json!({
                "specversion": "1.0", "id": id, "source": "/roof", "type": "sample.drop",
                "time": time, "data": {},
            })
        };
        let lines = ["a", "b", "c"].map(|id| event(id).to_string()).join("\n");

        let request = self.agent.post(format!("http://{}/v1/events", self.server.address));
        let request = request.header("content-type", "application/x-ndjson");
        let taken = answer(Proof::Token(token).on(request).send(lines).unwrap(), 200);
        assert_eq!(taken["accepted"], 3, "{taken}");
    }

    fn post(
        &self,
        path: &str,
        token: &str,
        revision: Option<u64>,
        body: &Value,
    ) -> Response<ureq::Body> {
        let request = self.agent.post(format!("http://{}{path}", self.server.address));
        let request = request.header("content-type", "application/json").header("x-reason", "rain");
        let request = match revision {
            Some(revision) => request.header("if-match", format!("\"{revision}\"")),
            None => request,
        };
        Proof::Token(token).on(request).send(body.to_string()).unwrap()
    }
}

impl Proof<'_> {
    fn on<B>(self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        match self {
            Self::None => request,
            Self::Token(token) => request.header("authorization", format!("Bearer {token}")),
            Self::Cookie(session) => {
                request.header("cookie", format!("raingauge_session={session}"))
            }
        }
    }
}

fn answer(mut answer: Response<ureq::Body>, status: u16) -> Value {
    let text = answer.body_mut().read_to_string().unwrap();
    assert_eq!(answer.status(), status, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn load(
    products: &[Product],
    text: &str,
    variables: &[(&str, &str)],
) -> Result<Settings, Vec<Problem>> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("raingauge.toml");
    std::fs::write(&path, text).unwrap();
    let pair = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    Settings::load_with(products, Some(&path), variables.iter().map(pair), [])
}

/// Returns what products add to the doors of a process.
pub fn additions(products: &[Product]) -> Additions {
    let folder = TempDir::new().unwrap();
    let data_dir = [("RAINGAUGE__STORAGE__DATA_DIR", folder.path().to_str().unwrap())];
    let settings = load(products, "", &data_dir).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();

    let surroundings = Surroundings {
        address: settings.server.listen,
        metrics: Arc::new(String::new),
        draining: tokio::sync::watch::channel(false).1,
    };
    let (process, added) = runtime.block_on(async {
        let engines = Engines::open(&settings, &Startup::default()).await.unwrap();
        Process::assemble(engines, &settings, surroundings).await.unwrap()
    });
    process.close();
    added
}

#[test]
fn its_setting_is_read_checked_and_documented() {
    let wrong = load(PRODUCTS, "[sample]\ndrops_max = 0\ndrop_max = 1\n", &[]).unwrap_err();
    let said = |wrong: &Problem| format!("{}. {}", wrong.message, wrong.advice);
    let [range, name] = [&wrong[0], &wrong[1]].map(said);
    assert!(range.starts_with("0 is out of range. Give a whole number of drops from 1 to 1000"));
    assert_eq!(name, "there is no such key. Did you mean sample.drops_max?");

    let variable = [("RAINGAUGE__SAMPLE__DROPS_MAX", "many")];
    let wrong = load(PRODUCTS, "", &variable).unwrap_err();
    assert_eq!(wrong[0].origin.to_string(), "variable RAINGAUGE__SAMPLE__DROPS_MAX");
    assert!(load(PRODUCTS, "", &[("RAINGAUGE__SAMPLE__DROPS_MAX", "7")]).is_ok());

    // Without the registration, there is no such section.
    assert_eq!(load(&[], "[sample]\ndrops_max = 7\n", &[]).unwrap_err()[0].key, "sample");

    let rows: Vec<_> =
        Settings::groups_with(PRODUCTS).flat_map(|group| group.settings).map(page::row).collect();
    let expected = "| `sample.drops_max` | `100` | drops, 1 to 1000 | Most drops that are shown. |";
    assert_eq!(rows.last().map(String::as_str), Some(expected));
}

#[test]
fn events_reach_its_consumer_and_its_route_answers() {
    let folder = TempDir::new().unwrap();
    let running = TestServer::start(folder.path());
    running.person("zoe", Role::Editor);
    let reads = running.token("zoe", &[Scope::CountsRead]);
    let writes = running.token("zoe", &[Scope::EventsWrite]);

    let path = "/v1/sample/drops?atLeast=3";
    running.drop_three(&writes);
    assert_eq!(running.text(path, Proof::Token(&reads)), "3 of 5");
    assert_eq!(running.get(path, Proof::None).status(), 401);
    assert_eq!(running.get(path, Proof::Token(&writes)).status(), 403);

    let contract = running.json("/openapi.json", Proof::None);
    let operation = &contract["paths"]["/v1/sample/drops"]["get"];
    assert_eq!(operation["operationId"], "readDrops");
    assert_eq!(operation["security"], json!([{ "bearer": ["counts:read"] }]));

    // The consumer goes on where it committed last.
    running.stop();
    let running = TestServer::start(folder.path());
    running.wait_for_token(&reads);
    assert_eq!(running.text(path, Proof::Token(&reads)), "3 of 5");
    running.stop();
}

#[test]
fn its_page_is_in_the_navigation_of_its_role() {
    let folder = TempDir::new().unwrap();
    let running = TestServer::start(folder.path());
    let editor = running.person("zoe", Role::Editor);
    let viewer = running.person("max", Role::Viewer);
    let link = r#"<a href="/sample">Drops</a>"#;

    assert!(running.text("/", Proof::Cookie(&editor)).contains(link));
    assert!(!running.text("/", Proof::Cookie(&viewer)).contains(link));
    assert_eq!(running.get("/sample", Proof::Cookie(&viewer)).status(), 403);

    let page = running.text("/sample", Proof::Cookie(&editor));
    assert!(page.contains("0 of 5 drops"), "{page}");
    assert!(page.contains(r#"<a href="/sample" aria-current="page">Drops</a>"#), "{page}");
    running.stop();
}

#[test]
fn drafts_of_its_kind_are_shown_to_those_who_may_see_them() {
    let folder = TempDir::new().unwrap();
    let running = TestServer::start(folder.path());
    let editor = running.person("zoe", Role::Editor);
    let viewer = running.person("max", Role::Viewer);
    let token = running.token("zoe", &[Scope::CountersWrite, Scope::CountsRead]);
    let draft =
        json!({ "kind": "umbrella", "configuration": { "color": "red" }, "baseVersion": 0 });
    let id = answer(running.post("/v1/drafts", &token, None, &draft), 201)["id"].clone();

    let link = format!("href=\"/drafts/{id}\"");
    assert!(running.text("/drafts", Proof::Cookie(&editor)).contains(&link));
    assert!(!running.text("/drafts", Proof::Cookie(&viewer)).contains(&link));
    let path = format!("/drafts/{id}");
    assert!(running.text(&path, Proof::Cookie(&editor)).contains("red"));
    assert_eq!(running.get(&path, Proof::Cookie(&viewer)).status(), 404);
    running.stop();
}

#[test]
fn a_draft_of_its_kind_takes_effect_when_a_second_person_approves_it() {
    let folder = TempDir::new().unwrap();
    let running = TestServer::start(folder.path());
    let scopes = [Scope::CountersWrite, Scope::CountsRead];
    let [zoe, max] = ["zoe", "max"].map(|name| {
        running.person(name, Role::Editor);
        running.token(name, &scopes)
    });

    let mut draft =
        json!({ "kind": "umbrella", "configuration": { "color": "" }, "baseVersion": 0 });
    answer(running.post("/v1/drafts", &zoe, None, &draft), 422);
    draft["configuration"]["color"] = json!("red");
    let draft = answer(running.post("/v1/drafts", &zoe, None, &draft), 201);

    let decide = |draft: &Value, token: &str, what: &str| {
        let path = format!("/v1/drafts/{}/{what}", draft["id"]);
        running.post(&path, token, draft["revision"].as_u64(), &Value::Null)
    };
    let sent = answer(decide(&draft, &zoe, "submit"), 200);
    assert_eq!(decide(&sent, &zoe, "approve").status(), 403);

    let applied = answer(decide(&sent, &max, "approve"), 200);
    assert_eq!((&applied["state"], &applied["appliedVersion"]), (&json!("applied"), &json!(1)));
    running.stop();
}

//! The whole way from text to settings.

mod addresses;
mod anonymous;
mod documents;
mod kafka;
mod portal;

use super::*;
use raingauge_core::access::Scope;
use raingauge_people::tokens::new_token;
use raingauge_settings::{Kind, Setting, page};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Every setting, in the order of the documentation.
fn all() -> impl Iterator<Item = &'static Setting> {
    Settings::groups_with(PRODUCTS).flat_map(|group| group.settings)
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn variables(given: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    given
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect::<Vec<_>>()
        .into_iter()
}

/// A file of its own for each call, gone when the test is over.
struct ConfigurationFile(PathBuf);

impl ConfigurationFile {
    fn new(text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("{}.toml", new_token().0));
        fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for ConfigurationFile {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

fn load(text: &str, env: &[(&str, &str)]) -> Result<Settings, Vec<Problem>> {
    let file = ConfigurationFile::new(text);
    Settings::load(Some(&file.0), variables(env), [])
}

fn defaults() -> Settings {
    Settings::load(None, variables(&[]), []).unwrap()
}

/// Every problem as `line key: message. advice`, where line is 0 outside the file.
fn lines(problems: &[Problem]) -> Vec<String> {
    let line = |problem: &Problem| problem.origin.line().unwrap_or(0);
    problems
        .iter()
        .map(|problem| {
            format!("{} {}: {}. {}", line(problem), problem.key, problem.message, problem.advice)
        })
        .collect()
}

#[track_caller]
fn assert_starts(problems: &[Problem], expected: &[&str]) {
    let found = lines(problems);
    let same = found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, start)| found.starts_with(start));
    assert!(same, "found:\n{}\nexpected:\n{}", found.join("\n"), expected.join("\n"));
}

#[test]
fn the_defaults_stand_without_a_file() {
    let settings = defaults();
    assert_eq!(settings.server.listen, "127.0.0.1:8080".parse().unwrap());
    assert_eq!(settings.server.drain_timeout, Duration::from_secs(10));
    assert_eq!(settings.server.body_bytes_max, 33_554_432);
    assert_eq!(settings.storage.data_dir, Path::new("raingauge-data"));
    assert_eq!(settings.tiles.cache_bytes, 268_435_456);
    assert_eq!(settings.tiles.block_cache_bytes, 67_108_864);
    assert_eq!(settings.log.segment_bytes, 134_217_728);
    assert_eq!(settings.log.retention, Duration::from_secs(7 * 86_400));
    assert_eq!(settings.log.retention_bytes, 68_719_476_736);
    assert_eq!(settings.log.consumer_lag_bytes_max, 68_719_476_736);
    assert_eq!(settings.log.queue_bytes_max, 67_108_864);
    assert_eq!(settings.dedupe.window, Duration::from_secs(86_400));
    assert_eq!(settings.events.future_allowance, Duration::from_secs(300));
    assert_eq!(settings.auth.tokens, []);
    assert_eq!(settings.observe, Observe { log_level: "info", log_format: LogFormat::Text });
    assert_eq!(load("", &[]).unwrap(), settings);
}

#[test]
fn options_win_over_variables_and_variables_over_the_file() {
    let text =
        "[server]\nlisten = \"127.0.0.1:1\"\ndrain_timeout_s = 1_1\nconnections_max = 0x10\n";
    let file = ConfigurationFile::new(text);
    let env = [
        ("RAINGAUGE__SERVER__LISTEN", "localhost:2"),
        ("RAINGAUGE__SERVER__DRAIN_TIMEOUT_S", " 1_2 "),
        ("RAINGAUGE_CONFIG", "someone else's"),
        ("PATH", "/bin"),
    ];

    let option = ("server.listen", "--listen", "[::1]:0".to_owned());
    let settings = Settings::load(Some(&file.0), variables(&env), [option]).unwrap();
    assert_eq!(settings.server.listen, "[::1]:0".parse().unwrap());
    assert_eq!(settings.server.drain_timeout, Duration::from_secs(12));
    assert_eq!(settings.server.connections_max, 16);
    assert_eq!(load(text, &env).unwrap().server.listen, "127.0.0.1:2".parse().unwrap());
}

#[test]
fn every_key_can_be_set_by_its_variable_and_changes_the_settings() {
    let hash = new_token().1;
    for key in all() {
        let is_of_tls =
            key.section == "kafka" && (key.name == "tls" || key.name.ends_with("_file"));
        if is_of_tls && !cfg!(feature = "kafka-tls") {
            continue;
        }

        let value = match key.kind {
            Kind::Whole { default, .. } if key.name == "body_bytes_max" => {
                (default - 1).to_string()
            }
            Kind::Whole { default, .. } => (default + 1).to_string(),
            Kind::Address { .. } | Kind::OptionalAddress => "127.0.0.2:9".to_owned(),
            Kind::Folder { .. } => "/elsewhere".to_owned(),
            Kind::OneOf { words, .. } => words[1].to_owned(),
            Kind::Text { .. } if key.name == "roles" => "reader".to_owned(),
            Kind::Text { .. } if key.name == "schedule" => "0 3 * * *; 0 14 * * *".to_owned(),
            Kind::Text { .. } if key.name == "timezone" => "Asia/Singapore".to_owned(),
            Kind::Text { .. } if key.name == "experiment" => "0 at 0 times 2".to_owned(),
            Kind::Text { .. } if key.name == "public_url" => "https://rain.example".to_owned(),
            Kind::Text { .. } if key.name == "issuer" => "https://login.example".to_owned(),
            Kind::Text { .. } if key.name == "proxies" => "10.0.0.0/8".to_owned(),
            Kind::Text { .. } if key.name == "control_key" => "0123456789abcdef".repeat(2),
            Kind::Text { .. } if key.name == "groups" => "team=viewer".to_owned(),
            Kind::Text { .. } if key.name == "announce" => "redis.example:6380".to_owned(),
            Kind::Text { .. } if key.name == "nodes" => "redis.example:6380 0-16383".to_owned(),
            Kind::Text { .. } => "other".to_owned(),
            Kind::Switch { default } => (!default).to_string(),
            Kind::Tables => {
                format!("[{{ name = \"a\", sha256 = \"{hash}\", scopes = [\"admin\"] }}]")
            }
        };

        // Those that go together are given together.
        let mut given = vec![(key.variable(), value)];
        let is_for_others = [
            "portal.public_url",
            "portal.address_header",
            "portal.approval",
            "portal.passwords",
            "openid.issuer",
        ]
        .contains(&&*key.path());

        if is_for_others {
            given.push(("RAINGAUGE__AUTH__REQUIRED".to_owned(), "true".to_owned()));
        }
        let twins = [
            ("user", "password"),
            ("password", "user"),
            ("certificate_file", "key_file"),
            ("key_file", "certificate_file"),
            ("tls_certificate", "tls_key"),
            ("tls_key", "tls_certificate"),
        ];

        let twin = twins.iter().find(|(name, _)| *name == key.name).and_then(|(_, twin)| {
            all().find(|other| other.section == key.section && other.name == *twin)
        });
        given.extend(twin.map(|twin| (twin.variable(), "other".to_owned())));

        if is_of_tls && key.name != "tls" {
            given.push(("RAINGAUGE__KAFKA__TLS".to_owned(), "yes".to_owned()));
        }

        if key.name == "tls_client_ca" {
            given.push(("RAINGAUGE__SERVER__TLS_CERTIFICATE".to_owned(), "other".to_owned()));
            given.push(("RAINGAUGE__SERVER__TLS_KEY".to_owned(), "other".to_owned()));
        }

        if key.name == "roles" || key.path() == "points.kafka_topic" {
            given.push(("RAINGAUGE__CLUSTER__ENGINES".to_owned(), "cluster".to_owned()));
        }

        if key.name == "issuer" {
            given.push(("RAINGAUGE__OPENID__CLIENT_ID".to_owned(), "rain".to_owned()));
            given.push((
                "RAINGAUGE__PORTAL__PUBLIC_URL".to_owned(),
                "https://rain.example".to_owned(),
            ));
        }

        if key.name == "passwords" {
            given
                .push(("RAINGAUGE__OPENID__ISSUER".to_owned(), "https://login.example".to_owned()));
            given.push(("RAINGAUGE__OPENID__CLIENT_ID".to_owned(), "rain".to_owned()));
            given.push((
                "RAINGAUGE__PORTAL__PUBLIC_URL".to_owned(),
                "https://rain.example".to_owned(),
            ));
        }

        if given.iter().any(|(name, _)| name == "RAINGAUGE__PORTAL__PUBLIC_URL") {
            given.push(("RAINGAUGE__PORTAL__ADDRESS_HEADER".to_owned(), "none".to_owned()));
        }

        if key.path() == "resp.nodes" {
            given.push(("RAINGAUGE__RESP__CLUSTER".to_owned(), "static".to_owned()));
            given.push(("RAINGAUGE__RESP__ANNOUNCE".to_owned(), "redis.example:6380".to_owned()));
        }

        if key.path() == "cluster.catalog" {
            given
                .push(("RAINGAUGE__MYSQL__URL".to_owned(), "mysql://somewhere/catalog".to_owned()));
        }

        let given: Vec<(&str, &str)> =
            given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut settings = Settings::load(None, variables(&given), []).unwrap();
        settings.auth.required &= !is_for_others;
        assert_ne!(settings, defaults(), "{}", key.path());
    }
}

#[test]
fn the_ends_of_every_range_are_kept() {
    for key in all() {
        let Kind::Whole { min, max, .. } = key.kind else {
            continue;
        };
        let refused = |value: i128| {
            let result =
                Settings::load(None, variables(&[(&key.variable(), &value.to_string())]), []);
            result.is_err_and(|problems| {
                problems.iter().any(|problem| problem.message.contains("out of range"))
            })
        };

        assert!(!refused(min.into()) && !refused(max.into()), "{}", key.path());
        assert!(refused(i128::from(min) - 1) && refused(i128::from(max) + 1), "{}", key.path());
    }
}

#[test]
fn every_problem_is_reported_at_once_from_top_to_bottom() {
    let text = r#"
lisen = "127.0.0.1:8080"
[server]
listen = 8080
drain_timeout_ms = 10
request_timeout_s = "30"
connections_max = 1e3
data_dir = "here"
[storag]
data_dir = "there"
[storage]
tile_cache_bytes = -1
block_cache_bytes = 99999999999999999999999999999999999999999
[events]
future_allowance_s = 0.5
[completely.else]
where = 1
[observe]
log_format = "jsno"
"#;

    let env = [
        ("RAINGAUGE__LOG__RETENTION_HOURS", "a week"),
        ("RAINGAUGE__LOG__RETENTION_HUORS", "1"),
        ("RAINGAUGE__SERVER", "1"),
    ];

    let problems = load(text, &env).unwrap_err();
    assert_starts(
        &problems,
        &[
            "2 lisen: there is no such key. Did you mean server.listen?",
            "4 server.listen: this wants text in quotes and is a number. Give an IP address",
            "5 server.drain_timeout_ms: there is no such key. Did you mean server.drain_timeout_s?",
            "6 server.request_timeout_s: this wants a whole number and is text. Give a whole number of seconds from 1 to 3600",
            "7 server.connections_max: this wants a whole number and is a number with a point or an exponent",
            "8 server.data_dir: there is no such key. Did you mean storage.data_dir?",
            "9 storag: there is no such section. Did you mean [storage]?",
            "12 storage.tile_cache_bytes: -1 is out of range. Give a whole number of bytes from 1048576",
            "13 storage.block_cache_bytes: the number is too large",
            "15 events.future_allowance_s: this wants a whole number",
            "16 completely: there is no such section. Remove it",
            "19 observe.log_format: \"jsno\" is not one of its words. Did you mean \"json\"? Give one of text, json",
            "0 : no key of the configuration has this variable. Did you mean RAINGAUGE__LOG__RETENTION_HOURS?",
            "0 : no key of the configuration has this variable. Remove it",
            "0 log.retention_hours: \"a week\" is not a whole number. Give a whole number of hours",
        ],
    );
    assert!(
        problems[14]
            .to_string()
            .starts_with("log.retention_hours (variable RAINGAUGE__LOG__RETENTION_HOURS): ")
    );
    assert!(problems[1].to_string().contains(".toml:4): this wants"));
}

#[test]
fn mistakes_in_the_syntax_are_reported_with_the_rest() {
    let text = "[server]\nlisten = 0.0.0.0:80\ndrain_timeout_s = 0\ndrain_timeout_s = 5\n";
    let problems = load(text, &[("RAINGAUGE__LOG__SEGMENT_BYTES", "1 GiB")]).unwrap_err();
    let shown = lines(&problems).join("\n");
    assert!(shown.contains("2 : this is not TOML"), "{shown}");
    assert!(shown.contains("4 : this is not TOML: duplicate key"), "{shown}");
    assert!(shown.contains("0 log.segment_bytes: \"1 GiB\" is not a whole number"), "{shown}");
    assert!(!shown.contains("no such key") && !shown.contains("other machines"), "{shown}");
}

#[test]
fn a_file_that_cannot_be_read_does_not_hide_other_problems() {
    let env = [("RAINGAUGE__OBSERVE__LOG_LEVEL", "loud")];
    let problems = Settings::load(Some(Path::new("/nowhere/raingauge.toml")), variables(&env), [])
        .unwrap_err();
    assert_eq!(problems.len(), 2);
    assert!(
        problems[0]
            .to_string()
            .starts_with("/nowhere/raingauge.toml: the configuration cannot be opened")
    );
    assert_eq!(problems[1].key, "observe.log_level");
}

#[test]
fn the_clock_of_an_experiment_has_a_start_and_a_factor() {
    let given = |text: &str| load(&format!("[clock]\nexperiment = \"{text}\"\n"), &[]);
    let clock = given("2024-11-05T00:00:00Z at 2026-11-21T12:00:00Z times 600").unwrap().clock;
    let clock = clock.experiment.unwrap();
    assert_eq!(
        (clock.start_ms, clock.machine_start_ms, clock.factor),
        (1_730_764_800_000, 1_795_262_400_000, 600)
    );
    assert_eq!(given("").unwrap().clock.experiment, None);

    for wrong in [
        "600",
        "2024-11-05 at 0 times 600",
        "0 at 0 times 0",
        "0 at 0 times 3601",
        "0 at 0 times 2 times 2",
    ] {
        assert_starts(&given(wrong).unwrap_err(), &["2 clock.experiment: "]);
    }
}

#[test]
fn the_grpc_door_may_be_left_out() {
    let grpc = |value: &str| load(&format!("[server]\ngrpc_listen = {value}\n"), &[]);
    assert_eq!(defaults().server.grpc_listen, None);

    for none in ["\"\"", "\" \""] {
        assert_eq!(grpc(none).unwrap().server.grpc_listen, None);
    }
    assert_eq!(
        grpc("\"localhost:0\"").unwrap().server.grpc_listen,
        Some("127.0.0.1:0".parse().unwrap())
    );
    assert_starts(
        &grpc("\"nowhere\"").unwrap_err(),
        &[
            "2 server.grpc_listen: \"nowhere\" is not an address with a port. Give an IP address or localhost",
        ],
    );

    assert_starts(
        &grpc("9090").unwrap_err(),
        &["2 server.grpc_listen: this wants text in quotes and is a number"],
    );
}

#[test]
fn contradictions_blame_the_key_that_was_set() {
    let problems =
        load("[server]\nbody_bytes_max = 134217728\n[log]\nretention_bytes = 2097152\nconsumer_lag_bytes_max = 2097152\n", &[])
            .unwrap_err();
    assert_starts(
        &problems,
        &[
            "2 server.body_bytes_max: log.queue_bytes_max is 67108864, too small beside server.body_bytes_max",
            "4 log.retention_bytes: log.retention_bytes is 2097152, too small beside log.segment_bytes",
            "5 log.consumer_lag_bytes_max: log.consumer_lag_bytes_max is 2097152, too small beside log.segment_bytes",
        ],
    );
}

#[test]
fn tokens_are_read_and_know_their_scopes() {
    let (one, two) = (new_token().1, new_token().1);
    let text = format!(
        "[[auth.tokens]]\nname = \"ingest\"\nsha256 = \"{one}\"\nscopes = [\"events:write\"]\n\
         [[auth.tokens]]\nname = \"ops\"\nsha256 = \"{}\"\nscopes = [\"admin\", \"counts:read\"]\n",
        two.to_uppercase()
    );

    let tokens = load(&text, &[]).unwrap().auth.tokens;
    assert_eq!(
        tokens.iter().map(|token| token.name.as_str()).collect::<Vec<_>>(),
        ["ingest", "ops"]
    );
    assert_eq!(hex::encode(tokens[1].sha256), two);
    assert!(
        tokens[0].scopes.allow(Scope::EventsWrite) && !tokens[0].scopes.allow(Scope::CountsRead)
    );
    assert!(tokens[1].scopes.allow(Scope::CountersWrite));
}

#[test]
fn every_problem_of_the_tokens_is_reported_and_no_secret_is_repeated() {
    let (secret, hash) = new_token();
    let text = format!(
        "[auth]\ntokens = [\n\
         {{ name = \"\", sha256 = \"{secret}\", scopes = [] }},\n\
         {{ name = \"a\", sha256 = \"abc\", scopes = [\"counts:raed\", 7], color = 1 }},\n\
         {{ name = \"b\", sha256 = \"{hash}\", scopes = [\"admin\"] }},\n\
         {{ name = \"b\", sha256 = \"{hash}\", scopes = [\"admin\"] }},\n\
         \"{secret}\",\n\
         {{ }},\n]\n[server]\nplaintext = true\nlisten = \"0.0.0.0:80\"\n"
    );

    let problems = load(&text, &[]).unwrap_err();
    assert_starts(
        &problems,
        &[
            "3 auth.tokens[0].name: the name is empty",
            "3 auth.tokens[0].scopes: a token without scopes may do nothing",
            "3 auth.tokens[0].sha256: this is a token, where its hash belongs. Anyone who read this file may use it",
            "4 auth.tokens[1].color: a token has no such field. Its fields are name, sha256, scopes",
            "4 auth.tokens[1].scopes: \"counts:raed\" is no scope. Give a list of \"events:write\", \"counts:read\"",
            "4 auth.tokens[1].scopes: this wants text in quotes and is a number",
            "4 auth.tokens[1].sha256: this is not a SHA-256",
            "6 auth.tokens[3].name: another token has the same name",
            "7 auth.tokens[4]: this wants a table and is text",
            "8 auth.tokens[5].name: this field is missing",
            "8 auth.tokens[5].sha256: this field is missing",
            "8 auth.tokens[5].scopes: this field is missing",
        ],
    );
    assert!(!lines(&problems).join("\n").contains(&secret));
}

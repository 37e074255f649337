//! The command line: what people and scripts see of the commands that use a server or a folder.

use crate::client::{Client, at, drop_event, drops_counter};
use crate::server::{Home, until};
use crate::truth::demo;
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

const FROM: &str = "2024-09-24T12:00:00Z";
const TO: &str = "2024-09-24T13:00:00Z";

fn url(client: &Client) -> String {
    format!("http://{}", client.address)
}

#[test]
fn every_command_explains_itself() {
    let home = Home::new();
    let commands = [
        &["serve"][..],
        &["demo"],
        &["import"],
        &["count"],
        &["recount"],
        &["check-config"],
        &["token"],
        &["counters", "list"],
        &["counters", "get"],
        &["counters", "apply"],
        &["counters", "delete"],
    ];

    for command in commands {
        let ran = home.run(&[command, &["--help"]].concat());
        assert!(ran.status.success() && ran.output.contains("Example"), "{command:?}: {ran:?}");
    }

    let ran = home.run(&["--version"]);
    assert!(ran.output.starts_with("raingauge "), "{ran:?}");
    assert_eq!(home.run(&["nonsense"]).status.code(), Some(2));
}

#[test]
fn a_count_is_printed() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());
    server.count_events(&[
        drop_event("1", at(FROM), "oslo"),
        drop_event("2", at(FROM) + 900, "oslo"),
    ]);

    let url = url(&server);
    let ran = home.run(&["count", "drops:oslo", "--from", FROM, "--to", TO, "--server", &url]);
    assert_eq!((ran.status.code(), ran.output.trim()), (Some(0), "2"), "{ran:?}");

    let counted = home
        .run(&["count", "drops:oslo", "--from", FROM, "--to", TO, "--server", &url, "--json"])
        .json();
    assert_eq!((&counted["count"], &counted["key"]), (&json!(2), &json!("drops:oslo")));

    let recount = home
        .run(&["recount", "drops:oslo", "--from", FROM, "--to", TO, "--server", &url, "--json"])
        .json();
    assert_eq!(
        (&recount["stored"], &recount["recounted"], &recount["equal"]),
        (&json!(2), &json!(2), &json!(true))
    );

    let ran = home.run(&["count", "wind:oslo", "--from", FROM, "--to", TO, "--server", &url]);
    assert!(
        !ran.status.success() && ran.errors.contains("wind:oslo") && ran.output.is_empty(),
        "{ran:?}"
    );

    let ran = home.run(&["count", "drops:oslo", "--from", "soon", "--to", TO, "--server", &url]);
    assert_eq!(ran.status.code(), Some(2), "{ran:?}");

    // While a server holds the folder, no other process may work on it.
    let data = home.data().display().to_string();
    let count = ["count", "drops:oslo", "--from", FROM, "--to", TO, "--data-dir", &data];
    assert!(!home.run(&count).status.success());
    server.terminate();
    assert_eq!(home.run(&count).output.trim(), "2", "without a server the folder is asked itself");

    let ran = home.run(&["count", "drops:oslo", "--from", FROM, "--to", TO, "--server", &url]);
    assert!(
        !ran.status.success() && ran.errors.contains(&url),
        "it says who is not there: {ran:?}"
    );
}

#[test]
fn counters_are_applied_from_a_file() {
    let home = Home::new();
    let server = home.start();
    let url = url(&server);
    let file = demo("coffee.counters.yaml");
    let apply = |more: &[&str]| {
        home.run(&[&["counters", "apply", "--server", &url, "-f", &file, "--json"], more].concat())
    };

    apply(&["--dry-run"]).json();
    assert_eq!(server.get("/v1/counters").json()["counters"], json!([]), "nothing was done");
    apply(&["--reason", "the demo"]).json();

    let count = |client: &Client| {
        client.get("/v1/counters").json()["counters"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(count(&server), 6);
    assert_eq!(server.get("/v1/counters/150/versions").json()["versions"][0]["reason"], "the demo");
    apply(&[]).json();
    assert_eq!(
        server.get("/v1/counters/150").json()["version"],
        1,
        "the same again changes nothing"
    );

    let listed = home.run(&["counters", "list", "--server", &url, "--json"]).json();
    assert_eq!(listed["counters"].as_array().map(Vec::len), Some(6), "{listed}");

    let got = home.run(&["counters", "get", "150", "--server", &url, "--json"]).json();
    assert_eq!(got["template"], "coffee:presses");
    assert!(home.run(&["counters", "delete", "150", "--server", &url]).status.success());
    assert_eq!(server.get("/v1/counters/150").json()["state"], "archived");

    // One invalid counter prevents the creation of all others in its file.
    let wrong = home.path().join("wrong.yaml");
    std::fs::write(
        &wrong,
        "- {name: a, template: 'a:{x}', eventType: e}\n- {name: b, template: '{', eventType: e}\n",
    )
    .unwrap();

    let ran =
        home.run(&["counters", "apply", "--server", &url, "-f", &wrong.display().to_string()]);
    assert!(!ran.status.success() && ran.errors.contains("template"), "{ran:?}");
    assert_eq!(count(&server), 6);
}

#[test]
fn an_export_is_applied_again_after_its_differences_are_shown() {
    let home = Home::new();
    let other = Home::new();
    let server = home.start();
    let empty = other.start();
    let file = home.path().join("raingauge.yaml").display().to_string();

    let run = |server: &str, more: &[&str]| {
        home.run(&[&["counters"], more, &["--server", server]].concat())
    };
    let first = url(&server);
    assert!(run(&first, &["apply", "-f", &demo("coffee.counters.yaml")]).status.success());
    assert!(run(&first, &["delete", "151"]).status.success());

    let policy = [
        "cache-policy",
        "set",
        "--strategy",
        "result",
        "--rollout",
        "live:2:1",
        "--server",
        &first,
    ];

    assert!(home.run(&policy).status.success());

    std::fs::write(&file, run(&first, &["export"]).output).unwrap();
    let again = run(&first, &["apply", "-f", &file, "--json"]).json();
    let unchanged = again["counters"]
        .as_array()
        .unwrap()
        .iter()
        .all(|outcome| outcome["action"] == "unchanged");

    assert!(unchanged, "{again}");
    assert!(run(&url(&empty), &["apply", "-f", &file]).status.success());

    let counters = |server: &Client| {
        let answer = server.get("/v1/counters").json();
        let living = answer["counters"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|found| found["state"] != "archived");
        living.map(|found| (found["id"].clone(), found["template"].clone())).collect::<Vec<_>>()
    };

    assert_eq!(counters(&server), counters(&empty));
    assert_eq!(counters(&empty).len(), 5);
    assert_eq!(
        empty.get("/v1/cache-policy").json()["rollout"],
        json!([{"strategy": "live", "modulo": 2, "below": 1}])
    );

    let edited = std::fs::read_to_string(&file).unwrap().replace("owner: coffee", "owner: kitchen");
    std::fs::write(&file, edited.replace("strategy: result", "strategy: phased")).unwrap();

    let told = run(&first, &["apply", "-f", &file, "--dry-run"]);
    assert!(told.output.contains("Owner: coffee → kitchen"), "{told:?}");
    assert!(told.output.contains("would be changed") && told.output.contains("phased"), "{told:?}");
    assert_eq!(server.get("/v1/counters/150").json()["owner"], "coffee", "nothing was done");
}

/// The pages export exactly what the command writes, and it is what the server has.
#[test]
fn what_the_pages_export_changes_nothing_when_it_is_applied() {
    let home = Home::with(&[("portal.sign_in", "false")]);
    let server = home.start();
    let url = url(&server);
    let run = |more: &[&str]| home.run(&[&["counters"], more, &["--server", &url]].concat());

    for counters in ["coffee.counters.yaml", "taxi.counters.yaml"] {
        assert!(run(&["apply", "-f", &demo(counters)]).status.success());
    }
    let mut odd = drops_counter();
    odd["name"] = json!("no");
    odd["description"] = json!("- first: \"1e3\"\n\n  # second\n☔ ");
    odd["filter"] =
        json!({ "operator": "in", "lhs": "data.city", "rhs": ["yes", "0x1", "~", 1, -2.5, true] });
    server.create(odd);

    let policy =
        ["cache-policy", "set", "--strategy", "result", "--rollout", "live:2:1", "--server", &url];
    assert!(home.run(&policy).status.success());

    let exported = server.get("/settings.yaml").text();
    assert_eq!(exported, run(&["export"]).output);
    assert_eq!(server.get("/counters/34/counter.yaml").text(), run(&["get", "34"]).output);

    let file = home.path().join("raingauge.yaml");
    for text in [exported, server.get("/counters/34/counter.yaml").text()] {
        std::fs::write(&file, text).unwrap();
        let told = run(&["apply", "--dry-run", "-f", &file.display().to_string()]);
        assert_eq!(told.output.lines().last(), Some("no changes"), "{told:?}");
    }
}

#[test]
fn a_token_that_is_made_opens_a_server_that_knows_it() {
    let mut home = Home::new();
    let made = home.run(&["token", "--name", "ops", "--json"]).json();
    let token = made["token"].as_str().unwrap().to_owned();
    let hash = made["sha256"].as_str().unwrap();
    let config = home.path().join("raingauge.toml");

    let lines =
        format!("[[auth.tokens]]\nname = \"ops\"\nsha256 = \"{hash}\"\nscopes = [\"admin\"]\n");
    std::fs::write(&config, lines).unwrap();

    let config = config.display().to_string();
    let data = home.data().display().to_string();
    assert!(home.run(&["check-config", "--config", &config]).status.success());

    let arguments = ["serve", "--config", &config, "--data-dir", &data, "--listen", "127.0.0.1:0"]
        .map(str::to_owned);
    let server = home.try_start_with(&arguments).expect("the configuration is good");
    server.get("/v1/counters").expect_problem(401, "token_missing");
    assert_eq!(server.with_token(&token).get("/v1/counters").status, 200);

    let url = url(&server);
    assert!(!home.run(&["counters", "list", "--server", &url]).status.success());
    assert!(home.run(&["counters", "list", "--server", &url, "--token", &token]).status.success());
    home.set("server.listen", "nowhere");

    let ran = home.run(&["check-config", "--config", &config]);
    assert!(!ran.status.success() && ran.errors.contains("server.listen"), "{ran:?}");
}

/// Rows that cannot be events are kept with their line numbers and reasons; the others are counted.
#[test]
fn rejected_rows_are_kept_with_their_lines() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let file = home.path().join("drops.csv");
    std::fs::write(
        &file,
        "when,city\n2024-09-24 12:00:00,oslo\nyesterday,oslo\n,oslo\n2024-09-24 12:00:01,\"a\nb\"\nbad,x\n",
    )
    .unwrap();

    let mapping = home.path().join("drops.toml");
    std::fs::write(&mapping, "format = \"csv\"\ntype = \"drop\"\nsource = \"file\"\n[time]\ncolumn = \"when\"\nformat = \"%Y-%m-%d %H:%M:%S\"\ntimezone = \"UTC\"\n").unwrap();

    let rejected = home.path().join("rejected.csv");
    let [file, mapping, rejected] =
        [&file, &mapping, &rejected].map(|path| path.display().to_string());
    let url = url(&server);
    let import = [
        "import",
        &file,
        "--mapping",
        &mapping,
        "--rejected",
        &rejected,
        "--server",
        &url,
        "--json",
    ];

    let imported = home.run(&import).json();
    assert_eq!(
        (&imported["rows"], &imported["accepted"], &imported["rejected"]),
        (&json!(5), &json!(2), &json!(3))
    );
    assert_eq!(
        server.counts(&["drops:oslo", "drops:a%0Ab"].map(|key| (key, at(FROM), at(TO)))),
        [1, 1]
    );

    let kept = std::fs::read_to_string(&rejected).unwrap();
    for line in ["3", "4", "7"] {
        assert!(
            kept.lines().any(|row| row.split(',').any(|cell| cell.trim_matches('"') == line)),
            "line {line} is not in:\n{kept}"
        );
    }

    // The same file again holds nothing but duplicates.
    let again = home.run(&import).json();
    assert_eq!((&again["accepted"], &again["duplicates"]), (&json!(0), &json!(2)));
}

/// An import that is killed, or whose server is, continues where it stopped and counts every row
/// once.
#[test]
fn an_interrupted_import_goes_on_and_counts_nothing_twice() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let rows = 200_000;
    let file = home.path().join("drops.csv");
    let mut out = std::io::BufWriter::new(std::fs::File::create(&file).unwrap());
    writeln!(out, "when,city").unwrap();
    (0..rows)
        .for_each(|row| writeln!(out, "2024-09-24 12:00:{:02},c{}", row % 60, row % 7).unwrap());
    out.into_inner().unwrap();

    let mapping = home.path().join("drops.toml");
    std::fs::write(&mapping, "format = \"csv\"\ntype = \"drop\"\nsource = \"file\"\n[time]\ncolumn = \"when\"\nformat = \"%Y-%m-%d %H:%M:%S\"\ntimezone = \"UTC\"\n").unwrap();

    let total = |client: &Client| -> i64 {
        let keys: Vec<String> = (0..7).map(|city| format!("drops:c{city}")).collect();
        client
            .counts(&keys.iter().map(|key| (key.as_str(), at(FROM), at(TO))).collect::<Vec<_>>())
            .iter()
            .sum()
    };

    let arguments = |client: &Client| {
        let [file, mapping] = [&file, &mapping].map(|path| path.display().to_string());
        ["import", &file, "--mapping", &mapping, "--server", &url(client), "--json"]
            .map(str::to_owned)
    };

    let spawn = |client: &Client| {
        let mut command = home.command(&arguments(client));
        command
            .current_dir(home.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };

    // First the import is killed, then the server under it.
    let mut import = spawn(&server);
    until("some rows are in", || (total(&server) > 0).then_some(()));
    import.kill().unwrap();
    import.wait().unwrap();

    let before = total(&server);
    let mut import = spawn(&server);
    until("more rows are in", || (total(&server) > before || before == rows).then_some(()));
    server.kill();
    import.wait().unwrap();

    let server = home.start();
    let arguments: Vec<String> = arguments(&server).to_vec();
    let finished: Value =
        home.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).json();
    assert_eq!(finished["rows"], rows, "{finished}");
    assert_eq!(total(&server), rows);
}

/// The demo answers from real data, in one command.
#[test]
fn the_demo_answers_and_ends() {
    let home = Home::new();
    let shown = home.run(&["demo", "--once", "--listen", "127.0.0.1:0", "--json"]).json();
    let answers = shown["answers"].as_array().expect("answers");
    assert!(answers.len() >= 5, "{shown}");
    assert!(shown.to_string().contains("487"), "the worked example is among them: {shown}");
}

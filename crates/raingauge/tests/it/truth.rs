//! The truth: real public data, imported by the command, queried over HTTP. Another tool computed
//! the answers.

use crate::client::Client;
use crate::server::{Home, Ran, Server};
use serde_json::Value;
use std::path::PathBuf;

/// The extracts, their mappings and counters, and the answers over them.
pub fn demo(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../demo").join(name);
    path.canonicalize()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .display()
        .to_string()
}

pub fn truth() -> Value {
    let text =
        std::fs::read_to_string(demo("truth-extracts.json")).expect("the answers can be read");
    serde_json::from_str(&text).expect("the answers are JSON")
}

pub fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("there are {name}"))
}

pub fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} is a text in {value}"))
}

pub fn number(value: &Value, name: &str) -> i64 {
    value[name].as_i64().unwrap_or_else(|| panic!("{name} is a number in {value}"))
}

/// Creates the counters of every extract.
pub fn create_counters(home: &Home, truth: &Value, place: &[&str]) {
    for import in list(truth, "imports") {
        let file = demo(text(import, "counters"));
        home.run(&[&["counters", "apply", "--json", "-f", &file], place].concat()).json();
    }
}

/// Creates the counters of every extract and imports it; what the import reports is checked.
fn import_all(home: &Home, truth: &Value, place: &[&str]) {
    let run = |command: &[&str]| -> Ran { home.run(&[command, place].concat()) };
    create_counters(home, truth, place);
    for import in list(truth, "imports") {
        let file = demo(text(import, "file"));
        let mapping = demo(text(import, "mapping"));
        let imported = run(&["import", &file, "--mapping", &mapping, "--json"]).json();
        for name in ["rows", "accepted", "duplicates"] {
            assert_eq!(imported[name], import[name], "{name} of {mapping}: {imported}");
        }
        assert_eq!(imported["rejected"], 0, "{imported}");
    }
}

/// Compares every answer.
pub fn ask_everything(client: &Client, truth: &Value) {
    let questions = list(truth, "questions");
    assert!(questions.len() > 600);

    let mut wrong = Vec::new();
    for chunk in questions.chunks(500) {
        let ranges: Vec<(&str, i64, i64)> = chunk
            .iter()
            .map(|question| {
                (text(question, "key"), number(question, "fromTime"), number(question, "toTime"))
            })
            .collect();
        for (question, result) in chunk.iter().zip(client.results(&ranges)) {
            if result["count"] != question["count"] {
                wrong.push(format!("{question} was answered {result}"));
            }
        }
    }

    for question in list(truth, "series") {
        let key = text(question, "key")
            .replace('%', "%25")
            .replace('&', "%26")
            .replace('+', "%2B")
            .replace(' ', "%20");

        let path = format!(
            "/v1/series?key={key}&fromTime={}&toTime={}&granularity={}&timezone={}",
            question["fromTime"],
            question["toTime"],
            text(question, "granularity"),
            text(question, "timezone")
        );

        let series = client.get(&path).expect(200);
        if series["points"] != question["points"] {
            wrong.push(format!("{question} was answered {series}"));
        }
    }

    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_question_about_the_extracts_is_answered_as_another_tool_does() {
    let home = Home::new();
    let truth = truth();
    let server: Server = home.start();
    import_all(&home, &truth, &["--server", &format!("http://{}", server.address)]);
    ask_everything(&server, &truth);
    // The same answers come from the disk alone, after a crash.
    server.kill();
    ask_everything(&home.start(), &truth);
}

/// Without a server the import works on the folder itself, and a server over it answers the same.
#[test]
fn an_import_into_a_folder_counts_the_same() {
    let home = Home::new();
    let truth = truth();
    let data = home.data().display().to_string();
    import_all(&home, &truth, &["--data-dir", &data]);
    ask_everything(&home.start(), &truth);
}

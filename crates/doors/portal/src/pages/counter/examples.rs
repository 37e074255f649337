//! The page's query as client code, to copy.

use super::answer::ChartData;
use crate::html::parts;
use axum::http::{HeaderMap, header};
use maud::{Markup, html};
use raingauge_core::counter::Counter;
use raingauge_people::Principal;
use serde_json::json;

/// The address of this server as the client reached it.
fn origin(headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_plain = |host: &&str| {
        host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte))
    };
    let host = text(header::HOST.as_str()).filter(is_plain).unwrap_or("localhost:8080");
    let scheme = if text("x-forwarded-proto") == Some("https") { "https" } else { "http" };
    format!("{scheme}://{host}")
}

/// Quotes one argument for a POSIX shell.
fn quoted(argument: &str) -> String {
    format!("'{}'", argument.replace('\'', r"'\''"))
}

pub fn panel(
    headers: &HeaderMap,
    person: &Principal,
    shown: Option<&ChartData>,
    counter: &Counter,
) -> Markup {
    let key = shown
        .and_then(|shown| shown.rows.first())
        .map_or(counter.template.as_str(), |row| row.key.as_str());
    let (from_s, to_s) = shown.map_or((0, 0), |shown| (shown.window.from_s, shown.window.to_s));
    let origin = origin(headers);

    // A person who need not sign in needs no token either. A token itself never appears in an
    // example, because people paste examples into chats.
    let needs_token = &*person.name != "anonymous";
    html! {
        section.card #examples aria-labelledby="examples-title" {
            h2 id="examples-title" { "Ask from a program" }
            @if needs_token { p.quiet { "Put a token with the scope " code { "counts:read" } " into the variable " code { "RAINGAUGE_TOKEN" } "." } }
            h3 { "curl" }
            (parts::command(&curl(&origin, key, from_s, to_s, needs_token)))
            h3 { "Python" }
            (parts::command(&python(&origin, key, from_s, to_s, needs_token)))
            h3 { "gRPC" }
            (parts::command(&grpc(&origin, key, from_s, to_s, needs_token)))
        }
    }
}

fn curl(origin: &str, key: &str, from_s: i64, to_s: i64, needs_token: bool) -> String {
    let token =
        if needs_token { " -H \"Authorization: Bearer $RAINGAUGE_TOKEN\" \\\n " } else { "" };
    let place = quoted(&format!("{origin}/v1/counts"));
    let key = quoted(&format!("key={key}"));
    format!(
        "curl -G {place} \\\n {token} --data-urlencode {key} \\\n  -d fromTime={from_s} -d toTime={to_s}"
    )
}

/// Uses only the standard library of Python.
fn python(origin: &str, key: &str, from_s: i64, to_s: i64, needs_token: bool) -> String {
    let token = if needs_token {
        ",\n             \"Authorization\": f\"Bearer {os.environ['RAINGAUGE_TOKEN']}\""
    } else {
        ""
    };

    let os = if needs_token { "import os\n" } else { "" };

    // A JSON string is a valid Python string too.
    let place = json!(format!("{origin}/v1/counts"));
    let key = json!(key);
    format!(
        "import json\n{os}from urllib.request import Request, urlopen\n\n\
         ranges = [{{\"key\": {key},\n           \"fromTime\": {from_s}, \"toTime\": {to_s}}}]\n\
         request = Request(\n    {place},\n    data=json.dumps({{\"requests\": ranges}}).encode(),\n    \
         headers={{\"Content-Type\": \"application/json\"{token}}})\n\
         with urlopen(request) as answer:\n    for result in json.load(answer)[\"results\"]:\n        print(result)"
    )
}

fn grpc(origin: &str, key: &str, from_s: i64, to_s: i64, needs_token: bool) -> String {
    let host = origin.split("://").nth(1).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let token =
        if needs_token { "-H \"authorization: Bearer $RAINGAUGE_TOKEN\" \\\n  " } else { "" };
    let question =
        json!({ "requests": [{ "key": key, "from_time": from_s, "to_time": to_s }] }).to_string();
    format!(
        "# where server.grpc_listen opens the door\ngrpcurl -plaintext {token}-d {} \\\n  {name}:9090 raingauge.v1.Counts/Batch",
        quoted(&question)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_cannot_leave_its_quotes() {
        assert_eq!(quoted("a'b"), r"'a'\''b'");
        let command = curl("http://h", "a'; rm -rf /;'", 1, 2, false);
        assert!(command.contains(r"'key=a'\''; rm -rf /;'\'''"), "{command}");
        let program = python("http://h", "a\"\n", 1, 2, true);
        assert!(
            program.contains(r#""key": "a\"\n","#) && program.contains("RAINGAUGE_TOKEN"),
            "{program}"
        );
    }

    #[test]
    fn a_strange_host_is_not_repeated() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "a'b.example".parse().expect("a header"));
        assert_eq!(origin(&headers), "http://localhost:8080");
        headers.insert(header::HOST, "gauge.example:8443".parse().expect("a header"));
        headers.insert("x-forwarded-proto", "https".parse().expect("a header"));
        assert_eq!(origin(&headers), "https://gauge.example:8443");
    }
}

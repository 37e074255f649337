//! A small HTTP client, and the calls that many tests make.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use ureq::http::{HeaderMap, Request};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Longest wait for one answer.
const TIMEOUT: Duration = Duration::from_secs(60);
const ANSWER_BYTES_MAX: u64 = 256 << 20;

#[derive(Clone)]
pub struct Client {
    pub address: String,
    scheme: &'static str,
    agent: ureq::Agent,
    token: Option<String>,
}

/// Any answer of the server, including errors.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Client {
    pub fn new(address: &str) -> Self {
        Self::with(address, "http", TlsConfig::default())
    }

    /// Over TLS, with an authority in PEM.
    pub fn https(address: &str, authority: &[u8]) -> Self {
        let authority = Certificate::from_pem(authority).expect("PEM");
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&[authority]))
            .unversioned_rustls_crypto_provider(Arc::new(
                rustls::crypto::aws_lc_rs::default_provider(),
            ));
        Self::with(address, "https", tls.build())
    }

    fn with(address: &str, scheme: &'static str, tls: TlsConfig) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .tls_config(tls)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(TIMEOUT))
            .build();
        Self { address: address.to_owned(), scheme, agent: config.into(), token: None }
    }

    /// The same server, called with a token.
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// Sends a request; an error is one of the connection.
    pub fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, ureq::Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}://{}{path}", self.scheme, self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }

        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let has_body = matches!(method, "POST" | "PUT");
        let answer = if has_body {
            self.agent.run(request.body(body)?)
        } else {
            self.agent.run(request.body(())?)
        };

        let (head, body) = answer?.into_parts();
        let body = body.into_with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
    }

    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_send(method, path, headers, body)
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(
            "POST",
            path,
            &[("content-type", "application/json")],
            body.to_string().as_bytes(),
        )
    }

    /// Creates a counter, which counts when this returns.
    pub fn create(&self, counter: Value) -> Value {
        self.post("/v1/counters", &counter).expect(201)
    }

    /// Sends lines of events; they are counted when this returns.
    pub fn count_events(&self, events: &[Value]) -> Value {
        self.lines("/v1/events?wait=applied", events).expect(200)
    }

    pub fn lines(&self, path: &str, events: &[Value]) -> Answer {
        let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
        self.send("POST", path, &[("content-type", "application/x-ndjson")], lines.as_bytes())
    }

    /// The answers to a batch of ranges `(key, from, to)`.
    pub fn results(&self, ranges: &[(&str, i64, i64)]) -> Vec<Value> {
        let requests: Vec<Value> = ranges
            .iter()
            .map(|(key, from, to)| json!({"key": key, "fromTime": from, "toTime": to}))
            .collect();
        let answer = self.post("/v1/counts", &json!({"requests": requests})).expect(200);
        answer["results"].as_array().expect("results").clone()
    }

    pub fn counts(&self, ranges: &[(&str, i64, i64)]) -> Vec<i64> {
        let results = self.results(ranges);
        let counts = results
            .iter()
            .map(|result| result["count"].as_i64().unwrap_or_else(|| panic!("{result}")));
        counts.collect()
    }

    pub fn count(&self, key: &str, from: i64, to: i64) -> i64 {
        self.counts(&[(key, from, to)])[0]
    }

    /// Returns one metric, its labels written out; 0 if it is missing.
    pub fn metric(&self, series: &str) -> f64 {
        let page = self.get("/metrics").text();
        let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().expect("a number"))
    }

    /// Sends raw bytes and reads until the server closes the connection.
    pub fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("the server takes connections");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout can be set");
        stream.write_all(bytes).expect("the request can be sent");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The body of an answer with this status.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()
    }

    /// The body of a problem document (RFC 9457), whose parts are checked.
    #[track_caller]
    pub fn expect_problem(&self, status: u16, code: &str) -> Value {
        let problem = self.expect(status);
        assert_eq!(self.header("content-type"), "application/problem+json", "{problem}");
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        assert_eq!(problem["type"], format!("urn:raingauge:problem:{code}"));
        assert!(problem["title"].as_str().is_some_and(|title| !title.is_empty()), "{problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{problem}");
        problem
    }
}

/// An event of type `drop` at a city; a producer's retry has the same `id`.
pub fn drop_event(id: &str, time_s: i64, city: &str) -> Value {
    event("drop", id, time_s, json!({"city": city}))
}

pub fn event(kind: &str, id: &str, time_s: i64, data: Value) -> Value {
    json!({"specversion": "1.0", "id": id, "source": "tests", "type": kind, "time": rfc3339(time_s), "data": data})
}

/// A counter of drops by city that keeps everything for ever.
pub fn drops_counter() -> Value {
    json!({"id": 34, "name": "drops", "template": "drops:{city}", "eventType": "drop", "retentionDays": forever()})
}

/// The retention of history.
pub fn forever() -> Value {
    json!({"quarter": null, "hour": null, "day": null})
}

pub fn now_s() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a clock after 1970")
        .as_secs() as i64
}

/// RFC 3339 in UTC, by the calendar of the core, which has tests of its own.
pub fn rfc3339(time_s: i64) -> String {
    raingauge_core::time::format_rfc3339(time_s)
}

/// Seconds since 1970 of RFC 3339.
pub fn at(text: &str) -> i64 {
    raingauge_core::time::parse_time_s(text).unwrap_or_else(|| panic!("{text} is not a time"))
}

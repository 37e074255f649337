//! Asks services and databases, once.

use raingauge_campaigns::documents::{Lookup, LookupSource};
use raingauge_ports::campaigns::sender::{Method, Request, Response, SendError, Sender};
use raingauge_ports::campaigns::{DatabaseError, DatabaseLookup};
use serde_json::Value as Json;
use std::sync::Arc;
use std::time::Duration;

/// Most bytes of an answer. It may become part of a decision's evidence.
const ANSWER_LEN_MAX: usize = 16 * 1024;
const ACCEPT: (&str, &str) = ("accept", "application/json");

pub struct Engines {
    pub sender: Arc<dyn Sender>,
    pub databases: Arc<dyn DatabaseLookup>,
}

/// Why there is no answer.
pub struct Failure {
    pub why: String,
    /// Whether it speaks against the service or the database as a whole.
    pub is_outage: bool,
}

impl Engines {
    /// Asks for one key. Something that is not there is null.
    pub async fn ask(&self, lookup: &Lookup, key: &str) -> Result<Json, Failure> {
        match lookup.class {
            LookupSource::Http => self.ask_service(lookup, key).await,
            LookupSource::Db => self.ask_database(lookup, key).await,
        }
    }

    async fn ask_service(&self, lookup: &Lookup, key: &str) -> Result<Json, Failure> {
        let request = Request {
            method: Method::Get,
            url: lookup.url_of(key).unwrap_or_default(),
            headers: vec![(ACCEPT.0, ACCEPT.1.to_owned())],
            body: Vec::new(),
            timeout: Duration::from_millis(lookup.timeout_ms),
            response_len_max: ANSWER_LEN_MAX,
            allow_private: lookup.allow_private,
        };
        let sent = self.sender.send(&request).await;
        answer_of(sent.map_err(outage)?)
    }

    async fn ask_database(&self, lookup: &Lookup, key: &str) -> Result<Json, Failure> {
        let connection = lookup.connection.as_deref().unwrap_or_default();
        let sql = lookup.sql.as_deref().unwrap_or_default();
        let timeout = Duration::from_millis(lookup.timeout_ms);
        let row = self.databases.row(connection, sql, key, timeout).await;
        let row = row.map_err(|error| {
            let is_outage = !matches!(error, DatabaseError::Refused(_));
            Failure { why: error.to_string(), is_outage }
        })?;

        let answer = row.map_or(Json::Null, Json::Object);
        if answer.to_string().len() > ANSWER_LEN_MAX {
            return Err(too_long());
        }
        Ok(answer)
    }
}

fn outage(error: SendError) -> Failure {
    // An address that requests must not be sent to is no fault of the service.
    let is_outage = !matches!(error, SendError::Address | SendError::Private { .. });
    Failure { why: error.to_string(), is_outage }
}

fn too_long() -> Failure {
    let why = format!("its answer has more than {ANSWER_LEN_MAX} bytes");
    Failure { why, is_outage: false }
}

fn answer_of(response: Response) -> Result<Json, Failure> {
    match response.status {
        200..=299 if response.is_cut => Err(too_long()),
        204 => Ok(Json::Null),
        200..=299 => serde_json::from_slice(&response.body)
            .map_err(|_| Failure { why: "its answer is no JSON".to_owned(), is_outage: false }),
        404 | 410 => Ok(Json::Null),
        status => Err(Failure {
            why: format!("it answered with status {status}"),
            is_outage: status == 429 || status >= 500,
        }),
    }
}

//! raingauge itself, driven by the same loop and over the same kind of connection as its peers:
//! JSON over HTTP.

use super::Writes;
use super::client::{Client, Mode, Peer};
use super::http::{self, Connection};
use super::question::Question;
use crate::counts::{self, Answer};
use crate::events::{RenderedBody, check_receipt};
use crate::http::{JSON, NDJSON};
use crate::server::Lab;
use crate::workload::{Workload, key_of};
use anyhow::{Context, Result};
use raingauge_console::encoded;
use serde::Deserialize;
use std::cell::RefCell;
use std::collections::HashMap;

/// Bodies rendered per connection; they are reused in turn, each time with new ids.
const BODIES: u64 = 5;

pub struct Raingauge {
    pub port: u16,
    pub lab: RefCell<Lab>,
}

pub struct Handle {
    connection: Connection,
    bodies: HashMap<u64, RenderedBody>,
}

#[derive(Deserialize)]
struct Series {
    points: Vec<Point>,
}

#[derive(Deserialize)]
struct Point {
    count: i64,
}

pub struct Asking {
    request: Vec<u8>,
    is_series: bool,
}

impl Client for Handle {
    type Asking = Asking;

    fn prepare(question: &Question) -> Asking {
        match question {
            Question::Counts(ranges) => {
                let body = counts::body(ranges);
                Asking {
                    request: http::post("/v1/counts", JSON, body.as_bytes()),
                    is_series: false,
                }
            }
            Question::Series(days, _) => {
                let key = encoded(&key_of(days.city)).to_string();
                let from_s = days.from_s;
                let to_s = days.to_s;
                let path =
                    format!("/v1/series?key={key}&fromTime={from_s}&toTime={to_s}&granularity=day");

                Asking { request: http::get(&path), is_series: true }
            }
        }
    }

    async fn ask(&mut self, asking: &Asking) -> Result<Vec<i64>> {
        let body = self.connection.call(&asking.request).await?;
        if asking.is_series {
            let series: Series = sonic_rs::from_slice(&body)?;
            return Ok(series.points.iter().map(|point| point.count).collect());
        }
        let answer: Answer = sonic_rs::from_slice(&body)?;
        let count =
            |item: &counts::Item| item.count.with_context(|| format!("no count of {}", item.key));
        answer.results.iter().map(count).collect()
    }

    async fn write(&mut self, writes: &Writes, turn: u64) -> Result<u64> {
        let head = |length| http::head("/v1/events", NDJSON, length);
        let body = self
            .bodies
            .entry(turn % BODIES)
            .or_insert_with_key(|&place| RenderedBody::new(writes.batch(place), head));
        writes.renew(body);
        let answer = self.connection.call(&body.bytes).await?;
        check_receipt(&answer, body.events())
    }
}

impl Peer for Raingauge {
    type Client = Handle;

    fn how(&self) -> &'static str {
        "POST /v1/counts and GET /v1/series, JSON over HTTP"
    }

    fn modes(&self) -> Vec<Mode> {
        vec![Mode::new("POST /v1/events, NDJSON", 10_000, 4).durable().exactly_once()]
    }

    async fn connect(&self) -> Result<Handle> {
        Ok(Handle { connection: Connection::open(self.port).await?, bodies: HashMap::new() })
    }

    async fn load(&self, workload: &Workload) -> Result<()> {
        self.lab.borrow_mut().load_history(workload)?;
        Ok(())
    }

    /// Changed tiles are written to disk every two seconds.
    async fn settle(&self) -> Result<()> {
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        Ok(())
    }

    async fn total(&self) -> Result<i64> {
        self.lab.borrow_mut().total()
    }
}

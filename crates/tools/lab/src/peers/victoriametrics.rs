//! VictoriaMetrics: every event is a sample of its key's series at the event's time, imported as
//! JSON lines with many samples, and `count_over_time` counts the samples of a window.
//!
//! It does not identify events: two at the same time are two samples only because deduplication is
//! off, and an event that is sent twice counts twice. Samples become visible some seconds after the
//! acknowledgement.

use super::Writes;
use super::client::{Client, Mode, Peer};
use super::http::{self, Asking, Connection};
use super::question::Question;
use crate::events::Drop;
use crate::plan::DAY_S;
use crate::workload::{Range, Workload, key_of};
use anyhow::{Context, Result, ensure};
use raingauge_console::encoded;
use serde::Deserialize;
use std::fmt::Write;
use std::time::Duration;

const FORM: &str = "application/x-www-form-urlencoded";
/// Samples per request while the history is loaded.
const LOAD_SAMPLES: usize = 50_000;
/// How long visible data may stay in memory: its `-inmemoryDataFlushInterval`, plus a second for
/// the write.
const IN_MEMORY: Duration = Duration::from_secs(6);
/// Samples per line.
const LINE_SAMPLES: usize = 10_000;

pub struct VictoriaMetrics {
    pub port: u16,
    /// Events from this time on are new.
    pub live_from_s: i64,
}

pub struct Handle(Connection);

#[derive(Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    metric: Labels,
    value: Option<(f64, String)>,
    #[serde(default)]
    values: Vec<(f64, String)>,
}

#[derive(Deserialize)]
struct Labels {
    /// The index of a range in its batch.
    place: Option<String>,
}

/// A window ends with the millisecond before `to_s`, and starts after the one before `from_s`.
fn counted(range: &Range) -> String {
    let (from_s, to_s) = range.floored();
    format!(
        r#"count_over_time(drops{{key="{}"}}[{}s] @ {}.999)"#,
        key_of(range.asked.city),
        to_s - from_s,
        to_s - 1
    )
}

fn request(question: &Question) -> Vec<u8> {
    match question {
        Question::Counts(ranges) => {
            let parts = ranges
                .iter()
                .enumerate()
                .filter(|(_, range)| range.floored().0 < range.floored().1);
            let labelled =
                |(place, range)| format!(r#"label_set({}, "place", "{place}")"#, counted(range));
            let parts: Vec<String> = parts.map(labelled).collect();
            let query = format!("union({})", parts.join(", "));

            http::post("/api/v1/query", FORM, format!("query={}", encoded(&query)).as_bytes())
        }
        Question::Series(days, _) => {
            let query = format!(r#"count_over_time(drops{{key="{}"}}[1d])"#, key_of(days.city));

            // Without nocache, the steps would be aligned to round times.
            let form = format!(
                "query={}&start={}.999&end={}.999&step=86400&nocache=1",
                encoded(&query),
                days.from_s + DAY_S - 1,
                days.to_s - 1
            );
            http::post("/api/v1/query_range", FORM, form.as_bytes())
        }
    }
}

fn whole(text: &str) -> Result<i64> {
    let number: f64 = text.parse().with_context(|| format!("no number: {text}"))?;
    ensure!(number.fract() == 0.0, "not a whole number: {text}");
    Ok(number as i64)
}

fn answer_of(question: &Question, body: &[u8]) -> Result<Vec<i64>> {
    let answer: Answer = serde_json::from_slice(body)?;
    match question {
        Question::Counts(ranges) => {
            let mut counts = vec![0; ranges.len()];
            for series in &answer.data.result {
                let place =
                    series.metric.place.as_deref().and_then(|place| place.parse::<usize>().ok());
                let (place, (_, text)) =
                    place.zip(series.value.as_ref()).context("a count without its place")?;
                *counts.get_mut(place).context("an unknown place in the answer")? = whole(text)?;
            }

            Ok(counts)
        }
        Question::Series(days, _) => {
            let values = answer.data.result.iter().flat_map(|series| &series.values);
            let day =
                |(end_s, text): &(f64, String)| Ok((end_s.ceil() as i64 - DAY_S, whole(text)?));
            days.filled(values.map(day).collect::<Result<Vec<_>>>()?)
        }
    }
}

/// Appends one line of JSON: the samples of one series.
fn line(text: &mut String, city: u32, times_s: &[i64]) {
    let _ =
        write!(text, r#"{{"metric":{{"__name__":"drops","key":"{}"}},"values":["#, key_of(city));
    for place in 0..times_s.len() {
        text.push_str(if place == 0 { "1" } else { ",1" });
    }
    text.push_str(r#"],"timestamps":["#);
    for (place, time_s) in times_s.iter().enumerate() {
        // Writing to memory cannot fail.
        let _ = write!(text, "{}{time_s}000", if place == 0 { "" } else { "," });
    }
    text.push_str("]}\n");
}

fn lines(batch: &[Drop]) -> String {
    let mut samples: Vec<(u32, i64)> = batch.iter().map(|drop| (drop.city, drop.time_s)).collect();
    samples.sort_unstable();
    lines_of(&samples)
}

/// The samples must be ordered by series.
fn lines_of(samples: &[(u32, i64)]) -> String {
    let mut text = String::new();
    for chunk in samples.chunk_by(|left, right| left.0 == right.0) {
        for part in chunk.chunks(LINE_SAMPLES) {
            let times_s: Vec<i64> = part.iter().map(|&(_, time_s)| time_s).collect();
            line(&mut text, part[0].0, &times_s);
        }
    }
    text
}

impl Handle {
    async fn import(&mut self, text: &str) -> Result<()> {
        self.0.call(&http::post("/api/v1/import", "application/json", text.as_bytes())).await?;
        Ok(())
    }

    /// Makes all imported samples visible.
    async fn flush(&mut self) -> Result<()> {
        self.0.call(&http::get("/internal/force_flush")).await?;
        Ok(())
    }
}

impl Client for Handle {
    type Asking = Asking;

    fn prepare(question: &Question) -> Asking {
        Asking { request: request(question), question: question.clone() }
    }

    async fn ask(&mut self, asking: &Asking) -> Result<Vec<i64>> {
        answer_of(&asking.question, &self.0.call(&asking.request).await?)
    }

    async fn write(&mut self, writes: &Writes, turn: u64) -> Result<u64> {
        let batch = writes.batch(turn);
        self.import(&lines(batch)).await?;
        Ok(batch.len() as u64)
    }
}

impl Peer for VictoriaMetrics {
    type Client = Handle;

    fn how(&self) -> &'static str {
        "a sample for each event, count_over_time"
    }

    fn modes(&self) -> Vec<Mode> {
        vec![Mode::new("/api/v1/import", 10_000, 4)]
    }

    async fn connect(&self) -> Result<Handle> {
        Ok(Handle(Connection::open(self.port).await?))
    }

    async fn load(&self, workload: &Workload) -> Result<()> {
        let mut connected = self.connect().await?;
        let drops: Vec<(u32, i64)> = workload.drops().collect();
        for chunk in drops.chunks(LOAD_SAMPLES) {
            connected.import(&lines_of(chunk)).await?;
        }
        // Must precede the first query: the cache would keep answers from before all samples are
        // visible.
        connected.flush().await
    }

    /// Flushes memory to files, and merges files.
    async fn settle(&self) -> Result<()> {
        let mut connected = self.connect().await?;
        connected.flush().await?;
        tokio::time::sleep(IN_MEMORY).await;
        connected.0.call(&http::get("/internal/force_merge")).await?;
        Ok(())
    }

    async fn total(&self) -> Result<i64> {
        let to_s = crate::now_s() + 1;
        let query =
            format!("sum(count_over_time(drops[{}s] @ {}.999))", to_s - self.live_from_s, to_s - 1);

        // Bypasses the cache of long windows, which would miss samples that are just becoming
        // visible.
        let form = format!("query={}&nocache=1", encoded(&query));
        let body = self
            .connect()
            .await?
            .0
            .call(&http::post("/api/v1/query", FORM, form.as_bytes()))
            .await?;

        let answer: Answer = serde_json::from_slice(&body)?;
        let value = answer.data.result.first().and_then(|series| series.value.as_ref());
        value.map_or(Ok(0), |(_, text)| whole(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::question::{Days, Kind, questions};
    use crate::workload::Settings;

    #[test]
    fn samples_of_a_series_share_a_line() {
        let drop = |city, time_s| Drop { city, time_s, amount_cents: 1 };
        let text = lines(&[drop(2, 5), drop(1, 9), drop(1, 9)]);
        assert_eq!(
            text,
            "{\"metric\":{\"__name__\":\"drops\",\"key\":\"lab:city:c00001\"},\"values\":[1,1],\"timestamps\":[9000,9000]}\n\
             {\"metric\":{\"__name__\":\"drops\",\"key\":\"lab:city:c00002\"},\"values\":[1],\"timestamps\":[5000]}\n"
        );
    }

    #[test]
    fn counts_come_back_to_their_places_and_days_to_their_dates() {
        let workload = Workload::new(Settings { keys: 20, history: 500, seed: 1 }, 1_795_000_000);
        let ten = &questions(&workload, Kind::Batch)[0];
        let body =
            br#"{"data":{"result":[{"metric":{"key":"k","place":"3"},"value":[1.5,"42"]}]}}"#;
        let counts = answer_of(ten, body).unwrap();
        assert_eq!((counts.len(), counts[3], counts.iter().sum::<i64>()), (10, 42, 42));
        let wrong = br#"{"data":{"result":[{"metric":{"place":"3"},"value":[1.5,"42.5"]}]}}"#;
        assert!(answer_of(ten, wrong).is_err());
        let days = Days { city: 1, from_s: 0, to_s: 2 * DAY_S };
        let body = br#"{"data":{"result":[{"metric":{},"values":[[172799.999,"7"]]}]}}"#;
        assert_eq!(answer_of(&Question::Series(days, vec![0, 7]), body).unwrap(), [0, 7]);
    }
}

//! Live events for the demo: the taxi pickups of a year, replayed into the present.
//!
//! The extract holds about 110 pickups a day, too few to watch. So every pickup of the year is
//! replayed on its weekday and at its time of day, which makes one week of the real rhythm: four
//! pickups a minute on average. The week before now is sent at once, and the rest as time passes.

use super::material;
use raingauge_console::{Client, Method};
use raingauge_core::time::format_rfc3339;
use raingauge_import::{Mapping, Rows};
use raingauge_ports::clock::{Clock as _, SystemClock};
use serde_json::Value;
use serde_json::value::RawValue;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

const WEEK_S: i64 = 7 * 86_400;
/// The first Monday of 1970, at midnight UTC.
const MONDAY_S: i64 = 4 * 86_400;
/// How often pickups that are due are sent.
const PACE: Duration = Duration::from_secs(1);
/// Events in one request.
const BATCH_LEN: usize = 5_000;

/// One week of pickups, in order of time.
struct Week(Vec<Pickup>);

struct Pickup {
    /// Seconds since Monday, midnight.
    at_s: i64,
    /// The row's number in the extract.
    row: u64,
    data: Box<RawValue>,
}

impl Week {
    fn read() -> anyhow::Result<Self> {
        let file = &material::TAXI;
        let mapping = Mapping::parse(file.mapping)?;
        let mut rows = Rows::read(Box::new(file.content), Path::new(file.name), &mapping)?;
        let mut pickups = Vec::new();

        while let Some(row) = rows.next_row()? {
            let number = row.number;

            // The importer has counted the rows that are no events.
            let Ok(event) = row.event else { continue };

            pickups.push(Pickup {
                at_s: (event.time_s() - MONDAY_S).rem_euclid(WEEK_S),
                row: number,
                data: RawValue::from_string(event.data.to_owned())?,
            });
        }

        pickups.sort_unstable_by_key(|pickup| (pickup.at_s, pickup.row));
        Ok(Self(pickups))
    }

    /// The pickups from `from_s` up to and without `to_s`, in seconds since 1970, as CloudEvents.
    fn between(&self, from_s: i64, to_s: i64) -> impl Iterator<Item = Value> {
        let weeks = (from_s - MONDAY_S).div_euclid(WEEK_S)..=(to_s - MONDAY_S).div_euclid(WEEK_S);
        weeks.flat_map(move |week| {
            let monday_s = MONDAY_S + week * WEEK_S;
            let begin = self.0.partition_point(|pickup| monday_s + pickup.at_s < from_s);
            let end = self.0.partition_point(|pickup| monday_s + pickup.at_s < to_s);

            self.0[begin..end].iter().map(move |pickup| {
                serde_json::json!({
                    "specversion": "1.0",
                    "type": "live.pickup",
                    "source": format!("nyc-taxi-replayed/week-{week}"),
                    "id": pickup.row.to_string(),
                    "time": format_rfc3339(monday_s + pickup.at_s),
                    "datacontenttype": "application/json",
                    "data": &*pickup.data,
                })
            })
        })
    }

    fn send(&self, client: &Client, from_s: i64, to_s: i64) -> anyhow::Result<()> {
        let mut events = self.between(from_s, to_s).peekable();

        while events.peek().is_some() {
            let batch = Value::from_iter(events.by_ref().take(BATCH_LEN)).to_string();
            let headers = [("content-type", "application/cloudevents-batch+json")];
            client.send(Method::POST, "/v1/events?wait=applied", &headers, batch.as_bytes())?;
        }

        Ok(())
    }
}

/// Sends pickups as they become due, until it is stopped.
pub struct Replay {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Replay {
    /// Sends the week before now, and begins to send what follows.
    pub fn start(client: Client) -> anyhow::Result<Self> {
        let week = Week::read()?;
        let mut sent_s = SystemClock.now_s();
        week.send(&client, sent_s - WEEK_S, sent_s)?;

        let (stop, stopped) = mpsc::channel();
        let thread =
            std::thread::Builder::new().name("demo-replay".to_owned()).spawn(move || {
                while stopped.recv_timeout(PACE) == Err(RecvTimeoutError::Timeout) {
                    // A clock that is set back waits here until it is where it was.
                    let now_s = SystemClock.now_s().max(sent_s);

                    match week.send(&client, sent_s, now_s) {
                        Ok(()) => sent_s = now_s,
                        Err(error) => {
                            tracing::warn!(%error, "the demo could not replay pickups; trying again");
                        }
                    }
                }
            })?;
        Ok(Self { stop, thread })
    }

    pub fn stop(self) {
        drop(self.stop);
        // A panic has been printed already.
        drop(self.thread.join());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn identity(event: &Value) -> (String, String) {
        let text = |name: &str| event[name].as_str().unwrap().to_owned();
        (text("source"), text("id"))
    }

    #[test]
    fn a_week_in_any_steps_has_every_pickup_once() {
        let week = Week::read().unwrap();

        // Over a Monday, in steps that do not divide a week.
        let begin_s = 1_700_000_000;
        let mut seen = BTreeSet::new();
        let mut from_s = begin_s;

        while from_s < begin_s + WEEK_S {
            let to_s = (from_s + 12_347).min(begin_s + WEEK_S);
            for event in week.between(from_s, to_s) {
                let time = event["time"].as_str().unwrap();
                assert!(time >= format_rfc3339(from_s).as_str(), "{time}");
                assert!(time < format_rfc3339(to_s).as_str(), "{time}");
                assert!(seen.insert(identity(&event)), "{event} came twice");
            }

            from_s = to_s;
        }

        assert_eq!(seen.len(), week.0.len());
        assert!(week.0.len() > 40_000);
    }

    #[test]
    fn a_pickup_keeps_its_weekday_and_its_time_of_day() {
        let week = Week(vec![Pickup { at_s: 3_600, row: 7, data: RawValue::NULL.to_owned() }]);
        // Monday, 5 January 2026.
        let midnight_s = 1_767_571_200;
        let events: Vec<_> = week.between(midnight_s, midnight_s + WEEK_S).collect();

        assert_eq!(events.len(), 1);
        assert_eq!(events[0]["time"], "2026-01-05T01:00:00Z");
    }
}

//! The demo's queries, and the display of their answers.

use super::super::table::{Align, grouped, render};
use super::material::RAIN_KEY;
use anyhow::{Context, bail};
use raingauge_console::Client;
use raingauge_core::time::format_rfc3339;
use serde::Serialize;
use serde_json::{Value, json};

/// A question in words, its key, and its range.
type Question = (&'static str, &'static str, &'static str, &'static str);

const QUESTIONS: [Question; 13] = [
    (
        "Taxi pickups in New York, 2019",
        "taxi:pickups",
        "2019-01-01T00:00:00Z",
        "2020-01-01T00:00:00Z",
    ),
    ("… on New Year's Day", "taxi:pickups", "2019-01-01T00:00:00Z", "2019-01-02T00:00:00Z"),
    ("… from zone 237 in March", "taxi:zone:237", "2019-03-01T00:00:00Z", "2019-04-01T00:00:00Z"),
    (
        "… paid in cash on 4 July, 06:00 to noon",
        "taxi:payment:2",
        "2019-07-04T06:00:00Z",
        "2019-07-04T12:00:00Z",
    ),
    (
        "Card fares and tips in June, in cents",
        "taxi:total_cents:payment:1",
        "2019-06-01T00:00:00Z",
        "2019-07-01T00:00:00Z",
    ),
    (
        "Refunds after a dispute, in cents",
        "taxi:refund_cents:payment:4",
        "2019-01-01T00:00:00Z",
        "2020-01-01T00:00:00Z",
    ),
    (
        "Coffee buttons pressed at a conference",
        "coffee:presses",
        "2018-02-27T00:00:00Z",
        "2018-03-03T00:00:00Z",
    ),
    ("… for a latte", "coffee:beverage:Latte", "2018-02-27T00:00:00Z", "2018-03-03T00:00:00Z"),
    (
        "Invoices of a shop in a week",
        "retail:invoices",
        "2011-11-14T00:00:00Z",
        "2011-11-21T00:00:00Z",
    ),
    (
        "… units sold to France, returns taken off",
        "retail:units:country:France",
        "2011-11-14T00:00:00Z",
        "2011-11-21T00:00:00Z",
    ),
    (
        "Taxi trips in Chicago in one hour",
        "chicago:trips",
        "2013-10-18T18:45:00Z",
        "2013-10-18T19:45:00Z",
    ),
    (
        "Earthquakes of magnitude 4 and more",
        "quakes:magnitude_4",
        "2016-02-01T00:00:00Z",
        "2016-03-01T00:00:00Z",
    ),
    ("Rain drops, the worked example", RAIN_KEY, "2024-09-24T22:03:50Z", "2024-09-27T01:20:00Z"),
];

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    question: &'static str,
    key: String,
    from_time: i64,
    to_time: i64,
    count: i64,
}

/// Sends all queries in one batch.
pub fn ask(client: &Client) -> anyhow::Result<Vec<Answer>> {
    let request =
        |(_, key, from, to): Question| json!({ "key": key, "fromTime": from, "toTime": to });
    let requests: Vec<Value> = QUESTIONS.into_iter().map(request).collect();
    let batch = client.post("/v1/counts", &json!({ "requests": requests }))?;
    let results = batch["results"].as_array().context("the answers cannot be read")?;
    let answer = |((question, key, ..), result): (Question, &Value)| {
        let number = |name: &str| result[name].as_i64();
        match (number("fromTime"), number("toTime"), number("count")) {
            (Some(from_time), Some(to_time), Some(count)) => {
                Ok(Answer { question, key: key.to_owned(), from_time, to_time, count })
            }
            _ => bail!("{key} was not answered: {}", result["error"]["detail"]),
        }
    };

    QUESTIONS.into_iter().zip(results).map(answer).collect()
}

pub fn table(answers: &[Answer]) -> String {
    let columns = [
        ("question", Align::Left),
        ("key", Align::Left),
        ("range (UTC)", Align::Left),
        ("count", Align::Right),
    ];
    let row = |answer: &Answer| {
        let range = range_text(answer.from_time, answer.to_time);
        vec![answer.question.to_owned(), answer.key.clone(), range, grouped(answer.count)]
    };
    render(&columns, &answers.iter().map(row).collect::<Vec<_>>())
}

/// Only dates if both ends are midnights; one date if both ends are on one day.
fn range_text(from_s: i64, to_s: i64) -> String {
    let [from, to] = [from_s, to_s].map(format_rfc3339);
    let (from_day, to_day) = (&from[..10], &to[..10]);
    let (from_time, to_time) = (&from[11..16], &to[11..16]);
    if (from_time, to_time) == ("00:00", "00:00") {
        format!("{from_day} to {to_day}")
    } else if from_day == to_day {
        format!("{from_day} {from_time} to {to_time}")
    } else {
        format!("{from_day} {from_time} to {to_day} {to_time}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_short() {
        assert_eq!(range_text(0, 86_400), "1970-01-01 to 1970-01-02");
        assert_eq!(range_text(900, 3_600), "1970-01-01 00:15 to 01:00");
        assert_eq!(range_text(900, 86_400), "1970-01-01 00:15 to 1970-01-02 00:00");
    }
}

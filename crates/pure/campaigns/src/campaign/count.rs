//! Counts of a campaign: tallies of its own, and counters of the service.

use crate::calendar::{Length, Period};
use raingauge_core::filter::Condition;
use raingauge_core::value::Value;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Count {
    /// The types that are counted; those of the campaign, if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event_types: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Condition>,
    #[serde(default, skip_serializing_if = "is_one")]
    pub value: Value,
    pub window: CountWindow,
    /// Where the count begins. If it is absent, it is the log where the campaign is active before
    /// it is saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
}

fn is_one(value: &Value) -> bool {
    *value == Value::default()
}

/// Which events a count includes, by their times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Json", into = "Json")]
pub enum CountWindow {
    /// The activity of the campaign.
    Campaign,
    Calendar(Period),
    /// Rolling: the time up to each event.
    Last(Length),
    /// What a counter counted under a key, in quarter hours.
    Counter {
        template: String,
        last: Length,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum History {
    /// The events of the log.
    Log,
    /// From 0, at the moment at which the campaign is saved.
    None,
}

impl TryFrom<Json> for CountWindow {
    type Error = String;

    fn try_from(json: Json) -> Result<Self, String> {
        let expected = || {
            r#"a window is "campaign", {"calendar": "day"}, {"last": "PT24H"}, or {"counter": "orders:user:{user_id}", "last": "P30D"}"#
                .to_owned()
        };
        if json == "campaign" {
            return Ok(Self::Campaign);
        }

        let mut members = match json {
            Json::Object(members) => members,
            _ => return Err(expected()),
        };
        let calendar = members.remove("calendar");
        let last = members.remove("last");
        let counter = members.remove("counter");
        let length = |json: Json| -> Result<Length, String> {
            serde_json::from_value(json).map_err(|error| error.to_string())
        };

        match (calendar, last, counter) {
            _ if !members.is_empty() => Err(expected()),
            (Some(period), None, None) => {
                serde_json::from_value(period).map(Self::Calendar).map_err(|_| expected())
            }
            (None, Some(last), None) => Ok(Self::Last(length(last)?)),
            (None, Some(last), Some(Json::String(template))) => {
                Ok(Self::Counter { template, last: length(last)? })
            }
            _ => Err(expected()),
        }
    }
}

impl From<CountWindow> for Json {
    fn from(window: CountWindow) -> Self {
        match window {
            CountWindow::Campaign => json!("campaign"),
            CountWindow::Calendar(period) => json!({"calendar": period}),
            CountWindow::Last(last) => json!({"last": last}),
            CountWindow::Counter { template, last } => json!({"counter": template, "last": last}),
        }
    }
}

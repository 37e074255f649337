//! `raingauge count`

use super::{note, print, print_json};
use crate::commands::arguments::{Place, Range};
use clap::Args;
use raingauge_core::time::format_rfc3339;
use serde_json::Value;

/// Count one key over a range of time
///
/// Both ends are floored to the quarter hour, and the end does not belong to the range. Prints the
/// count.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: raingauge count rain_drops:city:111222 --from 2024-09-24T22:03:50Z --to 2024-09-27T01:20:00Z"
)]
pub struct Count {
    /// The key, such as rain_drops:city:111222
    key: String,
    #[command(flatten)]
    pub range: Range,
    /// Count the open quarter hour too, up to the last event
    #[arg(long)]
    fresh: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

impl Count {
    pub fn run(self) -> anyhow::Result<()> {
        let (from, to) = (self.range.from.to_string(), self.range.to.to_string());
        let mut parameters = vec![("key", self.key.as_str()), ("fromTime", &from), ("toTime", &to)];
        if self.fresh {
            parameters.push(("fresh", "true"));
        }

        let answer =
            self.place.with(|session| Ok(session.client.get("/v1/counts", &parameters)?))?;
        if self.json {
            return Ok(print_json(&answer)?);
        }
        print(&answer["count"].to_string())?;

        let ends = [&answer["fromTime"], &answer["toTime"]].map(Value::as_i64);
        if let [Some(from_s), Some(to_s)] = ends
            && (from_s, to_s) != (self.range.from, self.range.to)
        {
            note(&format!(
                "counted from {} up to {}",
                format_rfc3339(from_s),
                format_rfc3339(to_s)
            ));
        }

        Ok(())
    }
}

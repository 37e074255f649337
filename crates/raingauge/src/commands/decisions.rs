//! `raingauge decisions`

use super::campaigns::tables;
use super::{note, print_json};
use crate::commands::arguments::Place;
use clap::Args;
use raingauge_core::moment::Moment;
use serde_json::Value;

/// List what campaigns decided, newest first
#[derive(Debug, Args)]
#[command(after_help = "Example: raingauge decisions --campaign 7 --outcome budget_exhausted")]
pub struct Decisions {
    /// Those of this campaign alone
    #[arg(long, value_name = "ID")]
    campaign: Option<u32>,
    /// Those about this subject alone
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
    /// Those with this outcome alone, such as granted or limit_reached
    #[arg(long, value_name = "CODE")]
    outcome: Option<String>,
    /// Those since this time: epoch seconds, RFC 3339, or an age such as -7d
    #[arg(long, value_name = "TIME", value_parser = moment, allow_hyphen_values = true)]
    from: Option<String>,
    /// Most decisions
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

fn moment(text: &str) -> Result<String, String> {
    let found = Moment::parse(text).map(|_| text.to_owned());
    found.ok_or_else(|| "a time is epoch seconds, RFC 3339, or an age such as -7d".to_owned())
}

impl Decisions {
    pub fn run(self) -> anyhow::Result<()> {
        let limit = self.limit.to_string();
        let campaign = self.campaign.map(|id| id.to_string());
        let given = [
            ("campaign", campaign.as_deref()),
            ("subject", self.subject.as_deref()),
            ("outcome", self.outcome.as_deref()),
            ("from", self.from.as_deref()),
            ("limit", Some(&limit)),
        ];
        let parameters: Vec<(&str, &str)> =
            given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();

        let answer =
            self.place.with(|session| Ok(session.client.get("/v1/decisions", &parameters)?))?;
        if self.json {
            return Ok(print_json(&answer)?);
        }
        tables::decisions(&answer["decisions"])?;
        if answer["next"] != Value::Null {
            note("there are more: raise --limit, or ask for less");
        }
        Ok(())
    }
}

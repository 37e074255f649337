//! Awards, burns and adjustments by hand.

use super::{Member, reason};
use crate::commands::arguments::Place;
use crate::commands::campaigns::text;
use crate::commands::{print, print_json};
use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};

#[derive(Debug, Args)]
pub struct Award {
    #[command(flatten)]
    member: Member,
    /// What makes it happen once
    #[arg(long, value_name = "KEY")]
    key: String,
    /// How many points
    #[arg(long, value_name = "POINTS", conflicts_with = "amount")]
    points: Option<String>,
    /// The amount that the points follow from
    #[arg(long, value_name = "AMOUNT", required_unless_present = "points")]
    amount: Option<String>,
    /// Number of the rule; without it, the facts say which
    #[arg(long, value_name = "NUMBER")]
    rule: Option<u32>,
    /// Fields of the event as JSON, such as '{"country": "SG"}'
    #[arg(long, value_name = "JSON")]
    facts: Option<String>,
    /// The account that pays
    #[arg(long, value_name = "NAME")]
    budget: Option<String>,
    /// What a refund names later
    #[arg(long, value_name = "TEXT")]
    reference: Option<String>,
    /// Why
    #[arg(long, default_value = "", hide_default_value = true, value_parser = reason)]
    reason: String,
    /// Show what would happen, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
pub struct Burn {
    #[command(flatten)]
    member: Member,
    /// What makes it happen once
    #[arg(long, value_name = "KEY")]
    key: String,
    /// How many points
    #[arg(long, value_name = "POINTS")]
    points: String,
    /// Why
    #[arg(long, default_value = "", hide_default_value = true, value_parser = reason)]
    reason: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
pub struct Adjust {
    #[command(flatten)]
    member: Member,
    /// What makes it happen once
    #[arg(long, value_name = "KEY")]
    key: String,
    /// How many points; negative to take them
    #[arg(long, value_name = "POINTS", allow_hyphen_values = true)]
    points: String,
    /// Why; the entry keeps it
    #[arg(long, value_parser = reason)]
    reason: String,
    #[command(flatten)]
    place: Place,
}

impl Award {
    pub fn run(self, is_json: bool) -> anyhow::Result<()> {
        let facts: Option<Value> = self.facts.as_deref().map(serde_json::from_str).transpose()?;
        let item = item(
            &self.member,
            &self.key,
            &self.reason,
            json!({
                "points": self.points, "amount": self.amount, "rule": self.rule, "facts": facts,
                "budget": self.budget, "reference": self.reference,
            }),
        );
        let dry_run = if self.dry_run { "?dryRun=true" } else { "" };
        let path = format!("/v1/points/awards{dry_run}");
        send(&self.place, &path, &json!({ "awards": [item] }), is_json)
    }
}

impl Burn {
    pub fn run(self, is_json: bool) -> anyhow::Result<()> {
        let more = json!({ "kind": "burn", "points": self.points });
        let item = item(&self.member, &self.key, &self.reason, more);
        let body = json!({ "transactions": [item] });
        send(&self.place, "/v1/points/transactions", &body, is_json)
    }
}

impl Adjust {
    pub fn run(self, is_json: bool) -> anyhow::Result<()> {
        let more = json!({ "kind": "adjust", "points": self.points });
        let item = item(&self.member, &self.key, &self.reason, more);
        let body = json!({ "corrections": [item] });
        send(&self.place, "/v1/points/corrections", &body, is_json)
    }
}

/// The item of a batch, without what is not given.
fn item(member: &Member, key: &str, reason: &str, more: Value) -> Value {
    let mut item = json!({ "programme": member.programme, "member": member.member, "key": key });
    if !reason.is_empty() {
        item["reason"] = json!(reason);
    }
    for (name, value) in more.as_object().into_iter().flatten() {
        if !value.is_null() {
            item[name] = value.clone();
        }
    }
    item
}

/// Sends a batch of one, and prints its result.
fn send(place: &Place, path: &str, body: &Value, is_json: bool) -> anyhow::Result<()> {
    let answer = place.with(|session| Ok(session.client.post(path, body)?))?;
    let result = &answer["results"][0];
    if let Some(code) = result["error"]["code"].as_str() {
        bail!("{code}: {}", text(&result["error"]["detail"]));
    }
    if is_json {
        return Ok(print_json(result)?);
    }

    let replayed = if result["replayed"] == true { ", as before" } else { "" };
    let [member, points, balance] = ["member", "points", "balance"].map(|name| text(&result[name]));
    Ok(print(&format!("{member}: {points}, which makes {balance}{replayed}"))?)
}

//! The campaigns, and the destination that they act at.

use super::Options;
use crate::http::Target;
use crate::http::client::Client;
use anyhow::{Context, Result, ensure};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

const DESTINATION: &str = "lab";
const PREFIX: &str = "lab_";
/// Bound by nothing, since the rate is what is measured.
const CONCURRENCY: [u32; 2] = [16, 64];
/// A count that no subject reaches.
const NEVER: u32 = 1_000_000_000;
/// Connections that create campaigns: each of them waits until its campaign is in effect.
const CLIENTS: u32 = 16;

/// Creates the documents, on a server that has none of another run: the address of the sink is
/// another one each time.
pub fn prepare(target: &Target, url: &str, options: &Options) -> Result<()> {
    let [min, max] = CONCURRENCY;
    let destination = json!({
        "name": DESTINATION, "url": url, "allowPrivate": true,
        "concurrency": { "min": min, "max": max },
    });
    create(&mut Client::connect(target)?, "/v1/destinations", &destination)
        .context("begin with an empty data folder")?;

    let create_share = |first: u32| -> Result<()> {
        let mut client = Client::connect(target)?;
        for number in (first..options.campaigns).step_by(CLIENTS as usize) {
            create(&mut client, "/v1/campaigns", &campaign(number, options))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let shares: Vec<_> =
            (0..CLIENTS).map(|first| scope.spawn(move || create_share(first))).collect();
        let results = shares.into_iter().map(|share| share.join().expect("it does not panic"));
        results.collect()
    })
}

fn create(client: &mut Client, path: &str, document: &Value) -> Result<()> {
    let answer = client.call("POST", path, &serde_json::to_vec(document)?)?;
    ensure!(answer.status == 201, "POST {path} answered {}: {}", answer.status, answer.text());
    Ok(())
}

/// The first campaign of each type acts on events by their lot; the others have rules like those of
/// the published description, and a count that is never reached.
fn campaign(number: u32, options: &Options) -> Value {
    let acts = number < options.types;
    let (rule, when) = if acts {
        (leaf("eq", "var.acts", true), leaf("gte", "count.orders", 1))
    } else {
        let mut random = StdRng::seed_from_u64(number.into());
        (rule(&mut random), leaf("reaches", "count.orders", NEVER))
    };
    let country = format!("c{}", number % 12);
    let filter = if acts { Value::Null } else { leaf("eq", "var.country", country) };

    let mut orders = json!({ "window": "campaign", "history": "none" });
    if !filter.is_null() {
        orders["filter"] = filter;
    }
    json!({
        "name": format!("{PREFIX}{number}"),
        "eventTypes": [format!("lab.order.{}", number % options.types)],
        "subject": "data.user_id",
        "state": "active",
        "counts": { "orders": orders },
        "rule": rule,
        "steps": [{
            "name": "s", "when": when,
            "actions": [{ "name": "msg", "kind": "message", "to": DESTINATION, "template": "t" }],
        }],
        "templates": { "t": { "en": "Thank you, {{ subject }}!" } },
        "owner": "lab",
    })
}

fn leaf(operator: &str, lhs: &str, rhs: impl Into<Value>) -> Value {
    json!({ "operator": operator, "lhs": lhs, "rhs": rhs.into() })
}

fn rule(random: &mut StdRng) -> Value {
    let mut below = |end: u32| random.random_range(0..end);
    let from = below(18);
    let taxis = json!([below(8), below(8)]);
    json!({ "operator": "and", "conditions": [
        leaf("eq", "var.country", format!("c{}", below(12))),
        leaf("in", "var.taxi", taxis),
        leaf("gte", "var.amount", below(200)),
        { "operator": "or", "conditions": [
            leaf("eq", "var.payment", format!("p{}", below(5))),
            leaf("eq", "var.platform", format!("o{}", below(3))),
        ] },
        leaf("gte", "time.hour", from),
        leaf("lt", "time.hour", from + 6),
    ] })
}

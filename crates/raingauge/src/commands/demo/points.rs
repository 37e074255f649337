//! Points of the demo: a programme, and the two examples of its published description.

use super::super::note;
use super::super::points::{apply, parse};
use raingauge_console::{Client, Method};
use raingauge_core::time::format_rfc3339;
use raingauge_ports::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

/// The programme.
pub const DOCUMENT: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo/points.yaml"));
const PROGRAMME: &str = "rewards";

/// Members with their tiers, and what they bought.
fn examples() -> [(&'static str, &'static str, Value); 2] {
    let lunch = |country: &str, currency: &str, amount: u32| {
        json!({
            "country": country, "vertical": "food", "currency": currency, "payment": "grabpay",
            "amount": amount,
        })
    };
    [("bob", "platinum", lunch("SG", "SGD", 15)), ("jane", "gold", lunch("ID", "IDR", 150_000))]
}

/// Creates the programme, gives the members their tiers, and sends what they bought.
pub fn load(client: &Client) -> anyhow::Result<()> {
    apply(client, &parse(DOCUMENT)?, false, "the demo")?;

    let now_s = SystemClock.now_s();
    let tier = |(member, tier, _): &(&str, &str, Value)| {
        json!({
            "kind": "tier", "programme": PROGRAMME, "member": member, "tier": tier,
            "key": format!("demo-tier-{member}"), "reason": "the demo",
        })
    };
    let tiers: Vec<Value> = examples().iter().map(tier).collect();
    client.post("/v1/points/corrections", &json!({ "corrections": tiers }))?;

    for (member, _, mut data) in examples() {
        data["consumer_id"] = json!(member);
        data["order_id"] = json!(format!("{member}-{now_s}"));
        let event = json!({
            "specversion": "1.0", "id": format!("lunch-{member}-{now_s}"), "source": "demo/orders",
            "type": "order.completed", "time": format_rfc3339(now_s), "data": data,
        });
        let headers = [("content-type", "application/cloudevents+json")];
        let body = event.to_string();
        client.send(Method::POST, "/v1/events?wait=awarded", &headers, body.as_bytes())?;
    }

    let path = format!("/v1/points/{PROGRAMME}/members/bob");
    let bob = client.get(&path, &[])?;
    note(&format!("a programme of points: Bob has {}", bob["available"]));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_points::ProgrammeDocument;

    #[test]
    fn the_examples_of_the_programme_come_out() {
        let programmes = parse(DOCUMENT).unwrap();
        let [programme] = &programmes[..] else { panic!("one programme") };
        let document = ProgrammeDocument::parse(programme).unwrap();
        assert_eq!((&*document.programme, document.examples.len()), (PROGRAMME, 2));
    }
}

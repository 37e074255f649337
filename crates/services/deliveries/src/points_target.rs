//! Points that campaigns grant, on their way into the ledger of a programme.

use crate::local_worker::{LocalTarget, Outcome, PAUSE};
use jiff::Timestamp;
use raingauge_points::programme::CAMPAIGN_SOURCE;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::{Delivery, Settlement};
use raingauge_ports::points::{Award, NotAwarded, Points, Worth};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// Pause in a process without a ledger.
const NO_LEDGER_PAUSE: Duration = Duration::from_secs(60);

/// The ledger takes a key once. It follows from the action, so an edited campaign does not award
/// again.
pub struct PointsTarget {
    pub points: Arc<dyn Points>,
    pub programme: String,
}

/// Stands for the ledger in a process that has none: deliveries wait for one that has.
pub struct NoPoints;

impl LocalTarget for NoPoints {
    fn take<'a>(
        &'a self,
        _deliveries: &'a [Delivery],
    ) -> BoxFuture<'a, Result<Vec<Outcome>, Duration>> {
        tracing::error!("campaigns grant points, and points.enabled is false: they wait");
        Box::pin(async { Err(NO_LEDGER_PAUSE) })
    }
}

/// The body of a delivery of points.
#[derive(Deserialize)]
struct Message {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    step: String,
    points: Option<i64>,
    amount: Option<Value>,
    #[serde(default)]
    multipliers: Map<String, Value>,
    budget: Option<String>,
    recipient: Option<String>,
    event: Trigger,
}

#[derive(Deserialize)]
struct Trigger {
    time: String,
}

impl LocalTarget for PointsTarget {
    fn take<'a>(
        &'a self,
        deliveries: &'a [Delivery],
    ) -> BoxFuture<'a, Result<Vec<Outcome>, Duration>> {
        Box::pin(async move {
            let read: Vec<Result<Award, String>> =
                deliveries.iter().map(|delivery| award_of(delivery, &self.programme)).collect();
            let awards = read.iter().filter_map(|award| award.clone().ok()).collect();
            let mut answers = self.points.award(awards).await.into_iter();

            let mut outcomes = Vec::with_capacity(read.len());
            for award in read {
                outcomes.push(match award.map(|_| answers.next()) {
                    Err(detail) => (Settlement::Refused, detail),
                    Ok(Some(Ok(_))) => (Settlement::Delivered, String::new()),
                    Ok(Some(Err(NotAwarded::Refused(refusal)))) => {
                        let note = format!("{}: {}", refusal.code.as_str(), refusal.detail);
                        (Settlement::Refused, note)
                    }
                    Ok(Some(Err(NotAwarded::Later { retry_after, .. }))) => {
                        return Err(retry_after);
                    }
                    Ok(None) => return Err(PAUSE),
                });
            }
            Ok(outcomes)
        })
    }
}

fn award_of(delivery: &Delivery, programme: &str) -> Result<Award, String> {
    let Message { data } = serde_json::from_slice(&delivery.body)
        .map_err(|error| format!("these are no points: {error}"))?;
    let Trigger { time } = data.event;
    let worth = match (data.points, data.amount) {
        (Some(points), _) => Worth::Points(points),
        (None, Some(amount)) => Worth::Product {
            amount: text_of(&amount),
            factors: data
                .multipliers
                .iter()
                .map(|(name, value)| (name.clone(), text_of(value)))
                .collect(),
        },
        (None, None) => return Err("the action has neither points nor an amount".to_owned()),
    };

    Ok(Award {
        programme: programme.to_owned(),
        member: data.recipient.unwrap_or_else(|| delivery.subject.clone()),
        // The id of the action follows from the event as well.
        key: format!("campaign:{}:{}", delivery.campaign, delivery.action),
        source: CAMPAIGN_SOURCE.to_owned(),
        worth,
        occurred_ms: time
            .parse::<Timestamp>()
            .map_err(|error| format!("the event has no readable time: {error}"))?
            .as_millisecond(),
        reason: Some(format!("campaign {}: {}", delivery.campaign, data.step)),
        budget: data.budget,
    })
}

/// A number keeps its digits.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use raingauge_core::code::{Code, Refusal};
    use raingauge_ports::campaigns::ActionId;
    use raingauge_ports::points::Awarded;
    use serde_json::json;

    /// Notes what is awarded, and answers by the member.
    #[derive(Default)]
    struct Ledger(Mutex<Vec<Award>>);

    impl Points for Ledger {
        fn award(&self, awards: Vec<Award>) -> BoxFuture<'_, Vec<Result<Awarded, NotAwarded>>> {
            let answer = |award: &Award| match award.member.as_str() {
                "closed" => {
                    Err(NotAwarded::Refused(Refusal::new(Code::WalletClosed, "it is closed")))
                }
                "busy" => Err(NotAwarded::Later {
                    retry_after: Duration::from_secs(3),
                    detail: String::new(),
                }),
                _ => Ok(Awarded {
                    entry: "p:0:1".to_owned(),
                    points: 5,
                    balance: 5,
                    is_replayed: false,
                }),
            };
            let answers = awards.iter().map(answer).collect();
            self.0.lock().extend(awards);
            Box::pin(async { answers })
        }
    }

    fn delivery(member: &str, worth: &Value) -> Delivery {
        let mut data = json!({
            "step": "gold", "subject": member,
            "event": {"source": "mart", "id": "o-3", "time": "2026-11-23T06:00:00Z"},
        });
        for (name, value) in worth.as_object().expect("members") {
            data[name] = value.clone();
        }
        Delivery {
            action: ActionId([7; 16]),
            campaign: 5,
            subject: member.to_owned(),
            destination: "points".to_owned(),
            due_ms: 0,
            cost: None,
            body: json!({"type": "points.award", "data": data}).to_string().into_bytes(),
        }
    }

    fn target(ledger: &Arc<Ledger>) -> PointsTarget {
        PointsTarget { points: Arc::clone(ledger) as _, programme: "grab-sg".to_owned() }
    }

    #[tokio::test]
    async fn each_delivery_is_awarded_under_the_key_of_its_action() {
        let ledger = Arc::<Ledger>::default();
        let amount = json!({"amount": 62.30, "multipliers": {"tier": "2"}, "budget": "growth"});
        let deliveries = [
            delivery("u-1", &json!({"points": 100})),
            delivery("u-2", &amount),
            delivery("u-3", &json!({})),
            delivery("closed", &json!({"points": 1})),
        ];
        let outcomes = target(&ledger).take(&deliveries).await.expect("outcomes");
        let settled: Vec<Settlement> = outcomes.iter().map(|(settlement, _)| *settlement).collect();
        use Settlement::{Delivered, Refused};
        assert_eq!(settled, [Delivered, Delivered, Refused, Refused]);
        assert!(outcomes[3].1.starts_with("wallet_closed: "), "{outcomes:?}");

        let awards = ledger.0.lock();
        assert_eq!(awards[0].worth, Worth::Points(100));
        assert_eq!(awards[0].key, format!("campaign:5:{}", ActionId([7; 16])));
        assert_eq!(awards[0].occurred_ms, 1_795_413_600_000);
        let factors = vec![("tier".to_owned(), "2".to_owned())];
        assert_eq!(awards[1].worth, Worth::Product { amount: "62.3".to_owned(), factors });
        assert_eq!(awards[1].budget.as_deref(), Some("growth"));
    }

    #[tokio::test]
    async fn a_busy_ledger_is_asked_again_with_all_of_them() {
        let ledger = Arc::<Ledger>::default();
        let points = json!({"points": 1});
        let deliveries = [delivery("u-1", &points), delivery("busy", &points)];
        let pause = target(&ledger).take(&deliveries).await.unwrap_err();
        assert_eq!(pause, Duration::from_secs(3));
    }
}

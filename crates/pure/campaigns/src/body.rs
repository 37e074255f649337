//! What a destination receives: the body of a delivery, which is stored with the action and sent
//! with the same bytes each time.

use crate::campaign::{Action, ActionKind};
use crate::decision::{ActionId, Decision};
use raingauge_core::event::Event;
use raingauge_core::time::format_rfc3339;
use serde::Serialize;
use serde_json::{Map, Value as Json};

/// Parts of a body that are not in the decision: texts are rendered, and fields are read.
#[derive(Clone, Debug, Default)]
pub struct Content {
    /// Of a message.
    pub text: Option<String>,
    /// Whom it goes to, where that is not the subject.
    pub recipient: Option<String>,
    /// The field that points follow from.
    pub amount: Option<Json>,
    /// Of a webhook or an emitted event, with its templates rendered.
    pub body: Option<Map<String, Json>>,
    /// How many campaigns emitted events up to this one.
    pub depth: u32,
}

#[derive(Serialize)]
struct Message<'b> {
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: &'b str,
    data: Data<'b>,
}

#[derive(Serialize)]
struct Data<'b> {
    action: ActionId,
    campaign: u32,
    version: u32,
    step: &'b str,
    subject: &'b str,
    #[serde(skip_serializing_if = "Option::is_none")]
    recipient: Option<&'b str>,
    variant: Option<&'b str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'b str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reward: Option<&'b str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    points: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<&'b Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    multipliers: Option<&'b Map<String, Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<&'b str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'b Map<String, Json>>,
    event: Trigger<'b>,
}

#[derive(Serialize)]
struct Trigger<'b> {
    source: &'b str,
    id: &'b str,
    #[serde(rename = "type")]
    kind: &'b str,
    time: &'b str,
}

/// A CloudEvent that a campaign emits. Its id is that of the action, so that it is taken once.
#[derive(Serialize)]
struct Emitted<'b> {
    specversion: &'static str,
    id: ActionId,
    source: String,
    #[serde(rename = "type")]
    kind: &'b str,
    subject: &'b str,
    time: &'b str,
    data: EmittedData<'b>,
}

#[derive(Serialize)]
struct EmittedData<'b> {
    campaign: Origin<'b>,
    #[serde(flatten)]
    body: Map<String, Json>,
}

#[derive(Serialize)]
struct Origin<'b> {
    id: u32,
    version: u32,
    step: &'b str,
    depth: u32,
}

/// The body of an action that was granted on an event.
pub fn body(decision: &Decision, action: &Action, event: &Event<'_>, content: &Content) -> String {
    let time = rfc3339(event.time_ms);
    let text = if action.kind == ActionKind::Emit {
        serde_json::to_string(&emitted(decision, action, &time, content))
    } else {
        serde_json::to_string(&message(decision, action, event, &time, content))
    };
    text.expect("texts and numbers are JSON")
}

fn message<'b>(
    decision: &'b Decision,
    action: &'b Action,
    event: &'b Event<'_>,
    time: &'b str,
    content: &'b Content,
) -> Message<'b> {
    let kind = match action.kind {
        ActionKind::Message => "message.send",
        ActionKind::Reward => "reward.award",
        ActionKind::Points => "points.award",
        ActionKind::Webhook | ActionKind::Emit => "webhook.send",
    };
    let data = Data {
        action: decision.action,
        campaign: decision.campaign,
        version: decision.version,
        step: &decision.step,
        subject: &decision.subject,
        recipient: content.recipient.as_deref(),
        variant: decision.variant.as_deref(),
        text: content.text.as_deref(),
        reward: action.reward.as_deref(),
        points: action.points,
        amount: content.amount.as_ref(),
        multipliers: action.multipliers.as_ref(),
        budget: action.budget.as_deref(),
        body: content.body.as_ref(),
        event: Trigger { source: &event.source, id: &event.id, kind: &event.kind, time },
    };
    Message { kind, timestamp: time, data }
}

fn emitted<'b>(
    decision: &'b Decision,
    action: &'b Action,
    time: &'b str,
    content: &Content,
) -> Emitted<'b> {
    let campaign = Origin {
        id: decision.campaign,
        version: decision.version,
        step: &decision.step,
        depth: content.depth + 1,
    };
    let mut body = content.body.clone().unwrap_or_default();
    // The name is taken: chains of campaigns are bounded by what it holds.
    body.remove("campaign");
    Emitted {
        specversion: "1.0",
        id: decision.action,
        source: format!("campaigns/{}", decision.campaign),
        kind: action.event_type.as_deref().unwrap_or_default(),
        subject: &decision.subject,
        time,
        data: EmittedData { campaign, body },
    }
}

/// A time in UTC, with milliseconds where it has any.
fn rfc3339(time_ms: i64) -> String {
    let text = format_rfc3339(time_ms.div_euclid(1_000));
    match time_ms.rem_euclid(1_000) {
        0 => text,
        ms => format!("{}.{ms:03}Z", text.trim_end_matches('Z')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Reason;
    use serde_json::json;

    fn decision(step: &str, name: &str) -> Decision {
        Decision {
            action: ActionId::new(7, ("mart", "o-3"), "u-7", step, name),
            reason: Reason::Granted,
            campaign: 7,
            version: 1,
            step: step.to_owned(),
            name: name.to_owned(),
            subject: "u-7".to_owned(),
            variant: None,
            cost: None,
            due_ms: 0,
            evidence: Json::Null,
        }
    }

    fn event(time_ms: i64) -> Event<'static> {
        let event = Event::of_data("mart.order", time_ms, "");
        Event { id: "o-3".into(), source: "mart".into(), ..event }
    }

    fn action(json: Json) -> Action {
        serde_json::from_value(json).unwrap()
    }

    /// The message of the worked example, byte for byte.
    #[test]
    fn a_message_has_these_bytes() {
        let action = action(
            json!({"name": "msg", "kind": "message", "to": "messages", "template": "one_more"}),
        );
        let text = Some("Make one more order to earn a reward".to_owned());
        let content = Content { text, ..Content::default() };
        let expected = concat!(
            r#"{"type":"message.send","timestamp":"2024-09-24T03:00:00Z","data":{"#,
            r#""action":"act_3607a20a5c6e936874c9ec850d9ffaac","campaign":7,"version":1,"#,
            r#""step":"nudge","subject":"u-7","variant":null,"#,
            r#""text":"Make one more order to earn a reward","event":{"source":"mart","#,
            r#""id":"o-3","type":"mart.order","time":"2024-09-24T03:00:00Z"}}}"#,
        );
        let sent = body(&decision("nudge", "msg"), &action, &event(1_727_146_800_000), &content);
        assert_eq!(sent, expected);
    }

    #[test]
    fn other_kinds_bring_their_own_members() {
        let data = |json: Json, content: &Content| {
            let sent = body(&decision("s", "a"), &action(json), &event(1_500), content);
            serde_json::from_str::<Json>(&sent).unwrap()
        };
        let none = Content::default();
        let reward = json!({"name": "a", "kind": "reward", "to": "d", "reward": "MART5"});
        let sent = data(reward, &none);
        assert_eq!(
            (&sent["type"], &sent["data"]["reward"]),
            (&json!("reward.award"), &json!("MART5"))
        );
        assert_eq!(sent["timestamp"], "1970-01-01T00:00:01.500Z");

        let points = json!({"name": "a", "kind": "points", "to": "d", "amount": "var.total",
                            "multipliers": {"tier": 2}, "budget": "growth"});
        let content = Content { amount: Some(json!(12.5)), ..Content::default() };
        let sent = data(points, &content);
        assert_eq!(
            (&sent["data"]["amount"], &sent["data"]["multipliers"]["tier"]),
            (&json!(12.5), &json!(2))
        );
        assert_eq!(sent["data"]["budget"], "growth");

        let emit = json!({"name": "a", "kind": "emit", "to": "log", "eventType": "rewarded"});
        let body = json!({"user": "u", "campaign": "forged"});
        let body = body.as_object().cloned();
        let sent = data(emit, &Content { body, depth: 1, ..Content::default() });
        let origin = json!({"id": 7, "version": 1, "step": "s", "depth": 2});
        assert_eq!(sent["data"], json!({"user": "u", "campaign": origin}));
        assert_eq!(
            (&sent["id"], &sent["specversion"]),
            (&json!(decision("s", "a").action), &json!("1.0"))
        );
    }
}

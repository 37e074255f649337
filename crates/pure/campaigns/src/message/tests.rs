use super::*;
use crate::decision::{ActionId, Reason};
use crate::engine::LookupClass;

fn campaign(action: Json, templates: Json) -> Campaign {
    let json = json!({"id": 1, "name": "c", "eventTypes": ["order"], "subject": "data.user",
        "steps": [{"name": "s", "actions": [action]}], "templates": templates});
    Campaign::from_json(&json).unwrap_or_else(|problems| panic!("{json}: {problems:?}"))
}

fn decision() -> Decision {
    Decision {
        action: ActionId::new(1, ("test", "1"), "u", "s", "a"),
        reason: Reason::Granted,
        campaign: 1,
        version: 1,
        step: "s".to_owned(),
        name: "a".to_owned(),
        subject: "u".to_owned(),
        variant: None,
        cost: None,
        due_ms: 0,
        evidence: Json::Null,
    }
}

/// The content of the only action, with the table `users` as it is here.
fn content(campaign: &Campaign, data: &str, users: Option<Json>) -> Result<Content, RenderError> {
    let messages = Messages::compile(campaign).unwrap();
    let event = Event::of_data("order", 0, data);
    let answer = |key: &LookupKey| users.clone().filter(|_| key.key == "u");
    let action = &campaign.steps[0].actions[0];
    messages.content(campaign, &decision(), action, &event, (&BTreeMap::new(), &answer))
}

const DATA: &str = r#"{"user": "u", "city": "Singapore", "total": 12.50, "driver": "d-1"}"#;

#[test]
fn a_text_takes_its_language_and_values_from_lookups() {
    let action = json!({"name": "a", "kind": "message", "to": "m", "template": "t",
        "locale": "table.users.locale", "recipient": "var.driver"});
    let hello = json!({
        "en": "Hello {{ table.users.name | default('you') }} in {{ data.city }}!",
        "zh": "{{ table.users.name }}"});
    let campaign = campaign(action, json!({"t": hello}));
    let messages = Messages::compile(&campaign).unwrap();
    let event = Event::of_data("order", 0, DATA);
    let action = &campaign.steps[0].actions[0];
    let key = LookupKey {
        class: LookupClass::Table,
        name: "users".to_owned(),
        key: "u".to_owned(),
        range_s: None,
    };
    assert_eq!(messages.wants(&campaign, ("s", action), &event, &BTreeMap::new()), [key]);

    let text = |users| content(&campaign, DATA, users).map(|content| content.text.unwrap());
    let known = Some(json!({"locale": "zh-TW", "name": "Mei"}));
    assert_eq!(text(known), Ok("Mei".to_owned()));
    assert_eq!(text(None), Ok("Hello you in Singapore!".to_owned()));
    assert_eq!(text(Some(Json::Null)), Ok("Hello you in Singapore!".to_owned()));
    assert_eq!(content(&campaign, DATA, None).unwrap().recipient.as_deref(), Some("d-1"));
    assert!(content(&campaign, r#"{"user": "u", "city": "x"}"#, None).is_err());
}

#[test]
fn bodies_are_filled_in_where_they_have_templates() {
    let body = json!({"to": "{{ subject }}", "list": ["plain", "{{ var.city }}"], "n": 1,
                      "deep": "{{ http.risk.score.value | default('-') }}"});
    let action = json!({"name": "a", "kind": "webhook", "to": "m", "body": body});
    let campaign = campaign(action, json!({}));
    let filled = content(&campaign, DATA, None).unwrap().body.unwrap();
    let expected = json!({"to": "u", "list": ["plain", "Singapore"], "n": 1, "deep": "-"});
    assert_eq!(Json::Object(filled), expected);
    assert!(content(&campaign, r#"{"user": "u"}"#, None).is_err());
}

#[test]
fn points_follow_from_a_field_with_its_digits() {
    let action = json!({"name": "a", "kind": "points", "to": "m", "amount": "var.total"});
    let campaign = campaign(action, json!({}));
    assert_eq!(content(&campaign, DATA, None).unwrap().amount, Some(json!(12.5)));
}

#[test]
fn a_template_that_does_not_compile_is_reported_with_its_place() {
    let body = json!({"to": "{{ nobody }}"});
    let action = json!({"name": "a", "kind": "webhook", "to": "m", "body": body});
    let json = json!({"name": "c", "eventTypes": ["order"],
        "steps": [{"name": "s", "actions": [action]}]});
    let campaign: Campaign = serde_json::from_value(json).unwrap();
    let problems = Messages::compile(&campaign).unwrap_err();
    assert_eq!(problems.len(), 1);
    assert!(format!("{:?}", problems[0]).contains("steps[0].actions[0].body"));
}

#[test]
fn a_chain_is_as_deep_as_its_last_event_says() {
    let depth = |data| chain_depth(&Event::of_data("order", 0, data));
    assert_eq!(depth(r#"{"campaign": {"depth": 2}}"#), 2);
    assert_eq!((depth("{}"), depth(r#"{"campaign": "x"}"#)), (0, 0));
}

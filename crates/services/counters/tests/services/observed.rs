use crate::support::{NOON_S, Services, event};
use raingauge_core::template::Template;
use raingauge_counters::observed::{
    EVENTS_MAX, FIELDS_MAX, Kind, Observation, TYPES_MAX, observed,
};
use raingauge_ports::log::EventLog;
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;

fn look(services: &Services) -> Observation {
    observed(&[Arc::clone(&services.log) as Arc<dyn EventLog>], EVENTS_MAX).expect("looked")
}

#[tokio::test]
async fn arrivals_are_reported_by_type_and_field() {
    let services = Services::start();
    let mut events: Vec<Json> = (0..100)
        .map(|n| {
            let mut data = json!({"city": {"id": n % 3, "name": format!("c{}", n % 3)}, "fare": 12.5, "list": [1]});
            if n % 4 == 0 {
                data["shared"] = json!(n % 8 == 0);
            }

            if n == 50 {
                data["fare"] = json!("free");
            }
            event(n, NOON_S - n, data)
        })
        .collect();

    events.push(
        json!({"specversion": "1.0", "id": "x", "source": "other", "type": "u", "subject": "<b>",
        "time": "2024-09-24T22:03:50Z"}),
    );
    services.send(&events).await;

    let seen = look(&services);
    let types: Vec<(&str, u64)> =
        seen.types.iter().map(|found| (found.name.as_str(), found.events)).collect();
    assert_eq!((seen.events, types, seen.events_left_out), (101, vec![("t", 100), ("u", 1)], 0));

    let rides = seen.of_type("t").expect("the type");
    assert_eq!((rides.oldest_s, rides.newest_s), (NOON_S - 99, NOON_S));
    assert_eq!(rides.sources, [("s".to_owned(), 100)]);

    let fields: Vec<(&str, Kind, u64, usize)> = rides
        .fields
        .iter()
        .map(|field| (field.path.as_str(), field.kind, field.events, field.values))
        .collect();

    let expected = [
        ("source", Kind::Text, 100, 1),
        ("data.city.id", Kind::Number, 100, 3),
        ("data.city.name", Kind::Text, 100, 3),
        ("data.fare", Kind::Mixed, 100, 2),
        ("data.shared", Kind::Bool, 25, 2),
    ];

    assert_eq!(fields, expected);
    let examples = &rides.field("data.city.id").expect("the field").examples;
    let texts: Vec<(&str, u64)> =
        examples.iter().map(|found| (found.text.as_str(), found.events)).collect();
    assert_eq!(texts, [("0", 34), ("1", 33), ("2", 33)]);

    let other = seen.of_type("u").expect("the type");
    let paths: Vec<&str> = other.fields.iter().map(|field| field.path.as_str()).collect();
    assert_eq!(
        (paths, other.field("subject").expect("it").examples[0].text.as_str()),
        (vec!["source", "subject"], "<b>")
    );

    // A sample is the event again: keys can be tried on it.
    let newest = rides.samples.last().expect("a sample");
    let template = Template::parse("c:{city.name}").expect("it");
    let mut found = Vec::new();
    let mut key = String::new();
    let fields: Vec<_> = template.fields().cloned().collect();

    let sampled = newest.event("t");
    raingauge_core::field::extract(&sampled, &fields, &mut found);
    assert!(template.render(found.iter().map(Option::as_ref), &mut key));
    assert_eq!((key.as_str(), rides.samples.len()), ("c:c0", 20));
}

/// Whatever is sent, what is remembered of it stays small.
#[tokio::test]
async fn what_is_remembered_has_bounds() {
    let services = Services::start();
    let wide: Map<String, Json> =
        (0..FIELDS_MAX * 2).map(|n| (format!("f{n}"), json!(n))).collect();
    let mut events = vec![event("wide", NOON_S, Json::Object(wide))];

    for n in 0..TYPES_MAX * 2 {
        let mut event = event(n, NOON_S, json!({"long": "x".repeat(1_000)}));
        event["type"] = json!(format!("t{n}"));
        events.push(event);
    }

    services.send(&events).await;
    let seen = look(&services);
    assert_eq!((seen.types.len(), seen.events_left_out as usize), (TYPES_MAX, TYPES_MAX + 1));

    let wide = seen.of_type("t").expect("the type");
    assert_eq!((wide.fields.len(), wide.has_more_fields), (FIELDS_MAX, true));

    let long = seen.of_type("t0").and_then(|found| found.field("data.long")).expect("the field");
    assert_eq!((long.events, long.values, long.has_more_values), (1, 0, true));

    let few = observed(&[Arc::clone(&services.log) as Arc<dyn EventLog>], 3).expect("looked");
    assert_eq!(few.events, 3);
}

#[test]
fn an_empty_log_has_nothing() {
    let log: Arc<dyn EventLog> = Arc::<raingauge_memory::Log>::default();
    assert_eq!(observed(&[log], EVENTS_MAX).expect("looked"), Observation::default());
}

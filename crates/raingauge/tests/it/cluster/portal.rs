//! Changes in the portal, and their effects elsewhere.

use super::roles::{NOON_S, Roles, count_round};
use crate::client::{Client, event, forever};
use crate::server::until;
use serde_json::{Value, json};
use std::time::Instant;

/// A change is live everywhere soon; the test prints after how long.
pub fn a_change_is_counted_by_the_writer_and_answered_by_the_reader(roles: &Roles) {
    let counter = |value: i64| {
        json!({"id": 50, "name": "live", "template": "live:{round}", "eventType": "live", "value": value,
            "retentionDays": forever()})
    };
    let mut round = 0;
    let partitions = roles.place.partitions;
    let mut until_each_adds = |value: i64| {
        let began = Instant::now();
        until("every partition counts by it", || {
            round += 1;
            let count = count_round(&roles.writer, &roles.reader, "live", round, partitions);
            (count == Some(value * i64::from(partitions))).then_some(())
        });
        began.elapsed()
    };

    roles.portal.create(counter(1));
    println!("a new counter was live after {:?}", until_each_adds(1));
    roles
        .portal
        .send("PUT", "/v1/counters/50", &[], counter(10).to_string().as_bytes())
        .expect(200);
    println!("an edit was live after {:?}", until_each_adds(10));
    roles.portal.send("DELETE", "/v1/counters/50", &[], b"").expect(200);

    let began = Instant::now();
    let archived = until("the reader has forgotten it", || {
        let result = roles.reader.results(&[("live:1", NOON_S, NOON_S + 900)]).remove(0);
        result["error"]["code"].is_string().then_some(result)
    });
    println!("it was archived after {:?}", began.elapsed());
    assert_eq!(archived["error"]["code"], "key_unknown");

    let versions = roles.portal.get("/v1/counters/50/versions").expect(200);
    assert_eq!(versions["versions"].as_array().map(Vec::len), Some(3));
}

pub fn a_route_of_another_role_says_which(roles: &Roles) {
    let ranges = json!({"requests": [{"key": "k", "fromTime": 0, "toTime": 900}]});
    let routes: [(&str, &str, &str, Value); 6] = [
        ("writer", "POST", "/v1/events", event("none", "1", NOON_S, json!({}))),
        ("writer", "POST", "/v1/buckets", json!([])),
        ("reader", "POST", "/v1/counts", ranges),
        ("reader", "GET", "/v1/series?key=k&fromTime=0&toTime=900&granularity=hour", json!({})),
        ("portal", "GET", "/v1/counters", json!({})),
        ("portal", "GET", "/v1/recount?key=k&fromTime=0&toTime=900", json!({})),
    ];

    let processes: [(&str, &Client); 3] =
        [("writer", &roles.writer), ("reader", &roles.reader), ("portal", &roles.portal)];
    for (role, process) in processes {
        for (needed, method, path, body) in &routes {
            let json_type = [("content-type", "application/json")];
            let answer = process.send(method, path, &json_type, body.to_string().as_bytes());

            if *needed == role {
                let answer = answer.text();
                assert!(!answer.contains("role_absent"), "{method} {path} at the {role}: {answer}");
            } else {
                let problem = answer.expect_problem(404, "role_absent");
                let detail = problem["detail"].as_str().unwrap_or_default();
                assert!(
                    detail.contains(&format!("--role {needed}")),
                    "{method} {path} at the {role}: {problem}"
                );
            }
        }
        for path in ["/healthz", "/readyz", "/metrics", "/openapi.json"] {
            assert_eq!(process.get(path).status, 200, "{path} at the {role}");
        }
    }
}

/// A caller that waits until events are counted finds them at any reader.
pub fn what_was_waited_for_is_seen_by_another_process(roles: &Roles) {
    roles.portal.create(
        json!({"id": 51, "name": "waited", "template": "waited:{city}", "eventType": "waited",
        "retentionDays": forever()}),
    );
    roles.settle();

    for round in 1..=20_i64 {
        let events: Vec<Value> = (0..10)
            .map(|index| {
                event("waited", &format!("waited-{round}-{index}"), NOON_S, json!({"city": "oslo"}))
            })
            .collect();

        roles.writer.count_events(&events);
        assert_eq!(roles.reader.count("waited:oslo", NOON_S, NOON_S + 900), round * 10);
    }
}

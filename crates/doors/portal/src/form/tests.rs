use super::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use raingauge_core::limits::FILTER_DEPTH_MAX;

fn nothing_known(_: &str) -> Option<Kind> {
    None
}

/// Sends a form through the page and back.
fn sent(form: &Form) -> Form {
    let encoded =
        form_urlencoded::Serializer::new(String::new()).extend_pairs(form.to_fields()).finish();
    Form::of_fields(&Fields::parse(encoded.as_bytes()))
}

fn constants() -> impl Strategy<Value = Json> {
    prop_oneof![
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        (-1e12..1e12_f64).prop_map(Json::from),
        (any::<i32>(), 0..6_u32)
            .prop_map(|(number, scale)| Json::from(f64::from(number) / 10_f64.powi(scale as i32))),
        "[ -~]{0,12}".prop_map(Json::from),
        "\\PC{0,6}".prop_map(Json::from),
        Just(json!("")),
        Just(json!(" two\nlines ")),
        Just(json!("5")),
        Just(json!("true")),
    ]
}

fn paths() -> impl Strategy<Value = String> {
    prop_oneof![Just("source".to_owned()), Just("id".to_owned()), "data(\\.[a-z<\"&]{1,4}){1,3}"]
}

fn comparisons() -> impl Strategy<Value = Json> {
    let one = vec!["eq", "ne", "gt", "gte", "lt", "lte"];
    prop_oneof![
        (proptest::sample::select(one), paths(), constants()).prop_map(
            |(operator, lhs, rhs)| json!({ "operator": operator, "lhs": lhs, "rhs": rhs })
        ),
        (paths(), "\\PC{0,8}")
            .prop_map(|(lhs, rhs)| json!({ "operator": "prefix", "lhs": lhs, "rhs": rhs })),
        paths().prop_map(|lhs| json!({ "operator": "exists", "lhs": lhs })),
        (paths(), any::<bool>())
            .prop_map(|(lhs, rhs)| json!({ "operator": "exists", "lhs": lhs, "rhs": rhs })),
        (paths(), proptest::collection::vec(constants(), 0..5))
            .prop_map(|(lhs, rhs)| json!({ "operator": "in", "lhs": lhs, "rhs": rhs })),
        (paths(), proptest::collection::vec("[a-z]{1,4}", 1..5))
            .prop_map(|(lhs, rhs)| json!({ "operator": "in", "lhs": lhs, "rhs": rhs })),
    ]
}

/// Filters up to the greatest allowed depth.
fn filters() -> impl Strategy<Value = Json> {
    comparisons().prop_recursive(FILTER_DEPTH_MAX as u32 - 1, 40, 4, |inner| {
        prop_oneof![
            (proptest::sample::select(vec!["and", "or"]), proptest::collection::vec(inner.clone(), 1..4))
                .prop_map(|(operator, conditions)| json!({ "operator": operator, "conditions": conditions })),
            inner.prop_map(|condition| json!({ "operator": "not", "conditions": [condition] })),
        ]
    })
}

fn values() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(json!(1)),
        any::<i64>()
            .prop_filter("the smallest is kept back", |value| *value != i64::MIN)
            .prop_map(Json::from),
        (paths(), 1..1_000_000_000_i64)
            .prop_map(|(field, scale)| json!({ "field": field, "scale": scale })),
    ]
}

fn counters() -> impl Strategy<Value = Json> {
    let texts = (" ?[a-z<>\"'&]\\PC{0,20}", "[ -z|~]{0,20}", "\\PC{0,30}", "[a-z\n\t<]{0,30}");
    let days = proptest::option::of(1..=36_600_u32);
    let kept = (days.clone(), days.clone(), days).prop_map(|(one, two, three)| {
        let mut days = [one, two, three].map(|days| days.unwrap_or(u32::MAX));
        days.sort_unstable();
        days.map(|days| (days != u32::MAX).then_some(days))
    });

    let times = proptest::option::of((0..100_000_000_000_i64, 1..100_000_000_000_i64));
    let states = proptest::sample::select(vec!["draft", "active", "paused", "archived"]);
    let filters = proptest::option::of(filters());

    (0..=999_999_u32, texts, filters, values(), kept, times, states).prop_map(
        |(id, texts, filter, value, [quarter, hour, day], times, state)| {
            let (name, kind, owner, description) = texts;
            json!({ "id": id, "name": name, "template": "a:x{b}:{c.d}y", "eventType": format!("t{kind}"),
                "filter": filter, "value": value,
                "retentionDays": { "quarter": quarter, "hour": hour, "day": day },
                "activeFrom": times.map(|(from, _)| from), "activeUntil": times.map(|(from, lasts)| from + lasts),
                "state": state, "owner": owner, "description": description })
        },
    )
}

proptest! {
    /// Every configuration passes through the form unchanged.
    #[test]
    fn any_configuration_leads_back_to_itself(json in counters()) {
        // Filters with too many conditions are rejected.
        if let Ok(counter) = Counter::from_json(&json) {
            // As a new counter with a chosen id, and as a change.
            let new = Form::of_counter(&counter, 0);
            prop_assert_eq!(sent(&new).counter(&nothing_known, 0).unwrap(), counter.clone());
            let form = Form::of_counter(&counter, 3);
            let back = sent(&form);
            prop_assert_eq!(&back, &form);
            prop_assert_eq!(back.counter(&nothing_known, 0).unwrap(), counter.clone());
            // The known kinds of the fields do not change the configuration.
            for kind in [Kind::Text, Kind::Number, Kind::Bool, Kind::Mixed] {
                prop_assert_eq!(back.counter(&|_| Some(kind), 0).unwrap(), counter.clone());
            }
        }
    }

    /// Any submitted form gives a configuration or a list of problems.
    #[test]
    fn anything_sent_is_read_or_refused(pairs in proptest::collection::vec(
        ("(name|template|depth|operator|field|value|value_type|adds|quarter|activeFrom)(\\.[0-3])?", "[0-9a-z{}:.]{0,6}|and|not|in"), 0..24)) {
        let encoded = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        let form = Form::of_fields(&Fields::parse(encoded.as_bytes()));
        if let Err(problems) = form.counter(&nothing_known, 0) {
            prop_assert!(!problems.is_empty());
        }
        prop_assert_eq!(sent(&form), form);
    }
}

#[test]
fn most_generated_configurations_are_valid() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let valid = (0..200).filter(|_| {
        let json = counters().new_tree(&mut runner).unwrap().current();
        Counter::from_json(&json).is_ok()
    });
    assert!(valid.count() > 100);
}

#[test]
fn values_have_the_type_of_their_field() {
    let mut form = Form {
        event_type: "t".to_owned(),
        name: "n".to_owned(),
        template: "a".to_owned(),
        ..Form::usual()
    };

    let mut read = |value: &str, kind: Option<Kind>| {
        let condition = Node {
            operator: "eq".to_owned(),
            field: "paid".to_owned(),
            value: value.to_owned(),
            ..Node::default()
        };

        form.filter = Some(condition);
        form.counter(&|_| kind, 0).map(|counter| counter.filter.unwrap().rhs.unwrap())
    };

    assert_eq!(read("1", Some(Kind::Text)), Ok(json!("1")));
    assert_eq!(read("1", Some(Kind::Number)), Ok(json!(1)));
    assert_eq!(read(" 1.50", None), Ok(json!(1.5)));
    assert_eq!(read("true", None), Ok(json!(true)));
    assert_eq!(read("cash", Some(Kind::Number)), Ok(json!("cash")));

    assert_eq!(
        read("", None).unwrap_err()[0].detail,
        "filter.rhs is missing: type what the field is compared with"
    );
}

#[test]
fn problems_are_reported_by_field_and_by_condition() {
    let wrong = |value: &str, value_type: &str| Node {
        operator: "eq".to_owned(),
        field: "data.a".to_owned(),
        value: value.to_owned(),
        value_type: value_type.to_owned(),
        inner: Vec::new(),
    };

    let form = Form {
        template: "a:{".to_owned(),
        adds: Adds::Number,
        number: "many".to_owned(),
        quarter: "ten".to_owned(),
        active_from: "soon".to_owned(),
        filter: Some(Node::group(
            "and",
            vec![wrong("1", "number"), wrong("x", "number"), Node::group("or", Vec::new())],
        )),
        ..Form::usual()
    };

    let problems = form.counter(&nothing_known, 0).unwrap_err();
    let problems_of =
        |field: &str| problems.iter().filter(|problem| problem.field == field).count();
    let fields = ["name", "eventType", "template", "value", "retentionDays.quarter", "activeFrom"];
    assert_eq!(fields.map(problems_of), [1; 6], "{problems:#?}");

    let filter: Vec<&str> = problems
        .iter()
        .filter(|problem| problem.field == "filter")
        .map(|problem| problem.detail.as_str())
        .collect();

    assert_eq!(filter.len(), 2, "{filter:?}");
    assert!(filter[0].starts_with("filter.conditions[1].rhs must be a number"));
    assert!(filter[1].starts_with("filter.conditions[2]: `or` needs"));
}

#[test]
fn a_relative_time_of_activity_becomes_fixed() {
    let form = Form {
        name: "drops".to_owned(),
        template: "rain:{city}".to_owned(),
        event_type: "rain".to_owned(),
        active_from: "yesterday".to_owned(),
        active_until: "2024-09-24 22:00".to_owned(),
        ..Form::usual()
    };
    let counter = form.counter(&nothing_known, 86_400 * 19_990 + 7).expect("a counter");
    assert_eq!(counter.active_from, Some(86_400 * 19_989));
    assert_eq!(counter.active_until, Some(1_727_215_200));
}

#[test]
fn conditions_are_added_and_removed_by_their_numbers() {
    let mut filter = None;
    Node::add(&mut filter, None, false);
    Node::add(&mut filter, None, true);

    // and(0) [ eq(1), or(2) [ eq(3) ] ]
    Node::add(&mut filter, Some(2), false);
    let shaped = |filter: &Option<Node>| -> Vec<String> {
        let all = filter.iter().flat_map(Node::numbered);
        all.map(|(depth, node)| format!("{depth}{}", node.operator)).collect()
    };
    assert_eq!(shaped(&filter), ["0and", "1eq", "1or", "2eq", "2eq"]);

    // A condition cannot hold other nodes, so the filter takes the new one.
    Node::add(&mut filter, Some(1), false);
    Node::remove(&mut filter, 5);
    assert_eq!(shaped(&filter), ["0and", "1eq", "1or", "2eq", "2eq"]);
    Node::remove(&mut filter, 3);
    Node::remove(&mut filter, 3);
    assert_eq!(shaped(&filter), ["0and", "1eq"]);
    Node::remove(&mut filter, 9);
    Node::remove(&mut filter, 1);
    assert_eq!(filter, None);

    // A filter that is a single condition gets wrapped in a group.
    let mut alone = Some(Node::condition());
    Node::add(&mut alone, None, false);
    assert_eq!(shaped(&alone), ["0and", "1eq", "1eq"]);
}

//! Counter configurations: what is counted, by which key, for how long.

use crate::event::Event;
use crate::filter::{Condition, Filter};
use crate::limits::{
    CONFIGURATION_LEN_MAX, COUNTER_ID_MAX, FILTER_CONSTANT_LEN_MAX, NAME_LEN_MAX,
    RETENTION_DAYS_MAX, TEXT_LEN_MAX,
};
use crate::retention::RetentionDays;
use crate::template::Template;
use crate::time::{format_rfc3339, parse_time_s};
use crate::value::Value;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::fmt;

/// A counter configuration that has passed [`Counter::from_json`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counter {
    /// 0 in a draft that has no id yet.
    pub id: u32,
    pub name: String,
    pub template: String,
    pub event_type: String,
    pub filter: Option<Condition>,
    pub value: Value,
    pub retention_days: RetentionDays,
    /// Events that happened earlier are not counted.
    #[serde(with = "instant")]
    pub active_from: Option<i64>,
    /// Events that happened at or after this are not counted.
    #[serde(with = "instant")]
    pub active_until: Option<i64>,
    pub state: State,
    pub owner: String,
    pub description: String,
}

crate::names! {
    /// Where a counter stands in its life.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum State {
        /// Neither counts nor answers.
        Draft = "draft",
        /// Counts and answers.
        Active = "active",
        /// Answers, but does not count.
        Paused = "paused",
        /// Neither counts nor answers, and leaves its template to others.
        Archived = "archived",
    }
}

impl State {
    pub const fn counts(self) -> bool {
        matches!(self, Self::Active)
    }

    pub const fn answers(self) -> bool {
        matches!(self, Self::Active | Self::Paused)
    }
}

/// One thing that is wrong with a configuration. What is wrong with it as a whole has no field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The member of the configuration, as it is spelled there.
    pub field: String,
    pub detail: String,
}

impl Problem {
    pub fn new(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { field: field.into(), detail: detail.into() }
    }
}

/// The member and what is wrong with it, or that alone when it is about the whole configuration.
impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(formatter, "{}: ", self.field)?;
        }
        formatter.write_str(&self.detail)
    }
}

const MEMBERS: [&str; 12] = [
    "id",
    "name",
    "template",
    "eventType",
    "filter",
    "value",
    "retentionDays",
    "activeFrom",
    "activeUntil",
    "state",
    "owner",
    "description",
];

impl Counter {
    /// Reads and checks a configuration. All problems are reported together.
    pub fn from_json(json: &Json) -> Result<Self, Vec<Problem>> {
        let Some(members) = json.as_object() else {
            return Err(vec![Problem::new("", "a counter configuration must be an object")]);
        };
        let mut read = Reading { members, problems: Vec::new() };
        for name in members.keys().filter(|name| !MEMBERS.contains(&name.as_str())) {
            read.problems.push(Problem::new(
                name,
                format!("unknown member; known are {}", MEMBERS.join(", ")),
            ));
        }

        let counter = Self {
            id: read.member("id", "a whole number", || 0),
            name: read.member("name", "a text", String::new),
            template: read.member("template", "a text", String::new),
            event_type: read.member("eventType", "a text", String::new),
            filter: read.member("filter", "a condition or null", || None),
            value: read.member(
                "value",
                "a whole number, or {\"field\": \"data.amount\", \"scale\": 100}",
                Value::default,
            ),
            retention_days: read.member(
                "retentionDays",
                "{\"quarter\": days, \"hour\": days, \"day\": days}, null for ever",
                RetentionDays::default,
            ),
            active_from: read.instant("activeFrom"),
            active_until: read.instant("activeUntil"),
            state: read.member("state", "draft, active, paused or archived", || State::Active),
            owner: read.member("owner", "a text", String::new),
            description: read.member("description", "a text", String::new),
        };

        let mut problems = read.problems;
        problems.extend(size_problems(json, counter.filter.as_ref()));

        let unread: Vec<String> = problems.iter().map(|problem| problem.field.clone()).collect();
        problems.extend(
            counter.problems().into_iter().filter(|problem| !unread.contains(&problem.field)),
        );
        if problems.is_empty() { Ok(counter) } else { Err(problems) }
    }

    /// What is wrong with the configuration taken by itself.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut check = |ok: bool, field: &str, detail: String| {
            if !ok {
                problems.push(Problem::new(field, detail));
            }
        };

        check(self.id <= COUNTER_ID_MAX, "id", format!("must be at most {COUNTER_ID_MAX}"));
        let named = !self.name.trim().is_empty() && self.name.len() <= NAME_LEN_MAX;
        check(named, "name", format!("must have 1 to {NAME_LEN_MAX} bytes"));

        let typed = !self.event_type.is_empty()
            && self.event_type.len() <= crate::limits::ATTRIBUTE_LEN_MAX;
        check(typed, "eventType", "must name the CloudEvents type that is counted".to_owned());
        check(
            self.owner.len() <= TEXT_LEN_MAX,
            "owner",
            format!("must have at most {TEXT_LEN_MAX} bytes"),
        );
        check(
            self.description.len() <= TEXT_LEN_MAX,
            "description",
            format!("must have at most {TEXT_LEN_MAX} bytes"),
        );

        let ordered =
            self.active_from.zip(self.active_until).is_none_or(|(from, until)| from < until);
        check(ordered, "activeUntil", "must lie after activeFrom".to_owned());
        problems
            .extend(self.value.problems().into_iter().map(|detail| Problem::new("value", detail)));
        problems.extend(retention_problems(&self.retention_days));
        problems.extend(texts("template", Template::parse(&self.template).err()));

        let compiled = self.filter.as_ref().map(|filter| Filter::compile(filter, &mut |_| 0));
        problems.extend(texts("filter", compiled.and_then(Result::err)));
        problems.extend(texts("filter", self.filter.as_ref().map(Condition::inexact_numbers)));

        problems
    }

    /// Whether the counter is meant to count what happened at this time.
    pub fn is_active_at(&self, time_s: i64) -> bool {
        self.active_from.is_none_or(|from| time_s >= from)
            && self.active_until.is_none_or(|until| time_s < until)
    }

    /// Whether the counter listens to the type of this event.
    pub fn listens_to(&self, event: &Event<'_>) -> bool {
        self.event_type == *event.kind
    }
}

/// What is too large in a configuration that comes from outside. Those of earlier releases may be
/// larger, and are still read.
fn size_problems(json: &Json, filter: Option<&Condition>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if json.to_string().len() > CONFIGURATION_LEN_MAX {
        let detail = format!("a configuration has at most {CONFIGURATION_LEN_MAX} bytes of JSON");
        problems.push(Problem::new("", detail));
    }
    if filter.is_some_and(has_long_constant) {
        let detail =
            format!("a text or number of a condition has at most {FILTER_CONSTANT_LEN_MAX} bytes");
        problems.push(Problem::new("filter", detail));
    }
    problems
}

fn has_long_constant(condition: &Condition) -> bool {
    let is_long = |constant: &Json| match constant {
        Json::String(text) => text.len() > FILTER_CONSTANT_LEN_MAX,
        Json::Number(number) => number.to_string().len() > FILTER_CONSTANT_LEN_MAX,
        _ => false,
    };
    let is_one = condition.rhs.as_ref().is_some_and(|constant| match constant {
        Json::Array(constants) => constants.iter().any(is_long),
        constant => is_long(constant),
    });
    is_one || condition.conditions.iter().flatten().any(has_long_constant)
}

fn texts(field: &'static str, details: Option<Vec<String>>) -> impl Iterator<Item = Problem> {
    details.into_iter().flatten().map(move |detail| Problem::new(field, detail))
}

fn retention_problems(days: &RetentionDays) -> Vec<Problem> {
    let forever = u32::MAX;
    let mut problems = Vec::new();
    for kept in [days.quarter, days.hour, days.day].into_iter().flatten() {
        if kept == 0 || kept > RETENTION_DAYS_MAX {
            problems.push(Problem::new(
                "retentionDays",
                format!("days must lie between 1 and {RETENTION_DAYS_MAX}; null keeps for ever"),
            ));
        }
    }

    let [quarter, hour, day] =
        [days.quarter, days.hour, days.day].map(|kept| kept.unwrap_or(forever));
    if quarter > hour || hour > day {
        problems.push(Problem::new(
            "retentionDays",
            "finer buckets cannot be kept longer than coarser ones: quarter <= hour <= day",
        ));
    }

    problems
}

/// Reads members one by one and gathers what is wrong with them.
struct Reading<'a> {
    members: &'a serde_json::Map<String, Json>,
    problems: Vec<Problem>,
}

impl Reading<'_> {
    fn member<T: DeserializeOwned>(
        &mut self,
        name: &str,
        expected: &str,
        default: impl Fn() -> T,
    ) -> T {
        let Some(json) = self.members.get(name) else {
            return default();
        };
        T::deserialize(json).unwrap_or_else(|_| {
            self.problems.push(Problem::new(name, format!("must be {expected}")));
            default()
        })
    }

    fn instant(&mut self, name: &str) -> Option<i64> {
        let instant = match self.members.get(name)? {
            Json::Null => return None,
            Json::Number(seconds) => parse_time_s(&seconds.to_string()),
            Json::String(text) => parse_time_s(text),
            _ => None,
        };
        if instant.is_none() {
            self.problems.push(Problem::new(name, "must be epoch seconds, RFC 3339 or null"));
        }
        instant
    }
}

/// Instants are written as RFC 3339 and read in either form.
mod instant {
    use super::{format_rfc3339, parse_time_s};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(
        instant: &Option<i64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        instant.map(format_rfc3339).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<i64>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| parse_time_s(&text).ok_or_else(|| D::Error::custom("not an instant")))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn rain() -> Json {
        json!({"id": 34, "name": "count_rain_drops", "template": "rain_drops:city:{city_id}", "eventType": "rain_drop",
            "filter": {"operator": "and", "conditions": [{"operator": "gte", "lhs": "data.millimetres", "rhs": 1}]},
            "value": 1, "retentionDays": {"quarter": 90, "hour": 400, "day": null}, "activeFrom": null, "activeUntil": null,
            "state": "active", "owner": "weather", "description": ""})
    }

    fn with(name: &str, value: Json) -> Json {
        let mut counter = rain();
        counter[name] = value;
        counter
    }

    #[test]
    fn a_configuration_from_outside_has_a_size() {
        let condition = |rhs: Json| json!({ "operator": "eq", "lhs": "data.a", "rhs": rhs });
        let problem = |json: &Json| Counter::from_json(json).unwrap_err()[0].detail.clone();
        let fits = "x".repeat(FILTER_CONSTANT_LEN_MAX);
        assert!(Counter::from_json(&with("filter", condition(json!(fits)))).is_ok());

        let long = "x".repeat(FILTER_CONSTANT_LEN_MAX + 1);
        for rhs in [
            condition(json!(long)),
            json!({ "operator": "not", "conditions": [condition(json!(long))] }),
        ] {
            assert!(problem(&with("filter", rhs)).contains("at most 1024 bytes"));
        }

        let one_of = json!({ "operator": "in", "lhs": "data.a", "rhs": ["a", long] });
        assert!(problem(&with("filter", one_of)).contains("at most 1024 bytes"));

        let many: Vec<String> =
            (0..200).map(|number| format!("{number}{}", "x".repeat(400))).collect();
        let large = json!({ "operator": "in", "lhs": "data.a", "rhs": many });
        let large = with("filter", large);
        assert!(problem(&large).contains("at most 65536 bytes"));

        // What an earlier release took is still read.
        assert!(
            serde_json::from_value::<Counter>(json!(Counter { id: 1, ..read_before(&large) }))
                .is_ok()
        );
    }

    fn read_before(json: &Json) -> Counter {
        serde_json::from_value(json.clone()).unwrap()
    }

    #[test]
    fn the_configuration_of_the_contract_leads_back_to_itself() {
        let counter = Counter::from_json(&rain()).unwrap();
        assert_eq!(serde_json::to_value(&counter).unwrap(), rain());
        let dated = Counter::from_json(&with("activeFrom", json!(1_727_215_200))).unwrap();
        assert_eq!(
            serde_json::to_value(&dated).unwrap()["activeFrom"],
            json!("2024-09-24T22:00:00Z")
        );
        assert_eq!(
            serde_json::from_value::<Counter>(serde_json::to_value(&dated).unwrap()).unwrap(),
            dated
        );
    }

    #[test]
    fn what_is_optional_has_a_default() {
        let json = json!({"name": "n", "template": "a:{b}", "eventType": "t"});
        let counter = Counter::from_json(&json).unwrap();
        assert_eq!(
            (counter.id, counter.state, &counter.value),
            (0, State::Active, &Value::Fixed(1))
        );
        assert_eq!(
            counter.retention_days,
            RetentionDays { quarter: Some(90), hour: Some(400), day: None }
        );
    }

    #[test]
    fn every_problem_is_reported_at_once() {
        let json = json!({"id": -1, "name": "", "template": "a:{", "eventType": 7, "value": {"field": "amount", "scale": 0},
            "filter": {"operator": "like"}, "retentionDays": {"quarter": 9, "hour": 8}, "activeFrom": "soon", "state": "on", "colour": 1});
        let problems = Counter::from_json(&json).unwrap_err();
        let mut fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
        fields.dedup();
        fields.sort_unstable();
        fields.dedup();

        assert_eq!(
            fields,
            [
                "activeFrom",
                "colour",
                "eventType",
                "filter",
                "id",
                "name",
                "retentionDays",
                "state",
                "template",
                "value"
            ]
        );
    }

    #[test]
    fn the_time_of_activity_is_half_open() {
        let mut counter = Counter::from_json(&rain()).unwrap();
        (counter.active_from, counter.active_until) = (Some(10), Some(20));
        assert!(
            !counter.is_active_at(9)
                && counter.is_active_at(10)
                && counter.is_active_at(19)
                && !counter.is_active_at(20)
        );
        assert!(Counter::from_json(&with("activeUntil", json!(5))).is_ok());
        let mut backwards = with("activeUntil", json!(5));
        backwards["activeFrom"] = json!(5);
        assert_eq!(Counter::from_json(&backwards).unwrap_err()[0].field, "activeUntil");
    }

    fn any_json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<f64>().prop_map(Json::from),
            "[a-z{}:.%]{0,12}".prop_map(Json::from),
        ];

        let names = prop_oneof![
            Just("operator"),
            Just("conditions"),
            Just("lhs"),
            Just("rhs"),
            Just("field"),
            Just("scale"),
            Just("quarter")
        ];

        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
                proptest::collection::hash_map(names.clone().prop_map(str::to_owned), inner, 0..4)
                    .prop_map(|members| Json::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Whatever stands in a member: the configuration is refused with reasons, or it is one
        /// that counts without a fault.
        #[test]
        fn any_configuration_is_read_or_refused(member in 0..MEMBERS.len(), value in any_json()) {
            match Counter::from_json(&with(MEMBERS[member], value)) {
                Err(problems) => prop_assert!(!problems.is_empty()),
                Ok(counter) => {
                    let again = serde_json::to_value(&counter).unwrap();
                    prop_assert_eq!(&Counter::from_json(&again).unwrap(), &counter);
                    prop_assert_eq!(crate::ruleset::Ruleset::new([counter]).rules().len(), 1);
                }
            }
        }
    }
}

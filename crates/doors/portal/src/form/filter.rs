//! The filter of a form: groups and conditions as text.

use super::{Kinds, path_of};
use crate::fields::Fields;
use raingauge_core::counter::Problem;
use raingauge_core::filter::Condition;
use raingauge_core::limits::FILTER_CONDITIONS_MAX;
use raingauge_counters::observed::Kind;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value as Json, json};
use std::iter::Peekable;

/// Largest number of nodes in a form. It is more than a configuration may have, so that an excess
/// is reported and not lost.
const NODES_MAX: usize = 2 * FILTER_CONDITIONS_MAX;

/// A group or a condition, as typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// `and`, `or`, `not` for a group.
    pub operator: String,
    /// For a condition: its field and its value.
    pub field: String,
    pub value: String,
    /// The type of the value: `text`, `number`, `bool` or `json`; empty takes the field's own.
    pub value_type: String,
    /// For a group: its nodes.
    pub inner: Vec<Node>,
}

impl Node {
    /// An empty condition.
    pub fn condition() -> Self {
        Self { operator: "eq".to_owned(), ..Self::default() }
    }

    pub fn group(operator: &str, inner: Vec<Self>) -> Self {
        Self { operator: operator.to_owned(), inner, ..Self::default() }
    }

    pub fn is_group(&self) -> bool {
        matches!(self.operator.as_str(), "and" | "or" | "not")
    }

    pub fn of_condition(condition: &Condition) -> Self {
        let (value_type, value) = typed(condition.rhs.as_ref());
        Self {
            operator: condition.operator.clone(),
            field: condition.lhs.clone().unwrap_or_default(),
            value,
            value_type: value_type.to_owned(),
            inner: condition.conditions.iter().flatten().map(Self::of_condition).collect(),
        }
    }

    /// Reads the filter from a submitted form: its nodes are numbered, each with its depth.
    pub fn of_fields(fields: &Fields) -> Option<Self> {
        let mut flat = Vec::new();
        for number in 0..NODES_MAX {
            let text = |name: &str| fields.exact(&format!("{name}.{number}"));
            let Ok(depth) = text("depth").parse::<usize>() else {
                break;
            };
            let own = |name: &str| text(name).to_owned();
            let node = Self {
                operator: own("operator"),
                field: own("field"),
                value: own("value"),
                value_type: own("value_type"),
                inner: Vec::new(),
            };

            flat.push((depth, node));
        }

        let mut roots = gather(&mut flat.into_iter().peekable(), 0);
        if roots.len() > 1 { Some(Self::group("and", roots)) } else { roots.pop() }
    }

    /// The nodes in the order of [`numbered`](Self::numbered), as a page sends them.
    #[cfg(test)]
    pub fn to_fields(&self) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        for (number, (depth, node)) in self.numbered().into_iter().enumerate() {
            let mut field = |name: &str, value: &str| {
                fields.push((format!("{name}.{number}"), value.to_owned()))
            };
            field("depth", &depth.to_string());
            field("operator", &node.operator);
            field("field", &node.field);
            field("value", &node.value);
            field("value_type", &node.value_type);
        }
        fields
    }

    /// Returns all nodes with their depths, each group before its content. The number of a node is
    /// its index here.
    pub fn numbered(&self) -> Vec<(usize, &Self)> {
        let mut all = Vec::new();
        self.number(0, &mut all);
        all
    }

    fn number<'a>(&'a self, depth: usize, all: &mut Vec<(usize, &'a Self)>) {
        all.push((depth, self));
        self.inner.iter().for_each(|inner| inner.number(depth + 1, all));
    }

    fn find(&mut self, left: &mut usize) -> Option<&mut Self> {
        if *left == 0 {
            return Some(self);
        }
        *left -= 1;
        self.inner.iter_mut().find_map(|inner| inner.find(left))
    }

    /// Adds a condition, or a group with one condition, to the group with this number; without a
    /// number, to the whole filter.
    pub fn add(filter: &mut Option<Self>, number: Option<usize>, is_group: bool) {
        let added =
            if is_group { Self::group("or", vec![Self::condition()]) } else { Self::condition() };
        let whole = match filter.take() {
            None => Self::group("and", Vec::new()),
            Some(whole) if whole.is_group() => whole,
            Some(alone) => Self::group("and", vec![alone]),
        };
        let whole = filter.insert(whole);
        match whole.find(&mut number.unwrap_or(0)) {
            Some(group) if group.is_group() => group.inner.push(added),
            _ => whole.inner.push(added),
        }
    }

    /// Removes the node with this number, and groups that become empty.
    pub fn remove(filter: &mut Option<Self>, number: usize) {
        let mut all: Vec<Self> = filter.take().into_iter().collect();
        remove(&mut all, &mut { number });
        *filter = all.pop();
    }

    /// Returns the JSON of the configuration. Values that cannot be parsed are reported under the
    /// path that the core would name.
    pub fn to_json(&self, at: &str, kinds: Kinds<'_>, problems: &mut Vec<Problem>) -> Json {
        if self.is_group() {
            let inner: Vec<Json> = (0..)
                .zip(&self.inner)
                .map(|(number, inner): (usize, _)| {
                    inner.to_json(&format!("{at}.conditions[{number}]"), kinds, problems)
                })
                .collect();
            return json!({ "operator": self.operator, "conditions": inner });
        }

        let path = path_of(&self.field);
        let read = match self.operator.as_str() {
            "exists" => Ok(bool_of(&self.value)),
            "in" => self.list(kinds(&path)).map(Some),
            "prefix" if self.value_type.is_empty() => Ok(Some(json!(self.value))),
            _ => constant(&self.value, &self.value_type, kinds(&path)).map(Some),
        };

        let mut condition = Map::new();
        condition.insert("operator".to_owned(), json!(self.operator));
        condition.insert("lhs".to_owned(), json!(path));

        match read {
            Ok(Some(rhs)) => {
                condition.insert("rhs".to_owned(), rhs);
            }
            Ok(None) => {}
            Err(detail) => {
                problems.push(Problem::new("filter", format!("{at}.rhs {detail}")));
                condition.insert(
                    "rhs".to_owned(),
                    if self.operator == "in" { json!([]) } else { json!("") },
                );
            }
        }

        Json::Object(condition)
    }

    fn list(&self, kind: Option<Kind>) -> Result<Json, &'static str> {
        if self.value_type == "json" {
            let raw: Vec<&RawValue> = serde_json::from_str(&self.value)
                .map_err(|_| "must be a list in JSON, such as [\"a, b\", 5]")?;
            return raw
                .iter()
                .map(|raw| of_json(raw.get()))
                .collect::<Result<Vec<_>, _>>()
                .map(Json::Array);
        }

        let texts = self.value.split(',').map(str::trim).filter(|text| !text.is_empty());
        texts
            .map(|text| constant(text, &self.value_type, kind))
            .collect::<Result<Vec<_>, _>>()
            .map(Json::Array)
    }
}

fn gather(flat: &mut Peekable<impl Iterator<Item = (usize, Node)>>, depth: usize) -> Vec<Node> {
    let mut nodes = Vec::new();
    while let Some((own, mut node)) = flat.next_if(|(own, _)| *own >= depth) {
        let inner = gather(flat, own.saturating_add(1));
        if node.is_group() {
            node.inner = inner;
        }
        nodes.push(node);
    }
    nodes
}

fn remove(nodes: &mut Vec<Node>, left: &mut usize) -> bool {
    for place in 0..nodes.len() {
        if *left == 0 {
            nodes.remove(place);
            return true;
        }

        *left -= 1;

        if remove(&mut nodes[place].inner, left) {
            if nodes[place].inner.is_empty() {
                nodes.remove(place);
            }
            return true;
        }
    }
    false
}

/// The type of a constant, and its text.
fn typed(constant: Option<&Json>) -> (&'static str, String) {
    let Some(constant) = constant else {
        return ("", String::new());
    };
    match constant {
        Json::String(text) if is_plain(text) => ("text", text.clone()),
        Json::Number(number) => ("number", number.to_string()),
        Json::Bool(flag) => ("bool", flag.to_string()),
        Json::Array(list) => typed_list(list).unwrap_or_else(|| ("json", constant.to_string())),
        other => ("json", other.to_string()),
    }
}

/// A list as its values separated by commas; `None` if parsing that text would not restore the
/// list.
fn typed_list(list: &[Json]) -> Option<(&'static str, String)> {
    let values: Vec<(&'static str, String)> = list.iter().map(|value| typed(Some(value))).collect();
    let (value_type, _) = values.first()?;
    let leads_back = |(other, text): &(&str, String)| {
        other == value_type && *other != "json" && !text.contains(',')
    };
    values.iter().all(leads_back).then(|| {
        let texts: Vec<&str> = values.iter().map(|(_, text)| text.as_str()).collect();
        (*value_type, texts.join(", "))
    })
}

/// Whether a text passes through a one-line field unchanged.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.contains(char::is_control)
}

fn bool_of(text: &str) -> Option<Json> {
    match text.trim() {
        "" => None,
        "true" => Some(json!(true)),
        "false" => Some(json!(false)),
        other => Some(json!(other)),
    }
}

/// Parses a constant as the chosen type, or else as the type of its field.
fn constant(text: &str, value_type: &str, kind: Option<Kind>) -> Result<Json, &'static str> {
    let text = text.trim();
    let number = || number_of(text).ok_or("must be a number");
    let flag = || text.parse::<bool>().map(Json::from).map_err(|_| "must be true or false");
    match (value_type, kind) {
        ("text", _) => Ok(json!(text)),
        ("number", _) => number(),
        ("bool", _) => flag(),
        ("json", _) => of_json(text),
        (_, _) if text.is_empty() => Err("is missing: type what the field is compared with"),
        (_, Some(Kind::Text)) => Ok(json!(text)),
        _ => Ok(number().or_else(|_| flag()).unwrap_or_else(|_| json!(text))),
    }
}

/// Parses one constant written in JSON.
fn of_json(raw: &str) -> Result<Json, &'static str> {
    const EXPECTED: &str = "must be a text in quotes, a number, true or false";
    match number_of(raw) {
        Some(number) => Ok(number),
        None => serde_json::from_str::<Json>(raw)
            .ok()
            .filter(|json| json.is_string() || json.is_boolean())
            .ok_or(EXPECTED),
    }
}

/// Parses a number exactly: the JSON parser may miss the nearest float by a little.
fn number_of(text: &str) -> Option<Json> {
    let looks_like_one = text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && text.ends_with(|last: char| last.is_ascii_digit())
        && serde_json::from_str::<Number>(text).is_ok();
    if !looks_like_one {
        return None;
    }
    let whole =
        text.parse::<i64>().map(Json::from).or_else(|_| text.parse::<u64>().map(Json::from));
    // `-0` is a float in JSON.
    let whole = whole.ok().filter(|_| text != "-0");
    whole.or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64).map(Json::Number))
}

//! The filter of the form: nested groups of conditions.

use super::{Sheet, hidden};
use crate::form::{Node, path_of};
use maud::{Markup, html};
use raingauge_core::limits::FILTER_DEPTH_MAX;
use raingauge_counters::observed::Field;

const GROUPS: [(&str, &str); 3] =
    [("and", "all of these hold"), ("or", "any of these holds"), ("not", "this does not hold")];
const OPERATORS: [(&str, &str); 9] = [
    ("eq", "is"),
    ("ne", "is not"),
    ("gt", ">"),
    ("gte", "≥"),
    ("lt", "<"),
    ("lte", "≤"),
    ("in", "is one of"),
    ("prefix", "begins with"),
    ("exists", "exists"),
];
const VALUE_TYPES: [(&str, &str); 5] = [
    ("", "like the field"),
    ("text", "as text"),
    ("number", "as number"),
    ("bool", "as true or false"),
    ("json", "as JSON"),
];

impl Sheet<'_> {
    pub(super) fn filter(&self) -> Markup {
        let problems: Vec<&str> = self
            .problems
            .iter()
            .filter(|problem| problem.field == "filter")
            .map(|problem| &*problem.detail)
            .collect();
        html! {
            fieldset.filter #filter hx-target="#filter" hx-select="#filter" {
                legend { "Filter" }
                @match &self.form.filter {
                    None => { p.quiet { "Every event of this type is counted." } }
                    Some(filter) => (self.node(filter, &mut 0, 0, "filter", &problems)),
                }
                @if self.form.filter.as_ref().is_none_or(|filter| !filter.is_group()) {
                    (add_buttons(None, true))
                }
            }
        }
    }

    fn node(
        &self,
        node: &Node,
        number: &mut usize,
        depth: usize,
        at: &str,
        problems: &[&str],
    ) -> Markup {
        let own = *number;
        *number += 1;

        if !node.is_group() {
            return self.condition(node, own, depth, at, problems);
        }
        let has_room = node.operator != "not" || node.inner.is_empty();
        let inner: Vec<Markup> = (0..)
            .zip(&node.inner)
            .map(|(place, inner): (usize, _)| {
                self.node(inner, number, depth + 1, &format!("{at}.conditions[{place}]"), problems)
            })
            .collect();

        html! {
            div.group role="group" aria-label="Group of conditions" {
                (hidden(&format!("depth.{own}"), &depth.to_string()))
                div.group-head {
                    (select("operator", own, "How conditions combine", &GROUPS, &node.operator))
                    (button("remove", Some(own), "Remove"))
                }
                (problems_of(at, problems))
                ul { @for inner in &inner { li { (inner) } } }
                @if has_room { (add_buttons(Some(own), depth + 2 < FILTER_DEPTH_MAX)) }
            }
        }
    }

    fn condition(
        &self,
        node: &Node,
        own: usize,
        depth: usize,
        at: &str,
        problems: &[&str],
    ) -> Markup {
        let mark = problems.iter().any(|problem| concerns(at, problem).is_some()).then_some("true");
        let hint = if node.operator == "in" { "values, separated by commas" } else { "value" };
        html! {
            div.condition id={ "condition-" (own) } {
                (hidden(&format!("depth.{own}"), &depth.to_string()))
                input type="text" id={ "field-" (own) } name={ "field." (own) } value=(node.field)
                    list="fields" placeholder="field" aria-label="Field" autocomplete="off"
                    spellcheck="false" aria-invalid=[mark] hx-post="/drafts/form"
                    hx-trigger="change" hx-target="#lists" hx-select="#lists";
                (operators(node, own))
                @if node.operator == "exists" {
                    (hidden(&format!("value_type.{own}"), &node.value_type))
                    (presence(node, own))
                } @else {
                    input type="text" id={ "value-" (own) } name={ "value." (own) }
                        value=(node.value) list={ "values-" (own) } placeholder=(hint)
                        aria-label="Value" autocomplete="off" spellcheck="false"
                        aria-invalid=[mark];
                    (select("value_type", own, "Type of the value", &VALUE_TYPES, &node.value_type))
                }
                (button("remove", Some(own), "Remove"))
                (problems_of(at, problems))
            }
        }
    }

    /// Recent values of the fields in the conditions.
    pub(super) fn value_lists(&self) -> Markup {
        let all = self.form.filter.iter().flat_map(Node::numbered);
        let examples = |node: &Node| {
            self.observed_field(&node.field).into_iter().flat_map(|field| &field.examples)
        };
        html! {
            @for (number, (_, node)) in all.enumerate().filter(|(_, (_, node))| !node.is_group()) {
                datalist id={ "values-" (number) } {
                    @for example in examples(node) { option value=(example.text) {} }
                }
            }
        }
    }

    fn observed_field(&self, typed: &str) -> Option<&Field> {
        self.observed.of_type(&self.form.event_type)?.field(&path_of(typed))
    }
}

fn operators(node: &Node, own: usize) -> Markup {
    let known = OPERATORS.iter().any(|(operator, _)| *operator == node.operator);
    html! {
        select id={ "operator-" (own) } name={ "operator." (own) } aria-label="Comparison"
            hx-post="/drafts/form" hx-trigger="change" hx-target={ "#condition-" (own) }
            hx-select={ "#condition-" (own) } {
            (options(&OPERATORS, &node.operator))
            @if !known { option value=(node.operator) selected { (node.operator) } }
        }
    }
}

/// Replaces the value for operators that test whether a field is present.
fn presence(node: &Node, own: usize) -> Markup {
    let there = if node.value == "true" { "true" } else { "" };
    html! {
        select id={ "value-" (own) } name={ "value." (own) } aria-label="Whether the field exists" {
            option value=(there) selected[node.value != "false"] { "yes" }
            option value="false" selected[node.value == "false"] { "no, it is missing" }
        }
    }
}

fn select(name: &str, own: usize, label: &str, values: &[(&str, &str)], chosen: &str) -> Markup {
    html! {
        select id={ (name) "-" (own) } name={ (name) "." (own) } aria-label=(label) {
            (options(values, chosen))
        }
    }
}

fn options(values: &[(&str, &str)], chosen: &str) -> Markup {
    html! {
        @for (value, label) in values {
            option value=(value) selected[*value == chosen] { (label) }
        }
    }
}

fn add_buttons(number: Option<usize>, may_have_groups: bool) -> Markup {
    html! {
        div.actions {
            (button("add-condition", number, "Add condition"))
            @if may_have_groups { (button("add-group", number, "Add group")) }
        }
    }
}

fn button(action: &str, number: Option<usize>, words: &str) -> Markup {
    let value = number.map_or_else(|| action.to_owned(), |number| format!("{action}:{number}"));
    html! {
        button.button.small type="submit" formaction="/drafts/form" name="do" value=(value)
            hx-post="/drafts/form" { (words) }
    }
}

/// The problems of this node, in words that do not need its path.
fn problems_of(at: &str, problems: &[&str]) -> Markup {
    html! {
        @for detail in problems.iter().filter_map(|problem| concerns(at, problem)) {
            p.problem { (detail) }
        }
    }
}

/// The text of a problem if it concerns the node at this path.
fn concerns(at: &str, problem: &str) -> Option<String> {
    let rest = problem.strip_prefix(at)?;
    let rest = match rest.strip_prefix('.') {
        Some(rest) if rest.starts_with("conditions") => return None,
        Some(rest) => rest,
        None if rest.starts_with([' ', ':']) => rest.trim_start_matches([' ', ':']),
        None => return None,
    };

    let words = [
        ("rhs", "the value"),
        ("lhs", "the field"),
        ("operator", "the comparison"),
        ("is", "it is"),
        ("has", "the filter has"),
    ];

    let (first, others) = rest.split_once(' ').unwrap_or((rest, ""));
    let first = words.iter().find(|(name, _)| *name == first).map_or(first, |(_, words)| words);
    Some(format!("{first} {others}"))
}

#[cfg(test)]
mod tests {
    use super::concerns;

    #[test]
    fn problems_are_shown_beside_their_condition() {
        let problem = "filter.conditions[1].rhs must be a number";
        assert_eq!(
            concerns("filter.conditions[1]", problem).as_deref(),
            Some("the value must be a number")
        );
        for elsewhere in ["filter", "filter.conditions[0]", "filter.conditions[1].conditions[0]"] {
            assert_eq!(concerns(elsewhere, problem), None, "{elsewhere}");
        }
        assert_eq!(concerns("filter.conditions[1]", "filter.conditions[10].rhs must"), None);
        let needs = "filter: `or` needs at least one condition";
        assert_eq!(concerns("filter", needs).as_deref(), Some("`or` needs at least one condition"));
    }
}

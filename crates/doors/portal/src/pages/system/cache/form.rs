//! The form of a cache policy: a strategy for all counters, steps that give some counters another
//! one, and overrides for single instances.

use super::{problem, reason_of, select};
use crate::fields::Fields;
use crate::html::parts::{self, Field};
use crate::pages::system::overview::Overview;
use maud::{Markup, html};
use raingauge_core::limits::{POLICY_OVERRIDES_MAX, POLICY_STEPS_MAX};
use raingauge_people::Principal;
use raingauge_policy::cache::{Choice, Policy, Step, Strategy};
use raingauge_ports::catalog::VersionedPolicy;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of rows in a form, the same as in a policy.
const ROWS_MAX: usize = POLICY_STEPS_MAX * 2 + POLICY_OVERRIDES_MAX;

/// The form as submitted, or filled from the policy in force.
#[derive(Clone, Debug, Default)]
pub struct Form {
    pub strategy: String,
    /// Exceptions for some counters, on all instances.
    pub steps: Vec<Row>,
    /// Overrides for single instances.
    pub canaries: Vec<Row>,
    pub reason: String,
    /// The policy version that the form is based on.
    pub version: u32,
    /// The problems, by field.
    pub problems: Vec<(&'static str, String)>,
}

/// One row: which counters, on which instance, use which strategy. Without `modulo` and `below` it
/// covers all counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub instance: String,
    pub modulo: String,
    pub below: String,
    pub strategy: String,
}

impl Row {
    fn of(instance: &str, step: &Step) -> Self {
        let modulo = step.modulo.to_string();
        let below = step.below.to_string();
        Self {
            instance: instance.to_owned(),
            modulo,
            below,
            strategy: step.strategy.name().to_owned(),
        }
    }

    fn is_blank(&self) -> bool {
        self.instance.is_empty() && self.modulo.is_empty() && self.below.is_empty()
    }
}

impl Form {
    pub fn of(current: &VersionedPolicy) -> Self {
        let Policy { choice, overrides } = &current.policy;
        let mut canaries = Vec::new();
        for (instance, choice) in overrides {
            canaries.extend(choice.rollout.iter().map(|step| Row::of(instance, step)));
            let strategy = choice.strategy.name().to_owned();
            canaries.push(Row { instance: instance.clone(), strategy, ..Row::default() });
        }

        Self {
            strategy: choice.strategy.name().to_owned(),
            steps: choice.rollout.iter().map(|step| Row::of("", step)).collect(),
            canaries,
            version: current.version,
            ..Self::default()
        }
    }

    pub fn sent(fields: &Fields) -> Self {
        let column = |name: &str| {
            fields.values(name).take(ROWS_MAX).map(str::to_owned).collect::<Vec<String>>()
        };
        let rows = |prefix: &str| {
            let [instances, modulos, belows, strategies] =
                ["instance", "modulo", "below", "strategy"]
                    .map(|name| column(&format!("{prefix}-{name}")));
            let at =
                |column: &[String], place: usize| column.get(place).cloned().unwrap_or_default();
            let row = |place: usize| Row {
                instance: at(&instances, place),
                modulo: at(&modulos, place),
                below: at(&belows, place),
                strategy: at(&strategies, place),
            };

            (0..strategies.len()).map(row).filter(|row| !row.is_blank()).collect::<Vec<Row>>()
        };

        let mut problems = Vec::new();
        let reason = reason_of(fields.text("reason")).unwrap_or_else(|problem| {
            problems.push(("reason", problem));
            fields.text("reason").to_owned()
        });
        Self {
            strategy: fields.text("strategy").to_owned(),
            steps: rows("step"),
            canaries: rows("canary"),
            reason,
            version: fields.text("version").parse().unwrap_or(u32::MAX),
            problems,
        }
    }

    /// Returns the policy that was entered. On error, `problems` says what is wrong.
    pub fn policy(&mut self) -> Result<Policy, ()> {
        let mut problems = Vec::new();
        let mut policy = Policy::default();
        policy.choice.strategy = strategy_of(&self.strategy).unwrap_or_else(|problem| {
            problems.push(("strategy", problem));
            Strategy::None
        });
        policy.choice.rollout =
            self.steps.iter().filter_map(|row| step_of(row, "steps", &mut problems)).collect();
        policy.overrides = self.overrides(&mut problems);

        if problems.is_empty()
            && let Err(found) = Policy::from_json(&json!(policy))
        {
            let place = |field: &str| {
                if field.starts_with("overrides") { "canaries" } else { "steps" }
            };
            problems
                .extend(found.into_iter().map(|found| (place(&found.field), found.to_string())));
        }

        self.problems.extend(problems);
        let is_wrong = self.problems.iter().any(|(field, _)| *field != "reason");
        if is_wrong { Err(()) } else { Ok(policy) }
    }

    fn overrides(&self, problems: &mut Vec<(&'static str, String)>) -> BTreeMap<String, Choice> {
        let mut overrides = BTreeMap::<String, Choice>::new();
        let mut based = BTreeSet::new();
        for row in &self.canaries {
            if row.instance.is_empty() {
                problems.push(("canaries", "Name the instance, or clear the row.".to_owned()));
                continue;
            }
            if row.modulo.is_empty() && row.below.is_empty() {
                let strategy = strategy_of(&row.strategy).unwrap_or_else(|problem| {
                    problems.push(("canaries", problem));
                    Strategy::None
                });
                if !based.insert(row.instance.clone()) {
                    problems.push((
                        "canaries",
                        format!("{} has two rows for all counters: clear one.", row.instance),
                    ));
                }

                overrides.entry(row.instance.clone()).or_default().strategy = strategy;
            } else if let Some(step) = step_of(row, "canaries", problems) {
                overrides.entry(row.instance.clone()).or_default().rollout.push(step);
            }
        }

        for instance in overrides.keys().filter(|instance| !based.contains(*instance)) {
            let problem = format!(
                "Say what {instance} does with all other counters: a row without arithmetic."
            );
            problems.push(("canaries", problem));
        }

        overrides
    }

    fn problem(&self, field: &str) -> Option<&str> {
        self.problems.iter().find(|(known, _)| *known == field).map(|(_, problem)| problem.as_str())
    }

    pub fn markup(&self, person: &Principal, overview: &Overview) -> Markup {
        let names: BTreeSet<&str> = overview
            .seen
            .iter()
            .map(|seen| seen.instance.name.as_str())
            .filter(|name| !name.is_empty())
            .collect();

        let blank = Row::default();
        let steps = self.steps.iter().chain([&blank, &blank]);
        let canaries = self.canaries.iter().chain([&blank]);
        let problem_of = self.problem("reason");
        let reason = Field { name: "reason", label: "Reason", hint: "", problem: problem_of };

        html! {
            form.form #policy-form method="post" action="/system/cache"
                hx-post="/system/cache/preview" hx-trigger="input delay:300ms, change"
                hx-select="#preview" hx-target="#preview" hx-swap="outerHTML" {
                (parts::csrf(person))
                input type="hidden" name="version" value=(self.version);
                (problem(self.problem("version")))
                div.field {
                    label for="strategy" { "All counters" }
                    (select("strategy", "strategy", "Strategy of all counters", &self.strategy))
                    (problem(self.problem("strategy")))
                }
                fieldset.field {
                    legend { "Except these counters" }
                    p.quiet {
                        "A counter is selected when its id % modulo < below: 100 and 5 select five \
                         of a hundred. The first matching row decides."
                    }
                    @for (place, row) in steps.enumerate() { (step_row(place, row)) }
                    (problem(self.problem("steps")))
                }
                fieldset.field {
                    legend { "Except these instances" }
                    p.quiet {
                        "A canary tries a change before the others. It needs a row without \
                         arithmetic, for all its counters."
                    }
                    datalist #instance-names { @for name in &names { option value=(name) {} } }
                    @for (place, row) in canaries.enumerate() { (canary_row(place, row)) }
                    (problem(self.problem("canaries")))
                }
                (reason.text(&self.reason))
                div.actions {
                    button.button.primary { "Set the policy" }
                    button.button formaction="/system/cache/preview" { "Preview" }
                }
            }
        }
    }
}

fn strategy_of(name: &str) -> Result<Strategy, String> {
    Strategy::from_name(name).ok_or_else(|| "Choose a strategy.".to_owned())
}

fn step_of(
    row: &Row,
    field: &'static str,
    problems: &mut Vec<(&'static str, String)>,
) -> Option<Step> {
    let mut fail = |problem: String| problems.push((field, problem));
    let (Ok(modulo), Ok(below)) = (row.modulo.parse::<u32>(), row.below.parse::<u32>()) else {
        fail("Modulo and below are whole numbers; clear both to leave a row out.".to_owned());
        return None;
    };
    if modulo == 0 || below > modulo {
        fail(format!(
            "{modulo} and {below} do not fit: modulo must be at least 1, and below at most modulo."
        ));
        return None;
    }

    match strategy_of(&row.strategy) {
        Ok(strategy) => Some(Step { strategy, modulo, below }),
        Err(problem) => {
            fail(problem);
            None
        }
    }
}

fn number(name: &str, label: &str, value: &str, placeholder: &str) -> Markup {
    html! {
        input type="text" inputmode="numeric" name=(name) value=(value) aria-label=(label)
            placeholder=(placeholder) autocomplete="off";
    }
}

/// The strategy of a row, whose id is unique on the page.
fn strategy_of_row(kind: &str, place: usize, label: &str, row: &Row) -> Markup {
    let name = format!("{kind}-strategy");
    select(&format!("{name}-{place}"), &name, label, &row.strategy)
}

fn step_row(place: usize, row: &Row) -> Markup {
    let label = |what: &str| format!("Row {}: {what}", place + 1);
    html! {
        div.rule {
            span { "id %" }
            (number("step-modulo", &label("modulo"), &row.modulo, "100"))
            span { "<" }
            (number("step-below", &label("below"), &row.below, "5"))
            span { "by" }
            (strategy_of_row("step", place, &label("strategy"), row))
        }
    }
}

fn canary_row(place: usize, row: &Row) -> Markup {
    let label = |what: &str| format!("Canary row {}: {what}", place + 1);
    html! {
        div.rule.canary {
            input type="text" name="canary-instance" value=(row.instance) list="instance-names"
                aria-label=(label("instance")) placeholder="instance" autocomplete="off"
                spellcheck="false";
            span { "id %" }
            (number("canary-modulo", &label("modulo"), &row.modulo, "all"))
            span { "<" }
            (number("canary-below", &label("below"), &row.below, ""))
            span { "by" }
            (strategy_of_row("canary", place, &label("strategy"), row))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> Form {
        Form::sent(&Fields::parse(text.as_bytes()))
    }

    #[test]
    fn a_policy_leads_to_a_form_and_back() {
        let step = |strategy, modulo, below| Step { strategy, modulo, below };
        let choice = Choice {
            strategy: Strategy::Result,
            rollout: vec![step(Strategy::Live, 100, 5), step(Strategy::Phased, 2, 1)],
        };
        let canary =
            Choice { strategy: Strategy::Live, rollout: vec![step(Strategy::None, 10, 1)] };
        let overrides =
            [("reader-2".to_owned(), canary), ("reader-7".to_owned(), Choice::default())].into();
        let policy = Policy { choice, overrides };
        let versioned =
            VersionedPolicy { policy: policy.clone(), version: 3, ..VersionedPolicy::default() };
        let mut form = Form::of(&versioned);

        assert_eq!(form.policy(), Ok(policy));
        assert!(form.problems.is_empty());
    }

    #[test]
    fn rows_that_are_blank_are_left_out() {
        let mut form = form(
            "strategy=live&step-modulo=&step-below=&step-strategy=none&step-modulo=100&step-below=5&step-strategy=result\
             &canary-instance=&canary-modulo=&canary-below=&canary-strategy=none&reason=why&version=0",
        );
        let policy = form.policy().expect("a policy");
        assert_eq!(
            policy.choice.rollout,
            [Step { strategy: Strategy::Result, modulo: 100, below: 5 }]
        );
        assert!(policy.overrides.is_empty() && form.problems.is_empty());
    }

    #[test]
    fn problems_are_shown_at_their_field() {
        let fields = |text: &str| {
            let mut form = form(text);
            let _ = form.policy();
            form.problems.into_iter().map(|(field, _)| field).collect::<Vec<_>>()
        };

        assert_eq!(fields("strategy=fast&reason=x"), ["strategy"]);
        assert_eq!(fields("strategy=live&reason="), ["reason"]);

        let step = |modulo: &str, below: &str| {
            fields(&format!(
                "strategy=live&reason=x&step-modulo={modulo}&step-below={below}&step-strategy=none"
            ))
        };

        for (modulo, below) in
            [("0", "0"), ("5", "6"), ("-1", "1"), ("5", ""), ("99999999999", "1")]
        {
            assert_eq!(step(modulo, below), ["steps"], "{modulo} {below}");
        }

        let canary = |rows: &str| fields(&format!("strategy=live&reason=x{rows}"));
        let row = |instance: &str, modulo: &str, below: &str| {
            format!(
                "&canary-instance={instance}&canary-modulo={modulo}&canary-below={below}&canary-strategy=live"
            )
        };

        assert_eq!(canary(&row("", "5", "1")), ["canaries"]);
        assert_eq!(canary(&row("a", "5", "1")), ["canaries"]);
        assert_eq!(canary(&(row("a", "", "") + &row("a", "", ""))), ["canaries"]);
        assert!(canary(&(row("a", "5", "1") + &row("a", "", ""))).is_empty());
        assert_eq!(canary(&row(&"a".repeat(5_000), "", "")), ["canaries"]);
    }
}

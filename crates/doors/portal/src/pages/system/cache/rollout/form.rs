//! The form of a rollout plan, with explained defaults filled in.

use super::super::{reason_of, select};
use crate::fields::Fields;
use crate::html::parts::{self, Field};
use maud::{Markup, html};
use raingauge_core::limits::ROLLOUT_SHARES_MAX;
use raingauge_people::Principal;
use raingauge_policy::cache::Strategy;
use raingauge_policy::rollout::{Limits, Plan, STORE_REQUESTS_FREE};

/// A field: its name in the form, the member of the plan that it sets, its label, and its
/// explanation.
struct About {
    name: &'static str,
    member: &'static str,
    label: &'static str,
    hint: &'static str,
}

const fn about(
    name: &'static str,
    member: &'static str,
    label: &'static str,
    hint: &'static str,
) -> About {
    About { name, member, label, hint }
}

const STEPS: [About; 3] = [
    about(
        "shares",
        "shares",
        "Steps, in percent of the counters",
        "Chosen by arithmetic on their ids.",
    ),
    about(
        "hold",
        "holdS",
        "Minutes for each step",
        "The service is observed as long before the first step, and limits compare with that.",
    ),
    about(
        "canary",
        "canaryS",
        "Minutes for a canary",
        "One percent more goes ahead of each step; 0 for no canary.",
    ),
];

const LIMITS: [About; 6] = [
    about(
        "p99-times",
        "p99Times",
        "p99 latency, times the earlier one",
        "The 99th percentile of batches of counts.",
    ),
    about(
        "p99-free",
        "p99FreeMs",
        "p99 latency that is always fine, in ms",
        "Below this, the comparison does not matter.",
    ),
    about(
        "failed",
        "failedShare",
        "Failed counts, % more than before",
        "Counts that time out, are refused, or find no store.",
    ),
    about(
        "store-times",
        "storeTimes",
        "Store load, times the earlier one",
        "Requests to the store for each count.",
    ),
    about(
        "breakers",
        "breakers",
        "Circuit breakers that may open",
        "One more ends the rollout at once, at any time.",
    ),
    about(
        "batches",
        "batchesMin",
        "Batches that a step needs",
        "With fewer, the step waits for up to ten times its length.",
    ),
];

/// The form as submitted, or with the defaults.
#[derive(Clone, Debug)]
pub struct Form {
    to: String,
    /// The texts of the fields, by name.
    texts: Vec<(&'static str, String)>,
    reason: String,
    problems: Vec<(&'static str, String)>,
    is_sent: bool,
}

impl Default for Form {
    fn default() -> Self {
        let limits = Limits::DEFAULT;
        let shares = Plan::SHARES.map(|share| share.to_string()).join(", ");
        let numbers = [
            ("hold", Plan::HOLD_S / 60.0),
            ("canary", Plan::CANARY_S / 60.0),
            ("p99-times", limits.p99_times),
            ("p99-free", limits.p99_free_ms),
            ("failed", limits.failed_share * 100.0),
            ("store-times", limits.store_times),
            ("breakers", limits.breakers),
            ("batches", limits.batches_min),
        ];

        let numbers = numbers.map(|(name, number)| (name, number.to_string()));
        Self {
            to: Strategy::Live.name().to_owned(),
            texts: [("shares", shares)].into_iter().chain(numbers).collect(),
            reason: String::new(),
            problems: Vec::new(),
            is_sent: false,
        }
    }
}

impl Form {
    pub fn sent(fields: &Fields) -> Self {
        let texts = STEPS
            .iter()
            .chain(&LIMITS)
            .map(|about| (about.name, fields.text(about.name).to_owned()));
        let to = fields.text("to").to_owned();
        let reason = fields.text("why").to_owned();
        Self { to, texts: texts.collect(), reason, problems: Vec::new(), is_sent: true }
    }

    pub fn reason(&self) -> String {
        self.reason.clone()
    }

    /// Returns the plan that was entered. On error, `problems` says what is wrong.
    pub fn plan(&mut self) -> Result<Plan, ()> {
        let mut problems = Vec::new();
        let to = Strategy::from_name(&self.to);
        if to.is_none() {
            problems.push(("to", "Choose a strategy.".to_owned()));
        }

        let shares = self.text("shares").split([',', ' ']).filter(|share| !share.is_empty());
        let shares = shares
            .take(ROLLOUT_SHARES_MAX + 1)
            .map(str::parse::<u32>)
            .collect::<Result<Vec<u32>, _>>();
        if shares.is_err() {
            problems.push(("shares", "Whole numbers with commas, such as 5, 25, 100.".to_owned()));
        }

        let mut number = |name: &'static str| {
            self.text(name).parse::<f64>().unwrap_or_else(|_| {
                problems.push((name, "A number, such as 2 or 0.5.".to_owned()));
                0.0
            })
        };

        let (hold_s, canary_s) = (number("hold") * 60.0, number("canary") * 60.0);
        let limits = Limits {
            p99_times: number("p99-times"),
            p99_free_ms: number("p99-free"),
            failed_share: number("failed") / 100.0,
            store_times: number("store-times"),
            breakers: number("breakers"),
            batches_min: number("batches"),
        };

        let plan = Plan {
            to: to.unwrap_or_default(),
            shares: shares.unwrap_or_default(),
            canary_s,
            hold_s,
            limits,
        };

        for problem in plan.problems() {
            let about = STEPS.iter().chain(&LIMITS).find(|about| about.member == problem.field);
            let name = about.map_or("to", |about| about.name);
            if problems.iter().all(|(known, _)| *known != name) {
                problems.push((name, format!("This {}.", problem.detail)));
            }
        }

        match reason_of(&self.reason) {
            Ok(reason) => self.reason = reason,
            Err(problem) => problems.push(("why", problem)),
        }

        self.problems = problems;
        if self.problems.is_empty() { Ok(plan) } else { Err(()) }
    }

    /// Notes that the rollout cannot begin from the policy in force.
    pub fn refuse(&mut self, refusal: String) {
        self.problems.push(("to", refusal));
    }

    fn text(&self, name: &str) -> &str {
        self.texts.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text)
    }

    fn problem(&self, name: &str) -> Option<&str> {
        self.problems.iter().find(|(known, _)| *known == name).map(|(_, problem)| problem.as_str())
    }

    pub fn markup(&self, person: &Principal) -> Markup {
        let field = |name, label, hint| Field { name, label, hint, problem: self.problem(name) };
        let strategy = field("to", "Strategy", "The strategy that counters get.");
        let reason = field("why", "Reason", "");

        html! {
            details.card #rollout-form open[self.is_sent] {
                summary { "Start a guarded rollout" }
                p.lead {
                    "Extends a strategy to more and more counters, step by step. Latency, errors, \
                     store load and circuit breakers are compared with limits. When one is \
                     exceeded, the previous policy is restored automatically."
                }
                form.form method="post" action="/system/cache/rollouts" {
                    (parts::csrf(person))
                    div.fields {
                        (strategy.around(&select("to", "to", "Strategy to roll out", &self.to)))
                        @for about in &STEPS { (self.field(about)) }
                    }
                    fieldset.field {
                        legend { "Limits" }
                        p.quiet {
                            "A step is judged once a fifth of its time is over and it has had \
                             enough requests. Up to " (STORE_REQUESTS_FREE)
                            " requests to the store for each count are always fine."
                        }
                        div.fields { @for about in &LIMITS { (self.field(about)) } }
                    }
                    (reason.text(&self.reason))
                    div.actions { button.button.primary { "Start the rollout" } }
                }
            }
        }
    }

    fn field(&self, about: &About) -> Markup {
        let About { name, label, hint, .. } = *about;
        Field { name, label, hint, problem: self.problem(name) }.text(self.text(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(changes: &[(&'static str, &str)]) -> Form {
        let mut form = Form { reason: "try it".to_owned(), ..Form::default() };
        for (name, text) in changes {
            match *name {
                "to" => form.to = (*text).to_owned(),
                "why" => form.reason = (*text).to_owned(),
                _ => form
                    .texts
                    .iter_mut()
                    .filter(|(known, _)| known == name)
                    .for_each(|kept| kept.1 = (*text).to_owned()),
            }
        }

        form
    }

    #[test]
    fn the_defaults_are_a_plan() {
        let plan = form(&[]).plan().expect("a plan");
        let shares = Plan::SHARES.to_vec();
        let limits = Limits::DEFAULT;
        let expected = Plan {
            to: Strategy::Live,
            shares,
            canary_s: Plan::CANARY_S,
            hold_s: Plan::HOLD_S,
            limits,
        };
        assert_eq!(plan, expected);
    }

    #[test]
    fn problems_are_shown_at_their_field() {
        for (name, text) in [
            ("to", "fast"),
            ("shares", "5, many"),
            ("shares", "50, 20"),
            ("shares", ""),
            ("hold", "soon"),
            ("hold", "0"),
            ("canary", "-1"),
            ("p99-times", "NaN"),
            ("failed", "inf"),
            ("breakers", "-1"),
            ("why", " "),
        ] {
            let mut form = form(&[(name, text)]);
            assert_eq!(form.plan(), Err(()), "{name} {text}");
            let fields: Vec<&str> = form.problems.iter().map(|(field, _)| *field).collect();
            assert_eq!(fields, [name], "{text}");
        }
    }
}

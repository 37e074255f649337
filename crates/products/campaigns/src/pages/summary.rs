//! A campaign in plain words: when it acts, for whom, what it does, and what bounds it.

pub mod rule;

use maud::{Markup, html};
use raingauge_campaigns::budget::{Budget, BudgetPeriod};
use raingauge_campaigns::calendar::{Length, Period};
use raingauge_campaigns::campaign::{
    Action, ActionKind, Campaign, Count, CountWindow, GroupMode, Step,
};
use raingauge_campaigns::cost::Amount;
use raingauge_campaigns::delay::Delay;
use raingauge_campaigns::limit::{Limit, LimitPeriod};
use raingauge_core::value::Value;
use raingauge_figure::number::duration;
use raingauge_portal::html::words;

/// The whole campaign.
pub fn summary(campaign: &Campaign) -> Markup {
    html! {
        dl.facts.summary {
            dt { "When" }
            dd { (types(&campaign.event_types)) " happens, for " (subject(campaign)) }
            @if let Some(condition) = &campaign.rule { dt { "If" } dd { (rule::condition(condition)) } }
            @for (name, count) in &campaign.counts { dt { "Count " (name) } dd { (counted(count)) } }
            @for step in &campaign.steps { dt { "Step " (step.name) } dd { (self::step(step)) } }
            @for limit in &campaign.limits { dt { "Limit" } dd { (self::limit(limit)) } }
            @for (name, budget) in &campaign.budgets {
                dt { "Budget " (name) }
                dd { (self::budget(budget)) }
            }
            @if let Some(experiment) = &campaign.experiment {
                dt { "Experiment" }
                dd {
                    code { (experiment.key) } " on " (words::share(experiment.coverage.into(), 10_000)) " of them: "
                    @for (place, variant) in experiment.variants.iter().enumerate() {
                        @if place > 0 { ", " }
                        (variant.name) " " (words::share(variant.weight.into(), 10_000))
                    }
                }
            }
            @if let Some(holdout) = &campaign.holdout { dt { "Left out" } dd { "everyone in the holdout " (holdout) } }
            @if let Some(group) = &campaign.group {
                dt { "Competes" }
                dd { "in the group " (group.name) ": " (group_words(group.mode)) ", priority " (campaign.priority) }
            }
        }
    }
}

fn types(types: &[String]) -> Markup {
    html! {
        @for (place, kind) in types.iter().enumerate() {
            @if place > 0 { " or " }
            code { (kind) }
        }
    }
}

fn subject(campaign: &Campaign) -> Markup {
    match campaign.subject.as_str() {
        "subject" => html! { "the subject of the event" },
        path => {
            html! { "the subject in " code { (path.trim_start_matches("data.").trim_start_matches("var.")) } }
        }
    }
}

/// What a count counts, and over which time.
fn counted(count: &Count) -> Markup {
    html! {
        @match &count.value {
            Value::Fixed(1) => "events",
            Value::Fixed(amount) => { (amount) " for each event" }
            Value::Field(field) => {
                "the sum of " code { (field.field) }
                @if field.scale != 1 { " times " (field.scale) }
            }
        }
        @if !count.event_types.is_empty() { " of " (types(&count.event_types)) }
        " " (window(&count.window))
        @if let Some(filter) = &count.filter { ", if " (rule::condition(filter)) }
    }
}

fn window(window: &CountWindow) -> String {
    match window {
        CountWindow::Campaign => "over the whole campaign".to_owned(),
        CountWindow::Calendar(period) => format!("in each {}", period_name(*period)),
        CountWindow::Last(last) => format!("over the last {}", length(last)),
        CountWindow::Counter { template, last } => {
            format!("by the counter {template}, over the last {}", length(last))
        }
    }
}

fn step(step: &Step) -> Markup {
    html! {
        @if let Some(when) = &step.when {
            "when "
            (rule::condition(when))
            @if when.conditions.is_none() { ":" }
        }
        @if !step.variants.is_empty() { " (variant " (step.variants.join(", ")) ")" }
        ul.conditions { @for action in &step.actions { li { (self::action(action)) } } }
    }
}

/// What an action does, when, and what it costs.
pub fn action(action: &Action) -> Markup {
    html! {
        (deed(action))
        " through " code { (action.to) }
        @if let Some(field) = &action.recipient { " to the one that " code { (field) } " names" }
        @if let Some(delay) = &action.delay { ", " (delayed(delay)) }
        @if let Some(quiet) = &action.quiet { ", not between " (quiet.from.to_string()) " and " (quiet.to.to_string()) }
        @if let Some(cancel) = &action.cancel {
            ", unless " (types(&cancel.event_types)) " happens before"
            @if let Some(condition) = &cancel.rule { " in which " (rule::condition(condition)) }
        }
        @if let Some(recheck) = &action.recheck { ", if then " (rule::condition(recheck)) }
        @if let Some(cost) = &action.cost { "; costs " (amount(&cost.amount)) " of the budget " (cost.budget) }
        @if !action.variants.is_empty() { " (variant " (action.variants.join(", ")) ")" }
    }
}

fn deed(action: &Action) -> Markup {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    match action.kind {
        ActionKind::Message => html! { "sends the message " strong { (text(&action.template)) } },
        ActionKind::Reward => html! { "awards " strong { (text(&action.reward)) } },
        ActionKind::Points => html! {
            "awards "
            @match (action.points, &action.amount) {
                (Some(points), _) => { strong { (words::number(points.into())) } " points" }
                (None, amount) => { "points for " strong { (text(amount)) } }
            }
        },
        ActionKind::Webhook => html! { "calls a webhook" },
        ActionKind::Emit => html! { "emits the event " strong { (text(&action.event_type)) } },
    }
}

fn delayed(delay: &Delay) -> String {
    match delay {
        Delay::After(after) => format!("{} later", length(&after.after)),
        Delay::At(at) if at.days == 0 => format!("at {} on the same day", at.at),
        Delay::At(at) if at.days == 1 => format!("at {} on the next day", at.at),
        Delay::At(at) => format!("at {}, {} days later", at.at, at.days),
    }
}

fn amount(amount: &Amount) -> String {
    match amount {
        Amount::Fixed(amount) => words::number((*amount).into()),
        Amount::Share(share) => {
            let part =
                share.percent.as_ref().map_or_else(String::new, |part| format!("{part} % of "));
            let most = share.max.map_or_else(String::new, |max| format!(", {max} at most"));
            format!("{part}{}{most}", share.field)
        }
    }
}

/// A limit as a sentence.
pub fn limit(limit: &Limit) -> Markup {
    let period = match &limit.period {
        LimitPeriod::Campaign => "in the whole campaign".to_owned(),
        LimitPeriod::Last(last) => format!("in any {}", length(last)),
        LimitPeriod::Calendar(period) => format!("each {}", period_name(*period)),
    };
    html! {
        @if let Some(step) = &limit.step { "the step " (step) " " }
        "at most " (words::number(limit.max.into())) @if limit.max == 1 { " time" } @else { " times" }
        " " (period) " for each " (limit.per)
        @if !limit.is_tracked() { " " span.quiet { "(so high that it is not tracked)" } }
    }
}

/// A budget as a sentence.
pub fn budget(budget: &Budget) -> Markup {
    html! {
        (words::number(budget.max.into())) " " (budget.unit)
        " " (budget_period(budget.period))
    }
}

/// The period of a budget: `in the whole campaign`, `each day`.
pub fn budget_period(period: BudgetPeriod) -> String {
    match period {
        BudgetPeriod::Campaign => "in the whole campaign".to_owned(),
        BudgetPeriod::Calendar(period) => format!("each {}", period_name(period)),
    }
}

const fn period_name(period: Period) -> &'static str {
    match period {
        Period::Day => "day",
        Period::Week => "week",
        Period::Month => "month",
    }
}

const fn group_words(mode: GroupMode) -> &'static str {
    match mode {
        GroupMode::All => "all of them act",
        GroupMode::First => "the first that may act does",
        GroupMode::Best => "the one that costs most acts",
    }
}

fn length(length: &Length) -> String {
    duration(length.ms() as f64 / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_campaign_is_described_in_words() {
        let campaign = Campaign::from_json(&json!({
            "name": "n", "eventTypes": ["mart.order"], "subject": "data.user_id",
            "counts": {"orders": {"window": {"calendar": "week"}}},
            "rule": {"operator": "eq", "lhs": "var.country", "rhs": "<sg>"},
            "steps": [{"name": "s", "when": {"operator": "reaches", "lhs": "count.orders", "rhs": 3},
                "actions": [{"name": "v", "kind": "reward", "to": "rewards", "reward": "MART5",
                    "delay": {"at": "17:00"}, "cost": {"budget": "b", "amount": 500}}]}],
            "limits": [{"step": "s", "max": 1, "period": "day"}, {"max": 200_000, "period": "day"}],
            "budgets": {"b": {"unit": "SGD_cents", "max": 1000, "period": "day"}}}))
        .unwrap();
        let markup = summary(&campaign).into_string();

        for words in [
            "<code>mart.order</code> happens, for the subject in <code>user_id</code>",
            "country is &lt;sg&gt;",
            "events in each week",
            "when the count orders reaches 3:",
            "awards <strong>MART5</strong> through <code>rewards</code>, at 17:00 on the same day; costs 500 of the budget b",
            "the step s at most 1 time each day for each subject",
            "not tracked",
            "1,000 SGD_cents each day",
        ] {
            assert!(markup.contains(words), "{words}: {markup}");
        }
    }
}

//! Codes of decisions and deliveries, in words for people who write campaigns.

use maud::{Markup, html};
use raingauge_core::code::Code;
use raingauge_ports::campaigns::Status;

/// The code that refusals of events share with decisions.
const TOO_LATE: &str = Code::TooLate.as_str();

/// What a code means: a few words, and how it is felt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    pub words: &'static str,
    /// A state of the style sheet: `good`, `wait`, `bad` or `draft`.
    pub mood: &'static str,
}

/// The meaning of a code; `None` for one that is not known.
pub fn meaning(code: &str) -> Option<Meaning> {
    let (mood, words) = match code {
        "granted" => ("good", "granted"),
        "delivered" => ("good", "delivered"),
        "delayed" => ("wait", "granted, and due later"),
        "pending" => ("wait", "on its way"),
        "retrying" => ("wait", "tried again after a failure"),
        "held" => ("wait", "held, because the campaign is paused"),
        "paused" => ("wait", "the campaign was paused"),
        "warming" => ("wait", "the campaign was still counting what the log holds"),
        "shadow" => ("draft", "would have been granted, if the campaign were active"),
        "outside_activity" => ("draft", "happened outside the time of the campaign"),
        TOO_LATE => ("draft", "arrived too late to decide anything"),
        "no_subject" => ("bad", "names nobody: the field of the subject is missing"),
        "no_listener" => ("draft", "no campaign listens to events of this type"),
        "not_received" => ("bad", "no such event has arrived"),
        "duplicate" => ("draft", "had arrived before: the first one decided"),
        "rule_false" => ("draft", "the rule of the campaign did not hold"),
        "step_false" => ("draft", "the condition of the step did not hold"),
        "lookup_failed" => ("bad", "a value could not be looked up"),
        "holdout" => ("draft", "the subject is left out, to compare with"),
        "control" => ("draft", "the subject's variant does not get this"),
        "limit_reached" => ("wait", "the subject had it as often as the limit allows"),
        "cap_reached" => ("wait", "the subject had as many actions today as the cap allows"),
        "budget_exhausted" => ("bad", "the budget does not cover it any more"),
        "group_lost" => ("draft", "another campaign of the group won"),
        "cancelled" => ("draft", "cancelled before it was due"),
        "recheck_failed" => ("draft", "did not hold any more when it was due"),
        "refused" => ("bad", "the destination will not accept it"),
        "dead" => ("bad", "every try failed"),
        _ => return None,
    };
    Some(Meaning { words, mood })
}

/// A code as a badge, with its meaning beside it.
pub fn explained(code: &str) -> Markup {
    let meaning = meaning(code);
    html! {
        (badge(code))
        @if let Some(Meaning { words, .. }) = meaning
            && words != code { " " (words) }
    }
}

/// A code as a badge. The tooltip has its meaning.
pub fn badge(code: &str) -> Markup {
    let meaning = meaning(code);
    let mood = meaning.map_or("draft", |meaning| meaning.mood);
    html! {
        span.state data-state=(mood) title=[meaning.map(|meaning| meaning.words)] {
            (code.replace('_', " "))
        }
    }
}

/// The status of a delivery as a badge.
pub fn status(status: Status) -> Markup {
    badge(status.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_campaigns::decision::Reason;

    #[test]
    fn every_code_has_a_meaning() {
        let reasons = [
            Reason::Granted,
            Reason::Delayed,
            Reason::Shadow,
            Reason::OutsideActivity,
            Reason::TooLate,
            Reason::NoSubject,
            Reason::RuleFalse,
            Reason::StepFalse,
            Reason::LookupFailed,
            Reason::Duplicate,
            Reason::Holdout,
            Reason::Control,
            Reason::LimitReached,
            Reason::CapReached,
            Reason::BudgetExhausted,
            Reason::GroupLost,
            Reason::Cancelled,
            Reason::RecheckFailed,
        ];
        for reason in reasons {
            assert!(meaning(reason.as_str()).is_some(), "{}", reason.as_str());
        }
        for status in Status::ALL {
            assert!(meaning(status.name()).is_some(), "{}", status.name());
        }
        assert_eq!(meaning("<b>"), None);
        assert!(!explained("<b>").into_string().contains("<b>"));
    }
}

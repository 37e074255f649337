//! What a document names of others.

use super::Document;
use crate::campaign::{Campaign, ZoneSource};
use crate::message::Messages;
use crate::rule::Lhs;
use raingauge_core::filter::Condition;
use std::collections::BTreeSet;
use std::fmt;

/// Another document, or a part of one, that a document cannot do without.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    Destination(String),
    Budget(String),
    Holdout(String),
    Segment(String),
    Table { name: String, column: String },
    Database(String),
    Http(String),
}

impl Reference {
    /// What a left-hand side reads, besides events and counts.
    pub fn of(lhs: &Lhs) -> Option<Self> {
        Some(match lhs {
            Lhs::Segment(name) => Self::Segment(name.to_string()),
            Lhs::Table { name, column } => {
                Self::Table { name: name.to_string(), column: column.to_string() }
            }
            Lhs::Database { name, .. } => Self::Database(name.to_string()),
            Lhs::Http { name, .. } => Self::Http(name.to_string()),
            Lhs::Field(_) | Lhs::Time(_) | Lhs::Count(_) | Lhs::Usage(_) => return None,
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Destination(name) => write!(out, "destination `{name}`"),
            Self::Budget(name) => write!(out, "budget `{name}`"),
            Self::Holdout(name) => write!(out, "holdout `{name}`"),
            Self::Segment(name) => write!(out, "segment `{name}`"),
            Self::Table { name, column } => write!(out, "table `{name}` with a column `{column}`"),
            Self::Database(name) => write!(out, "lookup `{name}` of class db"),
            Self::Http(name) => write!(out, "lookup `{name}` of class http"),
        }
    }
}

/// What a document names, with the places in it.
pub fn references(document: &Document) -> Vec<(String, Reference)> {
    match document {
        Document::Campaign(campaign) => Collector::of(campaign),
        Document::Cap(cap) => {
            let destinations = cap.content.destinations.iter().enumerate();
            let reference = |(place, name): (usize, &String)| {
                (format!("destinations[{place}]"), Reference::Destination(name.clone()))
            };
            destinations.map(reference).collect()
        }
        _ => Vec::new(),
    }
}

#[derive(Default)]
struct Collector(Vec<(String, Reference)>);

impl Collector {
    fn of(campaign: &Campaign) -> Vec<(String, Reference)> {
        let mut all = Self::default();
        if let Some(ZoneSource::Table { .. }) = ZoneSource::parse(&campaign.zone) {
            all.lhs("zone", &campaign.zone);
        }
        if let Some(holdout) = &campaign.holdout {
            all.0.push(("holdout".to_owned(), Reference::Holdout(holdout.clone())));
        }
        all.condition("rule", campaign.rule.as_ref());

        for (place, step) in campaign.steps.iter().enumerate() {
            let at = format!("steps[{place}]");
            all.condition(&format!("{at}.when"), step.when.as_ref());
            for (place, action) in step.actions.iter().enumerate() {
                let at = format!("{at}.actions[{place}]");
                all.0.push((format!("{at}.to"), Reference::Destination(action.to.clone())));
                all.condition(&format!("{at}.recheck"), action.recheck.as_ref());
                if let Some(locale) = &action.locale {
                    all.lhs(&format!("{at}.locale"), locale);
                }

                let cost = action.cost.as_ref().map(|cost| &cost.budget);
                if let Some(name) = cost.filter(|name| !campaign.budgets.contains_key(*name)) {
                    let at = format!("{at}.cost.budget");
                    all.0.push((at, Reference::Budget(name.clone())));
                }
            }
        }
        all.messages(campaign);
        all.0
    }

    /// What texts fill in. Those that cannot be compiled name nothing.
    fn messages(&mut self, campaign: &Campaign) {
        let Ok(messages) = Messages::compile(campaign) else { return };
        let values: BTreeSet<&str> = messages.values().collect();
        for value in values {
            self.lhs("templates", value);
        }
    }

    fn condition(&mut self, at: &str, condition: Option<&Condition>) {
        let Some(condition) = condition else { return };
        if let Some(lhs) = &condition.lhs {
            self.lhs(at, lhs);
        }
        for part in condition.conditions.iter().flatten() {
            self.condition(at, Some(part));
        }
    }

    fn lhs(&mut self, at: &str, text: &str) {
        if let Some(reference) = Lhs::parse(text).as_ref().and_then(Reference::of) {
            self.0.push((at.to_owned(), reference));
        }
    }
}

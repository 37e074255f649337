//! The documents of a replay: those of the request, beside those in effect.
//!
//! A request names a campaign by its number, which stands for the version in effect, or brings a
//! document that need not be saved. Budgets, holdouts, caps and lookups of the request take the
//! place of those in effect.

use crate::Error;
use crate::limits::REPLAY_CAMPAIGNS_MAX;
use raingauge_campaigns::campaign::{Campaign, CampaignId, State};
use raingauge_campaigns::documents::{Document, Kind, Named};
use raingauge_campaigns::engine::{Documents, Release};
use raingauge_campaigns::rule::Lhs;
use raingauge_core::counter::Problem;
use raingauge_core::field::Field;
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// The kind of a table without columns.
const SEGMENT: &str = "segment";
/// Campaigns without an id are given one from here on. Answers report it as 0.
const UNSAVED_ID_MIN: CampaignId = 1 << 30;

/// The id of a campaign as answers report it.
pub fn reported_id(id: CampaignId) -> CampaignId {
    if id >= UNSAVED_ID_MIN { 0 } else { id }
}

/// The documents to replay: the campaigns of the request, and what they share.
pub fn resolve(
    campaigns: &[Json],
    shared: &[Json],
    in_effect: &Documents,
) -> Result<Documents, Error> {
    let mut problems = Vec::new();
    let mut documents = Documents { campaigns: Vec::new(), ..in_effect.clone() };
    for (place, document) in shared.iter().enumerate() {
        if let Err(found) = share(&mut documents, document) {
            problems.extend(found.into_iter().map(|problem| inside("shared", place, problem)));
        }
    }

    let is_some = (1..=REPLAY_CAMPAIGNS_MAX).contains(&campaigns.len());
    if !is_some {
        let detail = format!("a replay needs between 1 and {REPLAY_CAMPAIGNS_MAX} campaigns");
        problems.push(Problem::new("campaigns", detail));
    }
    for (place, document) in campaigns.iter().take(REPLAY_CAMPAIGNS_MAX).enumerate() {
        match release_of(document, place, in_effect) {
            Ok(release) => documents.campaigns.push(release),
            Err(found) => {
                problems
                    .extend(found.into_iter().map(|problem| inside("campaigns", place, problem)));
            }
        }
    }

    let mut ids = BTreeSet::new();
    for Release { campaign, .. } in &documents.campaigns {
        if !ids.insert(campaign.id) {
            let detail = format!("campaign {} occurs twice", campaign.id);
            problems.push(Problem::new("campaigns", detail));
        }
    }
    if problems.is_empty() { Ok(documents) } else { Err(Error::Invalid(problems)) }
}

/// A problem of a document, as one of the request.
fn inside(list: &str, place: usize, problem: Problem) -> Problem {
    let Problem { field, detail } = problem;
    let dot = if field.is_empty() { "" } else { "." };
    Problem::new(format!("{list}[{place}]{dot}{field}"), detail)
}

/// A campaign that decides, whatever its state: the replay asks what it would do.
fn release_of(
    document: &Json,
    place: usize,
    in_effect: &Documents,
) -> Result<Release, Vec<Problem>> {
    let known =
        |id: u64| in_effect.campaigns.iter().find(|release| u64::from(release.campaign.id) == id);
    let mut release = if let Some(id) = document.as_u64() {
        let unknown = || vec![Problem::new("", format!("there is no campaign {id}"))];
        known(id).cloned().ok_or_else(unknown)?
    } else {
        Release { version: 0, campaign: Campaign::from_json(document)?, is_warming: false }
    };

    if release.campaign.id == 0 {
        release.campaign.id = UNSAVED_ID_MIN + place as CampaignId;
    }
    release.campaign.state = State::Active;
    release.is_warming = false;
    Ok(release)
}

/// Adds a document that several campaigns share. Destinations decide nothing.
fn share(documents: &mut Documents, document: &Json) -> Result<(), Vec<Problem>> {
    let kind = document.get("kind").and_then(Json::as_str).unwrap_or_default();
    let kind = if kind == SEGMENT { Some(Kind::Table) } else { Kind::from_name(kind) };
    let unknown = || {
        let kinds = "budget, cap, holdout, lookup, table, segment or destination";
        vec![Problem::new("kind", format!("must be {kinds}"))]
    };
    match Document::parse(kind.ok_or_else(unknown)?, document)? {
        Document::Budget(Named { name, content }) => {
            documents.budgets.insert(name, content);
        }
        Document::Cap(Named { name, content }) => {
            documents.caps.insert(name, content);
        }
        Document::Holdout(Named { name, content }) => {
            documents.holdouts.insert(name, content);
        }
        Document::Lookup(Named { name, content }) => {
            let class = content.class.name();
            documents.lookups.insert(format!("{class}.{name}"), content.rule());
        }
        Document::Table(Named { name, content }) => {
            let kind = content.kind.name();
            documents.lookups.insert(format!("{kind}.{name}"), content.rule());
        }
        Document::Destination(_) => {}
        Document::Campaign(_) => return Err(unknown()),
    }
    Ok(())
}

/// The field that a path names, as a campaign writes it.
pub fn field_of(path: &str) -> Option<Field> {
    match Lhs::parse(path)? {
        Lhs::Field(field) => Some(field),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn campaign(id: u32) -> Json {
        json!({"id": id, "name": "c", "eventTypes": ["order"], "state": "paused", "steps": [
            {"name": "s", "actions": [{"name": "a", "kind": "reward", "to": "r", "reward": "R"}]}]})
    }

    #[test]
    fn campaigns_are_named_or_brought() {
        let saved = Campaign::from_json(&campaign(7)).expect("a campaign");
        let release = Release { version: 3, campaign: saved, is_warming: true };
        let in_effect = Documents { campaigns: vec![release], ..Documents::default() };
        let shared = [
            json!({"kind": "budget", "name": "b", "unit": "points", "max": 5}),
            json!({"kind": "segment", "name": "staff", "key": "data.member"}),
            json!({"kind": "holdout", "name": "h", "seed": "s", "share": 100}),
        ];
        let campaigns = [json!(7), campaign(0), campaign(9)];
        let documents = resolve(&campaigns, &shared, &in_effect).expect("resolved");
        let found = documents.campaigns.iter().map(|release| {
            let Release { version, campaign, is_warming } = release;
            assert!(campaign.state == State::Active && !is_warming);
            (*version, reported_id(campaign.id))
        });
        assert_eq!(found.collect::<Vec<_>>(), [(3, 7), (0, 0), (0, 9)]);
        assert_eq!(documents.budgets["b"].max, 5);
        assert_eq!(documents.holdouts["h"].share, 100);
        assert_eq!(documents.lookups["segment.staff"].key.as_deref(), Some("data.member"));
    }

    #[test]
    fn every_problem_is_reported() {
        let problems = |campaigns: &[Json], shared: &[Json]| match resolve(
            campaigns,
            shared,
            &Documents::default(),
        ) {
            Err(Error::Invalid(problems)) => problems.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!(problems(&[], &[]), 1);
        assert_eq!(problems(&[json!(7)], &[]), 1);
        assert_eq!(problems(&[campaign(7), campaign(7)], &[]), 1);
        let wrong = [
            json!({"kind": "unknown", "name": "x"}),
            json!({"kind": "budget", "name": "b"}),
            json!(1),
        ];
        assert_eq!(problems(&[campaign(1)], &wrong), 3);
    }
}

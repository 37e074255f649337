//! Programmes of points, as documents.

use crate::rules::{CheckedDocument, Rules};
use parking_lot::Mutex;
use raingauge_core::counter::Problem;
use raingauge_points::ProgrammeDocument;
use raingauge_points::document::{CONSUMER, PROGRAMME};
use raingauge_points::programme::OWN_SOURCES;
use raingauge_ports::campaigns::StoredDocument;
use serde_json::Value as Json;
use std::collections::{BTreeSet, HashMap};

/// Members that give away nothing, whatever they say.
const HARMLESS: [&str; 4] = ["description", "owner", "examples", "remindDays"];

/// The documents of points. A programme has no number: it is known by its name, which is in its
/// member `programme`.
pub struct ProgrammeRules {
    newest: Mutex<HashMap<String, Json>>,
    /// Whether a second person approves what changes the worth of events or of points.
    needs_review: bool,
}

impl ProgrammeRules {
    pub fn new(needs_review: bool) -> Self {
        Self { newest: Mutex::default(), needs_review }
    }
}

impl Rules for ProgrammeRules {
    fn consumer(&self) -> &'static str {
        CONSUMER
    }

    fn has_kind(&self, kind: &str) -> bool {
        kind == PROGRAMME
    }

    /// Examples of a programme that do not come out are problems of it.
    fn check(&self, _kind: &str, configuration: &Json) -> Result<CheckedDocument, Vec<Problem>> {
        let document = ProgrammeDocument::parse(configuration)?;
        let configuration = document.to_json();
        Ok(CheckedDocument { id: document.programme, configuration })
    }

    fn note(&self, document: &StoredDocument) {
        let mut newest = self.newest.lock();
        if document.is_deleted {
            newest.remove(&document.id);
        } else {
            newest.insert(document.id.clone(), document.configuration.clone());
        }
    }

    fn problems(&self, _kind: &str, configuration: &Json) -> Vec<Problem> {
        let newest = self.newest.lock();
        let name = configuration[PROGRAMME].as_str().unwrap_or_default();
        let Some(before) = newest.get(name) else { return Vec::new() };
        let decimals = problem_of_decimals(before, configuration);
        decimals.into_iter().chain(problem_of_partners(before, configuration)).collect()
    }

    fn problem_of_deletion(&self, _kind: &str, _id: &str) -> Option<String> {
        let why = "members may have points of it, which expire by its rules: end its rules instead";
        Some(why.to_owned())
    }

    fn approval_needed(&self, _kind: &str, before: Option<&Json>, after: &Json) -> Option<String> {
        let weighed = |document: &Json| {
            let mut weighed = document.clone();
            if let Some(members) = weighed.as_object_mut() {
                members.retain(|name, _| !HARMLESS.contains(&name.as_str()));
            }
            weighed
        };
        let is_weighty = before.is_none_or(|before| weighed(before) != weighed(after));
        (self.needs_review && is_weighty).then(|| {
            "programmes are reviewed (points.review_programmes): propose the change as a draft, \
             and a second person lets it take effect"
                .to_owned()
        })
    }
}

/// Balances are whole numbers of the smallest unit, so the unit stays what it was.
fn problem_of_decimals(before: &Json, after: &Json) -> Option<Problem> {
    let decimals = |document: &Json| document["decimals"].as_u64().unwrap_or_default();
    if decimals(before) == decimals(after) {
        return None;
    }
    let detail = format!(
        "stays {}: balances are counted in this unit; exchange points into another programme \
         instead",
        decimals(before)
    );
    Some(Problem::new("decimals", detail))
}

/// The name of a partner says whose a token is. A token whose name is nobody's is an operator's, so
/// the names of partners stay, though their rights end. Names that no version may have any more
/// leave.
fn problem_of_partners(before: &Json, after: &Json) -> Option<Problem> {
    let names = |document: &Json| {
        let document = ProgrammeDocument::read(document);
        let names = |document: ProgrammeDocument| {
            let names = document.partner_names().filter(|name| !OWN_SOURCES.contains(name));
            names.map(str::to_owned).collect::<BTreeSet<String>>()
        };
        document.map(names).unwrap_or_default()
    };
    let after = names(after);
    let before = names(before);
    let lost: Vec<&str> = before.difference(&after).map(String::as_str).collect();
    if lost.is_empty() {
        return None;
    }
    let detail = format!(
        "lacks {}: a partner that leaves partners is named here, or its tokens would be those of \
         an operator",
        lost.join(", ")
    );
    Some(Problem::new("formerPartners", detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn programme() -> Json {
        json!({
            "programme": "grab-sg", "unit": "GRP", "timezone": "Asia/Singapore",
            "expiry": { "kind": "activity", "months": 6 },
            "tables": { "vertical": { "by": ["data.vertical"], "rows": { "food": 2 } } },
            "rules": [ { "id": 1, "name": "food", "eventType": "order.completed",
                "member": "data.member", "amount": "data.amount", "factors": ["vertical"] } ],
            "examples": [ { "rule": 1, "data": { "vertical": "food", "amount": 15, "member": "bob" },
                "points": 30 } ],
        })
    }

    fn stored(configuration: Json) -> StoredDocument {
        StoredDocument {
            kind: PROGRAMME.to_owned(),
            id: "grab-sg".to_owned(),
            version: 1,
            configuration,
            is_deleted: false,
            changed_by: String::new(),
            reason: String::new(),
            changed_ms: 0,
        }
    }

    #[test]
    fn a_programme_whose_examples_do_not_come_out_is_refused() {
        let rules = ProgrammeRules::new(false);
        let checked = rules.check(PROGRAMME, &programme()).unwrap();
        assert_eq!(checked.id, "grab-sg");
        assert_eq!(rules.check(PROGRAMME, &checked.configuration).unwrap(), checked);

        let mut wrong = programme();
        wrong["examples"][0]["points"] = json!(31);
        assert!(!rules.check(PROGRAMME, &wrong).unwrap_err().is_empty());
    }

    #[test]
    fn the_smallest_unit_of_a_programme_stays() {
        let rules = ProgrammeRules::new(false);
        let checked = rules.check(PROGRAMME, &programme()).unwrap().configuration;
        assert_eq!(rules.problems(PROGRAMME, &checked), []);
        rules.note(&stored(checked.clone()));
        assert_eq!(rules.problems(PROGRAMME, &checked), []);
        let mut finer = checked;
        finer["decimals"] = json!(2);
        assert_eq!(rules.problems(PROGRAMME, &finer)[0].field, "decimals");
        assert!(rules.problem_of_deletion(PROGRAMME, "grab-sg").is_some());
    }

    #[test]
    fn a_partner_that_leaves_is_remembered() {
        let rules = ProgrammeRules::new(false);
        let version = |members: Json| {
            let mut document = programme();
            for (name, value) in members.as_object().unwrap() {
                document[name] = value.clone();
            }
            rules.check(PROGRAMME, &document).unwrap().configuration
        };
        let named = version(json!({"partners": [{"name": "skyair"}, {"name": "hotel"}]}));
        rules.note(&stored(named));
        let left = version(json!({"partners": [{"name": "hotel"}]}));
        let problems = rules.problems(PROGRAMME, &left);
        assert_eq!(problems[0].field, "formerPartners");
        assert!(problems[0].detail.starts_with("lacks skyair:"), "{}", problems[0].detail);

        let partners = json!([{"name": "hotel"}]);
        let left = version(json!({"partners": partners, "formerPartners": ["skyair"]}));
        assert_eq!(rules.problems(PROGRAMME, &left), []);
        rules.note(&stored(left));
        assert_eq!(rules.problems(PROGRAMME, &version(json!({"partners": partners}))).len(), 1);
        let back = version(json!({"partners": [{"name": "hotel"}, {"name": "skyair"}]}));
        assert_eq!(rules.problems(PROGRAMME, &back), []);

        let mut earlier = back.clone();
        earlier["formerPartners"] = json!(["events"]);
        rules.note(&stored(earlier));
        assert_eq!(rules.problems(PROGRAMME, &back), [], "no version can have this name");
    }

    #[test]
    fn what_changes_the_worth_of_points_is_reviewed_where_it_has_to_be() {
        let before = programme();
        let mut words = before.clone();
        words["description"] = json!("of Singapore");
        let mut dearer = before.clone();
        dearer["tables"]["vertical"]["rows"]["food"] = json!(3);

        for (before, after, is_weighty) in [
            (None, &before, true),
            (Some(&before), &before, false),
            (Some(&before), &words, false),
            (Some(&before), &dearer, true),
        ] {
            for needs_review in [true, false] {
                let rules = ProgrammeRules::new(needs_review);
                let needed = rules.approval_needed(PROGRAMME, before, after).is_some();
                assert_eq!(needed, needs_review && is_weighty, "{after}");
            }
        }
    }
}

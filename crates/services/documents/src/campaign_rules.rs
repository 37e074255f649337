//! Campaigns and what they name, as documents.

use crate::rules::{CheckedDocument, Rules};
use parking_lot::Mutex;
use raingauge_campaigns::budget::Budget;
use raingauge_campaigns::campaign::{Campaign, State};
use raingauge_campaigns::documents::{Document, Kind, Library, Lookup, Named};
use raingauge_core::counter::Problem;
use raingauge_ports::campaigns::StoredDocument;
use serde_json::Value as Json;

/// The name of the consumer of the log.
const CONSUMER: &str = "campaigns";

/// The documents of campaigns, with the newest versions of all of them.
pub struct CampaignRules {
    library: Mutex<Library>,
    /// The largest budget that one person alone may give out.
    approval_above: Option<i64>,
    /// Names of the databases that lookups may read.
    connections: Vec<String>,
}

impl CampaignRules {
    pub fn new(approval_above: Option<i64>, connections: Vec<String>) -> Self {
        Self { library: Mutex::default(), approval_above, connections }
    }

    /// The newest version of a lookup.
    pub fn lookup(&self, name: &str) -> Option<Lookup> {
        match self.library.lock().get(Kind::Lookup, name) {
            Some(Document::Lookup(found)) => Some(found.content.clone()),
            _ => None,
        }
    }

    fn problem_of_lookup(&self, lookup: &Lookup) -> Option<Problem> {
        let connection = lookup.connection.as_ref()?;
        let is_known = self.connections.contains(connection);
        (!is_known).then(|| {
            let names = self.connections.join(", ");
            let known = if names.is_empty() { "none" } else { names.as_str() };
            let detail = format!(
                "there is no connection `{connection}`: name it in campaigns.connections (it has {known})"
            );
            Problem::new("connection", detail)
        })
    }

    /// Budgets that several campaigns share are not reviewed as drafts, and so stay below.
    fn problem_of_budget(&self, budget: &Budget) -> Option<Problem> {
        let most = self.approval_above.filter(|most| budget.max > *most)?;
        let detail = format!(
            "must be at most {most} (campaigns.approval_above): a larger budget belongs to one \
             campaign, which a second person approves"
        );
        Some(Problem::new("max", detail))
    }

    /// The largest budget of a campaign, if it needs approval.
    fn large_budget<'c>(&self, campaign: &'c Campaign) -> Option<(&'c str, i64)> {
        let most = self.approval_above?;
        let budgets = campaign.budgets.iter().filter(|(_, budget)| budget.max > most);
        let largest = budgets.max_by_key(|(_, budget)| budget.max);
        largest.map(|(name, budget)| (name.as_str(), budget.max))
    }
}

impl Rules for CampaignRules {
    fn consumer(&self) -> &'static str {
        CONSUMER
    }

    fn has_kind(&self, kind: &str) -> bool {
        Kind::from_name(kind).is_some()
    }

    fn check(&self, kind: &str, configuration: &Json) -> Result<CheckedDocument, Vec<Problem>> {
        let document = Document::parse(kind_of(kind)?, configuration)?;
        Ok(CheckedDocument { id: document.id(), configuration: document.to_json() })
    }

    fn note(&self, document: &StoredDocument) {
        let StoredDocument { kind, id, configuration, is_deleted, .. } = document;
        let Some(kind) = Kind::from_name(kind) else { return };
        let read = if *is_deleted { None } else { Document::read(kind, configuration).ok() };
        let mut library = self.library.lock();
        match read {
            Some(document) => library.insert_as(id.clone(), document),
            None => library.remove(kind, id),
        }
    }

    fn problems(&self, kind: &str, configuration: &Json) -> Vec<Problem> {
        let document = match kind_of(kind).and_then(|kind| Document::read(kind, configuration)) {
            Ok(document) => document,
            Err(problems) => return problems,
        };
        let mut problems = self.library.lock().problems(&document);
        problems.extend(match &document {
            Document::Lookup(Named { content, .. }) => self.problem_of_lookup(content),
            Document::Budget(Named { content, .. }) => self.problem_of_budget(content),
            _ => None,
        });
        problems
    }

    fn problem_of_deletion(&self, kind: &str, id: &str) -> Option<String> {
        self.library.lock().problem_of_deletion(Kind::from_name(kind)?, id)
    }

    /// A campaign with a large budget is approved before it can spend. Whatever only stops it takes
    /// one person, and so does going on with what was approved.
    fn approval_needed(&self, kind: &str, before: Option<&Json>, after: &Json) -> Option<String> {
        let read = |json: &Json| match Document::read(Kind::from_name(kind)?, json) {
            Ok(Document::Campaign(campaign)) => Some(*campaign),
            _ => None,
        };
        let after = read(after)?;
        let (name, max) = self.large_budget(&after)?;
        if !can_spend(after.state) {
            return None;
        }

        let before = before.and_then(read);
        let is_approved = before.is_some_and(|before| {
            can_spend(before.state) && Campaign { state: after.state, ..before } == after
        });
        (!is_approved).then(|| {
            let most = self.approval_above.unwrap_or_default();
            format!(
                "budget `{name}` of {max} is above {most} (campaigns.approval_above): propose the \
                 campaign as a draft, and a second person lets it take effect"
            )
        })
    }
}

/// Whether a campaign spends, or does so as soon as it is resumed.
const fn can_spend(state: State) -> bool {
    matches!(state, State::Active | State::Paused)
}

fn kind_of(kind: &str) -> Result<Kind, Vec<Problem>> {
    let unknown = || vec![Problem::new("kind", format!("there is no kind of document `{kind}`"))];
    Kind::from_name(kind).ok_or_else(unknown)
}

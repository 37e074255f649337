//! All documents together: whether one fits the others.

use super::references::references;
use super::{Document, Kind, LOG_DESTINATION, LookupSource, Reference, TableKind, Target};
use crate::campaign::{ActionKind, Campaign, State};
use crate::limits::{
    CAMPAIGNS_MAX, DESTINATIONS_MAX, LOOKUPS_MAX, SHARED_DOCUMENTS_MAX, STORED_CAMPAIGNS_MAX,
    TABLES_MAX,
};
use raingauge_core::counter::Problem;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most documents that a refusal names.
const NAMED_MAX: usize = 5;

/// The newest versions of all documents, by kind and id.
#[derive(Clone, Debug, Default)]
pub struct Library {
    documents: BTreeMap<(Kind, String), Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    document: Arc<Document>,
    references: Arc<[(String, Reference)]>,
}

impl Library {
    pub fn insert(&mut self, document: Document) {
        let id = document.id();
        self.insert_as(id, document);
    }

    /// Adds a document under the id that it is stored under.
    pub fn insert_as(&mut self, id: String, document: Document) {
        let references = references(&document).into();
        let key = (document.kind(), id);
        self.documents.insert(key, Entry { document: Arc::new(document), references });
    }

    pub fn remove(&mut self, kind: Kind, id: &str) {
        self.documents.remove(&(kind, id.to_owned()));
    }

    pub fn get(&self, kind: Kind, id: &str) -> Option<&Document> {
        self.documents.get(&(kind, id.to_owned())).map(|entry| &*entry.document)
    }

    /// The documents of a kind, by id.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = (&str, &Document)> {
        let own = self.documents.iter().filter(move |((other, _), _)| *other == kind);
        own.map(|((_, id), entry)| (id.as_str(), &*entry.document))
    }

    /// What keeps a document from taking its place among the others: what it names has to exist,
    /// the documents that name it must still find in it what they need, and there must not be too
    /// many.
    pub fn problems(&self, document: &Document) -> Vec<Problem> {
        let kind = document.kind();
        let id = document.id();
        let mut problems: Vec<Problem> = references(document)
            .into_iter()
            .filter(|(_, reference)| !self.has(reference))
            .map(|(at, reference)| {
                let detail = format!("there is no {reference}: create it first");
                Problem::new(at, detail)
            })
            .collect();

        let before = self.get(kind, &id);
        if let (Some(Document::Campaign(before)), Document::Campaign(after)) = (before, document)
            && let Some(problem) = problem_of_change(before, after)
        {
            problems.push(Problem::new("experiment", problem));
        }
        if before.is_some() {
            problems.extend(self.broken_by(document));
        }
        if let Document::Campaign(campaign) = document {
            problems.extend(self.unfit_for_target(campaign));
        }
        problems.extend(self.too_many(document, before));
        problems
    }

    /// The event log takes events, and a programme takes points, and nothing else.
    fn unfit_for_target(&self, campaign: &Campaign) -> Vec<Problem> {
        let target = |name: &str| match self.get(Kind::Destination, name) {
            Some(Document::Destination(found)) => Some(found.content.target()),
            _ => (name == LOG_DESTINATION).then_some(Target::Log),
        };
        let mut problems = Vec::new();
        for (place, step) in campaign.steps.iter().enumerate() {
            for (of_step, action) in step.actions.iter().enumerate() {
                let detail = match (target(&action.to), action.kind) {
                    (Some(Target::Log), kind) if kind != ActionKind::Emit => {
                        "the event log takes events alone: use an action of kind emit"
                    }
                    (Some(Target::Points(_)), kind) if kind != ActionKind::Points => {
                        "a programme takes points alone: use an action of kind points"
                    }
                    _ => continue,
                };
                let at = format!("steps[{place}].actions[{of_step}].to");
                problems.push(Problem::new(at, detail));
            }
        }
        problems
    }

    /// Why a document cannot be deleted, if others need it.
    pub fn problem_of_deletion(&self, kind: Kind, id: &str) -> Option<String> {
        let without = {
            let mut without = self.clone();
            without.remove(kind, id);
            without
        };
        let users = self.users(kind, id).filter(|(_, reference)| !without.has(reference));
        let users: Vec<String> = users.map(|(user, _)| user).collect();
        if let Some(Document::Campaign(campaign)) = self.get(kind, id)
            && campaign.state.counts()
        {
            return Some("it is in use: archive it first".to_owned());
        }
        (!users.is_empty())
            .then(|| format!("it is used by {}: change {} first", list(&users), them(users.len())))
    }

    /// Whether what is named exists.
    fn has(&self, reference: &Reference) -> bool {
        let lookup = |name: &str, class: LookupSource| {
            let found = self.get(Kind::Lookup, name);
            matches!(found, Some(Document::Lookup(found)) if found.content.class == class)
        };
        let table = |name: &str, kind: TableKind| match self.get(Kind::Table, name) {
            Some(Document::Table(found)) if found.content.kind == kind => Some(&found.content),
            _ => None,
        };
        match reference {
            Reference::Destination(name) => {
                name == LOG_DESTINATION || self.get(Kind::Destination, name).is_some()
            }
            Reference::Budget(name) => self.get(Kind::Budget, name).is_some(),
            Reference::Holdout(name) => self.get(Kind::Holdout, name).is_some(),
            Reference::Segment(name) => table(name, TableKind::Segment).is_some(),
            Reference::Table { name, column } => {
                let table = table(name, TableKind::Table);
                table.is_some_and(|table| table.columns.contains_key(column))
            }
            Reference::Database(name) => lookup(name, LookupSource::Db),
            Reference::Http(name) => lookup(name, LookupSource::Http),
        }
    }

    /// The documents that name a document, with what they need of it.
    fn users(&self, kind: Kind, id: &str) -> impl Iterator<Item = (String, &Reference)> {
        self.documents.iter().flat_map(move |((user_kind, user), entry)| {
            let own = entry.references.iter().filter(move |(_, reference)| {
                let (named_kind, name) = place_of(reference);
                named_kind == kind && name == id
            });
            let user = format!("{} {user}", user_kind.name());
            own.map(move |(_, reference)| (user.clone(), reference))
        })
    }

    /// What others need of a document, and would not find in its new version.
    fn broken_by(&self, document: &Document) -> Option<Problem> {
        let kind = document.kind();
        let id = document.id();
        let mut users = self.users(kind, &id).peekable();
        users.peek()?;

        let mut after = Self::default();
        after.insert(document.clone());
        let broken: Vec<String> = users
            .filter(|(_, reference)| !after.has(reference))
            .map(|(user, reference)| format!("{user} (needs {reference})"))
            .collect();
        (!broken.is_empty()).then(|| {
            let detail =
                format!("it is used by {}: change {} first", list(&broken), them(broken.len()));
            Problem::new("", detail)
        })
    }

    fn too_many(&self, document: &Document, before: Option<&Document>) -> Option<Problem> {
        let kind = document.kind();
        let is_in_use = |document: &Document| match document {
            Document::Campaign(campaign) => campaign.state != State::Archived,
            _ => true,
        };
        let others = || self.of_kind(kind).map(|(_, other)| other);
        let in_use = others().filter(|other| is_in_use(other)).count();
        let most = match kind {
            Kind::Campaign => CAMPAIGNS_MAX,
            Kind::Destination => DESTINATIONS_MAX,
            Kind::Lookup => LOOKUPS_MAX,
            Kind::Table => TABLES_MAX,
            Kind::Budget | Kind::Cap | Kind::Holdout => SHARED_DOCUMENTS_MAX,
        };

        let adds = is_in_use(document) && !before.is_some_and(is_in_use);
        if adds && in_use >= most {
            let detail = format!(
                "there are {most} documents of kind {} in use, which is the most: delete or archive some",
                kind.name()
            );
            return Some(Problem::new("", detail));
        }
        let is_full = before.is_none() && others().count() >= STORED_CAMPAIGNS_MAX;
        is_full.then(|| {
            let detail = format!(
                "there are {STORED_CAMPAIGNS_MAX} campaigns, which is the most: delete archived ones"
            );
            Problem::new("", detail)
        })
    }
}

/// The document that is named.
fn place_of(reference: &Reference) -> (Kind, &str) {
    match reference {
        Reference::Destination(name) => (Kind::Destination, name),
        Reference::Budget(name) => (Kind::Budget, name),
        Reference::Holdout(name) => (Kind::Holdout, name),
        Reference::Segment(name) | Reference::Table { name, .. } => (Kind::Table, name),
        Reference::Database(name) | Reference::Http(name) => (Kind::Lookup, name),
    }
}

/// Variants of an experiment that runs stay as they are, so that nobody moves between them.
fn problem_of_change(before: &Campaign, after: &Campaign) -> Option<String> {
    let (Some(running), Some(next)) = (&before.experiment, &after.experiment) else {
        return None;
    };
    if before.state.counts() { next.problem_of_change(running) } else { None }
}

fn list(users: &[String]) -> String {
    let named = users.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    match users.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

const fn them(len: usize) -> &'static str {
    if len == 1 { "it" } else { "them" }
}

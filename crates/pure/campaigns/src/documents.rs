//! Documents that campaigns are made of: the campaigns themselves, and what they name.
//!
//! ```text
//!   campaign ──▶ destination          where actions are sent
//!      ├───────▶ lookup               answers of databases and services
//!      ├───────▶ table                uploaded tables and segments
//!      ├───────▶ budget, holdout      shared by several campaigns
//!   cap ───────▶ destination          bounds actions over all campaigns
//! ```
//!
//! A document is JSON with names in camel case. A campaign is known by its number, any other
//! document by its `name`. [`Document::parse`] reads and checks one by itself, a [`Library`] checks
//! it among the others, and [`assemble`] makes of all of them what the engine decides by. Secrets
//! are never part of a document: it names the place where one is kept.

mod assembly;
mod cap;
mod destination;
mod library;
mod lookup;
mod references;
mod table;

pub use assembly::{Assembly, Stored, Unreadable, assemble};
pub use destination::{Breaker, Destination, LOG_DESTINATION, Target};
pub use library::Library;
pub use lookup::{Lookup, LookupSource};
pub use references::Reference;
pub use table::{ColumnType, Table, TableKind};

use crate::budget::Budget;
use crate::calendar::Zone;
use crate::campaign::{Campaign, CampaignId};
use crate::engine::Cap;
use crate::experiment::Holdout;
use crate::limits::{CAMPAIGN_NAME_LEN_MAX, DOCUMENT_LEN_MAX};
use crate::rule::is_name;
use raingauge_core::counter::Problem;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

raingauge_core::names! {
    /// What a document is.
    #[derive(PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Kind {
        Campaign = "campaign",
        Destination = "destination",
        Lookup = "lookup",
        /// A table or a segment.
        Table = "table",
        Budget = "budget",
        Cap = "cap",
        Holdout = "holdout",
    }
}

impl From<Kind> for &'static str {
    fn from(kind: Kind) -> Self {
        kind.name()
    }
}

/// A document that has been read.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    Campaign(Box<Campaign>),
    Destination(Named<Destination>),
    Lookup(Named<Lookup>),
    Table(Named<Table>),
    Budget(Named<Budget>),
    Cap(Named<Cap>),
    Holdout(Named<Holdout>),
}

/// A document that is known by a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T> {
    pub name: String,
    pub content: T,
}

impl Document {
    /// Reads and checks a document. A member of a wrong kind is reported by itself; otherwise all
    /// problems are reported together.
    pub fn parse(kind: Kind, json: &Json) -> Result<Self, Vec<Problem>> {
        if json.to_string().len() > DOCUMENT_LEN_MAX {
            let detail = format!("a document has at most {DOCUMENT_LEN_MAX} bytes of JSON");
            return Err(vec![Problem::new("", detail)]);
        }
        let document = Self::read(kind, json)?;
        let problems = document.problems();
        if problems.is_empty() { Ok(document) } else { Err(problems) }
    }

    /// Reads a document that was checked before, perhaps by a release with other limits.
    pub fn read(kind: Kind, json: &Json) -> Result<Self, Vec<Problem>> {
        Ok(match kind {
            Kind::Campaign => Self::Campaign(Box::new(deserialized(json)?)),
            Kind::Destination => Self::Destination(named(kind, json)?),
            Kind::Lookup => Self::Lookup(named(kind, json)?),
            Kind::Table => Self::Table(table(json)?),
            Kind::Budget => Self::Budget(named(kind, json)?),
            Kind::Cap => Self::Cap(named(kind, json)?),
            Kind::Holdout => Self::Holdout(named(kind, json)?),
        })
    }

    pub fn kind(&self) -> Kind {
        match self {
            Self::Campaign(_) => Kind::Campaign,
            Self::Destination(_) => Kind::Destination,
            Self::Lookup(_) => Kind::Lookup,
            Self::Table(_) => Kind::Table,
            Self::Budget(_) => Kind::Budget,
            Self::Cap(_) => Kind::Cap,
            Self::Holdout(_) => Kind::Holdout,
        }
    }

    /// The name, or the number of a campaign in decimal. Empty for a campaign without a number.
    pub fn id(&self) -> String {
        match self {
            Self::Campaign(campaign) => id_of(campaign.id),
            Self::Destination(Named { name, .. })
            | Self::Lookup(Named { name, .. })
            | Self::Table(Named { name, .. })
            | Self::Budget(Named { name, .. })
            | Self::Cap(Named { name, .. })
            | Self::Holdout(Named { name, .. }) => name.clone(),
        }
    }

    /// The stored form, which leads back to the document.
    pub fn to_json(&self) -> Json {
        let kind = self.kind();
        match self {
            Self::Campaign(campaign) => json!(campaign),
            Self::Destination(found) => found.to_json(kind.name()),
            Self::Lookup(found) => found.to_json(kind.name()),
            Self::Table(found) => found.to_json(found.content.kind.name()),
            Self::Budget(found) => found.to_json(kind.name()),
            Self::Cap(found) => found.to_json(kind.name()),
            Self::Holdout(found) => found.to_json(kind.name()),
        }
    }

    /// Everything that keeps the document from being used, taken by itself.
    pub fn problems(&self) -> Vec<Problem> {
        let plain = |details: Vec<String>| -> Vec<Problem> {
            details.into_iter().map(|detail| Problem::new("", detail)).collect()
        };
        let mut problems = match self {
            Self::Campaign(campaign) => return campaign.problems(),
            Self::Destination(found) => found.content.problems(),
            Self::Lookup(found) => found.content.problems(),
            Self::Table(found) => found.content.problems(),
            Self::Budget(found) => {
                let mut problems = plain(found.content.problems());
                check_zone(found.content.zone.as_deref(), &mut problems);
                problems
            }
            Self::Cap(found) => cap::problems(&found.content),
            Self::Holdout(found) => plain(found.content.problems()),
        };

        if !is_name(&self.id()) {
            let detail =
                format!("must have 1 to {CAMPAIGN_NAME_LEN_MAX} letters, digits, `_` and `-`");
            problems.insert(0, Problem::new("name", detail));
        }
        problems
    }
}

/// The id of a campaign's document; empty for one without a number.
fn id_of(campaign: CampaignId) -> String {
    if campaign == 0 { String::new() } else { campaign.to_string() }
}

impl<T: Serialize> Named<T> {
    fn to_json(&self, kind: &str) -> Json {
        let mut members = Map::new();
        members.insert("kind".to_owned(), json!(kind));
        members.insert("name".to_owned(), json!(self.name));
        if let Json::Object(content) = json!(self.content) {
            members.extend(content);
        }
        Json::Object(members)
    }
}

fn deserialized<T: DeserializeOwned>(json: &Json) -> Result<T, Vec<Problem>> {
    serde_path_to_error::deserialize(json).map_err(|error| {
        let path = error.path().to_string();
        vec![Problem::new(path.trim_matches('.'), error.inner().to_string())]
    })
}

/// Reads a document that has a name, and its kind if it says one.
fn named<T: DeserializeOwned>(kind: Kind, json: &Json) -> Result<Named<T>, Vec<Problem>> {
    let (found, name, content) = split(json)?;
    if found.is_some_and(|found| found != kind.name()) {
        let detail = format!("must be `{}`, or left out", kind.name());
        return Err(vec![Problem::new("kind", detail)]);
    }
    Ok(Named { name, content: deserialized(&content)? })
}

/// Reads a table or a segment, which share their names.
fn table(json: &Json) -> Result<Named<Table>, Vec<Problem>> {
    let (kind, name, mut content) = split(json)?;
    content["kind"] = json!(kind.unwrap_or(TableKind::Table.name()));
    Ok(Named { name, content: deserialized(&content)? })
}

/// Takes the kind and the name out of a document.
fn split(json: &Json) -> Result<(Option<&str>, String, Json), Vec<Problem>> {
    let Some(members) = json.as_object() else {
        return Err(vec![Problem::new("", "a document is a JSON object".to_owned())]);
    };
    let text = |member: &str| match members.get(member) {
        None => Ok(None),
        Some(Json::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(vec![Problem::new(member, "must be a text".to_owned())]),
    };
    let kind = text("kind")?;
    let name = text("name")?.unwrap_or_default().to_owned();
    let rest = members.iter().filter(|(member, _)| !matches!(member.as_str(), "kind" | "name"));
    let content = rest.map(|(member, value)| (member.clone(), value.clone())).collect();
    Ok((kind, name, Json::Object(content)))
}

/// Checks a zone that does not differ by subject.
fn check_zone(zone: Option<&str>, problems: &mut Vec<Problem>) {
    if zone.is_some_and(|zone| Zone::of_name(zone).is_none()) {
        let detail = "must be an IANA zone, such as Asia/Singapore".to_owned();
        problems.push(Problem::new("zone", detail));
    }
}

#[cfg(test)]
mod tests;

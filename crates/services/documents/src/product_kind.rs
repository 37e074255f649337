//! Documents of products as kinds of documents that are proposed as drafts.

use crate::{Documents, Error, difference, programme_difference};
use raingauge_core::access::Scope;
use raingauge_core::code::Refusal;
use raingauge_core::counter::Problem;
use raingauge_core::event::key_hash;
use raingauge_counters::difference::FieldChange;
use raingauge_counters::documents::{self, Document, DocumentKind, KindScopes, Provenance};
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::StoredDocument;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// Changes of the documents of one kind, as the workflow of drafts makes them.
///
/// Drafts know documents by number. A document that has a name instead gets a number that follows
/// from it, which stands in drafts and is not stored with the document.
pub struct ProductKind {
    documents: Arc<Documents>,
    name: &'static str,
    scopes: KindScopes,
    check_token: TokenCheck,
    naming: Naming,
    differences: fn(&Json, &Json) -> Vec<FieldChange>,
}

/// Refuses API tokens by their names.
type TokenCheck = Box<dyn Fn(&str) -> Result<(), Refusal> + Send + Sync>;

/// What documents of a kind are known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Naming {
    /// Their member `id`.
    Number,
    /// The member that has their name.
    Name(&'static str),
}

impl ProductKind {
    /// Campaigns.
    pub fn campaigns(documents: Arc<Documents>) -> Self {
        Self {
            documents,
            name: "campaign",
            scopes: KindScopes {
                read: Scope::CampaignsRead,
                propose: Scope::CampaignsWrite,
                apply: Scope::CampaignsOperate,
            },
            check_token: Box::new(|_| Ok(())),
            naming: Naming::Number,
            differences: difference::between,
        }
    }

    /// Programmes of points, which are closed to the API tokens that the check refuses.
    pub fn programmes(
        documents: Arc<Documents>,
        check_token: impl Fn(&str) -> Result<(), Refusal> + Send + Sync + 'static,
    ) -> Self {
        Self {
            documents,
            name: "programme",
            scopes: KindScopes {
                read: Scope::PointsRead,
                propose: Scope::PointsWrite,
                apply: Scope::PointsWrite,
            },
            check_token: Box::new(check_token),
            naming: Naming::Name("programme"),
            differences: programme_difference::between,
        }
    }

    async fn save(
        &self,
        configuration: &Json,
        base: u32,
        provenance: Provenance<'_>,
    ) -> Result<Document, documents::Error> {
        let configuration = self.stored_form(configuration);
        // The workflow has seen to it that a second person approved what needs it.
        let saved = self.documents.save_reviewed(self.name, &configuration, base, provenance);
        let stored = saved.await.map_err(|error| self.error(error))?;
        Ok(self.document_of(stored))
    }

    /// A configuration without the number that follows from a name.
    fn stored_form(&self, configuration: &Json) -> Json {
        let mut stored = configuration.clone();
        if let (Naming::Name(_), Some(members)) = (self.naming, stored.as_object_mut()) {
            members.remove("id");
        }
        stored
    }

    /// A configuration with the number by which drafts know it.
    fn draft_form(&self, mut configuration: Json) -> Json {
        if let (Naming::Name(member), true) = (self.naming, configuration.is_object()) {
            let number = number_of(configuration[member].as_str().unwrap_or_default());
            configuration["id"] = json!(number);
        }
        configuration
    }

    /// The name of the document with a number.
    async fn id_of(&self, number: u64) -> Result<String, Error> {
        match self.naming {
            Naming::Number => Ok(number.to_string()),
            Naming::Name(_) => {
                let all = self.documents.list(self.name).await?;
                let found = all.into_iter().find(|document| number_of(&document.id) == number);
                found
                    .map(|document| document.id)
                    .ok_or_else(|| Error::not_found(self.name, &number.to_string()))
            }
        }
    }

    fn document_of(&self, stored: StoredDocument) -> Document {
        let id = match self.naming {
            Naming::Number => stored.id.parse().unwrap_or_default(),
            Naming::Name(_) => number_of(&stored.id),
        };
        Document {
            id,
            version: stored.version,
            configuration: self.draft_form(stored.configuration),
            changed_by: stored.changed_by,
            reason: stored.reason,
        }
    }

    fn error(&self, error: Error) -> documents::Error {
        let detail = error.to_string();
        match error {
            Error::NotFound { .. } | Error::VersionUnknown { .. } => {
                documents::Error::NotFound(detail)
            }
            Error::Taken { id, .. } => {
                let id = match self.naming {
                    Naming::Number => id.parse().unwrap_or_default(),
                    Naming::Name(_) => number_of(&id),
                };
                documents::Error::IdTaken { kind: self.name, id }
            }
            Error::Conflict { current, .. } => documents::Error::Conflict { current, detail },
            Error::Invalid { problems, .. } => documents::Error::Invalid(problems),
            Error::KindUnknown(_) => documents::Error::Invalid(vec![Problem::new("kind", detail)]),
            Error::Refused(_) | Error::ApprovalNeeded(_) => documents::Error::Refused(detail),
            Error::Store(_)
            | Error::Log(_)
            | Error::NotInEffect { .. }
            | Error::Row { .. }
            | Error::Upload(_)
            | Error::Table(_) => documents::Error::Unavailable(detail),
        }
    }
}

impl DocumentKind for ProductKind {
    fn name(&self) -> &'static str {
        self.name
    }

    fn scopes(&self) -> KindScopes {
        self.scopes
    }

    fn check_token(&self, name: &str) -> Result<(), Refusal> {
        (self.check_token)(name)
    }

    fn check(&self, configuration: &Json) -> Result<Json, documents::Error> {
        let checked = self.documents.checked(self.name, &self.stored_form(configuration));
        let checked = checked.map_err(|error| self.error(error))?;
        Ok(self.draft_form(checked.configuration))
    }

    fn read(
        &self,
        id: u64,
        version: Option<u32>,
    ) -> BoxFuture<'_, Result<Document, documents::Error>> {
        Box::pin(async move {
            let found = match self.id_of(id).await {
                Ok(id) => self.documents.get(self.name, &id, version).await,
                Err(error) => Err(error),
            };
            found.map(|found| self.document_of(found)).map_err(|error| self.error(error))
        })
    }

    fn create<'a>(
        &'a self,
        configuration: &'a Json,
        provenance: Provenance<'a>,
    ) -> BoxFuture<'a, Result<Document, documents::Error>> {
        Box::pin(self.save(configuration, 0, provenance))
    }

    fn replace<'a>(
        &'a self,
        configuration: &'a Json,
        base: u32,
        provenance: Provenance<'a>,
    ) -> BoxFuture<'a, Result<Document, documents::Error>> {
        Box::pin(self.save(configuration, base, provenance))
    }

    fn needs_second<'a>(
        &'a self,
        configuration: &'a Json,
    ) -> BoxFuture<'a, Result<bool, documents::Error>> {
        Box::pin(async move {
            let configuration = self.stored_form(configuration);
            let needed = self.documents.approval_needed(self.name, &configuration).await;
            Ok(needed.map_err(|error| self.error(error))?.is_some())
        })
    }

    fn differences(&self, before: &Json, after: &Json) -> Vec<FieldChange> {
        (self.differences)(before, after)
    }
}

/// A number that follows from a name, and that any reader of JSON takes without loss.
fn number_of(name: &str) -> u64 {
    key_hash(name) >> 11
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Deps, InEffect, Options, ProgrammeRules};
    use raingauge_memory as memory;
    use raingauge_ports::clock::ManualClock;
    use tokio::sync::watch;

    const BY: Provenance<'static> = Provenance { by: "zoe", reason: "" };

    /// Whatever is stored is in effect.
    struct Always;

    impl InEffect for Always {
        fn version_of(&self, _kind: &str, _id: &str) -> Option<u32> {
            Some(u32::MAX)
        }

        fn changes(&self) -> watch::Receiver<u64> {
            watch::Sender::new(0).subscribe()
        }
    }

    fn programmes() -> ProductKind {
        let deps = Deps {
            store: Arc::<memory::Documents>::default(),
            rules: Arc::new(ProgrammeRules::new(true)),
            sink: Arc::<memory::Log>::default(),
            in_effect: Arc::new(Always),
            clock: Arc::new(ManualClock::at_s(7)),
        };
        ProductKind::programmes(Arc::new(Documents::new(deps, Options::default())), |_| Ok(()))
    }

    fn programme(name: &str) -> Json {
        json!({
            "programme": name, "unit": "GRP", "timezone": "Asia/Singapore",
            "expiry": { "kind": "never" },
        })
    }

    #[test]
    fn numbers_of_names_fit_into_a_double() {
        let names = ["grab-sg", "grab-id", ""];
        let numbers = names.map(number_of);
        assert!(numbers.iter().all(|number| *number < 1 << 53));
        assert!(numbers[0] != numbers[1] && numbers[0] != 0);
    }

    /// Drafts know documents by number, and programmes have names.
    #[tokio::test]
    async fn a_named_document_is_one_of_drafts() {
        let kind = programmes();
        let proposed = kind.check(&programme("grab-sg")).unwrap();
        assert_eq!(kind.check(&proposed).unwrap(), proposed, "also with its number");
        assert!(kind.needs_second(&proposed).await.unwrap());
        kind.create(&kind.check(&programme("grab-id")).unwrap(), BY).await.unwrap();
        let created = kind.create(&proposed, BY).await.unwrap();
        assert_eq!((created.id, created.version), (number_of("grab-sg"), 1));
        assert_eq!(created.configuration, proposed);
        assert_eq!(proposed["id"].as_u64(), Some(created.id));

        let again = kind.create(&proposed, BY).await;
        let id = created.id;
        assert!(matches!(again, Err(documents::Error::IdTaken { id: taken, .. }) if taken == id));
        let mut next = proposed.clone();
        next["unit"] = json!("points");
        let replaced = kind.replace(&next, 1, BY).await.unwrap();
        assert_eq!(replaced.version, 2);
        let late = kind.replace(&next, 1, BY).await;
        assert!(matches!(late, Err(documents::Error::Conflict { current: 2, .. })), "{late:?}");
        assert_eq!(kind.read(id, None).await.unwrap(), replaced);
        assert_eq!(kind.read(id, Some(1)).await.unwrap().configuration, proposed);
        assert!(matches!(kind.read(id + 1, None).await, Err(documents::Error::NotFound(_))));
        assert_eq!(kind.differences(&proposed, &next)[0].field, "unit");
    }
}

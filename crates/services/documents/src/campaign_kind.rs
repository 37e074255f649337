//! Campaigns as documents that are proposed as drafts.

use crate::{Documents, Error, difference};
use raingauge_core::access::Scope;
use raingauge_core::counter::Problem;
use raingauge_counters::difference::FieldChange;
use raingauge_counters::documents::{self, Document, DocumentKind, KindScopes, Provenance};
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::StoredDocument;
use serde_json::Value as Json;
use std::sync::Arc;

/// Changes of campaigns, as the workflow of drafts makes them.
pub struct CampaignKind(Arc<Documents>);

impl CampaignKind {
    pub const NAME: &'static str = "campaign";

    pub fn new(documents: Arc<Documents>) -> Self {
        Self(documents)
    }

    async fn save(
        &self,
        configuration: &Json,
        base: u32,
        provenance: Provenance<'_>,
    ) -> Result<Document, documents::Error> {
        // The workflow has seen to it that a second person approved what needs it.
        let stored = self.0.save_reviewed(Self::NAME, configuration, base, provenance).await?;
        Ok(document_of(stored))
    }
}

impl DocumentKind for CampaignKind {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn scopes(&self) -> KindScopes {
        KindScopes { propose: Scope::CampaignsWrite, apply: Scope::CampaignsOperate }
    }

    fn check(&self, configuration: &Json) -> Result<Json, documents::Error> {
        let checked = self.0.checked(Self::NAME, configuration)?;
        Ok(checked.configuration)
    }

    fn read(
        &self,
        id: u64,
        version: Option<u32>,
    ) -> BoxFuture<'_, Result<Document, documents::Error>> {
        Box::pin(async move {
            let found = self.0.get(Self::NAME, &id.to_string(), version).await?;
            Ok(document_of(found))
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
        Box::pin(
            async move { Ok(self.0.approval_needed(Self::NAME, configuration).await?.is_some()) },
        )
    }

    fn differences(&self, before: &Json, after: &Json) -> Vec<FieldChange> {
        difference::between(before, after)
    }
}

fn document_of(stored: StoredDocument) -> Document {
    Document {
        id: stored.id.parse().unwrap_or_default(),
        version: stored.version,
        configuration: stored.configuration,
        changed_by: stored.changed_by,
        reason: stored.reason,
    }
}

impl From<Error> for documents::Error {
    fn from(error: Error) -> Self {
        let detail = error.to_string();
        match error {
            Error::NotFound { .. } | Error::VersionUnknown { .. } => Self::NotFound(detail),
            Error::Taken { id, .. } => {
                Self::IdTaken { kind: CampaignKind::NAME, id: id.parse().unwrap_or_default() }
            }
            Error::Conflict { current, .. } => Self::Conflict { current, detail },
            Error::Invalid { problems, .. } => Self::Invalid(problems),
            Error::KindUnknown(_) => Self::Invalid(vec![Problem::new("kind", detail)]),
            Error::Refused(_) | Error::ApprovalNeeded(_) => Self::Refused(detail),
            Error::Store(_)
            | Error::Log(_)
            | Error::NotInEffect { .. }
            | Error::Row { .. }
            | Error::Upload(_)
            | Error::Table(_) => Self::Unavailable(detail),
        }
    }
}

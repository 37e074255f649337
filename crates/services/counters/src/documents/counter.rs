//! Counters as documents.

use super::{Document, DocumentKind, Error, Provenance};
use crate::difference::{self, FieldChange};
use crate::{Counters, counters};
use raingauge_core::counter::{Counter, Problem};
use raingauge_ports::BoxFuture;
use raingauge_ports::catalog::{self, Versioned};
use serde::Deserialize as _;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// Changes of counters, as the workflow of drafts makes them.
pub struct CounterKind(Arc<Counters>);

impl CounterKind {
    pub const NAME: &'static str = "counter";

    pub fn new(counters: Arc<Counters>) -> Self {
        Self(counters)
    }

    /// Reads a configuration that was checked before, perhaps by a release with other limits.
    pub fn parse(configuration: &Json) -> Result<Counter, Error> {
        Counter::deserialize(configuration)
            .map_err(|error| Error::Invalid(vec![Problem::new("", error.to_string())]))
    }

    fn checked(configuration: &Json) -> Result<Counter, Error> {
        Counter::from_json(configuration).map_err(Error::Invalid)
    }

    async fn read_now(&self, id: u64, version: Option<u32>) -> Result<Document, Error> {
        let unknown = || Error::NotFound(format!("there is no counter {id}"));
        let id = u32::try_from(id).map_err(|_| unknown())?;
        let found = match version {
            None => self.0.get(id).await.map_err(counters::Error::from)?,
            Some(version) => self.0.at_version(id, version).await?,
        };
        Ok(found.into())
    }
}

impl DocumentKind for CounterKind {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn check(&self, configuration: &Json) -> Result<Json, Error> {
        Self::checked(configuration).map(|counter| json!(counter))
    }

    fn read(&self, id: u64, version: Option<u32>) -> BoxFuture<'_, Result<Document, Error>> {
        Box::pin(self.read_now(id, version))
    }

    fn create<'a>(
        &'a self,
        configuration: &'a Json,
        Provenance { by, reason }: Provenance<'a>,
    ) -> BoxFuture<'a, Result<Document, Error>> {
        Box::pin(async move {
            let counter = Self::checked(configuration)?;
            Ok(self.0.create(counter, by, reason).await?.into())
        })
    }

    fn replace<'a>(
        &'a self,
        configuration: &'a Json,
        base: u32,
        Provenance { by, reason }: Provenance<'a>,
    ) -> BoxFuture<'a, Result<Document, Error>> {
        Box::pin(async move {
            let counter = Self::checked(configuration)?;
            Ok(self.0.replace(counter, Some(base), by, reason).await?.into())
        })
    }

    fn differences(&self, before: &Json, after: &Json) -> Vec<FieldChange> {
        match (Self::parse(before), Self::parse(after)) {
            (Ok(before), Ok(after)) => difference::between(&before, &after),
            _ => Vec::new(),
        }
    }
}

impl From<Versioned> for Document {
    fn from(found: Versioned) -> Self {
        Self {
            id: found.counter.id.into(),
            version: found.version,
            configuration: json!(found.counter),
            changed_by: found.changed_by,
            reason: found.reason,
        }
    }
}

impl From<counters::Error> for Error {
    fn from(error: counters::Error) -> Self {
        let detail = error.to_string();
        match error {
            counters::Error::Catalog(error) => match error {
                catalog::Error::NotFound(_) => Self::NotFound(detail),
                catalog::Error::IdTaken(id) => {
                    Self::IdTaken { kind: CounterKind::NAME, id: id.into() }
                }
                catalog::Error::VersionMismatch { current, .. }
                | catalog::Error::PolicyMismatch { current } => Self::Conflict { current, detail },
                catalog::Error::Invalid(problems) => Self::Invalid(problems),
                catalog::Error::Unavailable(_) => Self::Unavailable(detail),
            },
            counters::Error::VersionUnknown { .. } => Self::NotFound(detail),
            counters::Error::Log(_) | counters::Error::Stopped(_) => Self::Unavailable(detail),
            _ => Self::Refused(detail),
        }
    }
}

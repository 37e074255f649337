//! The catalog: counter configurations and their versions.

pub mod decide;
mod policies;

pub use policies::{Policies, VersionedPolicy};

use crate::BoxFuture;
use raingauge_core::counter::{Counter, Problem};
use serde::{Serialize, Serializer};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no counter {0}")]
    NotFound(u32),
    #[error("counter {0} exists already: replace it with PUT, or leave out the id")]
    IdTaken(u32),
    /// Another change was made to the counter first.
    #[error("counter {id} is at version {current} by now: read it again and repeat the change")]
    VersionMismatch { id: u32, current: u32 },
    #[error("the cache policy is at version {current} by now: read it again and repeat the change")]
    PolicyMismatch { current: u32 },
    /// The configuration is invalid or conflicts with others.
    #[error("the configuration has {} problem(s)", .0.len())]
    Invalid(Vec<Problem>),
    #[error("the catalog is out of reach: {0}")]
    Unavailable(String),
}

/// Who changed a configuration, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub by: String,
    pub reason: String,
    /// Seconds since 1970.
    pub at_s: i64,
}

/// Prefix of a token's name wherever it is recorded who did something. Users cannot have such
/// names.
pub const TOKEN_PREFIX: &str = "token:";

/// Who did something, in the form of API answers.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChangedBy<'a> {
    changed_by: &'a str,
    /// `token`; `None` for people, and for tokens of earlier releases.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_by_kind: Option<&'static str>,
}

/// Writes a name without the prefix of tokens, and marks it as a token in a separate field.
fn changed_by<S: Serializer>(by: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let token = by.strip_prefix(TOKEN_PREFIX);
    let kind = token.map(|_| "token");
    ChangedBy { changed_by: token.unwrap_or(by), changed_by_kind: kind }.serialize(serializer)
}

/// One version of a counter configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Versioned {
    #[serde(flatten)]
    pub counter: Counter,
    /// The first version is 1.
    pub version: u32,
    /// Begins with [`TOKEN_PREFIX`] for a token.
    #[serde(flatten, serialize_with = "changed_by")]
    pub changed_by: String,
    pub reason: String,
    /// Seconds since 1970.
    pub changed_at: i64,
}

/// The counters, and the cache policy beside them.
pub trait Catalog: Policies {
    /// Returns all counters at their newest versions, by id.
    fn list(&self) -> BoxFuture<'_, Result<Vec<Versioned>, Error>>;

    fn get(&self, id: u32) -> BoxFuture<'_, Result<Versioned, Error>>;

    /// Returns the newest versions of the counters that changed after a revision, by id. Others may
    /// be among them; a catalog that cannot tell returns all.
    fn changed_since(&self, _revision: i64) -> BoxFuture<'_, Result<Vec<Versioned>, Error>> {
        self.list()
    }

    /// Returns all versions of a counter, newest first.
    fn versions(&self, id: u32) -> BoxFuture<'_, Result<Vec<Versioned>, Error>>;

    /// Adds a counter under its id, or under the next free one if that is 0. Refused when its
    /// template conflicts with that of a counter that is not archived.
    fn create(&self, counter: Counter, change: Change) -> BoxFuture<'_, Result<Versioned, Error>>;

    /// Replaces the counter with the id of `counter` if it is at version `expected`, or at any
    /// version if that is `None`. Replacing a counter by an equal one makes no new version.
    fn replace(
        &self,
        counter: Counter,
        expected: Option<u32>,
        change: Change,
    ) -> BoxFuture<'_, Result<Versioned, Error>>;

    /// Returns a number that grows with every change of a counter or of the cache policy, for
    /// processes that follow the catalog.
    fn revision(&self) -> BoxFuture<'_, Result<i64, Error>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_distinguished_from_a_person_of_its_name() {
        let by =
            |by: &str| VersionedPolicy { changed_by: by.to_owned(), ..VersionedPolicy::default() };
        let json =
            |found: &VersionedPolicy| serde_json::to_value(found).expect("it has a form in JSON");
        let [person, token] = [json(&by("alice")), json(&by("token:alice"))];
        assert_eq!((&person["changedBy"], person.get("changedByKind")), (&"alice".into(), None));
        assert_eq!(
            (&token["changedBy"], &token["changedByKind"]),
            (&"alice".into(), &"token".into())
        );
    }
}

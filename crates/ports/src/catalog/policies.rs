//! The cache policy and its versions.

use super::{Change, Error, changed_by};
use crate::BoxFuture;
use raingauge_policy::cache::Policy;
use serde::Serialize;

/// One version of the cache policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionedPolicy {
    #[serde(flatten)]
    pub policy: Policy,
    /// 0 until a policy is set.
    pub version: u32,
    /// Begins with [`TOKEN_PREFIX`](super::TOKEN_PREFIX) for a token.
    #[serde(flatten, serialize_with = "changed_by")]
    pub changed_by: String,
    pub reason: String,
    /// Seconds since 1970.
    pub changed_at: i64,
}

impl VersionedPolicy {
    /// Returns the version that a change makes; `None` when it changes nothing.
    pub fn next(
        &self,
        policy: Policy,
        expected: Option<u32>,
        change: Change,
    ) -> Result<Option<Self>, Error> {
        if expected.is_some_and(|expected| expected != self.version) {
            return Err(Error::PolicyMismatch { current: self.version });
        }

        if self.version > 0 && self.policy == policy {
            return Ok(None);
        }
        let Change { by, reason, at_s } = change;
        Ok(Some(Self {
            policy,
            version: self.version + 1,
            changed_by: by,
            reason,
            changed_at: at_s,
        }))
    }
}

/// The versions of the cache policy.
pub trait Policies: Send + Sync {
    /// Returns the newest cache policy; the default one, at version 0, until one is set.
    fn cache_policy(&self) -> BoxFuture<'_, Result<VersionedPolicy, Error>>;

    /// Returns at most `len_max` versions of the cache policy, newest first; none until one is set.
    fn cache_policies(&self, len_max: usize) -> BoxFuture<'_, Result<Vec<VersionedPolicy>, Error>>;

    /// Replaces the cache policy that is at version `expected`, or at any version when that is
    /// `None`. Every version is kept. Replacing a policy by an equal one makes no new version.
    fn set_cache_policy(
        &self,
        policy: Policy,
        expected: Option<u32>,
        change: Change,
    ) -> BoxFuture<'_, Result<VersionedPolicy, Error>>;
}

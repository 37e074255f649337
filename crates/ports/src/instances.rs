//! The processes of a deployment, as each of them announces itself.

use crate::BoxFuture;
use crate::catalog::Error;

/// Instances that are listed at most: those that were seen last.
pub const INSTANCES_MAX: usize = 1_000;

/// One running process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// A name that no other process has, and that this one has until it ends.
    pub id: String,
    /// As its configuration names it; several may have the same one, or none.
    pub name: String,
    /// Names of its roles, in their order.
    pub roles: Vec<String>,
    /// The version of the program.
    pub version: String,
    /// Where its HTTP door is.
    pub address: String,
    /// Seconds since 1970, by its own clock.
    pub started_s: i64,
    /// When it announced itself last, in seconds since 1970, by its own clock.
    pub seen_s: i64,
    /// What it measured last, in JSON, in a form that whoever reads it checks.
    pub measures: String,
}

/// The instances that are known. They lie in the database of the catalog, and fail as it does.
pub trait Instances: Send + Sync {
    /// Says what an instance is now, in place of what it said before.
    fn announce(&self, instance: Instance) -> BoxFuture<'_, Result<(), Error>>;

    /// Those that were seen last, by name and id.
    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, Error>>;

    /// Forgets an instance that ends.
    fn leave<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Forgets the instances that were not seen since then.
    fn forget(&self, seen_before_s: i64) -> BoxFuture<'_, Result<(), Error>>;
}

//! The processes of a deployment, as each announces itself.

use crate::BoxFuture;
use crate::catalog::Error;

/// Most instances that are listed: those seen most recently.
pub const INSTANCES_MAX: usize = 1_000;

/// One running process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// Unique among processes, and constant until this one ends.
    pub id: String,
    /// The configured name. Several instances may share one, or have none.
    pub name: String,
    /// Names of its roles, in order.
    pub roles: Vec<String>,
    /// Version of the program.
    pub version: String,
    /// Address of its HTTP door.
    pub address: String,
    /// Start time in seconds since 1970, by its own clock.
    pub started_s: i64,
    /// Latest announcement in seconds since 1970, by its own clock.
    pub seen_s: i64,
    /// Latest measurements as JSON. The consumer checks their form.
    pub measures: String,
}

/// The known instances. They are stored in the database of the catalog and fail with it.
pub trait Instances: Send + Sync {
    /// Announces an instance and replaces its previous announcement.
    fn announce(&self, instance: Instance) -> BoxFuture<'_, Result<(), Error>>;

    /// Returns the most recently seen instances, by name and id.
    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, Error>>;

    /// Removes an instance that shuts down.
    fn leave<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Removes the instances not seen since this time.
    fn forget(&self, seen_before_s: i64) -> BoxFuture<'_, Result<(), Error>>;
}

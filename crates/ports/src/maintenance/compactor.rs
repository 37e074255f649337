//! Major compaction of the nodes of an engine.

use super::{Error, Node, Progress};
use crate::BoxFuture;

/// Merges what an engine has on disk into as few files as it likes to have.
pub trait Compactor: Send + Sync {
    /// The nodes, in any order.
    fn nodes(&self) -> BoxFuture<'_, Result<Vec<Node>, Error>>;

    /// Compacts one node; ends when that is done. Whoever drops the future no longer waits, but the
    /// node may go on until it is told to [`stop`](Self::stop).
    fn compact<'a>(&'a self, node: &'a Node) -> BoxFuture<'a, Result<(), Error>>;

    /// Whether a compaction that has begun can be ended early. Where it cannot, it is waited for.
    fn can_stop(&self) -> bool;

    /// Ends what a node still does of a compaction whose future was dropped. What was not finished
    /// is thrown away by the engine and loses nothing.
    fn stop<'a>(&'a self, node: &'a Node) -> BoxFuture<'a, Result<(), Error>>;

    /// How far the compaction of a node has come, where the engine tells.
    fn progress<'a>(&'a self, node: &'a Node) -> BoxFuture<'a, Result<Option<Progress>, Error>>;
}

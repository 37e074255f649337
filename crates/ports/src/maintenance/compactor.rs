//! Major compaction of the nodes of an engine.

use super::{Error, Node, Progress};
use crate::BoxFuture;

/// Merges the files of an engine into as few as the engine prefers.
pub trait Compactor: Send + Sync {
    /// The nodes, in any order.
    fn nodes(&self) -> BoxFuture<'_, Result<Vec<Node>, Error>>;

    /// Compacts one node and completes when that is done. A caller that drops the future no longer
    /// waits, but the node may continue until [`stop`](Self::stop) is called.
    fn compact<'a>(&'a self, node: &'a Node) -> BoxFuture<'a, Result<(), Error>>;

    /// Whether a running compaction can be ended early. Where it cannot, callers wait for it.
    fn can_stop(&self) -> bool;

    /// Ends what a node still does of a compaction whose future was dropped. The engine discards
    /// unfinished work without losing data.
    fn stop<'a>(&'a self, node: &'a Node) -> BoxFuture<'a, Result<(), Error>>;

    /// Returns the progress of the compaction of a node, where the engine reports it.
    fn progress<'a>(&'a self, node: &'a Node) -> BoxFuture<'a, Result<Option<Progress>, Error>>;
}

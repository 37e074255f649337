//! Major compaction of the data folder for maintenance: one node, whose compaction cannot be
//! stopped.

use crate::TileStore;
use raingauge_ports::BoxFuture;
use raingauge_ports::maintenance::{Compactor, Error, Node, Progress};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The niceness of a compaction, which gives way to counting and to queries.
const NICENESS: i32 = 10;

/// Compacts a store on a thread of its own, with low priority. A process that ends does not wait
/// for it: fjall keeps the old files until their replacements are complete.
pub struct StoreCompactor(Arc<TileStore>);

impl StoreCompactor {
    pub fn new(store: Arc<TileStore>) -> Self {
        Self(store)
    }

    async fn run(&self) -> Result<(), Error> {
        let (sender, done) = oneshot::channel();
        let store = Arc::clone(&self.0);
        let work = move || {
            // Priorities that cannot be changed stay as they are.
            let _ = rustix::process::nice(NICENESS);
            // The receiver may be gone.
            let _ = sender.send(store.compact());
        };

        let failed = |error: &dyn std::fmt::Display| Error(error.to_string());
        std::thread::Builder::new()
            .name("compaction".to_owned())
            .spawn(work)
            .map_err(|error| failed(&error))?;

        let compacted =
            done.await.map_err(|_| failed(&"the compaction broke off: look at the log"))?;
        compacted.map_err(|error| failed(&error))
    }
}

impl Compactor for StoreCompactor {
    fn nodes(&self) -> BoxFuture<'_, Result<Vec<Node>, Error>> {
        let local = Node { rack: "local".to_owned(), name: "local".to_owned() };
        Box::pin(async { Ok(vec![local]) })
    }

    fn compact<'a>(&'a self, _: &'a Node) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.run())
    }

    fn can_stop(&self) -> bool {
        false
    }

    fn stop<'a>(&'a self, _: &'a Node) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async { Err(Error("fjall cannot stop a compaction".to_owned())) })
    }

    fn progress<'a>(&'a self, _: &'a Node) -> BoxFuture<'a, Result<Option<Progress>, Error>> {
        Box::pin(async { Ok(None) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TileOptions;
    use raingauge_ports::contract::maintenance::compacts_each_node;

    #[tokio::test]
    async fn it_keeps_the_contract() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = TileStore::open(folder.path(), &TileOptions::default()).expect("opened");
        compacts_each_node(&StoreCompactor::new(Arc::new(store))).await;
    }
}

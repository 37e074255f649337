//! The contract of object stores.

mod databases;
mod entries;
mod heads;

use crate::objects::{Durability, Effect, Group, Key, ObjectControl, ObjectStore, Old};
use bytes::Bytes;

/// Runs the whole suite. `fresh` returns an empty store each time.
pub async fn suite<S>(fresh: impl AsyncFn() -> S)
where
    S: ObjectStore + ObjectControl,
{
    // Each test runs over what is pending, and over what a checkpoint has put in its place.
    for checkpoints in [false, true] {
        let new = async || Subject { store: fresh().await, checkpoints };
        heads::what_is_put_is_found(&new().await).await;
        heads::effects_happen_in_their_order(&new().await).await;
        heads::keys_are_counted_whatever_was_known_of_them(&new().await).await;
        heads::keys_that_expire_are_counted(&new().await).await;
        heads::keys_are_scanned_in_order(&new().await).await;
        heads::what_expires_becomes_due(&new().await).await;
        heads::limits_are_errors(&new().await).await;
        entries::entries_are_read_in_order(&new().await).await;
        entries::a_killed_object_has_no_entries(&new().await).await;
        entries::a_head_that_was_not_known_takes_its_object_along(&new().await).await;
        entries::an_object_moves_to_another_key(&new().await).await;
        entries::numbers_are_not_used_twice(&new().await).await;
        databases::databases_do_not_mix(&new().await).await;
        databases::a_flush_removes_all_of_a_database(&new().await).await;
        databases::databases_are_exchanged(&new().await).await;
        databases::groups_become_durable_in_every_mode(&new().await).await;
    }
}

/// A store in a test.
pub struct Subject<S> {
    pub store: S,
    /// Whether a checkpoint follows each group.
    checkpoints: bool,
}

impl<S: ObjectStore + ObjectControl> Subject<S> {
    /// Submits effects as one group and waits until it is durable.
    async fn put(&self, effects: Vec<Effect>) -> u64 {
        let stamp = self.store.submit(Group { effects }).expect("it is taken");
        self.store.durable(stamp, Durability::Synced).await.expect("it is durable");
        if self.checkpoints {
            self.store.checkpoint().await.expect("a checkpoint");
        }
        stamp
    }

    async fn head(&self, database: u8, name: &str) -> Option<Bytes> {
        let heads = self.store.heads(vec![key(database, name)], 0).await.expect("heads");
        heads.into_iter().next().expect("one for each key")
    }

    async fn names(&self, database: u8) -> Vec<Bytes> {
        let found = self.store.scan(database, None, 1_000).await.expect("heads");
        found.into_iter().map(|found| found.name).collect()
    }

    async fn entries(&self, database: u8, id: u64) -> Vec<(Bytes, Bytes)> {
        let page = self.store.entries(database, id, None, 1 << 20).await.expect("entries");
        assert!(!page.has_more);
        page.entries
    }

    async fn count(&self, database: u8) -> u64 {
        self.store.count(database).await.expect("a count").keys
    }
}

fn key(database: u8, name: &str) -> Key {
    Key::new(database, name.to_owned())
}

fn put(database: u8, name: &str, head: &str, old: Old) -> Effect {
    Effect::PutHead {
        key: key(database, name),
        head: Bytes::from(head.to_owned()),
        expires_ms: None,
        wide: None,
        old,
    }
}

/// The head of a wide object.
fn put_wide(database: u8, name: &str, id: u64, old: Old) -> Effect {
    Effect::PutHead {
        key: key(database, name),
        head: Bytes::from(format!("wide {id}")),
        expires_ms: None,
        wide: Some(id),
        old,
    }
}

fn drop_head(database: u8, name: &str, old: Old) -> Effect {
    Effect::DropHead { key: key(database, name), old }
}

fn put_entry(database: u8, id: u64, sub: &str, value: &str) -> Effect {
    let bytes = |text: &str| Bytes::from(text.to_owned());
    Effect::PutEntry { database, id, sub: bytes(sub), value: bytes(value) }
}

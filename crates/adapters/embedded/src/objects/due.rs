//! How far the index of expiries was read.

use super::keys::DueKey;
use std::collections::BTreeSet;

/// How far the index was read.
#[derive(Default)]
pub struct Due {
    /// Records up to here lead to keys in `owed`, or are about to be removed.
    pub cursor: Option<DueKey>,
    /// Records whose keys were returned, and are returned until they are dropped.
    pub owed: BTreeSet<DueKey>,
}

impl Due {
    /// Notes the first record that a checkpoint has written.
    pub fn rewind(&mut self, first: Option<DueKey>) {
        let Some(first) = first else {
            return;
        };
        if self.cursor.as_ref().is_some_and(|cursor| first <= *cursor) {
            self.cursor = Some(DueKey { due_ms: first.due_ms.saturating_sub(1), ..first });
        }
    }
}

//! Moves wallets to when something is due in them by now.
//!
//! The due index has the hours that followed from the version of the programme at the last entry of
//! each wallet. A version that reminds earlier, or has another grace, makes other hours right, and
//! those of wallets that nothing touches would stay. So after such a change, a sweep goes through
//! the whole index once, and the teller writes an entry for each wallet that moves.
//!
//! The terms of the version are noted once all wallets are settled or in the queue. A walk that
//! ends before, with its process, begins again. Wallets outside of the index have nothing that will
//! be due.

use super::Sweeper;
use crate::error::Error;
use crate::tail::blocking;
use std::sync::Arc;

/// The last hour of the due index that a walk goes through to: the end of the year 9999.
const LAST_HOUR: u32 = 70_389_527;
/// The book whose places are the notes.
const BOOK: u16 = 0;

/// What a programme has by now, beside what the index was last gone through for.
struct Terms {
    /// The consumer under whose name they are noted.
    note: String,
    noted: u64,
    current: u64,
}

impl Sweeper {
    /// Goes through the due index, if a version of a programme makes other hours right. Answers
    /// whether it did. While ranges of a sweep wait, the next call does.
    pub async fn walk(&self) -> Result<bool, Error> {
        let snapshot = self.shared.snapshot();
        let mut changed = Vec::new();
        let mut is_stale = false;
        for programme in snapshot.programmes().iter() {
            let terms = self.terms(programme.name(), programme.due_terms()).await?;
            if terms.noted != terms.current {
                // No version before the first one has left wallets behind.
                is_stale |= terms.noted > 0 || programme.version > 1;
                changed.push(terms);
            }
        }

        if is_stale {
            // A version that returns to what was noted does not undo what a part of a walk did.
            for terms in &changed {
                self.note(&terms.note, 0).await?;
            }
            let sweep = self.register.draft(self.deps.clock.now_ms(), LAST_HOUR);
            if !self.carry_out_once(&sweep).await? {
                return Ok(false);
            }
        }
        for Terms { note, current, .. } in changed {
            self.note(&note, current).await?;
        }
        Ok(is_stale)
    }

    async fn note(&self, note: &str, terms: u64) -> Result<(), Error> {
        let books = Arc::clone(&self.deps.books);
        let name = note.to_owned();
        blocking(move || books.set_place(&name, BOOK, terms)).await
    }

    async fn terms(&self, programme: &str, current: u64) -> Result<Terms, Error> {
        let note = format!("due-{programme}");
        let books = Arc::clone(&self.deps.books);
        let name = note.clone();
        let noted = blocking(move || books.place(&name, BOOK)).await?;
        Ok(Terms { note, noted, current })
    }
}

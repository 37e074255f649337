//! Books of points on any database, for any number of processes.
//!
//! ```text
//!   turn   lock the heads of its books ─▶ lock its budgets ─▶ load ─▶ decide ─▶ load sums
//!             ─▶ keys, references ─▶ entries, wallets, sums, budgets, heads ─▶ commit
//! ```
//!
//! The lock of a head makes the turns of a book follow each other, in whatever process they are
//! taken: sequences have no gap, and a reader of entries that has seen 7 never finds a 6 that was
//! not there before. Wallets, references and totals belong to one book. What books share is guarded
//! row by row: budgets by locks, in the order of their names, and keys by the primary key. A turn
//! that meets another one in a key is rolled back, and decided again.
//!
//! A process that ends in the middle of a turn leaves nothing: the database rolls back and releases
//! the heads. One that is stopped and resumes finds its connection closed.

mod load;
pub mod many;
mod read;
pub mod rows;
mod save;
mod verify;

use crate::database::{Change, Database, Statement, Unavailable, Written};
use crate::queues::Queues;
use load::Grounds;
use many::Many;
use raingauge_points::{BudgetId, Footprint, Snapshot, Turn};
use raingauge_ports::clock::Clock;
use raingauge_ports::points::{Chain, Error, Head};
use rows::HeadRow;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::runtime::Handle;

/// How often a turn is decided again because it met another one. Each time, the other one was
/// committed, and the next attempt loads its keys.
const COLLISIONS_MAX: usize = 32;

const COUNT_HEADS: &str = "SELECT COUNT(*) FROM points_heads";
const ADD_HEADS: Many = Many {
    before: "INSERT INTO points_heads
        (book, turns, sequence, recorded_ms, hash, position, versions) VALUES ",
    row: "(?, 0, 0, 0, ?, 0, '{}')",
    after: "",
};

/// The books of points in a database that also holds the catalog.
#[derive(Clone, Debug)]
pub struct Books<D> {
    database: D,
    /// How many books there are.
    count: u16,
    /// Waits for the database on behalf of threads that may block.
    runtime: Handle,
}

impl<D: Database> Books<D> {
    /// Makes the books, the first time, and refuses another number of books than there is: a member
    /// would move to another book.
    pub(crate) async fn over(database: D, count: u16, runtime: Handle) -> Result<Self, Error> {
        let books = Self { database, count, runtime };
        let found = match books.count_heads().await? {
            0 => books.add_heads().await?,
            found => found,
        };
        if found != i64::from(count) {
            let sentence = format!(
                "it has {found} books of points, and this raingauge needs {count}: members cannot \
                 move to other books, so let the raingauge run that made them"
            );
            let Unavailable(sentence) = books.database.refuse(&sentence);
            return Err(Error::Io(sentence));
        }
        Ok(books)
    }

    /// The queues in the same database, whose times are those of the machine's clock.
    pub fn queues(&self, clock: Arc<dyn Clock>) -> Queues<D> {
        Queues::over(self.database.clone(), clock)
    }

    /// Waits for calls in progress and closes the connections. Later calls are refused.
    pub async fn close(&self) {
        self.database.close().await;
    }

    async fn count_heads(&self) -> Result<i64, Error> {
        let rows: Vec<(i64,)> = self.database.rows(Statement::new(COUNT_HEADS)).await?;
        Ok(rows.first().map_or(0, |(count,)| *count))
    }

    /// Adds all heads, unless another process was faster, and returns how many there are.
    async fn add_heads(&self) -> Result<i64, Error> {
        let Chain(first) = Chain::default();
        let heads = (0..self.count).map(|book| vec![i64::from(book).into(), first.to_vec().into()]);
        let mut change = self.database.begin(None).await?;
        for statement in ADD_HEADS.writing(heads.collect()) {
            if change.write(statement).await? == Written::Collided {
                change.give_up().await;
                return self.count_heads().await;
            }
        }
        change.commit().await?;
        self.count_heads().await
    }

    async fn heads(&self, books: &[u16]) -> Result<Vec<Head>, Error> {
        let rows: Vec<HeadRow> = self.database.rows(load::heads::<D>(books)).await?;
        rows::heads_of(rows, books)
    }

    async fn turn_now(
        &self,
        books: &[u16],
        footprint: &Footprint,
        decide: &mut dyn FnMut(&[Head], Snapshot) -> Turn,
    ) -> Result<Vec<Head>, Error> {
        // What an attempt found beyond its footprint, the next one locks before it reads.
        let mut budgets: BTreeSet<BudgetId> = footprint.budgets.iter().cloned().collect();
        for _ in 0..COLLISIONS_MAX {
            let tried = self.try_turn(books, footprint, &mut budgets, decide);
            if let Some(heads) = tried.await? {
                return Ok(heads);
            }
        }
        let sentence = "other turns keep taking the keys of this one: try again";
        Err(self.database.refuse(sentence).into())
    }

    /// Returns `None` when the turn met another one, and nothing was written.
    async fn try_turn(
        &self,
        books: &[u16],
        footprint: &Footprint,
        budgets: &mut BTreeSet<BudgetId>,
        decide: &mut dyn FnMut(&[Head], Snapshot) -> Turn,
    ) -> Result<Option<Vec<Head>>, Error> {
        let mut change = self.database.begin(None).await?;
        let loading = load::grounds::<D>(&mut change, self.count, books, footprint, budgets);
        let Some(Grounds { heads, snapshot, stored }) = loading.await? else {
            change.give_up().await;
            return Ok(None);
        };

        let turn = decide(&heads, snapshot);
        let is_idle = turn.entries.is_empty() && turn.position.is_none();
        if is_idle {
            change.give_up().await;
            return Ok(Some(heads));
        }

        let sums = load::sums(&mut change, &turn.moved).await?;
        let (writes, heads) = save::writes(&turn, self.count, &heads, &stored, &sums)?;
        for write in writes {
            match change.write(write.statement).await? {
                Written::Rows(rows) if write.rows.is_none_or(|wanted| wanted == rows) => {}
                Written::Rows(_) | Written::Collided => {
                    change.give_up().await;
                    return Ok(None);
                }
            }
        }
        change.commit().await?;
        Ok(Some(heads))
    }
}

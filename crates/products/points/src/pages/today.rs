//! What each programme issued today, what was spent and what expired, added up from the end of the
//! journal.
//!
//! The first request looks for the entries of the last day, and adds them up in the background;
//! later ones add what is new.

use parking_lot::Mutex;
use raingauge_points::{Account, Day, Entry, Programmes};
use raingauge_ports::points::{Books, Error};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A local day has at most 25 hours, and an hour more does no harm.
const DAY_MS: i64 = 26 * 3_600_000;
/// Bytes of entries that are read at a time.
const READ_BYTES: usize = 1024 * 1024;
/// Longest wait of a page for the sums.
const PATIENCE: Duration = Duration::from_millis(200);

/// What a programme did on a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Awards, less what was taken back.
    pub issued: i128,
    pub spent: i128,
    /// Less what was brought back.
    pub expired: i128,
}

/// The activity of the present day.
#[derive(Clone, Default)]
pub struct Today(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The next entry of each book; empty before the first request.
    next: Vec<u64>,
    /// By programme: the day that it is about, and its sums.
    days: HashMap<Arc<str>, (Day, Activity)>,
    is_adding: bool,
}

impl Today {
    /// Adds what is new, and returns whether everything is added up. It goes on in the background
    /// where that takes too long for a page.
    pub async fn refresh(
        &self,
        books: &Arc<dyn Books>,
        programmes: Arc<Programmes>,
        now_ms: i64,
    ) -> bool {
        if std::mem::replace(&mut self.0.lock().is_adding, true) {
            return false;
        }
        let today = self.clone();
        let books = Arc::clone(books);
        let adding = tokio::task::spawn_blocking(move || {
            let added = today.add(&*books, &programmes, now_ms);
            today.0.lock().is_adding = false;
            added
        });

        match tokio::time::timeout(PATIENCE, adding).await {
            Ok(Ok(Ok(()))) => true,
            Ok(Ok(Err(error))) => {
                tracing::warn!(%error, "the points of today cannot be added up");
                false
            }
            _ => false,
        }
    }

    /// The sums of a programme on a day.
    pub fn of(&self, programme: &str, day: Day) -> Activity {
        let state = self.0.lock();
        let found = state.days.get(programme).filter(|(known, _)| *known == day);
        found.map(|(_, activity)| *activity).unwrap_or_default()
    }

    fn add(&self, books: &dyn Books, programmes: &Programmes, now_ms: i64) -> Result<(), Error> {
        for book in 0..books.books() {
            let place = usize::from(book);
            if self.0.lock().next.len() <= place {
                let first = first_since(books, book, now_ms - DAY_MS)?;
                self.0.lock().next.push(first);
            }
            loop {
                let from = self.0.lock().next[place];
                let entries = books.read(book, from, READ_BYTES)?;
                let Some(last) = entries.last() else { break };
                let mut state = self.0.lock();
                entries.iter().for_each(|entry| state.note(entry, programmes));
                state.next[place] = last.sequence + 1;
            }
        }
        Ok(())
    }
}

impl State {
    fn note(&mut self, entry: &Entry, programmes: &Programmes) {
        let Some(programme) = programmes.get(&entry.programme) else { return };
        let day = programme.zone().day(entry.recorded_ms);
        let sums =
            self.days.entry(Arc::clone(&entry.programme)).or_insert((day, Activity::default()));
        if sums.0 < day {
            *sums = (day, Activity::default());
        }
        if sums.0 == day {
            sums.1.note(entry);
        }
    }
}

impl Activity {
    fn note(&mut self, entry: &Entry) {
        for posting in &entry.postings {
            let amount = i128::from(posting.amount);
            match posting.account {
                Account::Issued(_) => self.issued -= amount,
                Account::Burned(..) => self.spent += amount,
                Account::Expired(_) => self.expired += amount,
                _ => {}
            }
        }
    }
}

/// The sequence of the first entry of a book that was recorded at a time or later. Times of a book
/// never go back.
fn first_since(books: &dyn Books, book: u16, since_ms: i64) -> Result<u64, Error> {
    let mut low = 1;
    let mut high = books.head(book)?.sequence + 1;
    while low < high {
        let middle = low + (high - low) / 2;
        // One entry is enough.
        let read = books.read(book, middle, 1)?;
        let is_early = read.first().is_some_and(|entry| entry.recorded_ms < since_ms);
        if is_early { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

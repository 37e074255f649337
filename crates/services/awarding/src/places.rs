//! How far the partitions of the log are awarded, where several processes share it.

use crate::error::Error;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::tail::blocking;
use parking_lot::Mutex;
use raingauge_consumers::Overtaken;
use raingauge_points::document::CONSUMER;
use raingauge_ports::consumers::Name;
use raingauge_ports::log::{EventLog, Offset, Partition};
use raingauge_ports::points::{self, Books};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The name under which the places are noted. The books of this consumer are partitions.
const EVENTS: &str = "events";
/// The name under which it is noted that every partition of that time had a place.
const BEGUN: &str = "events-begun";
/// How long a place that was read is believed, so that many who wait ask the books once.
const BELIEVED: Duration = Duration::from_millis(50);

/// Finds what the log dropped of a partition before it was awarded. With `skips`, awarding
/// continues behind it. Blocks the thread.
pub fn skip_lost(
    books: &dyn Books,
    log: &dyn EventLog,
    skips: bool,
) -> Result<Option<Overtaken>, points::Error> {
    let partition = log.partition();
    let noted = books.place(EVENTS, partition)?;
    let start = log.start();
    let Some(position) = noted.checked_sub(1).filter(|position| *position < start) else {
        return Ok(None);
    };
    if skips {
        books.set_place(EVENTS, partition, start + 1)?;
    }
    let consumer = Name::new(CONSUMER).expect("it is a name");
    Ok(Some(Overtaken { consumer, partition, position, start }))
}

/// What is in force in the books; `None` until the teller of this process has it too. The first
/// head names it as each of the others does.
pub(crate) async fn newest(
    books: &Arc<dyn Books>,
    shared: &Shared,
) -> Result<Option<Arc<Snapshot>>, Error> {
    let books = Arc::clone(books);
    let head = blocking(move || books.head(0)).await?;
    let snapshot = shared.snapshot();
    Ok(snapshot.missing(&[head]).is_empty().then_some(snapshot))
}

/// The places in the books. One process notes them, and all can read them.
pub(crate) struct Places {
    books: Arc<dyn Books>,
    /// What was read last, by partition, and when.
    known: Mutex<HashMap<Partition, (Instant, Offset)>>,
}

impl Places {
    pub fn new(books: Arc<dyn Books>) -> Self {
        Self { books, known: Mutex::default() }
    }

    /// Returns the position in a partition; `None` before the first one was noted.
    pub async fn position(&self, partition: Partition) -> Result<Option<Offset>, Error> {
        let books = Arc::clone(&self.books);
        let noted = blocking(move || books.place(EVENTS, partition)).await?;
        // A place of 0 is none, so each is one more than its offset.
        Ok(noted.checked_sub(1))
    }

    /// Notes a position, which a crash may undo.
    pub async fn note(&self, partition: Partition, position: Offset) -> Result<(), Error> {
        let books = Arc::clone(&self.books);
        blocking(move || books.set_place(EVENTS, partition, position + 1)).await
    }

    /// Whether the partitions of an earlier day had places. One without a place is newer then, and
    /// everything in it is to be awarded.
    pub async fn have_begun(&self) -> Result<bool, Error> {
        let books = Arc::clone(&self.books);
        Ok(blocking(move || books.place(BEGUN, 0)).await? > 0)
    }

    /// Notes that every partition has a place.
    pub async fn note_begun(&self) -> Result<(), Error> {
        let books = Arc::clone(&self.books);
        blocking(move || books.set_place(BEGUN, 0, 1)).await
    }

    /// Waits until everything before these offsets is awarded, by whichever process.
    pub async fn reached(&self, ends: &[(Partition, Offset)]) {
        for (partition, end) in ends {
            while self.recent(*partition).await < *end {
                tokio::time::sleep(BELIEVED).await;
            }
        }
    }

    /// The position in a partition as it was read last; `None` if nobody waited for it yet.
    pub fn known(&self, partition: Partition) -> Option<Offset> {
        self.known.lock().get(&partition).map(|(_, position)| *position)
    }

    async fn recent(&self, partition: Partition) -> Offset {
        let known = self.known.lock().get(&partition).copied();
        if let Some((read, position)) = known
            && read.elapsed() < BELIEVED
        {
            return position;
        }
        match self.position(partition).await {
            Ok(position) => {
                let position = position.unwrap_or_default();
                self.known.lock().insert(partition, (Instant::now(), position));
                position
            }
            Err(error) => {
                tracing::debug!(%error, partition, "a place of points is not known");
                self.known(partition).unwrap_or_default()
            }
        }
    }
}

//! The books as the teller changes them.

use super::{Chain, Error};
use crate::log::Offset;
use raingauge_points::{Entry, Footprint, Snapshot, Turn, WalletId};
use std::sync::Arc;

/// Where a book stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub book: u16,
    /// The number of the last entry; 0 before the first.
    pub sequence: u64,
    /// When the last entry was recorded, in milliseconds since 1970. Turns never go back.
    pub recorded_ms: i64,
    /// The hash over all entries.
    pub chain: Chain,
    /// The version of each programme that is in force, by name.
    pub versions: Vec<(Arc<str>, u32)>,
    /// The event log is included up to here. Turns without entries move it as well.
    pub position: Offset,
}

impl Head {
    /// The head before the first entry.
    pub fn of_book(book: u16) -> Self {
        Self { book, ..Self::default() }
    }

    /// Adds the next entry, whose encoding is `bytes`.
    pub fn apply(&mut self, entry: &Entry, bytes: &[u8]) {
        assert_eq!(
            (entry.book, entry.sequence),
            (self.book, self.sequence + 1),
            "an entry follows the last one"
        );
        self.sequence = entry.sequence;
        self.recorded_ms = entry.recorded_ms;
        self.chain = self.chain.after(bytes);

        if let Some(version) = entry.changes.version {
            match self.versions.binary_search_by(|(name, _)| name.cmp(&entry.programme)) {
                Ok(place) => self.versions[place].1 = version,
                Err(place) => self.versions.insert(place, (Arc::clone(&entry.programme), version)),
            }
        }
    }

    /// Refuses an event log that ends before the position.
    pub fn check_log(&self, end: Offset) -> Result<(), Error> {
        let position = self.position;
        if position > end { Err(Error::LogTooShort { position, end }) } else { Ok(()) }
    }
}

/// A wallet whose time has come: something in it matures, expires or ends. By hour, programme and
/// member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueWallet {
    /// Hours since 1970.
    pub hour: u32,
    pub wallet: WalletId,
}

/// Called by one thread for each book, which it may block. A wallet belongs to one book for ever:
/// [`WalletId::book`].
pub trait Books: Send + Sync {
    /// How many books there are.
    fn books(&self) -> u16;

    fn head(&self, book: u16) -> Result<Head, Error>;

    /// Loads the footprint in `books`, calls `decide` with their heads, in their order, and with
    /// what it loaded, and makes the turn durable, all of it or nothing. `decide` may be called
    /// again when the turn met another one. A turn without entries moves the position at most,
    /// which a crash may undo; one without a position changes nothing. Returns the heads after it.
    fn turn(
        &self,
        books: &[u16],
        footprint: &Footprint,
        decide: &mut dyn FnMut(&[Head], Snapshot) -> Turn,
    ) -> Result<Vec<Head>, Error>;

    /// Whether work that can wait may take turns now. `false` while the books are busy with what
    /// earlier turns have left behind, so that others could be held up.
    fn has_room(&self) -> bool {
        true
    }

    /// Returns at most `len_max` wallets that are due at or before an hour, in hours since 1970, in
    /// the order of [`DueWallet`], from the one behind `after` on.
    fn due(
        &self,
        book: u16,
        until_hour: u32,
        after: Option<&DueWallet>,
        len_max: usize,
    ) -> Result<Vec<DueWallet>, Error>;

    /// Reads entries from a sequence on: at least one, if there is one, and about `bytes_max` bytes
    /// of them.
    fn read(&self, book: u16, from: u64, bytes_max: usize) -> Result<Vec<Arc<Entry>>, Error>;

    /// Returns the sequence up to which a consumer of the entries has delivered them; 0 at first.
    fn place(&self, consumer: &str, book: u16) -> Result<u64, Error>;

    /// Notes how far a consumer has delivered. A crash may undo it, and the consumer repeats.
    fn set_place(&self, consumer: &str, book: u16, sequence: u64) -> Result<(), Error>;
}

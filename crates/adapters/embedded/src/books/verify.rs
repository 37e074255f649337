//! Proves that the records are what follows from the journal, or makes them again.

use super::journal::{Inspection, Pages};
use super::pending::{Pending, Writer};
use super::records::Records;
use super::recovery;
use super::state::BOOK;
use super::{JOURNAL_FOLDER, Options, STATE_FOLDER, keys, open_folder, open_records};
use raingauge_points::Earned;
use raingauge_ports::points::{BookDifference, Error, Head, Verified, VerifiedBooks};
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

/// The folder of the records that are made for a comparison.
const COMPARED_FOLDER: &str = "verify";
/// Records that are compared at once.
const COMPARED_LEN: usize = 10_000;

/// Computes all records again from the journal, in a folder beside them, and compares. The end of
/// the journal is mended and applied first, as a start does it. Needs as much room again as the
/// records have. The books must not be open.
pub fn verify(folder: &Path, options: &Options) -> Result<Verified, Error> {
    let journal = open_folder(&folder.join(JOURNAL_FOLDER))?;
    let inspection = Inspection::of(journal, options.segment_bytes)?;
    let pages = inspection.pages.clone();
    let noted = inspection.noted_position();
    let records = Arc::new(open_records(&folder.join(STATE_FOLDER), options)?);
    let head = recovery::checked_head(&records, &pages)?;
    let behind = pages.end() - head.sequence;

    let compared = folder.join(COMPARED_FOLDER);
    remove(&compared)?;
    let again = Arc::new(open_records(&compared, options)?);
    let last = pages.last_block()?.map_or(0, |page| page.position);
    let position = noted.max(last);
    let _mended = inspection.open()?;
    let result = {
        let _writers = [Writer::start(&records)?, Writer::start(&again)?];
        compare_all(&records, &again, &pages, head)
    };

    drop(again);
    remove(&compared)?;
    Ok(result?.map(|(head, records)| VerifiedBooks {
        entries: head.sequence,
        records,
        recorded_ms: head.recorded_ms,
        position,
        chain: head.chain,
        behind,
    }))
}

/// Removes the records and makes them again from the journal. The books must not be open.
pub fn rebuild(folder: &Path, options: &Options) -> Result<VerifiedBooks, Error> {
    {
        let _held = open_folder(&folder.join(JOURNAL_FOLDER))?;
        remove(&folder.join(STATE_FOLDER))?;
        remove(&folder.join(COMPARED_FOLDER))?;
    }
    drop(super::PointBooks::open(folder, options)?);

    verify(folder, options)?.map_err(|difference| {
        Error::Corrupt(format!("{} is not what was just written", difference.record))
    })
}

fn remove(folder: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Io(error.to_string()))
        }
        _ => Ok(()),
    }
}

/// A head and the number of records, or the first difference.
type Compared = Result<(Head, u64), BookDifference>;

/// Compares the records with those that are made in an empty store, after the former have caught
/// up in the same way: a crash may have left them behind.
pub(super) fn compare_all(
    records: &Pending,
    again: &Pending,
    pages: &Pages,
    head: Head,
) -> Result<Compared, Error> {
    let head = recovery::catch_up(records, pages, head)?;
    records.write_all()?;
    let expected = recovery::catch_up(again, pages, Head::of_book(BOOK))?;
    again.write_all()?;
    if head != expected {
        let digits = |head: &Head| Some(format!("{head:?}"));
        return Ok(Err(BookDifference {
            record: "head".to_owned(),
            expected: digits(&expected),
            found: digits(&head),
        }));
    }

    let count = compare(records.written(), again.written(), keys::all())?;
    Ok(count.map(|count| (head, count)))
}

/// Compares a range of two stores, a part at a time. Returns how many records it has.
fn compare(
    records: &dyn Records,
    again: &dyn Records,
    range: Range<Vec<u8>>,
) -> Result<Result<u64, BookDifference>, Error> {
    let mut from = range.start;
    let mut count = 0;
    loop {
        let found = part(records, from.clone()..range.end.clone())?;
        let expected = part(again, from..range.end.clone())?;
        if let Some(difference) = first_difference(&expected, &found) {
            return Ok(Err(difference));
        }

        count += found.len() as u64;
        match found.last() {
            // The next key that there can be.
            Some((last, _)) if found.len() == COMPARED_LEN => from = [&last[..], &[0]].concat(),
            _ => return Ok(Ok(count)),
        }
    }
}

type Record = (Vec<u8>, Vec<u8>);

/// The first records of a range.
fn part(records: &dyn Records, range: Range<Vec<u8>>) -> Result<Vec<Record>, Error> {
    let mut found = Vec::new();
    records.scan(range, false, &mut |key, value| {
        found.push((key.to_vec(), value.to_vec()));
        let is_enough = found.len() == COMPARED_LEN;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(found)
}

/// Whether a record is what follows from the journal, as far as its version goes.
fn is_same(expected: Option<&Record>, found: Option<&Record>) -> bool {
    let (Some((key, expected)), Some((found_key, found))) = (expected, found) else {
        return expected == found;
    };
    let says_the_same = || {
        let [expected, found] = [expected, found].map(|record| Earned::decode(record));
        matches!((expected, found), (Ok(expected), Ok(found)) if expected.is_recorded_as(&found))
    };
    key == found_key && (expected == found || keys::is_reference(key) && says_the_same())
}

fn first_difference(expected: &[Record], found: &[Record]) -> Option<BookDifference> {
    let place = (0..expected.len().max(found.len()))
        .find(|place| !is_same(expected.get(*place), found.get(*place)))?;
    let key = expected.iter().skip(place).take(1).chain(found.iter().skip(place).take(1));
    let (key, _) = key.min()?;
    let value = |records: &[Record]| {
        let record = records.get(place).filter(|(found, _)| found == key);
        record.map(|(_, value)| value.iter().map(|byte| format!("{byte:02x}")).collect())
    };
    Some(BookDifference {
        record: keys::description(key),
        expected: value(expected),
        found: value(found),
    })
}

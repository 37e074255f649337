//! Records of a CSV file (RFC 4180), found and split in one pass over the buffer.
//!
//! This is our own parser rather than the `csv` crate, against which the tests compare it, for
//! three reasons: it knows the line on which a record begins, it returns the raw bytes of the
//! record, and it splits a line without quotes (nearly every line) eight bytes at a time. A quote
//! opens a quoted cell only at the start of a cell; elsewhere it is an ordinary character.

use memchr::{memchr, memchr2};

const COMMAS: u64 = u64::from_le_bytes([b','; 8]);
const LOW_BITS: u64 = u64::from_le_bytes([0x7f; 8]);

/// The result of scanning for a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    /// A record of `len` bytes, including its line end, that spans `lines` lines.
    Record { len: usize, lines: u64 },
    /// No complete record: more bytes are needed.
    Partial,
}

/// The cells of one record.
#[derive(Default)]
pub(crate) struct Cells {
    /// The end of each cell. The next cell begins one byte later.
    ends: Vec<usize>,
    /// The unquoted cells, separated by one byte, if the record had quotes.
    unquoted: Option<Vec<u8>>,
    spare: Vec<u8>,
}

impl Cells {
    /// Finds the record at the start of `bytes` and its cells. `whole` means that nothing follows
    /// the bytes.
    pub(crate) fn scan(&mut self, bytes: &[u8], whole: bool) -> Scan {
        let line_end = memchr(b'\n', bytes);
        let line_len = line_end.unwrap_or(bytes.len());
        if memchr(b'"', &bytes[..line_len]).is_some() {
            return self.scan_quoted(bytes, whole);
        }
        if line_end.is_none() && !whole {
            return Scan::Partial;
        }
        self.split_plain(without_return(&bytes[..line_len]));
        Scan::Record { len: line_len + usize::from(line_end.is_some()), lines: 1 }
    }

    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the cell at `index` of the last record found in `bytes`.
    pub(crate) fn get<'a>(&'a self, bytes: &'a [u8], index: usize) -> &'a [u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] + 1 };
        &self.unquoted.as_deref().unwrap_or(bytes)[start..self.ends[index]]
    }

    fn clear(&mut self) {
        self.ends.clear();
        if let Some(used) = self.unquoted.take() {
            self.spare = used;
        }
    }

    fn split_plain(&mut self, line: &[u8]) {
        self.clear();
        let (words, tail) = line.as_chunks::<8>();
        for (index, word) in words.iter().enumerate() {
            let differing = u64::from_le_bytes(*word) ^ COMMAS;

            // The high bit of every byte that equals a comma, and of no other.
            let mut found = !(((differing & LOW_BITS) + LOW_BITS) | differing | LOW_BITS);
            while found != 0 {
                self.ends.push(index * 8 + found.trailing_zeros() as usize / 8);
                found &= found - 1;
            }
        }

        let tail_start = line.len() - tail.len();
        for (index, byte) in tail.iter().enumerate() {
            if *byte == b',' {
                self.ends.push(tail_start + index);
            }
        }

        self.ends.push(line.len());
    }

    fn scan_quoted(&mut self, bytes: &[u8], whole: bool) -> Scan {
        self.clear();
        let mut unquoted = std::mem::take(&mut self.spare);
        unquoted.clear();

        let mut lines = 1;
        let mut at = 0;
        let len = loop {
            if bytes.get(at) == Some(&b'"') {
                match unquote(&bytes[at + 1..], whole, &mut unquoted) {
                    Some(quoted_len) => {
                        lines +=
                            memchr::memchr_iter(b'\n', &bytes[at..at + quoted_len]).count() as u64;
                        at += 1 + quoted_len;
                    }
                    None => break None,
                }
            }

            let plain = &bytes[at..];
            let plain_len = match memchr2(b',', b'\n', plain) {
                Some(plain_len) => plain_len,
                None if whole => plain.len(),
                None => break None,
            };

            let comma = plain.get(plain_len) == Some(&b',');
            let cell =
                if comma { &plain[..plain_len] } else { without_return(&plain[..plain_len]) };
            unquoted.extend_from_slice(cell);
            self.ends.push(unquoted.len());
            at += plain_len;

            if !comma {
                break Some(at + usize::from(at < bytes.len()));
            }
            unquoted.push(b',');
            at += 1;
        };

        self.unquoted = Some(unquoted);
        len.map_or(Scan::Partial, |len| Scan::Record { len, lines })
    }
}

/// Copies the content up to the closing quote. Returns the length including that quote, or `None`
/// if the quote has not been read yet.
fn unquote(bytes: &[u8], whole: bool, out: &mut Vec<u8>) -> Option<usize> {
    let mut at = 0;
    loop {
        let quote = at + memchr(b'"', &bytes[at..])?;
        out.extend_from_slice(&bytes[at..quote]);

        match bytes.get(quote + 1) {
            Some(b'"') => {
                out.push(b'"');
                at = quote + 2;
            }
            // The next byte may be a second quote.
            None if !whole => return None,
            _ => return Some(quote + 1),
        }
    }
}

/// Strips the carriage return of a `\r\n` line end.
pub(crate) fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A record and the line on which it begins.
    type Located = (u64, Vec<Vec<u8>>);

    /// Returns the records of `bytes`, and the number of bytes left over by an unclosed quote.
    fn records(bytes: &[u8]) -> (Vec<Located>, usize) {
        let mut cells = Cells::default();
        let mut found = Vec::new();
        let mut at = 0;
        let mut line = 1;

        while at < bytes.len() {
            match cells.scan(&bytes[at..], true) {
                Scan::Record { len, lines } => {
                    let record: Vec<_> = (0..cells.count())
                        .map(|index| cells.get(&bytes[at..], index).to_vec())
                        .collect();
                    let blank = matches!(&bytes[at..at + len], b"\n" | b"\r\n" | b"\r");
                    if !blank {
                        found.push((line, record));
                    }
                    at += len;
                    line += lines;
                }
                Scan::Partial => break,
            }
        }

        (found, bytes.len() - at)
    }

    fn texts(bytes: &str) -> Vec<(u64, Vec<String>)> {
        let text = |cell: Vec<u8>| String::from_utf8(cell).unwrap();
        let found = records(bytes.as_bytes()).0;
        found
            .into_iter()
            .map(|(line, cells)| (line, cells.into_iter().map(text).collect()))
            .collect()
    }

    #[test]
    fn lines_and_quotes() {
        let found = texts("a,b\r\n\r\n\"x\ny\",\"say \"\"so\"\"\"\nlast,5\" plate\n,");
        let expected = [
            (1, ["a", "b"]),
            (3, ["x\ny", "say \"so\""]),
            (5, ["last", "5\" plate"]),
            (6, ["", ""]),
        ];
        assert_eq!(found, expected.map(|(line, cells)| (line, cells.map(String::from).to_vec())));
    }

    #[test]
    fn a_record_that_goes_on_is_partial() {
        let mut cells = Cells::default();
        for start in ["", "a", "a,", "\"a", "\"a\n", "\"a\"", "\"a\"\"", "\"a\",b", "\"a\"\r"] {
            assert_eq!(cells.scan(start.as_bytes(), false), Scan::Partial, "{start}");
        }
        assert_eq!(cells.scan(b"\"a\n", true), Scan::Partial);
    }

    fn any_csv() -> impl Strategy<Value = Vec<u8>> {
        let byte =
            prop_oneof![Just(b','), Just(b'"'), Just(b'\n'), Just(b'a'), Just(0xe9), Just(b'-')];
        proptest::collection::vec(byte, 0..120)
    }

    proptest! {
        /// The `csv` crate finds the same records as long as every quote is closed; it treats the
        /// rest of an unclosed one as a cell.
        #[test]
        fn the_csv_crate_agrees(bytes in any_csv()) {
            let (found, left) = records(&bytes);
            let mut theirs = ::csv::ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .from_reader(&bytes[..]);
            let mut theirs = theirs.byte_records().map(|record| record.unwrap());
            for (_, cells) in found {
                let record = theirs.next().unwrap();
                prop_assert_eq!(record.iter().collect::<Vec<_>>(), cells);
            }
            prop_assert!(left > 0 || theirs.next().is_none());
        }

        /// A record does not depend on the bytes that follow it.
        #[test]
        fn what_follows_does_not_matter(bytes in any_csv(), cut in 0usize..120) {
            let mut cells = Cells::default();
            let mut cut_cells = Cells::default();
            let cut = cut.min(bytes.len());
            if let Scan::Record { len, lines } = cut_cells.scan(&bytes[..cut], false) {
                prop_assert_eq!(cells.scan(&bytes, true), Scan::Record { len, lines });
                let of = |cells: &Cells| -> Vec<Vec<u8>> {
                    (0..cells.count()).map(|at| cells.get(&bytes, at).to_vec()).collect()
                };
                prop_assert_eq!(of(&cells), of(&cut_cells));
            }
        }
    }
}

//! Copies objects from one server to another.
//!
//! ```text
//!   SCAN ──▶ page of keys ──▶ TYPE, PEXPIRETIME ──▶ typed reads ──▶ writes ──▶ other server
//!            one pipeline     one pipeline          one pipeline    one pipeline
//! ```
//!
//! A key is written as a whole, in a transaction where it is small, and replaces what the other
//! server has under its name. A copy that was interrupted is therefore simply started again. Keys
//! that change during the copy are copied as they were read; those that are removed afterwards stay
//! on the other server.

mod object;

use crate::{Address, Connection, Error, Reply};
use object::Kind;
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Keys of a page.
const PAGE_KEYS: &[u8] = b"500";
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// What is copied.
#[derive(Debug, Clone)]
pub struct Options {
    pub from: Address,
    pub to: Address,
    /// The databases; all that have keys when there is none.
    pub databases: Vec<u32>,
    /// Only keys that match this pattern.
    pub pattern: Option<String>,
}

/// What was copied so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Keys of the source at the beginning.
    pub expected: u64,
    pub keys: u64,
    /// Bytes of names, values and members.
    pub bytes: u64,
    /// Keys that expired or were removed before they could be read.
    pub vanished: u64,
    /// Keys of types that are not copied, by type.
    pub left_out: BTreeMap<String, u64>,
}

/// Both ends of a copy.
struct Copy<'a> {
    from: Connection,
    to: Connection,
    /// Whether the source says when a key expires, as Redis 7.0 does, and not only how soon.
    says_when: bool,
    totals: Totals,
    reported: Instant,
    report: &'a mut dyn FnMut(&Totals),
}

/// A key of a page.
struct Entry {
    name: Vec<u8>,
    kind: Kind,
    /// When it expires, in milliseconds since 1970.
    expires_ms: Option<i64>,
}

/// Copies every key. `report` is called about once a second, and at the end.
pub fn run(options: &Options, report: &mut dyn FnMut(&Totals)) -> Result<Totals, Error> {
    let mut from = Connection::open(&options.from)?;
    let says_when = from.call(&[b"PEXPIRETIME", b""])?.integer().is_some();
    let mut copy = Copy {
        from,
        to: Connection::open(&options.to)?,
        says_when,
        totals: Totals::default(),
        reported: Instant::now(),
        report,
    };

    let present = databases(&mut copy.from)?;
    let is_wanted =
        |number: &u32| options.databases.is_empty() || options.databases.contains(number);
    let wanted: Vec<(u32, u64)> =
        present.into_iter().filter(|(number, _)| is_wanted(number)).collect();
    copy.totals.expected = wanted.iter().map(|(_, keys)| keys).sum();

    // A node of a cluster has the database 0 alone, and refuses to select any.
    let has_many = wanted.iter().any(|(number, _)| *number != 0);
    for (number, _) in wanted {
        if has_many {
            let number = number.to_string();
            copy.from.done(&[b"SELECT", number.as_bytes()])?;
            copy.to.done(&[b"SELECT", number.as_bytes()])?;
        }
        copy.database(options.pattern.as_deref())?;
    }

    (copy.report)(&copy.totals);
    Ok(copy.totals)
}

/// The databases that have keys, with their number.
fn databases(connection: &mut Connection) -> Result<Vec<(u32, u64)>, Error> {
    let answer = connection.done(&[b"INFO", b"keyspace"])?;
    let text = String::from_utf8_lossy(answer.bytes().unwrap_or_default()).into_owned();
    let line = |line: &str| {
        let (number, rest) = line.trim().strip_prefix("db")?.split_once(':')?;
        let keys = rest.strip_prefix("keys=")?.split(',').next()?;
        Some((number.parse().ok()?, keys.parse().ok()?))
    };
    Ok(text.lines().filter_map(line).collect())
}

impl Copy<'_> {
    fn database(&mut self, pattern: Option<&str>) -> Result<(), Error> {
        let mut cursor = b"0".to_vec();
        loop {
            let mut words: Vec<&[u8]> = vec![b"SCAN", &cursor, b"COUNT", PAGE_KEYS];
            if let Some(pattern) = pattern {
                words.extend([&b"MATCH"[..], pattern.as_bytes()]);
            }

            let answer = self.from.done(&words)?;
            let Some([next, page]) = answer.elements() else {
                return Err(unexpected("SCAN", &answer));
            };
            let names = page.elements().unwrap_or_default().iter().filter_map(Reply::bytes);
            self.page(names.map(<[u8]>::to_vec).collect())?;

            cursor = next.bytes().unwrap_or(b"0").to_vec();
            if self.reported.elapsed() >= REPORT_EVERY {
                self.reported = Instant::now();
                (self.report)(&self.totals);
            }
            if cursor == b"0" {
                return Ok(());
            }
        }
    }

    fn page(&mut self, names: Vec<Vec<u8>>) -> Result<(), Error> {
        let entries = self.entries(names)?;

        // Values that lie in one reply are read in one pipeline, and written in one.
        let (mut short, mut long) = (Vec::new(), Vec::new());
        for (entry, weight) in self.measured(entries)? {
            let is_short = weight <= object::SHORT_WEIGHT;
            if is_short { short.push(entry) } else { long.push(entry) }
        }
        for entry in &short {
            entry.kind.push_read(&mut self.from, &entry.name);
        }
        self.from.flush()?;

        let mut awaited = 0;
        for entry in &short {
            let value = self.from.reply()?;
            awaited += self.write(entry, &value)?;
        }
        self.to.flush()?;
        self.await_writes(awaited)?;

        for entry in &long {
            self.long(entry)?;
        }
        Ok(())
    }

    /// Types and expiries of keys.
    fn entries(&mut self, names: Vec<Vec<u8>>) -> Result<Vec<Entry>, Error> {
        let expiry = if self.says_when { "PEXPIRETIME" } else { "PTTL" };
        for name in &names {
            self.from.push(&[b"TYPE", name]);
            self.from.push(&[expiry.as_bytes(), name]);
        }
        self.from.flush()?;

        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            let kind = self.from.reply()?;
            let answer = self.from.reply()?;
            let ms = answer.integer().ok_or_else(|| unexpected(expiry, &answer))?;
            let kind = String::from_utf8_lossy(kind.bytes().unwrap_or_default()).into_owned();
            match Kind::of(&kind) {
                _ if kind == "none" || ms == -2 => self.totals.vanished += 1,
                None => *self.totals.left_out.entry(kind).or_default() += 1,
                Some(kind) => {
                    let base_ms = if self.says_when { 0 } else { now_ms() };
                    let expires_ms = (ms >= 0).then_some(base_ms + ms);
                    entries.push(Entry { name, kind, expires_ms });
                }
            }
        }
        Ok(entries)
    }

    /// The weight of each object.
    fn measured(&mut self, entries: Vec<Entry>) -> Result<Vec<(Entry, usize)>, Error> {
        for entry in &entries {
            self.from.push(&[entry.kind.len_command(), &entry.name]);
        }
        self.from.flush()?;

        let measure = |entry: Entry| {
            let reply = self.from.reply()?;
            // A key that has changed its type is read by its old one, which fails, and is skipped.
            let len = usize::try_from(reply.integer().unwrap_or(0)).unwrap_or(0);
            let weight = entry.kind.weight(len);
            Ok((entry, weight))
        };
        entries.into_iter().map(measure).collect()
    }

    /// Queues the writes of an object that was read in one reply. Returns the number of replies to
    /// wait for.
    fn write(&mut self, entry: &Entry, value: &Reply) -> Result<usize, Error> {
        let words = match entry.kind.words(value) {
            Some(words) if !words.is_empty() || entry.kind == Kind::Text => words,
            // It was removed, or has another type by now.
            _ => {
                self.totals.vanished += 1;
                return Ok(0);
            }
        };

        self.totals.keys += 1;
        self.totals.bytes +=
            (entry.name.len() + words.iter().map(|w| w.len()).sum::<usize>()) as u64;
        if entry.kind == Kind::Text {
            let expires = entry.expires_ms.map(|moment| moment.to_string());
            let mut command = vec![&b"SET"[..], &entry.name, words.first().copied().unwrap_or(b"")];
            if let Some(expires) = &expires {
                command.extend([&b"PXAT"[..], expires.as_bytes()]);
            }
            self.to.push(&command);
            return Ok(1);
        }

        self.to.push(&[b"MULTI"]);
        self.to.push(&[b"DEL", &entry.name]);
        let mut commands = 1 + entry.kind.push_write(&mut self.to, &entry.name, &words);
        commands += self.push_expiry(entry);
        self.to.push(&[b"EXEC"]);
        Ok(commands + 2)
    }

    fn push_expiry(&mut self, entry: &Entry) -> usize {
        if let Some(expires_ms) = entry.expires_ms {
            self.to.push(&[b"PEXPIREAT", &entry.name, expires_ms.to_string().as_bytes()]);
        }
        usize::from(entry.expires_ms.is_some())
    }

    /// Copies a large object in pieces. Other clients may see it grow.
    fn long(&mut self, entry: &Entry) -> Result<(), Error> {
        if entry.kind == Kind::Text {
            let value = self.from.done(&[b"GET", &entry.name])?;
            let awaited = self.write(entry, &value)?;
            self.to.flush()?;
            return self.await_writes(awaited);
        }

        self.to.push(&[b"DEL", &entry.name]);
        let mut awaited = 1;
        let mut pieces = entry.kind.pieces();
        while let Some(value) = pieces.next(&mut self.from, &entry.name)? {
            let words = entry.kind.words(&value).unwrap_or_default();
            self.totals.bytes += words.iter().map(|word| word.len() as u64).sum::<u64>();
            awaited += entry.kind.push_write(&mut self.to, &entry.name, &words);
            self.to.flush()?;
            self.await_writes(std::mem::take(&mut awaited))?;
        }

        awaited += self.push_expiry(entry);
        self.to.flush()?;
        self.totals.keys += 1;
        self.await_writes(awaited)
    }

    /// Reads replies to writes. An error among them ends the copy.
    fn await_writes(&mut self, replies: usize) -> Result<(), Error> {
        let mut refused = None;
        for _ in 0..replies {
            let reply = self.to.reply()?;
            let inner = reply.elements().unwrap_or_default().iter().find_map(Reply::error);
            refused = refused.or(reply.error()).or(inner);
        }
        match refused {
            None => Ok(()),
            Some(answer) => Err(Error::Refused { command: "a write".to_owned(), answer }),
        }
    }
}

fn unexpected(command: &str, reply: &Reply) -> Error {
    Error::Unexpected { command: command.to_owned(), answer: format!("{reply:?}") }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;

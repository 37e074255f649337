//! Entries of the event log as bytes, version 1.
//!
//! ```text
//! event    ┌─────┬──────┬─────────┬──────────┬───────────────────────┬──────────┐
//!          │ len │ kind │ time_ms │ identity │ id, source, type,     │ data len │ ...
//!          │ u32 │ 0 u8 │ i64     │ u128     │ subject lens, 4 x u16 │ u32      │
//!          └─────┴──────┴─────────┴──────────┴───────────────────────┴──────────┘
//!          ... the texts: id, source, type, subject, data
//! control  ┌─────┬──────┬─────────┐
//!          │ len │ 1 u8 │ payload │       numbers are little-endian; len counts what follows it
//!          └─────┴──────┴─────────┘
//! void     ┌─────┬──────┐                an offset whose message counts nothing: a duplicate,
//!          │ len │ 2 u8 │                or one that was refused
//!          └─────┴──────┘
//! ```
//!
//! An event that does not count under some of its keys has kind 3. The hashes of these keys, u64
//! each, follow its data.

use raingauge_core::event::Event;
use std::borrow::Cow;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

const KIND_EVENT: u8 = 0;
const KIND_CONTROL: u8 = 1;
const KIND_VOID: u8 = 2;
const KIND_REFUSING_EVENT: u8 = 3;
/// Bytes of an event entry before its texts, without `len`.
const EVENT_HEADER_LEN: usize = 1 + 8 + 16 + 8 + 4;
/// Longest text that is joined on the stack and hashed in one call, which takes a third of the time
/// of hashing it in parts.
const JOINED_LEN_MAX: usize = 256;
/// The length that stands for "no subject".
const NO_SUBJECT: u16 = u16::MAX;

/// The 128-bit hash of `source` and `id`. Two different pairs collide by chance once in about 2^64
/// events.
pub type Identity = u128;

/// A decoded entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    Event(Event<'a>),
    /// A message of the writer to itself and its successors, in order with the events.
    Control(&'a [u8]),
    /// Counts nothing: the offset belongs to a duplicate, or to a message that was refused.
    Void,
}

/// The identity of an event. The length of the source keeps `ab`+`c` apart from `a`+`bc`.
pub fn identity(source: &str, id: &str) -> Identity {
    let source_len = (source.len() as u64).to_le_bytes();
    let parts = [&source_len[..], source.as_bytes(), id.as_bytes()];
    let mut joined = [0; JOINED_LEN_MAX];
    let mut len = 0;
    for part in parts {
        let Some(place) = joined.get_mut(len..len + part.len()) else {
            return identity_in_parts(parts);
        };
        place.copy_from_slice(part);
        len += part.len();
    }
    xxh3_128(&joined[..len])
}

fn identity_in_parts(parts: [&[u8]; 3]) -> Identity {
    let mut hasher = Xxh3::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.digest128()
}

/// Appends an event entry to `bytes` and returns its identity. The attributes are at most 65,534
/// bytes long, which the limits of the core ensure.
pub fn push_event(event: &Event<'_>, bytes: &mut Vec<u8>) -> Identity {
    let identity = identity(&event.source, &event.id);
    let subject = event.subject.as_deref();
    let texts = [&*event.id, &*event.source, &*event.kind, subject.unwrap_or_default()];
    let texts_len = texts.iter().map(|text| text.len()).sum::<usize>();
    let len = EVENT_HEADER_LEN + texts_len + event.data.len() + event.refused_keys.len();

    bytes.reserve(4 + len);
    bytes.extend_from_slice(&(len as u32).to_le_bytes());
    bytes.push(if event.refused_keys.is_empty() { KIND_EVENT } else { KIND_REFUSING_EVENT });
    bytes.extend_from_slice(&event.time_ms.to_le_bytes());
    bytes.extend_from_slice(&identity.to_le_bytes());

    for text in &texts[..3] {
        bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
    }
    let subject_len = subject.map_or(NO_SUBJECT, |subject| subject.len() as u16);
    bytes.extend_from_slice(&subject_len.to_le_bytes());
    bytes.extend_from_slice(&(event.data.len() as u32).to_le_bytes());

    for text in texts {
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes.extend_from_slice(event.data.as_bytes());
    bytes.extend_from_slice(&event.refused_keys);

    identity
}

/// Appends a control entry to `bytes`.
pub fn push_control(payload: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&(1 + payload.len() as u32).to_le_bytes());
    bytes.push(KIND_CONTROL);
    bytes.extend_from_slice(payload);
}

/// Appends an entry that counts nothing to `bytes`.
pub fn push_void(bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&1_u32.to_le_bytes());
    bytes.push(KIND_VOID);
}

/// Splits the first entry off `bytes`, without its length; `None` when the bytes end before it
/// does.
pub fn split_entry<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, rest) = bytes.split_at_checked(4)?;
    let len = u32::from_le_bytes(len.try_into().ok()?) as usize;
    let (entry, rest) = rest.split_at_checked(len)?;
    *bytes = rest;
    Some(entry)
}

/// Returns the identity of an entry from [`split_entry`]; `None` for control entries.
pub fn identity_of(entry: &[u8]) -> Option<Identity> {
    if !matches!(entry.first(), Some(&(KIND_EVENT | KIND_REFUSING_EVENT))) {
        return None;
    }
    Some(Identity::from_le_bytes(entry.get(9..25)?.try_into().ok()?))
}

/// Returns the type of an event from [`split_entry`] without decoding the rest of it; `None` for
/// other entries, and for malformed ones.
pub fn event_type(entry: &[u8]) -> Option<&str> {
    if !matches!(entry.first(), Some(&(KIND_EVENT | KIND_REFUSING_EVENT))) {
        return None;
    }
    let (header, texts) = entry.split_at_checked(EVENT_HEADER_LEN)?;
    let len_at = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let begin = len_at(25) + len_at(27);
    std::str::from_utf8(texts.get(begin..begin + len_at(29))?).ok()
}

/// Decodes an entry from [`split_entry`]; `None` if it is malformed.
pub fn parse(entry: &[u8]) -> Option<Entry<'_>> {
    match *entry.first()? {
        KIND_CONTROL => Some(Entry::Control(&entry[1..])),
        KIND_EVENT | KIND_REFUSING_EVENT => parse_event(entry).map(Entry::Event),
        KIND_VOID => Some(Entry::Void),
        _ => None,
    }
}

fn parse_event(entry: &[u8]) -> Option<Event<'_>> {
    let (header, texts) = entry.split_at_checked(EVENT_HEADER_LEN)?;
    let (texts, refused_keys) = match header[0] {
        KIND_REFUSING_EVENT => split_refused_keys(header, texts)?,
        _ => (texts, &[][..]),
    };
    let mut rest = std::str::from_utf8(texts).ok()?;
    let time_ms = i64::from_le_bytes(header[1..9].try_into().ok()?);
    let len_at = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);

    let mut text = |len: usize| {
        let (text, tail) = rest.split_at_checked(len)?;
        rest = tail;
        Some(text)
    };

    let id = text(len_at(25).into())?;
    let source = text(len_at(27).into())?;
    let kind = text(len_at(29).into())?;
    let subject = match len_at(31) {
        NO_SUBJECT => None,
        len => Some(Cow::Borrowed(text(len.into())?)),
    };
    let data_len = u32::from_le_bytes(header[33..37].try_into().ok()?);
    let data = text(data_len as usize)?;

    rest.is_empty().then_some(Event {
        id: id.into(),
        source: source.into(),
        kind: kind.into(),
        subject,
        time_ms,
        data,
        refused_keys: refused_keys.into(),
    })
}

/// The texts of an event, and the hashes of the keys under which it does not count.
fn split_refused_keys<'a>(header: &[u8], rest: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let len_at = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let subject_len = Some(len_at(31)).filter(|len| *len != NO_SUBJECT).unwrap_or_default();
    let lens = [len_at(25), len_at(27), len_at(29), subject_len];
    let data_len = u32::from_le_bytes(header[33..37].try_into().ok()?) as usize;
    let texts_len = lens.into_iter().map(usize::from).sum::<usize>().checked_add(data_len)?;
    let (texts, hashes) = rest.split_at_checked(texts_len)?;
    (!hashes.is_empty() && hashes.len().is_multiple_of(8)).then_some((texts, hashes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_lead_back(
            id in ".{1,9}",
            source in ".{1,9}",
            subject in proptest::option::of(".{0,9}"),
            time_ms in any::<i64>(),
            data in ".{0,40}",
            refused in proptest::collection::vec(any::<u64>(), 0..3),
        ) {
            let event = Event {
                id: id.as_str().into(),
                source: source.as_str().into(),
                kind: "t".into(),
                subject: subject.as_deref().map(Cow::Borrowed),
                time_ms,
                data: &data,
                refused_keys: refused
                    .iter()
                    .flat_map(|hash| hash.to_le_bytes())
                    .collect::<Vec<u8>>()
                    .into(),
            };
            let mut bytes = Vec::new();
            let identity = push_event(&event, &mut bytes);
            push_control(b"payload", &mut bytes);
            push_void(&mut bytes);
            let mut rest = &bytes[..];
            let entry = split_entry(&mut rest).unwrap();
            prop_assert_eq!(identity_of(entry), Some(identity));
            prop_assert_eq!(event_type(entry), Some("t"));
            prop_assert_eq!(parse(entry), Some(Entry::Event(event)));
            let control = split_entry(&mut rest).unwrap();
            prop_assert_eq!(event_type(control), None);
            prop_assert_eq!(parse(control), Some(Entry::Control(b"payload")));
            prop_assert_eq!(parse(split_entry(&mut rest).unwrap()), Some(Entry::Void));
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn an_identity_is_the_same_however_it_is_hashed(
            source in "[a-zé]{0,200}",
            id in "[0-9]{0,200}",
        ) {
            let len = (source.len() as u64).to_le_bytes();
            prop_assert_eq!(
                identity(&source, &id),
                identity_in_parts([&len, source.as_bytes(), id.as_bytes()])
            );
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let mut rest = &bytes[..];
            while let Some(entry) = split_entry(&mut rest) {
                let _ = (parse(entry), identity_of(entry), event_type(entry));
            }
            let _ = (parse(&bytes), event_type(&bytes));
        }
    }

    /// An entry written by version 1 can still be read, and its identity is unchanged.
    #[test]
    fn an_entry_of_version_1_still_opens() {
        let event = Event {
            id: "7".into(),
            source: "s".into(),
            kind: "t".into(),
            subject: None,
            time_ms: 1_727_215_430_250,
            data: "{}",
            refused_keys: Default::default(),
        };

        let mut bytes = Vec::new();
        push_event(&event, &mut bytes);

        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, FIXTURE);
        assert_ne!(identity("ab", "c"), identity("a", "bc"));
    }

    const FIXTURE: &str = "2a000000006aea0f2692010000cfad17702110924a9e45534e8c36a660010001000100ffff020000003773747b7d";
}

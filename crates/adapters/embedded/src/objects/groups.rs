//! Groups of effects as bytes of the log, version 1.
//!
//! ```text
//! group       len u32 of what follows │ version 1 u8 │ effects
//! effect      kind u8 │ database u8 │ …                       numbers are little-endian
//!  1 put head    flags u8 │ name len u16 │ head len u32 │ [expires i64] │ [wide u64] │ name │ head
//!  2 drop head   flags u8 │ name len u16 │ name
//!  3 put entry   id u64 │ sub len u16 │ value len u32 │ sub │ value
//!  4 drop entry  id u64 │ sub len u16 │ sub
//!  5 kill        id u64
//!  6 flush
//!  7 swap        other database u8
//! flags       bits 0–1: 0 absent, 1 present, 2 unknown, 3 expiring │ bit 2: expires │ bit 3: wide
//! ```

use bytes::{Buf, Bytes};
use raingauge_ports::objects::{Effect, Group, Key, Old};

const VERSION: u8 = 1;
const PUT_HEAD: u8 = 1;
const DROP_HEAD: u8 = 2;
const PUT_ENTRY: u8 = 3;
const DROP_ENTRY: u8 = 4;
const KILL: u8 = 5;
const FLUSH: u8 = 6;
const SWAP: u8 = 7;
const OLD_BITS: u8 = 0b11;
const EXPIRES: u8 = 1 << 2;
const WIDE: u8 = 1 << 3;

/// Appends a group, whose limits were checked.
pub fn push(group: &Group, bytes: &mut Vec<u8>) {
    let at = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    bytes.push(VERSION);
    group.effects.iter().for_each(|effect| push_effect(effect, bytes));

    let len = (bytes.len() - at - 4) as u32;
    bytes[at..at + 4].copy_from_slice(&len.to_le_bytes());
}

fn push_effect(effect: &Effect, bytes: &mut Vec<u8>) {
    match effect {
        Effect::PutHead { key, head, expires_ms, wide, old } => {
            let expires = expires_ms.map_or(0, |_| EXPIRES);
            let flags = old_bits(*old) | expires | wide.map_or(0, |_| WIDE);
            bytes.extend_from_slice(&[PUT_HEAD, key.database, flags]);
            push_len(&key.name, bytes);
            bytes.extend_from_slice(&(head.len() as u32).to_le_bytes());
            if let Some(at_ms) = expires_ms {
                bytes.extend_from_slice(&at_ms.to_le_bytes());
            }
            if let Some(id) = wide {
                bytes.extend_from_slice(&id.to_le_bytes());
            }
            bytes.extend_from_slice(&key.name);
            bytes.extend_from_slice(head);
        }
        Effect::DropHead { key, old } => {
            bytes.extend_from_slice(&[DROP_HEAD, key.database, old_bits(*old)]);
            push_len(&key.name, bytes);
            bytes.extend_from_slice(&key.name);
        }
        Effect::PutEntry { database, id, sub, value } => {
            push_id(PUT_ENTRY, *database, *id, bytes);
            push_len(sub, bytes);
            bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
            bytes.extend_from_slice(sub);
            bytes.extend_from_slice(value);
        }
        Effect::DropEntry { database, id, sub } => {
            push_id(DROP_ENTRY, *database, *id, bytes);
            push_len(sub, bytes);
            bytes.extend_from_slice(sub);
        }
        Effect::Kill { database, id } => push_id(KILL, *database, *id, bytes),
        Effect::Flush { database } => bytes.extend_from_slice(&[FLUSH, *database]),
        Effect::Swap { a, b } => bytes.extend_from_slice(&[SWAP, *a, *b]),
    }
}

fn push_id(kind: u8, database: u8, id: u64, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&[kind, database]);
    bytes.extend_from_slice(&id.to_le_bytes());
}

/// The length of a name, which its limit keeps below 64 KiB.
fn push_len(name: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&(name.len() as u16).to_le_bytes());
}

fn old_bits(old: Old) -> u8 {
    match old {
        Old::Absent => 0,
        Old::Present => 1,
        Old::Unknown => 2,
        Old::Expiring => 3,
    }
}

/// Splits the first group off the payload of a block; `None` if it is malformed. Names and values
/// are copies: a part would keep its whole block in memory.
pub fn split(payload: &mut Bytes) -> Option<Group> {
    let len = payload.try_get_u32_le().ok()? as usize;
    if len > payload.len() {
        return None;
    }
    let mut bytes = payload.split_to(len);
    if bytes.try_get_u8().ok()? != VERSION {
        return None;
    }

    let mut effects = Vec::new();
    while bytes.has_remaining() {
        effects.push(split_effect(&mut bytes)?);
    }
    let group = Group { effects };
    group.check().ok()?;
    Some(group)
}

fn split_effect(bytes: &mut Bytes) -> Option<Effect> {
    let kind = bytes.try_get_u8().ok()?;
    let database = bytes.try_get_u8().ok()?;
    match kind {
        PUT_HEAD => {
            let flags = bytes.try_get_u8().ok()?;
            let name_len = bytes.try_get_u16_le().ok()?;
            let head_len = bytes.try_get_u32_le().ok()?;
            let expires_ms = match flags & EXPIRES {
                0 => None,
                _ => Some(bytes.try_get_i64_le().ok()?),
            };
            let wide = match flags & WIDE {
                0 => None,
                _ => Some(bytes.try_get_u64_le().ok()?),
            };
            let key = Key { database, name: take(bytes, name_len.into())? };
            let head = take(bytes, head_len as usize)?;
            Some(Effect::PutHead { key, head, expires_ms, wide, old: old(flags) })
        }
        DROP_HEAD => {
            let flags = bytes.try_get_u8().ok()?;
            let name_len = bytes.try_get_u16_le().ok()?;
            let key = Key { database, name: take(bytes, name_len.into())? };
            Some(Effect::DropHead { key, old: old(flags) })
        }
        PUT_ENTRY => {
            let id = bytes.try_get_u64_le().ok()?;
            let sub_len = bytes.try_get_u16_le().ok()?;
            let value_len = bytes.try_get_u32_le().ok()?;
            let sub = take(bytes, sub_len.into())?;
            Some(Effect::PutEntry { database, id, sub, value: take(bytes, value_len as usize)? })
        }
        DROP_ENTRY => {
            let id = bytes.try_get_u64_le().ok()?;
            let sub_len = bytes.try_get_u16_le().ok()?;
            Some(Effect::DropEntry { database, id, sub: take(bytes, sub_len.into())? })
        }
        KILL => Some(Effect::Kill { database, id: bytes.try_get_u64_le().ok()? }),
        FLUSH => Some(Effect::Flush { database }),
        SWAP => Some(Effect::Swap { a: database, b: bytes.try_get_u8().ok()? }),
        _ => None,
    }
}

/// What a key had. Earlier versions wrote that a head was present whether or not it expired.
fn old(flags: u8) -> Old {
    match flags & OLD_BITS {
        0 => Old::Absent,
        1 => Old::Present,
        2 => Old::Unknown,
        _ => Old::Expiring,
    }
}

fn take(bytes: &mut Bytes, len: usize) -> Option<Bytes> {
    (len <= bytes.len()).then(|| Bytes::copy_from_slice(&bytes.split_to(len)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes() -> impl Strategy<Value = Bytes> {
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from)
    }

    fn key() -> impl Strategy<Value = Key> {
        (0..=16_u8, bytes()).prop_map(|(database, name)| Key { database, name })
    }

    fn any_old() -> impl Strategy<Value = Old> {
        prop_oneof![Just(Old::Absent), Just(Old::Present), Just(Old::Expiring), Just(Old::Unknown)]
    }

    fn effect() -> impl Strategy<Value = Effect> {
        let database = 0..=16_u8;
        prop_oneof![
            (key(), bytes(), any::<Option<i64>>(), any::<Option<u64>>(), any_old()).prop_map(
                |(key, head, expires_ms, wide, old)| Effect::PutHead {
                    key,
                    head,
                    expires_ms,
                    wide,
                    old
                }
            ),
            (key(), any_old()).prop_map(|(key, old)| Effect::DropHead { key, old }),
            (database.clone(), any::<u64>(), bytes(), bytes()).prop_map(
                |(database, id, sub, value)| Effect::PutEntry { database, id, sub, value }
            ),
            (database.clone(), any::<u64>(), bytes())
                .prop_map(|(database, id, sub)| Effect::DropEntry { database, id, sub }),
            (database.clone(), any::<u64>())
                .prop_map(|(database, id)| Effect::Kill { database, id }),
            database.clone().prop_map(|database| Effect::Flush { database }),
            (database.clone(), database).prop_map(|(a, b)| Effect::Swap { a, b }),
        ]
    }

    proptest! {
        #[test]
        fn groups_lead_back(effects in proptest::collection::vec(effect(), 0..6)) {
            let group = Group { effects };
            let mut bytes = Vec::new();
            push(&group, &mut bytes);
            push(&Group::default(), &mut bytes);

            let mut rest = Bytes::from(bytes);
            prop_assert_eq!(split(&mut rest), Some(group));
            prop_assert_eq!(split(&mut rest), Some(Group::default()));
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut rest = Bytes::from(bytes);
            while !rest.is_empty() && split(&mut rest).is_some() {}
        }
    }
}

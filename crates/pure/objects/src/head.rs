//! The codec of heads: the one record that every object has.
//!
//! ```text
//!   kind and shape u8 | flags u8 | [expiry i64] | payload
//!                                                 string: its bytes
//!                                                 packed: the packed form
//!                                                 wide:   id u64 | entries u64 | meta
//! ```
//!
//! Numbers are big-endian. The low half of the first byte is the kind, the high half the shape.

use bytes::Bytes;

use crate::{Collection, Damaged, Hash, Kind, List, Object, Set, Sorted, Text, Value};

const SHAPE_WIDE: u8 = 0x10;
const FLAG_EXPIRES: u8 = 1;

/// A decoded head, which borrows its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head<'a> {
    pub kind: Kind,
    /// The millisecond since 1970 from which the object is gone.
    pub expires_ms: Option<i64>,
    pub body: Body<'a>,
}

/// What a head holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// The bytes of a string, or the packed form of a collection.
    Whole(&'a [u8]),
    /// A collection whose entries are records of their own, under this id.
    Wide { id: u64, count: u64, meta: &'a [u8] },
}

impl<'a> Head<'a> {
    /// Decodes a head, but not the payload of a string or of a packed collection.
    pub fn parse(head: &'a [u8]) -> Result<Head<'a>, Damaged> {
        let [first, flags, rest @ ..] = head else {
            return Err(Damaged("the head is cut off"));
        };
        let kind = kind_of(first & 0x0f)?;
        if flags & !FLAG_EXPIRES != 0 {
            return Err(Damaged("the head has unknown flags"));
        }

        let mut rest = rest;
        let mut expires_ms = None;
        if flags & FLAG_EXPIRES != 0 {
            expires_ms = Some(read_u64(&mut rest)? as i64);
        }

        let body = match first & 0xf0 {
            0 => Body::Whole(rest),
            SHAPE_WIDE if kind != Kind::Text => {
                let id = read_u64(&mut rest)?;
                Body::Wide { id, count: read_u64(&mut rest)?, meta: rest }
            }
            _ => return Err(Damaged("the head has an unknown shape")),
        };
        Ok(Head { kind, expires_ms, body })
    }

    /// The id of the entries of a wide collection.
    pub fn wide_id(&self) -> Option<u64> {
        match self.body {
            Body::Wide { id, .. } => Some(id),
            Body::Whole(_) => None,
        }
    }
}

/// Appends the head of an object. Its payload is wide if the object has an id.
pub fn write(object: &Object, head: &mut Vec<u8>) {
    let shape = if object.wide.is_some() { SHAPE_WIDE } else { 0 };
    head.push(kind_byte(object.value.kind()) | shape);
    head.push(if object.expires_ms.is_some() { FLAG_EXPIRES } else { 0 });
    if let Some(expires_ms) = object.expires_ms {
        head.extend_from_slice(&expires_ms.to_be_bytes());
    }

    match (&object.value, object.value.collection(), object.wide) {
        (_, Some(collection), Some(id)) => {
            head.extend_from_slice(&id.to_be_bytes());
            head.extend_from_slice(&(collection.len() as u64).to_be_bytes());
            head.extend_from_slice(&collection.meta());
        }
        (_, Some(collection), None) => collection.pack(head),
        (Value::Text(text), ..) => head.extend_from_slice(&text.bytes()),
        _ => unreachable!("a value that is no collection is a string"),
    }
}

/// A string that does not expire, with a copy of its bytes. Encoding it copies them no second time.
pub fn text_of(bytes: &[u8]) -> Text {
    if bytes.len() < crate::text::HEADED_LEN_MIN {
        return Text::new(bytes);
    }
    Text::headed(encode_text(bytes, None))
}

/// The head of an object, in a buffer of its size.
pub fn encode(object: &Object) -> Bytes {
    if let (Value::Text(text), None) = (&object.value, object.expires_ms)
        && let Some(head) = text.as_headed()
    {
        return head.clone();
    }
    let payload = if object.wide.is_some() { 64 } else { object.value.packed_len() };
    let mut head = Vec::with_capacity(10 + payload);
    write(object, &mut head);
    head.into()
}

/// The head of a string that is not in memory as an object.
pub fn encode_text(text: &[u8], expires_ms: Option<i64>) -> Bytes {
    let expiry_len = if expires_ms.is_some() { 8 } else { 0 };
    let mut head = Vec::with_capacity(2 + expiry_len + text.len());
    head.push(kind_byte(Kind::Text));
    head.push(if expires_ms.is_some() { FLAG_EXPIRES } else { 0 });
    if let Some(expires_ms) = expires_ms {
        head.extend_from_slice(&expires_ms.to_be_bytes());
    }
    head.extend_from_slice(text);
    head.into()
}

/// Decodes a string or a packed collection. A large string shares the bytes of the head.
///
/// `None` means that the collection is wide: its entries must be loaded with [`Value::load`].
pub fn decode(head: &Bytes) -> Result<Option<Object>, Damaged> {
    let parsed = Head::parse(head)?;
    let Body::Whole(payload) = parsed.body else {
        return Ok(None);
    };

    let value = match parsed.kind {
        Kind::Text if payload.len() >= crate::text::SHARED_LEN_MIN => {
            Value::Text(Text::shared(head.slice(head.len() - payload.len()..)))
        }
        Kind::Text => Value::Text(Text::new(payload)),
        Kind::Hash => Value::Hash(Box::new(Hash::unpack(payload)?)),
        Kind::Set => Value::Set(Box::new(Set::unpack(payload)?)),
        Kind::List => Value::List(Box::new(List::unpack(payload)?)),
        Kind::Sorted => Value::Sorted(Box::new(Sorted::unpack(payload)?)),
    };
    Ok(Some(Object { value, expires_ms: parsed.expires_ms, stamp: 0, wide: None }))
}

fn kind_byte(kind: Kind) -> u8 {
    match kind {
        Kind::Text => 1,
        Kind::Hash => 2,
        Kind::Set => 3,
        Kind::List => 4,
        Kind::Sorted => 5,
    }
}

fn kind_of(byte: u8) -> Result<Kind, Damaged> {
    Ok(match byte {
        1 => Kind::Text,
        2 => Kind::Hash,
        3 => Kind::Set,
        4 => Kind::List,
        5 => Kind::Sorted,
        _ => return Err(Damaged("the head is of an unknown kind")),
    })
}

fn read_u64(rest: &mut &[u8]) -> Result<u64, Damaged> {
    let (number, behind) = rest.split_first_chunk().ok_or(Damaged("the head is cut off"))?;
    *rest = behind;
    Ok(u64::from_be_bytes(*number))
}

#[cfg(test)]
mod tests;

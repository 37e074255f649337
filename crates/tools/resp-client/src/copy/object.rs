//! The types of objects: how each is read and written.

use crate::{Connection, Error, Reply};

/// Entries of a collection, or units of 64 bytes of a string, that are read in one reply.
pub const SHORT_WEIGHT: usize = 1_000;
const TEXT_UNIT: usize = 64;
/// Entries of a piece of a large collection.
const PIECE: usize = 1_000;
/// Words of one write.
const WRITE_WORDS: usize = 2_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Hash,
    Set,
    Sorted,
    List,
}

impl Kind {
    /// The type by its name in the reply to TYPE; `None` for those that are not copied.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "string" => Self::Text,
            "hash" => Self::Hash,
            "set" => Self::Set,
            "zset" => Self::Sorted,
            "list" => Self::List,
            _ => return None,
        })
    }

    pub fn len_command(self) -> &'static [u8] {
        match self {
            Self::Text => b"STRLEN",
            Self::Hash => b"HLEN",
            Self::Set => b"SCARD",
            Self::Sorted => b"ZCARD",
            Self::List => b"LLEN",
        }
    }

    /// The weight of an object of this length, in entries.
    pub fn weight(self, len: usize) -> usize {
        if self == Self::Text { len / TEXT_UNIT } else { len }
    }

    /// Queues the command that reads all of it.
    pub fn push_read(self, connection: &mut Connection, name: &[u8]) {
        match self {
            Self::Text => connection.push(&[b"GET", name]),
            Self::Hash => connection.push(&[b"HGETALL", name]),
            Self::Set => connection.push(&[b"SMEMBERS", name]),
            Self::Sorted => connection.push(&[b"ZRANGE", name, b"0", b"-1", b"WITHSCORES"]),
            Self::List => connection.push(&[b"LRANGE", name, b"0", b"-1"]),
        }
    }

    /// The words of a value, in the order in which they are written; `None` for an error or a null.
    pub fn words(self, value: &Reply) -> Option<Vec<&[u8]>> {
        if self == Self::Text {
            return Some(vec![value.bytes().filter(|_| value.error().is_none())?]);
        }
        let mut words: Vec<&[u8]> = value.elements()?.iter().filter_map(Reply::bytes).collect();
        if self == Self::Sorted {
            words.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
        }
        Some(words)
    }

    /// Queues writes of the words. Returns the number of commands.
    pub fn push_write(self, connection: &mut Connection, name: &[u8], words: &[&[u8]]) -> usize {
        let verb: &[u8] = match self {
            Self::Text => b"SET",
            Self::Hash => b"HSET",
            Self::Set => b"SADD",
            Self::Sorted => b"ZADD",
            Self::List => b"RPUSH",
        };
        let mut commands = 0;
        for part in words.chunks(WRITE_WORDS) {
            let mut command = vec![verb, name];
            command.extend(part);
            connection.push(&command);
            commands += 1;
        }
        commands
    }

    pub fn pieces(self) -> Pieces {
        Pieces { kind: self, cursor: Some(b"0".to_vec()) }
    }
}

/// Reads a large collection piece by piece.
pub struct Pieces {
    kind: Kind,
    /// The cursor of a walk, or the next index of a list; `None` at the end.
    cursor: Option<Vec<u8>>,
}

impl Pieces {
    pub fn next(
        &mut self,
        connection: &mut Connection,
        name: &[u8],
    ) -> Result<Option<Reply>, Error> {
        let Some(cursor) = self.cursor.take() else {
            return Ok(None);
        };
        let count = PIECE.to_string();
        let verb: &[u8] = match self.kind {
            Kind::List | Kind::Text => return self.range(connection, name, &cursor),
            Kind::Hash => b"HSCAN",
            Kind::Set => b"SSCAN",
            Kind::Sorted => b"ZSCAN",
        };

        let answer = connection.done(&[verb, name, &cursor, b"COUNT", count.as_bytes()])?;
        let Some([next, page]) = answer.elements() else {
            let command = String::from_utf8_lossy(verb).into_owned();
            return Err(Error::Unexpected { command, answer: format!("{answer:?}") });
        };
        self.cursor = next.bytes().filter(|cursor| *cursor != b"0").map(<[u8]>::to_vec);
        Ok(Some(page.clone()))
    }

    fn range(
        &mut self,
        connection: &mut Connection,
        name: &[u8],
        cursor: &[u8],
    ) -> Result<Option<Reply>, Error> {
        let first: usize =
            std::str::from_utf8(cursor).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        let last = (first + PIECE - 1).to_string();
        let page = connection.done(&[b"LRANGE", name, cursor, last.as_bytes()])?;
        let len = page.elements().map_or(0, <[Reply]>::len);
        self.cursor = (len == PIECE).then(|| (first + PIECE).to_string().into_bytes());
        Ok((len > 0).then_some(page))
    }
}

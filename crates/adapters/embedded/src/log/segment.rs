//! One segment file and its blocks, format versions 1 and 2. New segments have version 2. Those of
//! other journals begin with other names: see [`Form`].
//!
//! ```text
//! file 2  ┌────────────┬──────────┬───────────┬──────────┬───────────────┬─────────┬─────────┬───
//!         │ "RAINLOG2" │ base u64 │ after u64 │ salt u64 │ crc32c u32 of │ block   │ block   │ …
//!         │            │          │           │          │ these 32 bytes│         │         │
//!         └────────────┴──────────┴───────────┴──────────┴───────────────┴─────────┴─────────┴───
//! file 1  ┌────────────┬──────────┬─────────┬─────────┬───
//!         │ "RAINLOG1" │ base u64 │ block   │ block   │ …             numbers are little-endian
//!         └────────────┴──────────┴─────────┴─────────┴───
//! block   ┌────────┬────────────────┬─────────┬───────────┬──────────┬─────────────────┬─────────┐
//!         │ "RGB1" │ crc32c u32 of  │ len u32 │ count u32 │ base u64 │ appended_ms i64 │ entries │
//!         │        │ what follows it│         │           │          │                 │ len     │
//!         └────────┴────────────────┴─────────┴───────────┴──────────┴─────────────────┴─────────┘
//! ```
//!
//! A block is written with one call and becomes durable as a whole; its entries are described in
//! `raingauge_ports::record`. In version 2 the checksum of a block also covers the salt of its
//! segment, which is random and stays on disk: bytes that a client sends as part of an event cannot
//! pass for a block.

use crate::files::File;
use raingauge_ports::log::{Block, Error, Offset};
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;

pub const BLOCK_HEADER_LEN: usize = 32;
/// Longest payload of a block. A damaged length must not allocate all memory.
pub const PAYLOAD_LEN_MAX: usize = 1 << 30;
/// Length of the header of each version.
const HEAD_LEN: [usize; 2] = [16, 36];
/// The shortest entry: its length and its kind.
const ENTRY_LEN_MIN: u64 = 5;

/// The names by which the segments of one kind of journal are known.
#[derive(Debug, PartialEq, Eq)]
pub struct Form {
    /// The end of a file's name.
    pub suffix: &'static str,
    /// The beginning of a file, in each version; `None` if there are no files of that version.
    pub file_magic: [Option<&'static [u8; 8]>; 2],
    /// The beginning of a block.
    pub block_magic: &'static [u8; 4],
    /// Whether blocks are written before the ones in front of them are durable. Each then begins
    /// with the offset before which all was durable when it was written, u64.
    pub is_written_ahead: bool,
}

/// The segments of the event log.
pub const EVENTS: Form = Form {
    suffix: ".log",
    file_magic: [Some(b"RAINLOG1"), Some(b"RAINLOG2")],
    block_magic: b"RGB1",
    is_written_ahead: false,
};

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub form: &'static Form,
    /// 0 for version 1, 1 for version 2.
    version: usize,
    /// Offset of the first entry.
    pub base: Offset,
    /// Where the log ended before. Lower than `base` where a loss was accepted.
    pub after: Offset,
    salt: u64,
    /// The initial value of each block's checksum.
    seed: u32,
}

impl Head {
    /// The header of a new segment.
    pub fn new(form: &'static Form, base: Offset, after: Offset) -> Self {
        Self::salted(form, base, after, RandomState::new().hash_one(base))
    }

    fn salted(form: &'static Form, base: Offset, after: Offset, salt: u64) -> Self {
        let seed = crc32c::crc32c(&salt.to_le_bytes());
        Self { form, version: 1, base, after, salt, seed }
    }

    /// Length of the header in bytes, which is where the first block begins.
    pub fn len(&self) -> u64 {
        HEAD_LEN[self.version] as u64
    }

    /// Whether the header has the version of new segments.
    pub fn is_newest(&self) -> bool {
        self.version == 1
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.form.file_magic[self.version].map_or(Vec::new(), |it| it.to_vec());
        bytes.extend_from_slice(&self.base.to_le_bytes());
        if self.version == 1 {
            bytes.extend_from_slice(&self.after.to_le_bytes());
            bytes.extend_from_slice(&self.salt.to_le_bytes());
            bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        }
        bytes
    }

    /// Reads the header of the segment that begins with `base`; `None` if there is none.
    pub fn read(form: &'static Form, file: &dyn File, base: Offset) -> io::Result<Option<Self>> {
        let Some(bytes) = read_there(file, 0, HEAD_LEN[0])? else {
            return Ok(None);
        };
        let first = Self { form, version: 0, base, after: base, salt: 0, seed: 0 };
        if bytes == first.bytes() {
            return Ok(Some(first));
        }

        let Some(bytes) = read_there(file, 0, HEAD_LEN[1])? else {
            return Ok(None);
        };
        let number = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        let head = Self::salted(form, base, number(16), number(24));

        Ok((bytes == head.bytes() && head.after <= base).then_some(head))
    }

    /// Whether a file of this length can hold only a header, whole or torn.
    pub fn is_all_of(len: u64) -> bool {
        len <= HEAD_LEN[1] as u64
    }
}

/// Returns the bytes at `at`; `None` if the file ends before them.
fn read_there(file: &dyn File, at: u64, len: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; len];
    match file.read_at(&mut bytes, at) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    crc: u32,
    pub payload_len: usize,
    pub count: u32,
    pub base: Offset,
    pub appended_ms: i64,
}

impl BlockHeader {
    pub fn end(&self) -> Offset {
        self.base.saturating_add(Offset::from(self.count))
    }

    /// Length of the whole block in bytes.
    pub fn block_len(&self) -> u64 {
        (BLOCK_HEADER_LEN + self.payload_len) as u64
    }

    fn parse(form: &Form, bytes: &[u8]) -> Option<Self> {
        let u32_at = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let header = Self {
            crc: u32_at(4),
            payload_len: u32_at(8) as usize,
            count: u32_at(12),
            base: u64_at(16),
            appended_ms: u64_at(24) as i64,
        };
        (bytes[..4] == *form.block_magic && header.payload_len <= PAYLOAD_LEN_MAX).then_some(header)
    }

    /// Reads the header at `at`; `None` if there is none.
    pub fn read(form: &Form, file: &dyn File, at: u64) -> io::Result<Option<Self>> {
        Ok(read_there(file, at, BLOCK_HEADER_LEN)?.and_then(|bytes| Self::parse(form, &bytes)))
    }
}

/// Completes a block. The entries follow [`BLOCK_HEADER_LEN`] bytes that are reserved for the
/// header.
pub fn seal_block(head: &Head, block: &mut [u8], count: u32, base: Offset, appended_ms: i64) {
    let payload_len = block.len() - BLOCK_HEADER_LEN;
    assert!(payload_len <= PAYLOAD_LEN_MAX, "a group ends before its block is too long to be read");
    block[..4].copy_from_slice(head.form.block_magic);
    block[8..12].copy_from_slice(&(payload_len as u32).to_le_bytes());
    block[12..16].copy_from_slice(&count.to_le_bytes());
    block[16..24].copy_from_slice(&base.to_le_bytes());
    block[24..32].copy_from_slice(&appended_ms.to_le_bytes());
    let crc = crc32c::crc32c_append(head.seed, &block[8..]);
    block[4..8].copy_from_slice(&crc.to_le_bytes());
}

/// Reads and checks the block at `at`, which should begin with the entry `base`.
pub fn read_block(file: &dyn File, head: &Head, at: u64, base: Offset) -> Result<Block, Error> {
    let damaged =
        |what: &str| Error::Corrupt(format!("the block of offset {base} at byte {at} {what}"));
    let bytes = read_there(file, at, BLOCK_HEADER_LEN)?.ok_or_else(|| damaged("is cut short"))?;
    let header = BlockHeader::parse(head.form, &bytes)
        .ok_or_else(|| damaged("does not begin as a block"))?;
    if at + header.block_len() > file.size()? {
        return Err(damaged("is cut short"));
    }

    let payload = read_there(file, at + BLOCK_HEADER_LEN as u64, header.payload_len)?;
    let payload = payload.ok_or_else(|| damaged("is cut short"))?;
    let crc = crc32c::crc32c_append(crc32c::crc32c_append(head.seed, &bytes[8..]), &payload);
    if crc != header.crc {
        return Err(damaged("does not match its checksum"));
    }

    if header.base != base {
        return Err(damaged(&format!("begins with offset {}", header.base)));
    }
    Ok(Block {
        base,
        appended_ms: header.appended_ms,
        len: u64::from(header.count),
        bytes: payload,
    })
}

/// The end of the intact part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    pub len: u64,
    pub end: Offset,
    /// When the last block was appended; 0 if there is none.
    pub appended_ms: i64,
    /// Where the last block begins; in a log that is written ahead, the first one that may not be
    /// durable.
    pub last_at: Option<u64>,
}

/// Walks the blocks of a segment and finds their end. Bytes behind the last intact block are a tail
/// that was being written. But if an intact block follows them that was written when they were
/// durable, something in the middle is damaged, and that is an error.
pub fn find_tail(file: &dyn File, head: &Head) -> Result<Tail, Error> {
    let file_len = file.size()?;
    let mut tail = Tail { len: head.len(), end: head.base, appended_ms: 0, last_at: None };
    let mut ahead = VecDeque::new();
    while tail.len < file_len {
        match read_block(file, head, tail.len, tail.end) {
            Ok(block) => {
                if head.form.is_written_ahead {
                    let durable = durable_before(&block);
                    while ahead.pop_front_if(|(end, _)| *end <= durable).is_some() {}
                } else {
                    ahead.clear();
                }
                ahead.push_back((block.end(), tail.len));
                tail.last_at = ahead.front().map(|(_, at)| *at);
                tail.len += (BLOCK_HEADER_LEN + block.bytes.len()) as u64;
                tail.end = block.end();
                tail.appended_ms = block.appended_ms;
            }
            Err(error @ Error::Corrupt(_)) if was_durable(file, head, tail)? => return Err(error),
            Err(Error::Corrupt(_)) => break,
            Err(error) => return Err(error),
        }
    }

    Ok(tail)
}

/// The offset before which all was durable when a block was written ahead.
fn durable_before(block: &Block) -> Offset {
    block.bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Whether a later block tells that the one at the tail was durable.
fn was_durable(file: &dyn File, head: &Head, tail: Tail) -> Result<bool, Error> {
    let mut broken = tail;
    while let Some((at, header)) = next_sound(file, head, broken)? {
        if !head.form.is_written_ahead {
            return Ok(true);
        }

        broken = Tail { len: at, end: header.base, ..tail };
        while let Ok(block) = read_block(file, head, broken.len, broken.end) {
            if durable_before(&block) > tail.end {
                return Ok(true);
            }
            broken.len += (BLOCK_HEADER_LEN + block.bytes.len()) as u64;
            broken.end = block.end();
        }
    }
    Ok(false)
}

/// Returns the position and the header of the first intact block behind `tail`, not at it.
pub fn next_sound(
    file: &dyn File,
    head: &Head,
    tail: Tail,
) -> Result<Option<(u64, BlockHeader)>, Error> {
    let mut rest = vec![0; file.size()?.saturating_sub(tail.len) as usize];
    file.read_at(&mut rest, tail.len)?;

    // Entries in between have a minimum length, and times never go back.
    let could_follow = |header: &BlockHeader| {
        header.base >= tail.end
            && header.base - tail.end <= rest.len() as u64 / ENTRY_LEN_MIN
            && header.appended_ms >= tail.appended_ms
    };

    let candidates =
        rest.windows(4).enumerate().skip(1).filter(|(_, bytes)| bytes == head.form.block_magic);
    for (at, _) in candidates {
        let at = tail.len + at as u64;
        if let Some(header) = BlockHeader::read(head.form, file, at)?.filter(could_follow) {
            match read_block(file, head, at, header.base) {
                Ok(_) => return Ok(Some((at, header))),
                Err(Error::Corrupt(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }

    Ok(None)
}

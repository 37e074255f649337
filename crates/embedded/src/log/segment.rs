//! One segment file and its blocks, format version 1.
//!
//! ```text
//! file    ┌────────────┬─────────┬────────┬────────┬───
//!         │ "RAINLOG1" │ base u64│ block  │ block  │ …        numbers are little-endian
//!         └────────────┴─────────┴────────┴────────┴───
//! block   ┌────────┬────────────────┬─────────┬───────────┬──────────┬─────────────────┬─────────┐
//!         │ "RGB1" │ crc32c u32 of  │ len u32 │ count u32 │ base u64 │ appended_ms i64 │ entries │
//!         │        │ what follows it│         │           │          │                 │ len     │
//!         └────────┴────────────────┴─────────┴───────────┴──────────┴─────────────────┴─────────┘
//! ```
//!
//! A block is written with one call and becomes durable as a whole; its entries are described in `raingauge_ports::record`.

use raingauge_ports::log::{Block, Error, Offset};
use std::fs::File;
use std::os::unix::fs::FileExt;

pub const FILE_HEADER_LEN: u64 = 16;
pub const BLOCK_HEADER_LEN: usize = 32;
const FILE_MAGIC: &[u8; 8] = b"RAINLOG1";
const BLOCK_MAGIC: &[u8; 4] = b"RGB1";
/// Longest payload that a block may claim, so that a damaged length does not ask for all memory.
const PAYLOAD_LEN_MAX: usize = 1 << 30;

pub fn file_header(base: Offset) -> [u8; FILE_HEADER_LEN as usize] {
    let mut header = [0; FILE_HEADER_LEN as usize];
    header[..8].copy_from_slice(FILE_MAGIC);
    header[8..].copy_from_slice(&base.to_le_bytes());
    header
}

/// Whether a file begins as the segment with this base should.
pub fn has_file_header(file: &File, base: Offset) -> bool {
    let mut header = [0; FILE_HEADER_LEN as usize];
    file.read_exact_at(&mut header, 0).is_ok() && header == file_header(base)
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
        self.base + Offset::from(self.count)
    }

    /// Bytes that the whole block takes.
    pub fn block_len(&self) -> u64 {
        (BLOCK_HEADER_LEN + self.payload_len) as u64
    }

    fn parse(bytes: &[u8; BLOCK_HEADER_LEN]) -> Option<Self> {
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let header = Self {
            crc: u32_at(4),
            payload_len: u32_at(8) as usize,
            count: u32_at(12),
            base: u64_at(16),
            appended_ms: u64_at(24) as i64,
        };
        (bytes[..4] == *BLOCK_MAGIC && header.payload_len <= PAYLOAD_LEN_MAX).then_some(header)
    }

    /// Reads the header at `at`; `None` where there is none.
    pub fn read(file: &File, at: u64) -> Option<Self> {
        let mut bytes = [0; BLOCK_HEADER_LEN];
        file.read_exact_at(&mut bytes, at).ok()?;
        Self::parse(&bytes)
    }
}

/// A block ready to be written; the entries follow [`BLOCK_HEADER_LEN`] bytes that are kept free for the header.
pub fn seal_block(block: &mut [u8], count: u32, base: Offset, appended_ms: i64) {
    let payload_len = (block.len() - BLOCK_HEADER_LEN) as u32;
    block[..4].copy_from_slice(BLOCK_MAGIC);
    block[8..12].copy_from_slice(&payload_len.to_le_bytes());
    block[12..16].copy_from_slice(&count.to_le_bytes());
    block[16..24].copy_from_slice(&base.to_le_bytes());
    block[24..32].copy_from_slice(&appended_ms.to_le_bytes());
    let crc = crc32c::crc32c(&block[8..]);
    block[4..8].copy_from_slice(&crc.to_le_bytes());
}

/// Reads and checks the block at `at`, which should begin with the entry `base`.
pub fn read_block(file: &File, at: u64, base: Offset) -> Result<Block, Error> {
    let damaged = |what: &str| Error::Corrupt(format!("the block of offset {base} at byte {at} {what}"));
    let mut head = [0; BLOCK_HEADER_LEN];
    file.read_exact_at(&mut head, at).map_err(|_| damaged("is cut short"))?;
    let header = BlockHeader::parse(&head).ok_or_else(|| damaged("does not begin as a block"))?;
    let mut bytes = vec![0; header.payload_len];
    file.read_exact_at(&mut bytes, at + BLOCK_HEADER_LEN as u64).map_err(|_| damaged("is cut short"))?;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&head[8..]), &bytes);
    if crc != header.crc {
        return Err(damaged("does not match its checksum"));
    }
    if header.base != base {
        return Err(damaged(&format!("begins with offset {}", header.base)));
    }
    Ok(Block { base, appended_ms: header.appended_ms, len: u64::from(header.count), bytes })
}

/// Where the sound part of a segment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    pub len: u64,
    pub end: Offset,
    pub appended_ms: i64,
}

/// Walks the blocks of a segment and finds where they end. What follows the last sound block is a tail that was being
/// written; but if a sound block stands behind it, something in the middle is damaged, and that is an error.
pub fn find_tail(file: &File, base: Offset) -> Result<Tail, Error> {
    let file_len = file.metadata()?.len();
    let mut tail = Tail { len: FILE_HEADER_LEN, end: base, appended_ms: 0 };
    while tail.len < file_len {
        match read_block(file, tail.len, tail.end) {
            Ok(block) => {
                tail.len += (BLOCK_HEADER_LEN + block.bytes.len()) as u64;
                tail.end = block.end();
                tail.appended_ms = block.appended_ms;
            }
            Err(error) if block_follows(file, tail, file_len)? => return Err(error),
            Err(_) => break,
        }
    }
    Ok(tail)
}

/// Whether a sound block stands anywhere behind `tail`.
fn block_follows(file: &File, tail: Tail, file_len: u64) -> Result<bool, Error> {
    let mut rest = vec![0; (file_len - tail.len) as usize];
    file.read_exact_at(&mut rest, tail.len)?;
    let candidates = rest.windows(4).enumerate().skip(1).filter(|(_, bytes)| bytes == BLOCK_MAGIC);
    for (at, _) in candidates {
        let at = tail.len + at as u64;
        let follows = BlockHeader::read(file, at)
            .is_some_and(|header| header.base >= tail.end && read_block(file, at, header.base).is_ok());
        if follows {
            return Ok(true);
        }
    }
    Ok(false)
}

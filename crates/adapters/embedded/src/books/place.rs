//! Where an entry lies in the journal.

use raingauge_points::Entry;
use raingauge_ports::points::Error;

pub const PLACE_LEN: usize = 20;

/// Where an entry lies, so that one read fetches it without its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub sequence: u64,
    /// The position of its encoding in its segment.
    pub at: u64,
    pub len: u32,
    /// The checksum of its encoding.
    crc: u32,
}

impl Place {
    pub fn of(sequence: u64, at: u64, entry: &[u8]) -> Self {
        Self { sequence, at, len: entry.len() as u32, crc: crc32c::crc32c(entry) }
    }

    pub fn to_bytes(self) -> [u8; PLACE_LEN] {
        let mut bytes = [0; PLACE_LEN];
        let at = u32::try_from(self.at).expect("a segment is shorter than 4 GiB");
        bytes[..8].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[8..12].copy_from_slice(&at.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.len.to_le_bytes());
        bytes[16..].copy_from_slice(&self.crc.to_le_bytes());
        bytes
    }

    /// `None` if the bytes are not those of a place.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (sequence, rest) = bytes.split_first_chunk()?;
        let (numbers, rest) = rest.as_chunks::<4>();
        let [at, len, crc] = numbers.try_into().ok().filter(|_| rest.is_empty())?;
        Some(Self {
            sequence: u64::from_le_bytes(*sequence),
            at: u64::from(u32::from_le_bytes(at)),
            len: u32::from_le_bytes(len),
            crc: u32::from_le_bytes(crc),
        })
    }

    /// Decodes the bytes that were found there.
    pub fn decode(&self, bytes: &[u8]) -> Result<Entry, Error> {
        let damaged = |what: &str| {
            Error::Corrupt(format!("entry {} at byte {} {what}", self.sequence, self.at))
        };
        if crc32c::crc32c(bytes) != self.crc {
            return Err(damaged("does not match its checksum"));
        }
        let entry = Entry::decode(bytes).map_err(|why| damaged(&why.to_string()))?;
        if entry.sequence == self.sequence { Ok(entry) } else { Err(damaged("is another one")) }
    }
}

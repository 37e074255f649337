//! How far the log was acknowledged, in a file of its own.
//!
//! The mark is written after a block is durable and before its events are acknowledged, without waiting for the disk:
//! after a power cut it may be old, which is harmless; after a crash of the process it is exact. A log that ends before
//! its mark has lost what was acknowledged, and is refused.

use raingauge_ports::log::{Error, Offset};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const FILE_NAME: &str = "acknowledged";

pub struct Acknowledged {
    file: File,
    path: PathBuf,
    offset: Offset,
}

impl Acknowledged {
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(FILE_NAME);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        let mut bytes = [0; 12];
        // A mark that was torn by a power cut is as good as none.
        let offset = match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => decode(bytes).unwrap_or(0),
            Err(_) => 0,
        };
        Ok(Self { file, path, offset })
    }

    /// Refuses a log that ends at `end`, before what was acknowledged.
    pub fn check(&self, end: Offset) -> Result<(), Error> {
        if end >= self.offset {
            return Ok(());
        }
        Err(Error::Corrupt(format!(
            "it ends at offset {end}, but offsets up to {} were acknowledged: restore the data folder from a backup, \
             or accept the loss of the last {} event(s) by removing {}",
            self.offset,
            self.offset - end,
            self.path.display()
        )))
    }

    pub fn mark(&mut self, offset: Offset) -> std::io::Result<()> {
        self.offset = offset;
        let number = offset.to_le_bytes();
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&number);
        bytes[8..].copy_from_slice(&crc32c::crc32c(&number).to_le_bytes());
        self.file.write_all_at(&bytes, 0)
    }
}

fn decode(bytes: [u8; 12]) -> Option<Offset> {
    let (number, crc) = bytes.split_first_chunk::<8>()?;
    let crc = u32::from_le_bytes(crc.try_into().ok()?);
    (crc32c::crc32c(number) == crc).then(|| Offset::from_le_bytes(*number))
}

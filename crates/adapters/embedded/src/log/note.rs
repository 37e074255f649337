//! A number in a file of its own, overwritten in place without waiting for the disk. After a power
//! cut it may be old, or torn, which counts as missing; after a crash of the process it is exact.
//!
//! ```text
//! ┌────────────┬──────────────────────────┐
//! │ number u64 │ crc32c u32 of its 8 bytes│
//! └────────────┴──────────────────────────┘
//! ```

use super::inspect::read_if_there;
use crate::files::{File, Folder};
use std::borrow::Cow;
use std::io;
use std::sync::Arc;

pub struct Note {
    folder: Arc<dyn Folder>,
    name: Cow<'static, str>,
    /// Opened, or created, at the first write.
    file: Option<Arc<dyn File>>,
    /// 0 if there is none.
    number: u64,
}

impl Note {
    pub fn read(folder: Arc<dyn Folder>, name: impl Into<Cow<'static, str>>) -> io::Result<Self> {
        let name = name.into();
        let bytes = read_if_there(&*folder, &name)?.unwrap_or_default();
        let number = bytes.first_chunk().and_then(|bytes| decode(*bytes)).unwrap_or(0);
        Ok(Self { folder, name, file: None, number })
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn write(&mut self, number: u64) -> io::Result<()> {
        self.number = number;
        let bytes = number.to_le_bytes();
        let crc = crc32c::crc32c(&bytes).to_le_bytes();
        self.file()?.write_at(&[&bytes[..], &crc].concat(), 0)
    }

    fn file(&mut self) -> io::Result<&dyn File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => match self.folder.open(&self.name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.folder.create(&self.name)?
                }
                opened => opened?,
            },
        };
        Ok(&**self.file.insert(file))
    }
}

fn decode(bytes: [u8; 12]) -> Option<u64> {
    let (number, crc) = bytes.split_first_chunk::<8>()?;
    let crc = u32::from_le_bytes(crc.try_into().ok()?);
    (crc32c::crc32c(number) == crc).then(|| u64::from_le_bytes(*number))
}

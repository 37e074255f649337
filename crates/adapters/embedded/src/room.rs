//! Free space on the disk, and the reserve that is kept of it.
//!
//! Below the reserve no events are accepted, so work in progress (a group of the log, a commit, a
//! flush, a compaction) still finds room: a disk that fills up refuses events and fails no write.

use parking_lot::Mutex;
use raingauge_ports::log::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest time for which a measurement of the disk is used.
const MAX_AGE: Duration = Duration::from_millis(50);
/// The reserve is at most this fraction of the disk, so that small disks can be used at all.
const RESERVE_DIVISOR_MIN: u64 = 10;

/// Watches the disk of one folder.
pub struct Room {
    folder: PathBuf,
    reserve_bytes: u64,
    last: Mutex<Option<(Instant, Space)>>,
}

#[derive(Clone, Copy)]
struct Space {
    bytes: u64,
    free_bytes: u64,
}

impl Room {
    pub fn new(folder: &Path, reserve_bytes: u64) -> Self {
        Self { folder: folder.to_owned(), reserve_bytes, last: Mutex::default() }
    }

    /// Checks that more than the reserve is free. A disk that cannot be queried is assumed to have
    /// room: the write will find out.
    pub fn check(&self) -> Result<(), Error> {
        self.check_part(1)
    }

    /// The same with a part of the reserve, for what makes room.
    pub fn check_part(&self, divisor: u64) -> Result<(), Error> {
        self.space().map_or(Ok(()), |space| verdict(space, self.reserve_bytes, divisor))
    }

    /// Pretends for an hour that a large disk has `free_bytes` left.
    #[cfg(test)]
    pub fn pretend(&self, free_bytes: u64) {
        let later = Instant::now() + Duration::from_secs(3_600);
        *self.last.lock() = Some((later, Space { bytes: u64::MAX, free_bytes }));
    }

    fn space(&self) -> Option<Space> {
        let mut last = self.last.lock();
        if let Some((_, space)) = last.filter(|(asked, _)| asked.elapsed() < MAX_AGE) {
            return Some(space);
        }

        let disk = rustix::fs::statvfs(&self.folder).ok()?;
        let space = Space {
            bytes: disk.f_blocks * disk.f_frsize,
            free_bytes: disk.f_bavail * disk.f_frsize,
        };
        *last = Some((Instant::now(), space));
        Some(space)
    }
}

fn verdict(space: Space, reserve_bytes: u64, divisor: u64) -> Result<(), Error> {
    let reserve_bytes = reserve_bytes.min(space.bytes / RESERVE_DIVISOR_MIN) / divisor;
    if space.free_bytes < reserve_bytes {
        Err(Error::Full { free_bytes: space.free_bytes, reserve_bytes })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_reserve_is_a_tenth_of_a_small_disk() {
        let full = |bytes, free_bytes| verdict(Space { bytes, free_bytes }, GIB, 1).is_err();
        assert!(full(100 * GIB, GIB - 1));
        assert!(!full(100 * GIB, GIB));
        assert!(full(5 * GIB, GIB / 2 - 1));
        assert!(!full(5 * GIB, GIB / 2));

        let space = Space { bytes: 100 * GIB, free_bytes: GIB / 4 };
        assert!(verdict(space, GIB, 4).is_ok() && verdict(space, GIB, 3).is_err());
    }

    #[test]
    fn a_disk_with_less_than_the_reserve_takes_nothing_until_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let room = Room::new(folder.path(), 0);
        assert!(room.check().is_ok());
        let space = room.space().unwrap();
        assert!(space.bytes >= space.free_bytes && space.bytes > 0);

        *room.last.lock() = Some((Instant::now(), Space { bytes: 100 * GIB, free_bytes: 5 }));
        let room = Room { reserve_bytes: GIB, ..room };
        assert!(matches!(room.check(), Err(Error::Full { free_bytes: 5, reserve_bytes: GIB })));
        *room.last.lock() = Some((Instant::now(), Space { bytes: 100 * GIB, free_bytes: 2 * GIB }));
        assert!(room.check().is_ok());
    }
}

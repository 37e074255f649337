//! The files of a folder: the few calls that the log makes, so that tests can substitute a disk
//! that tears, fills up and forgets.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder of files, by name. Changes of names are durable only after [`Folder::sync`].
pub trait Folder: Send + Sync {
    /// The path of the folder, for messages.
    fn path(&self) -> &Path;

    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens an existing file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Creates a file, or empties an existing one.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;

    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    fn remove(&self, name: &str) -> io::Result<()>;

    /// Waits until created, renamed and removed names are durable.
    fn sync(&self) -> io::Result<()>;
}

/// An open file. Writes are durable only after [`File::sync`].
pub trait File: Send + Sync {
    fn size(&self) -> io::Result<u64>;

    /// Fills `bytes` with the contents at `at`; [`io::ErrorKind::UnexpectedEof`] if the file ends
    /// earlier.
    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()>;

    /// Writes all of `bytes`. If it fails, any part of them may have been written.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Waits until the contents and the length are durable. If it fails, everything written since
    /// the last success may be lost, even if a later call succeeds: it has to be written again.
    fn sync(&self) -> io::Result<()>;
}

/// Reads a whole file.
pub fn read_all(file: &dyn File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; file.size()? as usize];
    file.read_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// A folder on disk, which only one process has open at a time.
pub struct DiskFolder {
    path: PathBuf,
    /// Holds the lock.
    handle: fs::File,
}

impl DiskFolder {
    /// Opens the folder, or creates it. [`io::ErrorKind::WouldBlock`] if another process has it
    /// open.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !path.exists() {
            fs::create_dir_all(path)?;
            // Its name, and that of the data folder, must survive a power cut just as its files do.
            for parent in path.ancestors().skip(1).take(2).filter(|parent| parent.is_dir()) {
                fs::File::open(parent)?.sync_all()?;
            }
        }
        let handle = fs::File::open(path)?;
        handle.try_lock().map_err(io::Error::from)?;
        Ok(Self { path: path.to_owned(), handle })
    }
}

/// A process that another thread has just started has a copy of the handle until it runs its own
/// program, and must not keep the folder locked.
impl Drop for DiskFolder {
    fn drop(&mut self) {
        let _ = self.handle.unlock();
    }
}

impl Folder for DiskFolder {
    fn path(&self) -> &Path {
        &self.path
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let names =
            fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(io::Result::transpose).collect()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(OpenOptions::new().read(true).write(true).open(self.path.join(name))?))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        Ok(Arc::new(options.open(self.path.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        self.handle.sync_all()
    }
}

impl File for fs::File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        self.read_exact_at(bytes, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_dropped_is_free_although_its_handle_has_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        let opened = DiskFolder::open(folder.path()).unwrap();
        let copy = opened.handle.try_clone().unwrap();
        let locked = DiskFolder::open(folder.path()).err().map(|error| error.kind());
        assert_eq!(locked, Some(io::ErrorKind::WouldBlock));

        drop(opened);
        DiskFolder::open(folder.path()).unwrap();
        drop(copy);
    }
}

#[cfg(test)]
pub mod copies;
#[cfg(test)]
pub mod simulated;

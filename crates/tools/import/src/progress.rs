//! The progress of an import, in a file from which the import can be resumed.

use crate::error::Error;
use crate::limits::SMALL_FILE_LEN_MAX;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Version of the progress file; other versions are refused.
const VERSION: u32 = 1;

/// Identifies an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The path, for display; a file may be moved between two runs.
    pub file: String,
    /// Length on disk, in bytes.
    pub size: u64,
    /// Time of the last modification, in milliseconds since 1970.
    pub modified_ms: i64,
    /// Fingerprint of the first bytes of the uncompressed content.
    pub fingerprint: String,
    pub mapping_hash: String,
}

/// The progress of one import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    version: u32,
    #[serde(flatten)]
    pub identity: Identity,
    /// Rows with a final outcome; a resumed import skips this many.
    pub rows_sent: u64,
    pub accepted: u64,
    pub duplicates: u64,
    pub rejected: u64,
    /// The time of this save, in seconds since 1970.
    pub updated_at_s: i64,
    pub finished: bool,
}

impl Progress {
    /// The progress of an import that has not started.
    pub fn new(identity: Identity) -> Self {
        Self {
            version: VERSION,
            identity,
            rows_sent: 0,
            accepted: 0,
            duplicates: 0,
            rejected: 0,
            updated_at_s: 0,
            finished: false,
        }
    }

    /// Loads the progress of the import with this `identity`; `None` if it has not started.
    pub fn load(path: &Path, identity: &Identity) -> Result<Option<Self>, Error> {
        let mut text = String::new();
        match File::open(path)
            .and_then(|file| file.take(SMALL_FILE_LEN_MAX).read_to_string(&mut text))
        {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(Error::Open { path: path.to_owned(), source });
            }
        }

        let unreadable =
            |reason: String| Error::ProgressUnreadable { path: path.to_owned(), reason };
        let progress: Self =
            serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        if progress.version != VERSION {
            return Err(unreadable(format!(
                "it has version {}, expected {VERSION}",
                progress.version
            )));
        }

        let differences = progress.identity.differences(identity);
        if differences.is_empty() {
            return Ok(Some(progress));
        }
        Err(Error::ProgressOfAnother { path: path.to_owned(), differences })
    }

    /// Replaces the file atomically: after a crash it holds either this progress or the previous
    /// one. Returns once it is on disk.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let mut text = serde_json::to_string_pretty(self)
            .expect("progress has no maps with keys that are not text");
        text.push('\n');
        replace(path, text.as_bytes())
            .map_err(|source| Error::Write { path: path.to_owned(), source })
    }
}

impl Identity {
    fn differences(&self, now: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        if self.fingerprint != now.fingerprint {
            differences.push(format!("it is for {}, not {}", self.file, now.file));
        } else if self.size != now.size {
            differences.push(format!("the file had {} bytes and has {}", self.size, now.size));
        } else if self.modified_ms != now.modified_ms {
            differences.push("the file has changed since".to_owned());
        }
        if self.mapping_hash != now.mapping_hash {
            differences.push("it was written with a different mapping".to_owned());
        }
        differences
    }
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let mut file = File::create(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)?;
    // The new name is durable only once its directory has been synced.
    let directory =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The format of version 1, which must stay readable forever.
    const FIXTURE: &str = r#"{
  "version": 1,
  "file": "taxi.csv.gz",
  "size": 5237381,
  "modified_ms": 1795000000000,
  "fingerprint": "00c0ffee00c0ffee",
  "mapping_hash": "0123456789abcdef",
  "rows_sent": 100000,
  "accepted": 99990,
  "duplicates": 7,
  "rejected": 3,
  "updated_at_s": 1795000060,
  "finished": false
}
"#;

    fn identity() -> Identity {
        Identity {
            file: "taxi.csv.gz".to_owned(),
            size: 5_237_381,
            modified_ms: 1_795_000_000_000,
            fingerprint: "00c0ffee00c0ffee".to_owned(),
            mapping_hash: "0123456789abcdef".to_owned(),
        }
    }

    #[test]
    fn the_file_of_version_1_and_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("progress.json");
        assert_eq!(Progress::load(&path, &identity()).unwrap(), None);
        std::fs::write(&path, FIXTURE).unwrap();

        let progress = Progress::load(&path, &identity()).unwrap().unwrap();
        assert_eq!(
            (progress.rows_sent, progress.accepted, progress.duplicates, progress.rejected),
            (100_000, 99_990, 7, 3)
        );
        progress.save(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), FIXTURE);

        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            1,
            "nothing is left beside it"
        );
    }

    #[test]
    fn another_import_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("progress.json");
        std::fs::write(&path, FIXTURE).unwrap();

        let refused = |change: fn(&mut Identity)| {
            let mut other = identity();
            change(&mut other);
            Progress::load(&path, &other).map(|_| ()).map_err(|error| error.to_string())
        };

        assert_eq!(refused(|other| other.file = "moved.csv.gz".to_owned()), Ok(()));
        assert!(
            refused(|other| other.fingerprint.clear())
                .unwrap_err()
                .contains("it is for taxi.csv.gz")
        );
        assert!(
            refused(|other| other.size += 1)
                .unwrap_err()
                .contains("had 5237381 bytes and has 5237382")
        );
        assert!(refused(|other| other.modified_ms += 1).unwrap_err().contains("changed since"));
        assert!(
            refused(|other| other.mapping_hash.clear())
                .unwrap_err()
                .contains("a different mapping")
        );

        for (from, to) in [("\"version\": 1", "\"version\": 2"), ("{", "")] {
            std::fs::write(&path, FIXTURE.replacen(from, to, 1)).unwrap();
            assert!(refused(|_| ()).unwrap_err().contains("delete it to import from the start"));
        }
    }
}

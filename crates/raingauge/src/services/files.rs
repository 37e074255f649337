//! Permissions of the data folder: only its owner may read it.

use anyhow::Context;
use rustix::fs::Mode;
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

/// Permissions of group and others.
const OTHERS: u32 = 0o077;
/// Permissions of the data folder.
const FOLDER: u32 = 0o700;

/// Creates the data folder if it is missing. From now on, only the owner can read the files that
/// this process creates, in the folder or elsewhere: they contain events, password hashes and
/// sessions. Engines create files of their own, so the permissions are set for the whole process.
pub fn make_folder(folder: &Path) -> anyhow::Result<()> {
    rustix::process::umask(Mode::from_raw_mode(OTHERS));
    let made = DirBuilder::new().recursive(true).mode(FOLDER).create(folder);
    made.with_context(|| format!("the data folder {} cannot be made", folder.display()))?;

    let mode = std::fs::metadata(folder).map_or(FOLDER, |found| found.permissions().mode() & 0o777);
    if mode & OTHERS != 0 {
        tracing::warn!(
            folder = %folder.display(),
            mode = format!("{mode:04o}"),
            "other accounts of this machine may enter the data folder; `chmod -R go= FOLDER` keeps them out"
        );
    }

    Ok(())
}

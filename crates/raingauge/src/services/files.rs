//! Who may read the data folder: its owner alone.

use anyhow::Context;
use rustix::fs::Mode;
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

/// Permissions of group and others.
const OTHERS: u32 = 0o077;
/// Permissions of the data folder.
const FOLDER: u32 = 0o700;

/// Makes the data folder where there is none. Whatever this process makes from now on, in it or
/// elsewhere, belongs to its owner alone: events, password hashes and sessions lie there. Engines
/// make files of their own, so that the process sets it for all.
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

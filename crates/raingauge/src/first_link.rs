//! Shows the link of the first administrator on a terminal, or in a file of the data folder. Never
//! in a log, whose readers would become administrators.

use crate::settings::Settings;
use std::fs::OpenOptions;
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The file in the data folder.
const FILE: &str = "first-admin-link";

/// Shows a link, or removes the file of an earlier one when there is none.
pub fn show(link: Option<&str>, settings: &Settings) {
    let path = settings.storage.data_dir.join(FILE);
    if let Err(error) = std::fs::remove_file(&path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, path = %path.display(), "an earlier link of the first administrator could not be removed");
    }

    let Some(link) = link else { return };

    if std::io::stderr().is_terminal() {
        eprintln!(
            "Nobody can sign in to the portal yet. Open this link within an hour to become its administrator: {link}"
        );
    } else if settings.cluster.is_cluster() {
        tracing::info!(
            "nobody can sign in to the portal yet: `raingauge portal invite NAME --role admin` makes a link"
        );
    } else {
        match write(&path, link) {
            Ok(()) => tracing::info!(
                path = %path.display(),
                "nobody can sign in to the portal yet: this file has a link for its first administrator, good for an hour"
            ),
            Err(error) => tracing::warn!(
                %error,
                path = %path.display(),
                "the link of the first administrator could not be written: `raingauge portal invite` makes one"
            ),
        }
    }
}

/// Writes a new file, so that no other process can have opened it before.
fn write(path: &Path, link: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{link}")
}

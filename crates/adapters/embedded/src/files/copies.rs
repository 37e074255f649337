//! Copies of folders: what a process that is killed at a moment leaves behind.

use std::io;
use std::path::Path;

/// Copies a folder. A running store may delete files in that time.
pub fn copy_folder(from: &Path, to: &Path) {
    copy(from, to).expect("copied");
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let from = entry?.path();
        let to = to.join(from.file_name().expect("it has a name"));
        let copied =
            if from.is_dir() { copy(&from, &to) } else { std::fs::copy(&from, &to).map(drop) };
        match copied {
            Err(gone) if gone.kind() == io::ErrorKind::NotFound => {}
            copied => copied?,
        }
    }
    Ok(())
}

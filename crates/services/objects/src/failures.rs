//! What the store refuses, in the words of Redis where it has some.

use raingauge_ports::objects::Error;
use raingauge_resp::Failure;

/// The failure that a client sees when the store cannot take a change or read an object.
pub(crate) fn of_store(error: &Error) -> Failure {
    let line = match error {
        Error::Busy { .. } => "BUSY the disk does not keep up, try again".to_owned(),
        Error::Full { .. } => format!("MISCONF {error}"),
        Error::Closed(_) => format!("MISCONF {error}"),
        Error::Invalid(_) | Error::Corrupt(_) | Error::Io(_) | Error::Locked => {
            format!("ERR {error}")
        }
    };
    Failure::owned(line)
}

/// Whether the store may take groups again without a restart, so that memory and store agree.
pub(crate) fn is_passing(error: &Error) -> bool {
    matches!(error, Error::Busy { .. } | Error::Full { .. })
}

/// An object that does not fit into the share of memory that one may have.
pub(crate) fn too_large(name: &[u8], bytes: usize, bytes_max: usize) -> Failure {
    let name = String::from_utf8_lossy(name);
    Failure::owned(format!(
        "ERR the object at '{name}' has about {bytes} bytes in memory, which is larger than \
         objects.object_bytes_max, {bytes_max}"
    ))
}

/// Keys of one command, or of one transaction, that do not fit into memory together.
pub(crate) fn too_much_together(bytes_max: usize) -> Failure {
    Failure::owned(format!(
        "ERR the keys of the command take more than {bytes_max} bytes of memory together, which \
         objects.memory_bytes limits"
    ))
}

/// A command that answers more than memory allows.
pub(crate) fn answer_too_large(bytes_max: usize) -> Failure {
    Failure::owned(format!(
        "ERR the command answers more than {bytes_max} bytes, which objects.memory_bytes limits: \
         ask for less at a time"
    ))
}

/// A transaction that changes, or answers, more than memory allows.
pub(crate) fn transaction_too_large(bytes_max: usize) -> Failure {
    Failure::owned(format!(
        "ERR the transaction changes or answers more than {bytes_max} bytes, which \
         objects.memory_bytes limits"
    ))
}

/// A key that the store cannot hold.
pub(crate) fn name_too_long(len_max: usize) -> Failure {
    Failure::owned(format!("ERR the key is longer than {len_max} bytes"))
}

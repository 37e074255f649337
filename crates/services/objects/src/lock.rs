//! The lock of the keyspace, which a panic closes.

use crate::failures;
use crate::keyspace::Keyspace;
use parking_lot::{Mutex, MutexGuard};
use raingauge_ports::objects::Error;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

/// Why a closed keyspace does nothing.
const DEFECT: &str = "a defect broke off a change in memory: start the process again";

/// The keyspace behind its lock.
pub(crate) struct Lock {
    keyspace: Mutex<Keyspace>,
    is_broken: AtomicBool,
}

/// One hold of the lock. When a panic ends it, changes may be half made: nothing of them was
/// handed to the store, but memory is wrong, so the keyspace closes for good.
pub(crate) struct Hold<'a> {
    keyspace: MutexGuard<'a, Keyspace>,
    is_broken: &'a AtomicBool,
    /// Whether the thread was unwinding already when the hold began.
    began_in_panic: bool,
}

impl Lock {
    pub(crate) fn new(keyspace: Keyspace) -> Self {
        Self { keyspace: Mutex::new(keyspace), is_broken: AtomicBool::new(false) }
    }

    /// Takes the lock. After a panic in a hold it fails for ever.
    pub(crate) fn hold(&self) -> Result<Hold<'_>, Error> {
        let keyspace = self.keyspace.lock();
        match self.trouble() {
            Some(why) => Err(Error::Closed(why)),
            None => {
                let began_in_panic = std::thread::panicking();
                Ok(Hold { keyspace, is_broken: &self.is_broken, began_in_panic })
            }
        }
    }

    /// Why the keyspace is closed.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.is_broken.load(Ordering::Acquire).then(|| DEFECT.to_owned())
    }
}

impl Deref for Hold<'_> {
    type Target = Keyspace;

    fn deref(&self) -> &Keyspace {
        &self.keyspace
    }
}

impl DerefMut for Hold<'_> {
    fn deref_mut(&mut self) -> &mut Keyspace {
        &mut self.keyspace
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        if self.began_in_panic || !std::thread::panicking() {
            return;
        }

        self.is_broken.store(true, Ordering::Release);
        tracing::error!("objects are closed: {DEFECT}");
        let failure = failures::of_store(&Error::Closed(DEFECT.to_owned()));
        self.keyspace.waiting().refuse_all(&failure);
    }
}

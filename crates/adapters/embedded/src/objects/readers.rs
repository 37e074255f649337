//! The threads that read from the disk for callers that may not block.
//!
//! A thread that is done takes the next read without sleeping in between, and wakes another one
//! only while more reads wait than are being taken: where many connections miss at once, sleeping
//! and waking would cost about as much as reading. A thread that is woken waits for its turn
//! ([`scheduling`]).

use super::scheduling;
use super::state::Shared;
use parking_lot::{Condvar, Mutex};
use raingauge_ports::BoxFuture;
use raingauge_ports::objects::{Error, OBJECT_READS_MAX};
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

type Read = Box<dyn FnOnce() + Send>;

/// [`OBJECT_READS_MAX`] threads. Further reads wait until one is done.
pub struct Readers {
    shared: Arc<Shared>,
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    grown: Condvar,
}

#[derive(Default)]
struct Waiting {
    reads: VecDeque<Read>,
    /// Threads that sleep.
    sleeping: usize,
    /// A thread was woken and has not taken a read yet.
    is_waking: bool,
    is_stopping: bool,
}

impl Readers {
    pub fn start(shared: &Arc<Shared>) -> Result<Self, Error> {
        let shared = Arc::clone(shared);
        let mut readers = Self { shared, queue: Arc::default(), threads: Vec::new() };
        for _ in 0..OBJECT_READS_MAX {
            let queue = Arc::clone(&readers.queue);
            let thread = std::thread::Builder::new().name("objects-read".to_owned());
            let started = thread.spawn(move || {
                scheduling::wait_for_turns();
                queue.work();
            });
            readers.threads.push(started.map_err(|why| Error::Io(why.to_string()))?);
        }
        Ok(readers)
    }

    /// Has `work` done by one of the threads. When the caller no longer waits by then, it is left
    /// out.
    pub fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<T, Error> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let shared = Arc::clone(&self.shared);
        let (done, result) = oneshot::channel();
        self.queue.push(Box::new(move || {
            if !done.is_closed() {
                // The caller may have gone in the meantime.
                let _ = done.send(work(&shared));
            }
        }));
        Box::pin(async move {
            let why = "a read panicked, which is a defect of raingauge";
            result.await.unwrap_or_else(|_| Err(Error::Io(why.to_owned())))
        })
    }
}

impl Queue {
    fn push(&self, read: Read) {
        let mut waiting = self.waiting.lock();
        waiting.reads.push_back(read);
        self.wake_another(&mut waiting);
    }

    /// Wakes a thread for the next read, unless one is on its way or all are at work.
    fn wake_another(&self, waiting: &mut Waiting) {
        if waiting.sleeping > 0 && !waiting.is_waking {
            waiting.is_waking = true;
            self.grown.notify_one();
        }
    }

    fn work(&self) {
        while let Some(read) = self.next() {
            // The hook has written the panic down, and the caller receives an error.
            let _ = std::panic::catch_unwind(AssertUnwindSafe(read));
        }
    }

    /// The next read; `None` when there will be none.
    fn next(&self) -> Option<Read> {
        let mut waiting = self.waiting.lock();
        while waiting.reads.is_empty() {
            if waiting.is_stopping {
                return None;
            }
            waiting.sleeping += 1;
            self.grown.wait(&mut waiting);
            waiting.sleeping -= 1;
            waiting.is_waking = false;
        }

        let read = waiting.reads.pop_front();
        if !waiting.reads.is_empty() {
            self.wake_another(&mut waiting);
        }
        read
    }
}

/// Ends the threads when they have done what waits.
impl Drop for Readers {
    fn drop(&mut self) {
        self.queue.waiting.lock().is_stopping = true;
        self.queue.grown.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::ObjectFiles;
    use crate::objects::tests::options;
    use std::sync::mpsc;

    fn opened() -> (ObjectFiles, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (ObjectFiles::open(folder.path(), &options()).unwrap(), folder)
    }

    /// Reads that hold all threads, each until its sender is dropped.
    fn hold(readers: &Readers) -> Vec<mpsc::Sender<()>> {
        let held = (0..OBJECT_READS_MAX).map(|_| {
            let (release, released) = mpsc::channel::<()>();
            let (begin, begun) = mpsc::channel();
            readers.queue.push(Box::new(move || {
                begin.send(()).unwrap();
                let _ = released.recv();
            }));
            begun.recv().unwrap();
            release
        });
        held.collect()
    }

    /// A thousand connections that miss at once do not take a thread and its memory each.
    #[test]
    fn a_thread_that_is_done_takes_what_waits() {
        let (store, _folder) = opened();
        let mut held = hold(&store.readers);
        let (note, notes) = mpsc::channel();
        for number in 0..3 {
            let note = note.clone();
            store.readers.queue.push(Box::new(move || {
                note.send(number).unwrap();
                assert_ne!(number, 1, "a read that panics");
            }));
        }
        assert!(notes.try_recv().is_err(), "all threads are at work");

        held.pop();
        assert_eq!(notes.iter().take(3).collect::<Vec<_>>(), [0, 1, 2], "by one thread");
        drop(held);
        assert_eq!(hold(&store.readers).len(), OBJECT_READS_MAX, "a panic takes no thread away");
    }

    #[tokio::test]
    async fn a_caller_learns_of_a_panic_and_one_that_has_gone_costs_no_read() {
        let (store, _folder) = opened();
        let panicked = store.readers.read(|_| -> Result<(), Error> { panic!("a defect") }).await;
        assert!(matches!(panicked, Err(Error::Io(why)) if why.contains("panicked")));

        let held = hold(&store.readers);
        let (note, notes) = mpsc::channel();
        let gone = note.clone();
        drop(store.readers.read(move |_| Ok(gone.send("nobody waits"))));
        let waiting = store.readers.read(move |_| Ok(note.send("the caller waits")));
        drop(held);
        assert_eq!(waiting.await, Ok(Ok(())));
        assert_eq!(notes.iter().collect::<Vec<_>>(), ["the caller waits"]);
    }

    /// What waits is done before the threads end.
    #[test]
    fn a_stop_leaves_nothing_out() {
        let (store, _folder) = opened();
        let held = hold(&store.readers);
        let (note, notes) = mpsc::channel();
        for number in 0..100 {
            let note = note.clone();
            store.readers.queue.push(Box::new(move || note.send(number).unwrap()));
        }
        drop(note);
        drop(held);
        drop(store);
        assert_eq!(notes.iter().count(), 100);
    }
}

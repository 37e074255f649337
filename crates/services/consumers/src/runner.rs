//! The thread of a consumer.

use crate::consumer::{Consumer, Error};
use parking_lot::Mutex;
use raingauge_ports::consumers::{Change, Name};
use raingauge_ports::log::Block;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes of the log between two commits.
const READ_BYTES: usize = 1 << 20;
/// Longest wait for new entries, after which a request to stop is noticed.
const WAIT: Duration = Duration::from_millis(100);
/// Pause after an error, before the entries are read again.
const PAUSE: Duration = Duration::from_secs(1);

/// A running consumer, which ends when it is dropped.
pub struct Runner {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    name: Name,
    is_stopping: AtomicBool,
    trouble: Mutex<Option<String>>,
}

impl Runner {
    /// Starts a thread that reads the log and commits what `work` makes of its blocks, of which the
    /// entries before the consumer's position are already committed. After an error, the same
    /// entries are read again. A consumer that was overtaken ends.
    pub fn start(
        mut consumer: Consumer,
        mut work: impl FnMut(&Consumer, &[Block]) -> Result<Vec<Change>, Error> + Send + 'static,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            name: consumer.name().clone(),
            is_stopping: AtomicBool::new(false),
            trouble: Mutex::default(),
        });
        let own = Arc::clone(&shared);

        let run = move || {
            while !own.is_stopping.load(Ordering::Acquire) {
                let step = step(&mut consumer, &mut work);
                let is_lost = matches!(step, Err(Error::Overtaken(_)));
                own.note(step);

                if is_lost {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name(shared.name.to_string()).spawn(run)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Why the consumer makes no progress, in a sentence.
    pub fn trouble(&self) -> Option<String> {
        let trouble = self.shared.trouble.lock();
        trouble.as_ref().map(|reason| format!("the consumer {} stands: {reason}", self.shared.name))
    }
}

impl Drop for Runner {
    /// Waits for the commit that is under way.
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!(consumer = %self.shared.name, "a consumer has panicked");
            }
        }
    }
}

impl Shared {
    /// Keeps and logs an error, and pauses after it.
    fn note(&self, step: Result<(), Error>) {
        let Err(error) = step else {
            self.trouble.lock().take();
            return;
        };
        tracing::error!(consumer = %self.name, %error, "a consumer of the event log makes no progress");
        *self.trouble.lock() = Some(error.to_string());
        std::thread::park_timeout(PAUSE);
    }
}

fn step(
    consumer: &mut Consumer,
    work: &mut impl FnMut(&Consumer, &[Block]) -> Result<Vec<Change>, Error>,
) -> Result<(), Error> {
    let blocks = consumer.read(consumer.position(), READ_BYTES, WAIT)?;
    let Some(last) = blocks.last() else {
        return Ok(());
    };
    let changes = work(consumer, &blocks)?;
    consumer.commit(last.end(), changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;
    use raingauge_memory::{Consumers, Log};
    use raingauge_ports::consumers::{self, ConsumerStore};
    use raingauge_ports::contract::log::batch;
    use raingauge_ports::log::{EventLog, EventSink};
    use std::sync::mpsc::channel;

    #[tokio::test]
    async fn after_an_error_the_same_entries_are_read_again() {
        let log = Arc::<Log>::default();
        let store = Arc::<Consumers>::default();
        let name = Name::new("rain").unwrap();
        let registry = Registry::of(&*store, 0).unwrap();
        let own_log = Arc::clone(&log) as Arc<dyn EventLog>;
        let own_store = Arc::clone(&store) as Arc<dyn ConsumerStore>;
        let consumer = Consumer::open(name.clone(), own_log, own_store, &registry, 0).unwrap();

        let (send, seen) = channel();
        let mut fails = true;
        let runner = Runner::start(consumer, move |consumer, blocks| {
            send.send((consumer.position(), blocks.len())).unwrap();
            if std::mem::take(&mut fails) {
                return Err(consumers::Error("the disk is away".to_owned()).into());
            }
            Ok(Vec::new())
        })
        .unwrap();

        assert_eq!(runner.trouble(), None);
        log.append(batch(&["a"])).await.unwrap();
        assert_eq!(seen.recv().unwrap(), seen.recv().unwrap());
        drop(runner);
        assert_eq!(store.positions().unwrap(), [(name, 1)]);
    }
}

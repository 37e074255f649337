//! The worker as others see it: what is in effect, how far it is, and how it is.

use crate::compiled::Compiled;
use crate::documents::Documents;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use raingauge_campaigns::campaign::{CampaignId, State};
use raingauge_campaigns::engine::Engine;
use raingauge_ports::log::Offset;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use tokio::sync::watch;
use tokio::time::Instant;

/// What is committed, as of one position.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The documents in effect.
    pub documents: Arc<Documents>,
    /// What decides the next event.
    pub(crate) compiled: Arc<Compiled>,
    /// The log is decided up to here.
    pub position: Offset,
    /// The time of the log at the position, in milliseconds since 1970.
    pub log_ms: i64,
    /// Campaigns whose tallies are still filled from the log.
    pub warming: Arc<BTreeMap<CampaignId, Warming>>,
}

/// How far the tallies of a campaign are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warming {
    /// The next entry that is counted, and the one that the campaign decides from.
    pub next: Offset,
    pub until: Offset,
    /// The log no longer has what was appended before this, in milliseconds since 1970; 0 if
    /// nothing is missing.
    pub covered_from_ms: i64,
}

impl Snapshot {
    /// What decides the next event.
    pub fn engine(&self) -> &Arc<Engine> {
        self.compiled.engine()
    }

    /// The version of a document that is in effect.
    pub fn version_of(&self, kind: &str, id: &str) -> Option<u32> {
        self.documents.get(kind, id).map(|document| document.version)
    }

    /// The state of a campaign; `None` for one that there is not, or no longer.
    pub fn state_of(&self, campaign: CampaignId) -> Option<State> {
        self.documents.campaign(campaign).map(|campaign| campaign.state)
    }

    /// Whether nothing may be sent for a campaign at the moment: it is paused, archived or deleted.
    pub fn is_paused(&self, campaign: CampaignId) -> bool {
        !self.state_of(campaign).is_some_and(State::decides)
    }

    pub fn is_warming(&self, campaign: CampaignId) -> bool {
        self.warming.contains_key(&campaign)
    }
}

/// A running worker. It stops when the last handle is dropped.
#[derive(Clone)]
pub struct Handle(Arc<Running>);

struct Running {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the thread of the worker shares with handles.
pub(crate) struct Shared {
    snapshot: ArcSwap<Snapshot>,
    position: watch::Sender<Offset>,
    changes: watch::Sender<u64>,
    trouble: Mutex<Option<String>>,
    is_stopping: AtomicBool,
}

impl Shared {
    pub fn new(snapshot: Snapshot) -> Self {
        Self {
            position: watch::Sender::new(snapshot.position),
            changes: watch::Sender::new(0),
            snapshot: ArcSwap::from_pointee(snapshot),
            trouble: Mutex::default(),
            is_stopping: AtomicBool::new(false),
        }
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Shows what has just become durable.
    pub fn publish(&self, snapshot: Snapshot, has_changed: bool) {
        let position = snapshot.position;
        self.snapshot.store(Arc::new(snapshot));
        if has_changed {
            self.changes.send_modify(|changes| *changes += 1);
        }
        self.position.send_if_modified(|known| std::mem::replace(known, position) != position);
    }

    pub fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock() = trouble;
    }

    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }
}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>, thread: JoinHandle<()>) -> Self {
        Self(Arc::new(Running { shared, thread: Mutex::new(Some(thread)) }))
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.0.shared.snapshot()
    }

    /// The log is decided up to here, durably.
    pub fn position(&self) -> Offset {
        *self.0.shared.position.borrow()
    }

    /// Follows the position.
    pub fn positions(&self) -> watch::Receiver<Offset> {
        self.0.shared.position.subscribe()
    }

    /// Grows whenever other documents are in effect.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.shared.changes.subscribe()
    }

    /// Waits until everything before `offset` is decided. Answers `false` when that has not
    /// happened by the deadline.
    pub async fn wait_decided(&self, offset: Offset, deadline: Instant) -> bool {
        let mut positions = self.positions();
        let reached = positions.wait_for(|position| *position >= offset);
        matches!(tokio::time::timeout_at(deadline, reached).await, Ok(Ok(_)))
    }

    /// Why the worker makes no progress, in a sentence.
    pub fn trouble(&self) -> Option<String> {
        let Running { shared, thread } = &*self.0;
        let trouble = shared.trouble.lock().clone();
        let has_ended = || thread.lock().as_ref().is_some_and(JoinHandle::is_finished);
        match trouble {
            None if !shared.is_stopping() && has_ended() => {
                Some("the campaign worker has ended: see the log of this process".to_owned())
            }
            trouble => trouble,
        }
    }

    /// Ends the worker behind the commit that is under way. Blocks the thread.
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl Running {
    fn stop(&self) {
        self.shared.is_stopping.store(true, Ordering::Release);
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("the campaign worker has panicked");
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

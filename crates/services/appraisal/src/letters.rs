//! Awards that are on their way, or that were given up: letters of the queues.

use hashbrown::HashSet;
use raingauge_ports::points::{QUEUE_CALL_LEN_MAX, QueueControl, QueueError, QueueName, Shelf};
use raingauge_replay::Error;
use serde::Deserialize;
use std::sync::Arc;
use tokio::runtime::Handle;

/// What letters of `award` and `retry` have in common.
#[derive(Deserialize, PartialEq, Eq, Hash)]
struct Purpose {
    programme: Arc<str>,
    key: Arc<str>,
}

/// The awards that queues hold.
#[derive(Default)]
pub struct Letters {
    waiting: HashSet<Purpose>,
    dead: HashSet<Purpose>,
    /// Whether a queue holds more than was looked at, so that an award may be in it unseen.
    pub is_partial: bool,
}

/// Where an award is that has no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    Waiting,
    Dead,
    Unknown,
}

impl Letters {
    pub fn read(control: &dyn QueueControl, handle: &Handle) -> Result<Self, Error> {
        let mut letters = Self::default();
        for queue in [QueueName::Award, QueueName::Retry] {
            let mut seen = 0;
            for shelf in [Shelf::Waiting, Shelf::Dead] {
                let peeked = handle.block_on(control.peek(queue, shelf, QUEUE_CALL_LEN_MAX));
                let peeked = peeked.map_err(failed)?;
                seen += peeked.len() as u64;
                letters.is_partial |= peeked.len() >= QUEUE_CALL_LEN_MAX;
                let bodies = peeked.iter().map(|peeked| peeked.letter.body.as_str());
                let purposes = bodies.filter_map(|body| serde_json::from_str(body).ok());
                match shelf {
                    Shelf::Waiting => letters.waiting.extend(purposes),
                    Shelf::Dead => letters.dead.extend(purposes),
                }
            }

            if !control.shows_hidden() {
                // After the look: what is hidden during it is still counted, or is awarded by now.
                let depth = handle.block_on(control.depth(queue)).map_err(failed)?;
                letters.is_partial |= depth.waiting + depth.in_flight + depth.dead > seen;
            }
        }
        Ok(letters)
    }

    pub fn find(&self, programme: &Arc<str>, key: &Arc<str>) -> Whereabouts {
        let purpose = Purpose { programme: Arc::clone(programme), key: Arc::clone(key) };
        if self.dead.contains(&purpose) {
            Whereabouts::Dead
        } else if self.waiting.contains(&purpose) {
            Whereabouts::Waiting
        } else {
            Whereabouts::Unknown
        }
    }
}

/// A queue that cannot be read, or written, ends an audit.
pub fn failed(error: QueueError) -> Error {
    Error::Failed(error.to_string())
}

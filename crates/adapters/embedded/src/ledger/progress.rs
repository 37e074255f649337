//! What the process knows beyond what is stored: how far it has sent and forgotten.

use super::keys;
use raingauge_ports::campaigns::{ActionId, Decision};
use std::collections::{HashMap, HashSet};

/// Deliveries that are being sent, and where the next ones begin.
#[derive(Default)]
pub struct Sending {
    /// Those that are being sent.
    pub taken: HashSet<ActionId>,
    /// For each destination, a time before which none is pending.
    pub pending_from: HashMap<String, i64>,
}

impl Sending {
    /// Notes that deliveries are pending, by destination and time.
    pub fn note_pending<'a>(&mut self, pending: impl Iterator<Item = (&'a str, i64)>) {
        for (destination, due_ms) in pending {
            if let Some(from) = self.pending_from.get_mut(destination) {
                *from = due_ms.min(*from);
            }
        }
    }
}

/// How far the process has come, as keys of decisions. A later one begins at the front again and
/// finds little to do.
#[derive(Default)]
pub struct Expiry {
    /// Decisions before this one are forgotten.
    pub decisions_from: Vec<u8>,
    /// Ids that decisions before this one granted are forgotten.
    pub actions_from: Vec<u8>,
}

impl Expiry {
    /// Goes back to decisions that are older than what was examined.
    pub fn note(&mut self, decisions: &[Decision]) {
        for decision in decisions {
            let key = keys::Decisions::all().at(decision.place());
            for from in [&mut self.decisions_from, &mut self.actions_from] {
                if key < *from {
                    from.clone_from(&key);
                }
            }
        }
    }
}

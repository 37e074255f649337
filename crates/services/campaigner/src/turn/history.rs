//! Filling tallies from the log behind the position, while live events are counted in them too.
//! What a tally comes to does not depend on the order in which events are counted.

use super::Turn;
use crate::control::Walk;
use crate::error::Error;
use crate::known::TalliesOnly;
use hashbrown::HashSet;
use raingauge_campaigns::engine::{At, Engine};
use raingauge_ports::log::{Block, Offset};
use raingauge_ports::record::Entry;

impl Turn<'_> {
    /// Counts the blocks of a walk that follow its place. Each tally takes what lies before the
    /// entry from which on it counted live. Returns the next place.
    pub fn count_history(
        &mut self,
        walk: &Walk,
        engine: &Engine,
        blocks: &[Block],
    ) -> Result<Offset, Error> {
        let until = walk.until();
        let mut next = walk.next;
        let mut owners: HashSet<u128> = walk.tallies.keys().map(|owner| owner.0).collect();
        let first_end = walk.tallies.values().copied().min().unwrap_or(until);
        for block in blocks {
            for entry in block.entries(walk.next) {
                let (offset, entry) = entry?;
                if offset >= until {
                    return Ok(until);
                }
                if offset >= first_end {
                    let wants = walk.tallies.iter().filter(|(_, end)| offset < **end);
                    owners = wants.map(|(owner, _)| owner.0).collect();
                }
                if let Entry::Event(event) = entry {
                    let at = At { appended_ms: event.time_ms };
                    let mut tallies = TalliesOnly::new(&mut self.states, &owners, offset);
                    engine.begin(&event, at, &mut tallies, &mut self.scratch);
                }
                next = offset + 1;
            }
        }
        Ok(next)
    }
}

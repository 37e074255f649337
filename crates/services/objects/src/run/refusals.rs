//! What becomes of the commands of a hold when the store refuses their group.

use super::{Run, Stop};
use crate::failures;
use crate::group::{Group, Moment};
use crate::limits::BUSY_ROUNDS_MAX;
use raingauge_ports::objects::Error;
use raingauge_resp::{Failure, Id, Room};

impl Run<'_> {
    /// Ends the segment of a group, with what the store said to it. Returns how the hold ends if
    /// commands of it are to run again: each by itself when the disk is full, and after a wait when
    /// it does not keep up.
    pub(super) fn end_group(
        &mut self,
        finished: Result<Option<u64>, Error>,
        group: &Group,
        durable: u64,
    ) -> Option<Stop> {
        let begun = group.begun?;

        match finished {
            Ok(Some(stamp)) => {
                self.session.last_stamp = stamp;
                self.busy_rounds = 0;
                self.note_segment(stamp, durable);
            }
            // The changes cancelled each other out; what was seen beside them still counts.
            Ok(None) => self.note_segment(group.seen, durable),
            Err(error) => {
                let Some(from) = group.refused_from(&error) else {
                    self.note_segment(group.seen, durable);
                    return None;
                };

                let repeats = self.repeats(&error, from);
                let to = if repeats.is_some() { group.again_from(from) } else { from };
                let refused = self.go_back(to);
                if to.command > begun.command {
                    self.note_segment(group.seen, durable);
                }

                let failure = failures::of_store(&error);
                if repeats.is_some() {
                    let spent = self.spent(to, refused);
                    self.take_back(to, spent, &failure, durable);
                    self.repeat(to);
                } else {
                    self.take_back(to, refused, &failure, durable);
                }
                return repeats;
            }
        }
        None
    }

    /// How a hold ends whose commands run again though the store refused their group; `None` if
    /// they are answered with the refusal.
    fn repeats(&mut self, error: &Error, from: Moment) -> Option<Stop> {
        match error {
            Error::Full { .. } if self.next - from.command > 1 => {
                self.alone_until = self.next;
                Some(Stop::Cut)
            }
            Error::Busy { .. } if self.busy_rounds < BUSY_ROUNDS_MAX => {
                self.busy_rounds += 1;
                Some(Stop::Behind)
            }
            _ => None,
        }
    }

    /// Of commands that are to run again, the first that cannot be: those before it are part of a
    /// transaction that began in another hold, or of a watch that one of them ended.
    fn spent(&self, from: Moment, until: usize) -> usize {
        let ends_watch = |at: &usize| {
            let id = self.drain.get(*at).spec().map(|spec| spec.id);
            matches!(id, Some(Id::Exec | Id::Discard | Id::Unwatch))
        };
        if !from.in_multi && !from.is_watching {
            return from.command;
        }
        (from.command..until).find(ends_watch).map_or(from.command, |at| at + 1)
    }

    /// Takes replies back to a moment, and returns the command behind the last of them.
    fn go_back(&mut self, to: Moment) -> usize {
        self.out.roll_back(to.mark);
        let len = self.out.len();
        self.segments.iter_mut().for_each(|segment| segment.end = segment.end.min(len));
        self.session.database = to.database;
        std::mem::replace(&mut self.next, to.command)
    }

    /// Makes commands run again.
    fn repeat(&mut self, from: Moment) {
        self.noted.truncate(from.noted);
        self.session.transaction = None;
        if !from.is_watching || self.next > from.command {
            self.session.unwatch();
        }
        self.misses.clear();
        self.gathered.clear();
        self.rounds = 0;
    }

    /// Answers the commands of a group that the store refused.
    fn take_back(&mut self, from: Moment, until: usize, failure: &Failure, durable: u64) {
        if until == from.command {
            return;
        }

        for _ in from.command..until {
            self.out.fail(failure);
        }
        self.next = until;
        if from.in_multi {
            self.abort_transaction();
        } else {
            self.session.transaction = None;
        }
        self.note_segment(0, durable);
    }

    /// Answers all commands up to the next one of the door with a failure.
    pub(super) fn refuse_rest(&mut self, failure: &Failure) -> Stop {
        let drain = self.drain;
        self.session.transaction = None;
        while self.next < drain.len() {
            match self.session.gate.admit(&drain.get(self.next)) {
                Ok(spec) if spec.room != Room::Objects => return Stop::Door,
                Ok(_) => self.out.fail(failure),
                Err(refusal) => self.out.fail(&refusal),
            }
            self.note_segment(0, 0);
            self.next += 1;
        }
        Stop::End
    }
}

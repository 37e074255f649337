//! Turns of the books: one for each lane, those over different books at the same time.

use super::{Positions, Worker};
use crate::error::Error;
use crate::lane::{Decided, Lane, Origin, waves};
use crate::limits::CLOCK_APART_MAX_MS;
use crate::measure;
use crate::replies::Replies;
use raingauge_points::{Answer, Entry, Snapshot, Turn};
use raingauge_ports::log::Offset;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most times that a turn is repeated because other processes put programmes into force.
const RELOADS_MAX: usize = 8;
const QUARTER_HOUR_MS: i64 = 15 * 60 * 1_000;

/// What one turn of the books came to, at its time in milliseconds since 1970.
enum Attempt {
    Done(Box<Outcome>),
    /// Nothing was decided, because these versions of programmes are in force there.
    Outdated(Vec<(Arc<str>, u32)>),
    /// Nothing was decided, because it is another day there.
    OtherDay(i64),
}

/// What a turn decided and made durable.
struct Outcome {
    recorded_ms: i64,
    decided: Decided,
    entries: Vec<Arc<Entry>>,
    position: Option<Offset>,
    took: Duration,
}

impl Worker {
    /// Decides all lanes, each in a turn of the books. After an error the later ones fail as well.
    pub(super) fn decide_all(
        &mut self,
        lanes: &[Lane],
        positions: Positions,
        replies: &mut Replies,
    ) -> Option<Error> {
        let mut failed = None;
        for wave in waves(lanes) {
            let decided = match &failed {
                None => self.decide_wave(&wave, positions),
                Some(error) => wave.iter().map(|_| Err(Error::clone(error))).collect(),
            };
            for (lane, decided) in wave.into_iter().zip(decided) {
                match decided {
                    Ok(decided) => replies.put(decided),
                    Err(error) => {
                        replies.fail(lane, &error);
                        failed.get_or_insert(error);
                    }
                }
            }
        }
        failed
    }

    /// Decides lanes that have no book in common. A turn over a network waits most of its time, so
    /// several are under way.
    fn decide_wave(
        &mut self,
        lanes: &[&Lane],
        positions: Positions,
    ) -> Vec<Result<Decided, Error>> {
        let threads = self.options.turns_at_once.clamp(1, lanes.len());
        if threads == 1 {
            return lanes.iter().map(|lane| self.decide(lane, positions)).collect();
        }

        self.learn_versions(lanes);
        let worker = &*self;
        let attempt_all = |lanes: &[&Lane]| -> Vec<Result<Attempt, Error>> {
            lanes.iter().map(|lane| worker.attempt(lane, positions)).collect()
        };
        let attempts: Vec<_> = std::thread::scope(|scope| {
            let shares = lanes.chunks(lanes.len().div_ceil(threads));
            let running: Vec<_> =
                shares.map(|share| scope.spawn(move || attempt_all(share))).collect();
            let ended = running.into_iter().map(|thread| thread.join());
            ended.flat_map(|ended| ended.unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });

        let decide = |(lane, attempt): (&&Lane, Result<Attempt, Error>)| match self
            .take_in(lane, attempt?)?
        {
            Some(decided) => Ok(decided),
            None => self.decide(lane, positions),
        };
        lanes.iter().zip(attempts).map(decide).collect()
    }

    /// Decides a lane in one turn of the books, under the programmes that they have in force.
    fn decide(&mut self, lane: &Lane, positions: Positions) -> Result<Decided, Error> {
        for _ in 0..RELOADS_MAX {
            self.learn_versions(&[lane]);
            let attempt = self.attempt(lane, positions)?;
            if let Some(decided) = self.take_in(lane, attempt)? {
                return Ok(decided);
            }
        }
        Err(Error::ProgrammesChange)
    }

    fn attempt(&self, lane: &Lane, positions: Positions) -> Result<Attempt, Error> {
        let started = Instant::now();
        let now_ms = self.now_ms();
        let programmes = self.snapshot.programmes();
        let footprint = lane.footprint(programmes, now_ms);
        let books: Vec<u16> = lane.books.iter().copied().collect();

        let mut attempt = Ok(Attempt::OtherDay(now_ms));
        self.deps.books.turn(&books, &footprint, &mut |heads, loaded| {
            if let Err(error) = self.check_clock(&loaded) {
                attempt = Err(error);
                return Turn::default();
            }
            let outdated = self.snapshot.missing(heads);
            if !outdated.is_empty() {
                attempt = Ok(Attempt::Outdated(outdated));
                return Turn::default();
            }
            // Another process may have had the books until now, or a clock that is ahead.
            let times = heads.iter().map(|head| head.recorded_ms);
            let recorded_ms = times.fold(self.now_ms(), i64::max);
            let may_differ = is_other_day(now_ms, recorded_ms);
            if may_differ && lane.footprint(programmes, recorded_ms) != footprint {
                attempt = Ok(Attempt::OtherDay(recorded_ms));
                return Turn::default();
            }

            let (decided, turn) = lane.decide(programmes, loaded, recorded_ms);
            let position = if has_leftovers(&decided) { positions.part } else { positions.whole };
            let (entries, position, turn) = if lane.is_trial {
                (Vec::new(), None, Turn::default())
            } else {
                (turn.entries.clone(), position, Turn { position, ..turn })
            };
            let took = Duration::ZERO;
            let outcome = Outcome { recorded_ms, decided, entries, position, took };
            attempt = Ok(Attempt::Done(Box::new(outcome)));
            turn
        })?;
        if let Ok(Attempt::Done(outcome)) = &mut attempt {
            outcome.took = started.elapsed();
        }
        attempt
    }

    /// Notes a turn that is durable, or what is to be known before the next attempt.
    fn take_in(&mut self, lane: &Lane, attempt: Attempt) -> Result<Option<Decided>, Error> {
        let outcome = match attempt {
            Attempt::Done(outcome) => *outcome,
            Attempt::Outdated(versions) => {
                self.follow_versions(&versions)?;
                self.publish(true);
                return Ok(None);
            }
            Attempt::OtherDay(recorded_ms) => {
                self.recorded_ms = self.recorded_ms.max(recorded_ms);
                return Ok(None);
            }
        };

        self.recorded_ms = self.recorded_ms.max(outcome.recorded_ms);
        if let Some(position) = outcome.position {
            self.note_stored(position);
        }
        if !outcome.entries.is_empty() {
            self.shared.note_entries();
        }
        if !lane.is_trial {
            measure::turn(lane.len(), outcome.took, &outcome.entries);
            let answers = outcome.decided.answers.iter();
            measure::answers(answers.flat_map(|(_, answers)| answers));
        }
        Ok(Some(outcome.decided))
    }

    /// Checks that this machine and an engine that others share agree about the time: what one of
    /// them lets expire is gone for all.
    pub(super) fn check_clock(&self, loaded: &Snapshot) -> Result<(), Error> {
        let Some(engine_ms) = loaded.engine_ms else { return Ok(()) };
        let apart_ms = self.deps.clock.machine_ms() - engine_ms;
        let is_apart = apart_ms.abs() > CLOCK_APART_MAX_MS;
        self.shared.note_clock(is_apart.then_some(apart_ms));
        if is_apart { Err(Error::ClockApart { apart_ms }) } else { Ok(()) }
    }
}

/// Whether an award of the log is neither made nor refused, so that it has to be tried again.
fn has_leftovers(decided: &Decided) -> bool {
    let awards = decided.answers.iter().filter(|(slot, _)| slot.origin == Origin::Log);
    awards.flat_map(|(_, answers)| answers).any(|answer| matches!(answer, Answer::Invalid(_)))
}

/// Whether a day may lie between two times: in each time zone, one begins with a quarter hour.
fn is_other_day(one_ms: i64, other_ms: i64) -> bool {
    one_ms.div_euclid(QUARTER_HOUR_MS) != other_ms.div_euclid(QUARTER_HOUR_MS)
}

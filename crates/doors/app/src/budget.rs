//! How many bytes of bodies may be in memory at once.
//!
//! Memory is reserved for bytes that have arrived, never for bytes that are announced, so that a
//! caller that announces much and sends little keeps no other caller out. Each class of routes has
//! a budget of its own, so that bodies of counts do not keep events out, and within a class short
//! bodies have memory that long ones cannot fill.

use crate::problem::Problem;
use raingauge_core::code::Code;
use raingauge_core::limits::{
    BUCKETS_BODY_BYTES_MAX, CONFIGURATION_BODY_BYTES_MAX, COUNTS_BODY_BYTES_MAX,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The budget of a class for long bodies, in bodies of the largest size.
const LARGEST_BODIES_MAX: usize = 4;
/// The same for configurations: parsed, one takes up to thirty times its bytes.
const LARGEST_CONFIGURATIONS_MAX: usize = 8;
/// Longest body that takes the memory of short ones.
const SHORT_MAX: usize = 64 * 1_024;
/// The budget of a class for short bodies.
const SHORT_BYTES: usize = 16 * 1_024 * 1_024;
/// The same for configurations.
const SHORT_CONFIGURATIONS_BYTES: usize = 1_024 * 1_024;
/// Memory is reserved in units of this many bytes.
const UNIT: usize = 1_024;
/// Advised wait while there is no memory for a body.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Longest body that is decoded on a thread that also answers counts: a longer one would delay
/// them.
const DECODED_AT_ONCE_MAX: usize = 256 * 1_024;

/// Routes that share a budget for their bodies.
#[derive(Clone, Copy, Debug)]
pub enum Class {
    Events,
    Counts,
    Buckets,
    Configurations,
}

/// Memory for the bodies of all requests, by class.
pub struct BodyBudgets {
    events: BodyBudget,
    counts: BodyBudget,
    buckets: BodyBudget,
    configurations: BodyBudget,
}

impl BodyBudgets {
    pub fn new(body_bytes_max: usize) -> Self {
        let budget = |bytes_max: usize| {
            BodyBudget::new(SHORT_BYTES, LARGEST_BODIES_MAX * bytes_max.min(body_bytes_max))
        };
        let configurations =
            LARGEST_CONFIGURATIONS_MAX * CONFIGURATION_BODY_BYTES_MAX.min(body_bytes_max);
        Self {
            events: budget(body_bytes_max),
            counts: budget(COUNTS_BODY_BYTES_MAX),
            buckets: budget(BUCKETS_BODY_BYTES_MAX),
            configurations: BodyBudget::new(SHORT_CONFIGURATIONS_BYTES, configurations),
        }
    }

    pub fn of(&self, class: Class) -> &BodyBudget {
        match class {
            Class::Events => &self.events,
            Class::Counts => &self.counts,
            Class::Buckets => &self.buckets,
            Class::Configurations => &self.configurations,
        }
    }
}

/// Memory for the bodies of one class.
#[derive(Clone)]
pub struct BodyBudget {
    short: Arc<Semaphore>,
    long: Arc<Semaphore>,
}

impl BodyBudget {
    pub fn new(short_bytes: usize, long_bytes: usize) -> Self {
        let units = |bytes: usize| Arc::new(Semaphore::new(bytes.div_ceil(UNIT)));
        Self { short: units(short_bytes), long: units(long_bytes) }
    }

    /// Bytes that are left, for short bodies and for long ones.
    pub fn free(&self) -> [usize; 2] {
        [&self.short, &self.long].map(|left| left.available_permits() * UNIT)
    }

    /// A share of no bytes yet.
    pub fn share(&self) -> BodyShare {
        BodyShare { budget: self.clone(), held: None }
    }
}

/// What one request holds of a budget, given back on drop.
pub struct BodyShare {
    budget: BodyBudget,
    held: Option<OwnedSemaphorePermit>,
}

impl BodyShare {
    /// Grows or shrinks the share to this many bytes.
    pub fn resize(&mut self, bytes: usize) -> Result<(), Problem> {
        let units = bytes.div_ceil(UNIT);
        let units_left = if bytes <= SHORT_MAX { &self.budget.short } else { &self.budget.long };
        let held = self.held.take().filter(|held| Arc::ptr_eq(held.semaphore(), units_left));
        self.held = Some(match held {
            Some(mut held) if units <= held.num_permits() => {
                let surplus = held.num_permits() - units;
                drop(held.split(surplus));
                held
            }
            Some(mut held) => {
                held.merge(acquired(units_left, units - held.num_permits())?);
                held
            }
            None => acquired(units_left, units)?,
        });

        Ok(())
    }
}

/// Takes units of what is left.
fn acquired(left: &Arc<Semaphore>, units: usize) -> Result<OwnedSemaphorePermit, Problem> {
    let units = u32::try_from(units).map_err(|_| exhausted())?;
    Arc::clone(left).try_acquire_many_owned(units).map_err(|_| exhausted())
}

/// The answer to a body for which no memory is left.
pub fn exhausted() -> Problem {
    let detail = "the bodies of other requests fill the memory that is set aside for them: try again in a moment";
    Problem::new(Code::BodiesInFlight, detail).retry_after(RETRY_AFTER)
}

/// Decodes a body of `len` bytes. A long one moves other requests to other threads first.
pub fn decoded<T>(len: usize, decode: impl FnOnce() -> T) -> T {
    if len > DECODED_AT_ONCE_MAX { tokio::task::block_in_place(decode) } else { decode() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: usize = 80 * UNIT;

    fn budget() -> BodyBudget {
        BodyBudget::new(10 * UNIT, 3 * LONG)
    }

    #[test]
    fn a_share_grows_and_shrinks_with_its_body() {
        let budget = budget();
        let (mut one, mut other) = (budget.share(), budget.share());
        one.resize(1).unwrap();
        assert_eq!(budget.free(), [9 * UNIT, 3 * LONG]);
        one.resize(6 * UNIT).unwrap();
        assert_eq!(other.resize(5 * UNIT).unwrap_err().refusal.code, Code::BodiesInFlight);
        one.resize(2 * LONG).unwrap();
        other.resize(10 * UNIT).unwrap();
        assert_eq!(budget.free(), [0, LONG]);
        assert_eq!(other.resize(2 * LONG).unwrap_err().refusal.code, Code::BodiesInFlight);
        one.resize(LONG).unwrap();
        other.resize(2 * LONG).unwrap();
        one.resize(0).unwrap();
        assert_eq!(budget.free(), [10 * UNIT, LONG]);
        drop((one, other));
        assert_eq!(budget.free(), [10 * UNIT, 3 * LONG]);
    }

    #[test]
    fn long_bodies_leave_the_room_of_short_ones() {
        let budget = budget();
        let (mut long, mut short) = (budget.share(), budget.share());
        long.resize(3 * LONG).unwrap();
        short.resize(10 * UNIT).unwrap();
    }
}

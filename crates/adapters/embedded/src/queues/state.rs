//! What the process knows of each queue: how much it holds, and what is in flight.

use super::keys::{Number, Place};
use hashbrown::HashMap;
use raingauge_ports::points::{Depth, QUEUE_IN_FLIGHT_MAX, QueueName, Receipt};
use std::collections::BTreeMap;

/// All queues of a folder.
#[derive(Default)]
pub struct State {
    /// The number of the newest letter.
    pub newest: Number,
    queues: [QueueState; QueueName::ALL.len()],
}

/// One queue.
pub struct QueueState {
    /// No letter that waits has a lower place. Below it lie the traces of deleted ones, which a
    /// scan from the beginning would pass over each time.
    pub from: Place,
    waiting: u64,
    pub dead: u64,
    /// Letters with a receipt. Those of a process that ended become visible at their time.
    in_flight: HashMap<Number, InFlight>,
    /// How many letters were sent in each second.
    sent: BTreeMap<i64, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    pub visible_ms: u64,
    pub receives: u32,
}

impl Default for QueueState {
    fn default() -> Self {
        Self {
            from: Place::FIRST,
            waiting: 0,
            dead: 0,
            in_flight: HashMap::new(),
            sent: BTreeMap::new(),
        }
    }
}

impl State {
    pub fn of(&mut self, queue: QueueName) -> &mut QueueState {
        // Queues are numbered from 1.
        &mut self.queues[queue as usize - 1]
    }
}

impl QueueState {
    /// Notes a letter that waits.
    pub fn put(&mut self, place: Place) {
        self.waiting += 1;
        *self.sent.entry(second_of(place.number)).or_default() += 1;
        self.from = self.from.min(place);
    }

    /// Notes that a letter was received.
    pub fn take(&mut self, number: Number, in_flight: InFlight) {
        self.in_flight.insert(number, in_flight);
        self.from = self.from.min(Place { visible_ms: in_flight.visible_ms, number });
    }

    /// Makes room for letters in flight, where there is none: those that are visible again are no
    /// longer in flight, and their receipts are void.
    pub fn make_room(&mut self, now_ms: u64) {
        if self.in_flight.len() >= QUEUE_IN_FLIGHT_MAX {
            self.in_flight.retain(|_, letter| letter.visible_ms > now_ms);
        }
    }

    /// Whether one more letter may be in flight. One that comes back is counted already.
    pub fn may_take(&self, number: Number) -> bool {
        self.in_flight.len() < QUEUE_IN_FLIGHT_MAX || self.in_flight.contains_key(&number)
    }

    /// Notes that a letter is gone, or dead.
    pub fn remove(&mut self, number: Number) {
        self.in_flight.remove(&number);
        self.waiting -= 1;
        let second = second_of(number);
        if let Some(letters) = self.sent.get_mut(&second) {
            *letters -= 1;
            if *letters == 0 {
                self.sent.remove(&second);
            }
        }
    }

    /// The letter in flight that a receipt is for; `None` if it is void.
    pub fn receipted(&self, receipt: &Receipt) -> Option<(Number, InFlight)> {
        let (number, receives) = receipt.0.split_once('-')?;
        let number = Number(number.parse().ok()?);
        let in_flight = *self.in_flight.get(&number)?;
        (receives.parse() == Ok(in_flight.receives)).then_some((number, in_flight))
    }

    pub fn depth(&self, now_ms: u64) -> Depth {
        let invisible = self.in_flight.values().filter(|letter| letter.visible_ms > now_ms);
        let in_flight = invisible.count() as u64;
        Depth {
            waiting: self.waiting - in_flight,
            in_flight,
            dead: self.dead,
            oldest_ms: self.sent.keys().next().map(|second| second * 1_000),
        }
    }
}

/// The receipt of a letter in flight.
pub fn receipt(number: Number, in_flight: InFlight) -> Receipt {
    Receipt(format!("{}-{}", number.0, in_flight.receives))
}

fn second_of(number: Number) -> i64 {
    number.sent_ms().div_euclid(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_letter_says_how_old_a_queue_is() {
        let mut state = QueueState::default();
        let [early, late] = [1_000, 5_500].map(|sent_ms| Number::after(Number(0), sent_ms));
        for number in [late, early] {
            state.put(Place { visible_ms: 9_000, number });
        }
        assert_eq!(state.depth(0).oldest_ms, Some(1_000));
        state.remove(early);
        assert_eq!(state.depth(0).oldest_ms, Some(5_000));
        state.remove(late);
        assert_eq!(state.depth(0), Depth::default());
    }

    #[test]
    fn only_a_bounded_number_is_in_flight() {
        let mut state = QueueState::default();
        let in_flight = InFlight { visible_ms: 5, receives: 1 };
        for number in 0..QUEUE_IN_FLIGHT_MAX as u64 {
            assert!(state.may_take(Number(number)));
            state.take(Number(number), in_flight);
        }
        assert!(!state.may_take(Number(u64::MAX)));
        assert!(state.may_take(Number(7)));

        // They are no longer in flight once they are visible again.
        state.make_room(4);
        assert!(!state.may_take(Number(u64::MAX)));
        state.make_room(5);
        assert!(state.may_take(Number(u64::MAX)));
    }
}

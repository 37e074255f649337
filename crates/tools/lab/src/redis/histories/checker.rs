//! The search for an order: Wing and Gong's algorithm, with Lowe's memory of configurations that
//! were tried before.
//!
//! Calls and returns stand in a list by time. The search takes an operation that is called before
//! the first return, applies it to the value, and removes it from the list. At a return whose
//! operation was not taken there is no such order, and the search takes back its last choice.

use super::operation::{Event, Operation};
use std::collections::{BTreeMap, HashSet};

/// A key whose operations have no order that explains their replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub key: usize,
    /// The operations of the key, by their calls.
    pub events: Vec<Event>,
    /// Most operations that could be ordered.
    pub explained: usize,
}

/// Checks the operations of every key. Keys are empty at the beginning.
pub fn check(events: &[Event]) -> Result<(), Violation> {
    let mut keys: BTreeMap<usize, Vec<Event>> = BTreeMap::new();
    for event in events {
        keys.entry(event.key).or_default().push(*event);
    }

    for (key, mut events) in keys {
        events.sort_by_key(|event| event.called_ns);
        if let Err(explained) = Search::new(&events).run() {
            return Err(Violation { key, events, explained });
        }
    }
    Ok(())
}

/// A call or a return, linked with its neighbours in time.
#[derive(Debug, Clone, Copy)]
struct Node {
    event: usize,
    is_call: bool,
    before: usize,
    after: usize,
}

struct Search<'a> {
    events: &'a [Event],
    /// The first one is a sentinel.
    nodes: Vec<Node>,
    /// The node of the return of each event.
    returns: Vec<usize>,
    taken: Vec<u64>,
    value: Option<i64>,
    /// What was taken, with the value before.
    path: Vec<(usize, Option<i64>)>,
    tried: HashSet<(Vec<u64>, Option<i64>)>,
    /// Operations with a reply that were not taken.
    missing: usize,
}

impl<'a> Search<'a> {
    fn new(events: &'a [Event]) -> Self {
        let moments = |(event, of): (usize, &Event)| {
            let end = of.returned_ns.unwrap_or(u64::MAX);
            [(of.called_ns, 0, event, true), (end, 1, event, false)]
        };
        let mut order: Vec<(u64, u8, usize, bool)> =
            events.iter().enumerate().flat_map(moments).collect();
        // Of two that happen at once, the call comes first: they may overlap.
        order.sort_unstable();

        let len = order.len() + 1;
        let mut nodes = vec![Node { event: 0, is_call: true, before: len - 1, after: 1 % len }];
        let mut returns = vec![0; events.len()];
        for (place, (_, _, event, is_call)) in order.into_iter().enumerate() {
            let node = place + 1;
            nodes.push(Node { event, is_call, before: node - 1, after: (node + 1) % len });
            if !is_call {
                returns[event] = node;
            }
        }

        let missing = events.iter().filter(|event| event.returned_ns.is_some()).count();
        let taken = vec![0; events.len().div_ceil(64)];
        Self {
            events,
            nodes,
            returns,
            taken,
            value: None,
            path: Vec::new(),
            tried: HashSet::new(),
            missing,
        }
    }

    /// Searches for an order. An error is the most operations that could be ordered.
    fn run(mut self) -> Result<(), usize> {
        let mut explained = 0;
        let mut node = self.nodes[0].after;
        while self.missing > 0 {
            let Node { event, is_call, after, .. } = self.nodes[node];
            if node != 0 && is_call {
                if self.take(node, event) {
                    explained = explained.max(self.path.len());
                    node = self.nodes[0].after;
                } else {
                    node = after;
                }
                continue;
            }

            // A return without its operation, or the end: the last choice was wrong.
            match self.take_back() {
                Some(call) => node = self.nodes[call].after,
                None => return Err(explained),
            }
        }
        Ok(())
    }

    /// Takes an operation if its reply fits, and the configuration is new.
    fn take(&mut self, call: usize, event: usize) -> bool {
        let operation: Operation = self.events[event].operation;
        let Some(next) = operation.apply(self.value) else {
            return false;
        };

        self.taken[event / 64] |= 1 << (event % 64);
        if !self.tried.insert((self.taken.clone(), next)) {
            self.taken[event / 64] &= !(1 << (event % 64));
            return false;
        }

        self.path.push((call, self.value));
        self.value = next;
        self.missing -= usize::from(self.events[event].returned_ns.is_some());
        self.unlink(call);
        self.unlink(self.returns[event]);
        true
    }

    /// Takes back the last choice. Returns its call.
    fn take_back(&mut self) -> Option<usize> {
        let (call, value) = self.path.pop()?;
        let event = self.nodes[call].event;
        self.value = value;
        self.taken[event / 64] &= !(1 << (event % 64));
        self.missing += usize::from(self.events[event].returned_ns.is_some());
        self.link(self.returns[event]);
        self.link(call);
        Some(call)
    }

    fn unlink(&mut self, node: usize) {
        let Node { before, after, .. } = self.nodes[node];
        self.nodes[before].after = after;
        self.nodes[after].before = before;
    }

    fn link(&mut self, node: usize) {
        let Node { before, after, .. } = self.nodes[node];
        self.nodes[before].after = node;
        self.nodes[after].before = node;
    }
}

#[cfg(test)]
mod tests {
    use super::Operation::{Add, Exchange, Read, Remove, Write};
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    fn event(operation: Operation, called_ns: u64, returned_ns: u64) -> Event {
        let returned_ns = Some(returned_ns).filter(|moment| *moment > 0);
        Event { client: 0, key: 0, operation, called_ns, returned_ns }
    }

    #[test]
    fn replies_that_no_order_explains_are_violations() {
        let write = |value, from, to| event(Write { value }, from, to);
        let read = |found, from, to| event(Read { found }, from, to);

        // A read beside a write sees the old or the new value, and never the old one again.
        assert_eq!(check(&[write(1, 1, 9), read(None, 2, 3), read(Some(1), 4, 5)]), Ok(()));
        let stale = [write(1, 1, 9), read(Some(1), 2, 3), read(None, 4, 5)];
        assert_eq!(check(&stale).unwrap_err().key, 0);

        // A lost update.
        let add = |sum, from, to| event(Add { amount: 1, sum: Some(sum) }, from, to);
        assert_eq!(check(&[add(1, 1, 5), add(2, 2, 6)]), Ok(()));
        assert!(check(&[add(1, 1, 5), add(1, 2, 6)]).is_err());

        // A write without a reply may have happened, late or never.
        let unknown = write(7, 1, 0);
        assert_eq!(check(&[unknown, read(None, 2, 3), read(Some(7), 4, 5)]), Ok(()));
        assert_eq!(check(&[unknown, read(None, 2, 3)]), Ok(()));
        assert!(check(&[unknown, read(Some(7), 2, 3), read(None, 4, 5)]).is_err());

        // An exchange that succeeded on a value that was gone.
        let exchange =
            |read, value, from, to| event(Exchange { read, value, written: Some(true) }, from, to);
        assert_eq!(
            check(&[write(1, 1, 2), exchange(Some(1), 2, 3, 4), read(Some(2), 5, 6)]),
            Ok(())
        );
        assert!(check(&[write(1, 1, 2), write(3, 3, 4), exchange(Some(1), 2, 5, 6)]).is_err());

        let remove = |existed, from, to| event(Remove { existed: Some(existed) }, from, to);
        assert!(check(&[write(1, 1, 2), remove(true, 3, 4), remove(true, 5, 6)]).is_err());
    }

    /// Operations of several clients on a value that is right, each at a random moment of its
    /// interval.
    fn history(seed: u64, len: u64) -> Vec<Event> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut values = [None; 2];
        let mut events = Vec::new();
        for place in 0..len {
            let key = random.random_range(0..2);
            let amount = random.random_range(1..4);
            let value: &mut Option<i64> = &mut values[key];
            let operation = match random.random_range(0..5) {
                0 => Read { found: *value },
                1 => Write { value: amount },
                2 => Add { amount, sum: Some(value.unwrap_or(0) + amount) },
                3 => Exchange { read: *value, value: amount, written: Some(true) },
                _ => Remove { existed: Some(value.is_some()) },
            };
            *value = operation.apply(*value).unwrap();

            // Its moment is 100 times its place; intervals reach over several others.
            let moment = (place + 10) * 100;
            let called_ns = moment - random.random_range(0..400);
            let returned_ns = random.random_bool(0.9).then(|| moment + random.random_range(1..400));
            events.push(Event { client: 0, key, operation, called_ns, returned_ns });
        }
        events
    }

    #[test]
    fn right_histories_pass_and_a_wrong_reply_is_found() {
        let mut found = 0;
        for seed in 0..200 {
            let mut events = history(seed, 120);
            assert_eq!(check(&events), Ok(()), "seed {seed}");

            // A read of a value that was never there.
            let read = events.iter_mut().find(|event| {
                matches!(event.operation, Read { .. }) && event.returned_ns.is_some()
            });
            if let Some(event) = read {
                event.operation = Read { found: Some(1_000) };
                assert!(check(&events).is_err(), "seed {seed}");
                found += 1;
            }
        }
        assert!(found > 150);
    }
}

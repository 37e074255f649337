//! The most frequent names of a stream, in bounded memory.
//!
//! Space-Saving: a fixed number of places, each with a name and a count. A name without a place
//! takes that of the smallest count, and inherits the count as its possible error. Every name whose
//! true count exceeds `total / places` has a place (Metwally, Agrawal and El Abbadi, *Efficient
//! Computation of Frequent and Top-k Elements in Data Streams*, 2005).

use std::collections::HashMap;

/// Longest name that is counted, in bytes. A longer one adds to the total only.
pub const NAME_LEN_MAX: usize = 512;

/// Counts of the most frequent names.
pub struct Sketch {
    places: Vec<Place>,
    by_name: HashMap<Box<[u8]>, usize>,
    len_max: usize,
    total: u64,
}

struct Place {
    name: Box<[u8]>,
    count: u64,
    error: u64,
}

/// A name, and how often it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frequency {
    pub name: Box<[u8]>,
    /// At least `count - error` and at most `count`.
    pub count: u64,
    pub error: u64,
}

impl Sketch {
    /// A sketch with this many places, at least one.
    pub fn new(len_max: usize) -> Self {
        assert!(len_max > 0, "a sketch has a place");
        Self { places: Vec::new(), by_name: HashMap::new(), len_max, total: 0 }
    }

    /// Notes one appearance of a name.
    pub fn note(&mut self, name: &[u8]) {
        self.total += 1;
        if name.len() > NAME_LEN_MAX {
            return;
        }

        if let Some(index) = self.by_name.get(name) {
            self.places[*index].count += 1;
            return;
        }

        if self.places.len() < self.len_max {
            self.by_name.insert(name.into(), self.places.len());
            self.places.push(Place { name: name.into(), count: 1, error: 0 });
            return;
        }

        self.replace_smallest(name);
    }

    fn replace_smallest(&mut self, name: &[u8]) {
        let smallest = self.places.iter().enumerate().min_by_key(|(_, place)| place.count);
        let Some((index, _)) = smallest else { return };

        let place = &mut self.places[index];
        self.by_name.remove(&place.name);
        place.error = place.count;
        place.count += 1;
        place.name = name.into();
        self.by_name.insert(name.into(), index);
    }

    /// Halves every count, so that what came lately weighs more than what came before.
    pub fn halve(&mut self) {
        self.total /= 2;
        for place in &mut self.places {
            place.count /= 2;
            place.error /= 2;
        }

        self.places.retain(|place| place.count > 0);
        let names = self.places.iter().enumerate();
        self.by_name = names.map(|(index, place)| (place.name.clone(), index)).collect();
    }

    pub fn clear(&mut self) {
        self.places.clear();
        self.by_name.clear();
        self.total = 0;
    }

    /// Appearances of all names.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The most frequent names, the most frequent first.
    pub fn top(&self, len_max: usize) -> Vec<Frequency> {
        let frequency = |place: &Place| Frequency {
            name: place.name.clone(),
            count: place.count,
            error: place.error,
        };
        let mut all: Vec<Frequency> = self.places.iter().map(frequency).collect();
        all.sort_unstable_by(|left, right| {
            right.count.cmp(&left.count).then_with(|| left.name.cmp(&right.name))
        });

        all.truncate(len_max);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, and are the same in every run.
    fn random(seed: &mut u64) -> u64 {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed
    }

    #[test]
    fn frequent_names_are_found_among_many() {
        let mut sketch = Sketch::new(64);
        let mut exact: HashMap<String, u64> = HashMap::new();
        let mut seed = 0x9e37_79b9_7f4a_7c15;
        for _ in 0..50_000 {
            // A tenth each for two names, the rest over 100,000 names.
            let name = match random(&mut seed) % 10 {
                0 => "first".to_owned(),
                1 => "second".to_owned(),
                _ => format!("key:{}", random(&mut seed) % 100_000),
            };
            sketch.note(name.as_bytes());
            *exact.entry(name).or_default() += 1;
        }

        let top = sketch.top(64);
        assert_eq!(sketch.total(), 50_000);
        assert_eq!(top.len(), 64);
        let mut names: Vec<&[u8]> = top[..2].iter().map(|found| &*found.name).collect();
        names.sort_unstable();
        assert_eq!(names, [&b"first"[..], b"second"]);
        for Frequency { name, count, error } in &top {
            let truth = exact[std::str::from_utf8(name).unwrap()];
            assert!((count - error..=*count).contains(&truth), "{name:?}: {truth}");
            assert!(*error <= 50_000 / 64);
        }
    }

    #[test]
    fn halving_forgets_what_came_once() {
        let mut sketch = Sketch::new(4);
        for name in ["a", "a", "a", "a", "b", "b", "c"] {
            sketch.note(name.as_bytes());
        }
        sketch.halve();

        let counts: Vec<_> = sketch.top(9).into_iter().map(|found| found.count).collect();
        assert_eq!((counts, sketch.total()), (vec![2, 1], 3));
        sketch.note(b"b");
        sketch.note(b"b");
        assert_eq!(&*sketch.top(1)[0].name, b"b");
    }

    #[test]
    fn long_names_are_left_out() {
        let mut sketch = Sketch::new(4);
        sketch.note(&[b'x'; NAME_LEN_MAX + 1]);
        assert_eq!((sketch.total(), sketch.top(4)), (1, Vec::new()));
    }
}

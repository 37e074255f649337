//! How large values are: a histogram by powers of two, and which part of all bytes the largest
//! values are.

/// Sizes up to 2^40 bytes have a class of their own.
const CLASSES: usize = 42;

/// Counts and bytes of values, by size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    classes: [Class; CLASSES],
}

/// Values of about the same size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// Largest size, in bytes.
    pub bytes_max: u64,
    pub values: u64,
    /// Bytes of all these values.
    pub bytes: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        let class = |index: usize| Class { bytes_max: bytes_max(index), ..Class::default() };
        Self { classes: std::array::from_fn(class) }
    }
}

/// The largest size of a class: 0, 1, 2, 4, 8 and so on.
const fn bytes_max(index: usize) -> u64 {
    if index == 0 { 0 } else { 1 << (index - 1) }
}

fn index_of(bytes: u64) -> usize {
    match bytes {
        0 => 0,
        bytes => (64 - (bytes - 1).leading_zeros() as usize + 1).min(CLASSES - 1),
    }
}

impl Sizes {
    pub fn note(&mut self, bytes: u64) {
        let class = &mut self.classes[index_of(bytes)];
        class.values += 1;
        class.bytes += bytes;
    }

    pub fn values(&self) -> u64 {
        self.classes.iter().map(|class| class.values).sum()
    }

    pub fn bytes(&self) -> u64 {
        self.classes.iter().map(|class| class.bytes).sum()
    }

    /// The classes that have values, smallest first.
    pub fn classes(&self) -> impl Iterator<Item = Class> {
        self.classes.into_iter().filter(|class| class.values > 0)
    }

    /// A size that this share of values (0 to 1) does not exceed: the upper end of a class.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (self.values() as f64 * share).ceil() as u64;
        let mut seen = 0;
        for class in self.classes() {
            seen += class.values;
            if seen >= wanted {
                return class.bytes_max;
            }
        }
        0
    }

    /// Which share of all bytes the largest values are, of which there is this share (0 to 1). The
    /// values of one class count as equally large. 0 without values.
    pub fn share_of_largest(&self, share: f64) -> f64 {
        let total = self.bytes();
        if total == 0 {
            return 0.0;
        }

        let mut values_left = self.values() as f64 * share;
        let mut bytes = 0.0;
        for class in self.classes.iter().rev().filter(|class| class.values > 0) {
            let taken = values_left.min(class.values as f64);
            bytes += class.bytes as f64 * taken / class.values as f64;
            values_left -= taken;
        }

        bytes / total as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_falls_into_the_smallest_class_that_holds_it() {
        let bounds = [(0, 0), (1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (4_096, 4_096)];
        for (bytes, expected) in bounds {
            let mut sizes = Sizes::default();
            sizes.note(bytes);
            let class = sizes.classes().next().unwrap();
            assert_eq!((class.bytes_max, class.values, class.bytes), (expected, 1, bytes));
        }
        let mut sizes = Sizes::default();
        sizes.note(u64::MAX);
        assert_eq!(sizes.values(), 1);
    }

    #[test]
    fn few_values_may_be_most_of_the_bytes() {
        let mut sizes = Sizes::default();
        (0..990).for_each(|_| sizes.note(1_000));
        (0..10).for_each(|_| sizes.note(1_000_000));
        let share = sizes.share_of_largest(0.01);
        assert!((share - 10_000_000.0 / 10_990_000.0).abs() < 1e-9, "{share}");
        assert!((sizes.share_of_largest(1.0) - 1.0).abs() < 1e-9);
        assert_eq!((sizes.quantile(0.5), sizes.quantile(1.0)), (1_024, 1 << 20));
        assert_eq!(
            (Sizes::default().share_of_largest(0.01), Sizes::default().quantile(0.5)),
            (0.0, 0)
        );
    }
}

//! Numbers of heads.

use raingauge_ports::objects::KeyCount;
use std::ops::{Add, Sub};

/// How many heads there are, or how many more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub keys: i64,
    /// Those of them that expire.
    pub expiring: i64,
}

impl Tally {
    pub fn of_one(expires: bool) -> Self {
        Self { keys: 1, expiring: expires.into() }
    }
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { keys: self.keys + other.keys, expiring: self.expiring + other.expiring }
    }
}

impl Sub for Tally {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { keys: self.keys - other.keys, expiring: self.expiring - other.expiring }
    }
}

impl From<Tally> for KeyCount {
    fn from(tally: Tally) -> Self {
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        Self { keys: count(tally.keys), expiring: count(tally.expiring) }
    }
}

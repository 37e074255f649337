//! Limits on sign-in attempts.
//!
//! An attempt is charged to three budgets: that of the name from its network, that of the name from
//! anywhere, and that of the network. No budget is shared by people in a way that lets one of them
//! lock out the others:
//!
//! ```text
//!   browser that this person used before ──▶ a budget of its own, whatever strangers do
//!   any other browser ──▶ name and network ──▶ name ──▶ password is checked
//!                              ▲
//!                 network: fewer attempts per name once it has failed often
//! ```
//!
//! A budget is a bucket of attempts, one of which comes back in each interval of milliseconds.
//! Times are those of a clock that never goes back.

use lru::LruCache;
use parking_lot::Mutex;
use raingauge_policy::rate::{self, Bucket, Rate};
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroUsize;

/// One name from one network, or one known browser or account.
pub const NAME_IN_NETWORK: Rate = Rate::every(30_000, 10);
/// One name from a network that has used up its own budget: enough for a user who knows the
/// password.
pub const NAME_IN_SUSPECT_NETWORK: Rate = Rate::every(300_000, 2);
/// One name from anywhere. Known browsers are not charged to it.
pub const NAME: Rate = Rate::every(60_000, 200);
/// One network, for all names together.
pub const NETWORK: Rate = Rate::every(10_000, 100);

/// Entries of each table. The least recently used one is removed first.
const REMEMBERED_MAX: NonZeroUsize = NonZeroUsize::new(20_000).expect("it is not zero");

/// The source of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A browser in which this user has signed in before, by the nonce of its cookie.
    Browser(String),
    /// A signed-in user who repeats the password, by the id of the account.
    Account(i64),
    /// Any other source.
    Stranger { name: String, address: Option<IpAddr> },
}

/// The budgets of recent attempts.
#[derive(Debug)]
pub struct Attempts(Mutex<Tables>);

#[derive(Debug)]
struct Tables {
    sources: LruCache<Source, Bucket>,
    names: LruCache<String, Bucket>,
    networks: LruCache<IpAddr, Bucket>,
}

/// No attempt is left. The next one is available after this many seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait(pub i64);

impl From<rate::Wait> for Wait {
    fn from(rate::Wait(wait_ms): rate::Wait) -> Self {
        Self((wait_ms + 999) / 1_000)
    }
}

impl Default for Attempts {
    fn default() -> Self {
        Self(Mutex::new(Tables {
            sources: LruCache::new(REMEMBERED_MAX),
            names: LruCache::new(REMEMBERED_MAX),
            networks: LruCache::new(REMEMBERED_MAX),
        }))
    }
}

impl Attempts {
    /// Takes an attempt of this source. A refused attempt costs nothing.
    pub fn take(&self, source: &Source, now_ms: i64) -> Result<(), Wait> {
        let mut tables = self.0.lock();
        let source = source.of_network();
        let Source::Stranger { name, address } = &source else {
            return Ok(bucket_of(&mut tables.sources, source).take(NAME_IN_NETWORK, now_ms, 1)?);
        };

        let is_suspect = address.is_some_and(|network| {
            bucket_of(&mut tables.networks, network).check(NETWORK, now_ms, 1).is_err()
        });
        let budget = if is_suspect { NAME_IN_SUSPECT_NETWORK } else { NAME_IN_NETWORK };
        let name = name.clone();
        let address = *address;

        bucket_of(&mut tables.names, name.clone()).check(NAME, now_ms, 1)?;
        bucket_of(&mut tables.sources, source).take(budget, now_ms, 1)?;
        bucket_of(&mut tables.names, name).charge(NAME, now_ms, 1);
        if let Some(network) = address {
            bucket_of(&mut tables.networks, network).charge(NETWORK, now_ms, 1);
        }

        Ok(())
    }

    /// Returns all attempts of a source, and to the other budgets the one that was charged: the
    /// password was right.
    pub fn succeeded(&self, source: &Source) {
        let mut tables = self.0.lock();
        let source = source.of_network();
        tables.sources.pop(&source);

        let Source::Stranger { name, address } = source else {
            return;
        };
        if let Some(bucket) = tables.names.get_mut(&name) {
            bucket.give_back(NAME, 1);
        }

        if let Some(bucket) = address.and_then(|network| tables.networks.get_mut(&network)) {
            bucket.give_back(NETWORK, 1);
        }
    }
}

impl Source {
    fn of_network(&self) -> Self {
        match self {
            Self::Stranger { name, address } => {
                Self::Stranger { name: name.clone(), address: address.map(network_of) }
            }
            known => known.clone(),
        }
    }
}

/// The bucket of a key, full if it is new.
fn bucket_of<K: Hash + Eq>(table: &mut LruCache<K, Bucket>, key: K) -> &mut Bucket {
    table.get_or_insert_mut(key, || Bucket::FULL)
}

/// The network that an address is charged to: a subscriber has 2^64 addresses of version 6.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stranger(name: &str, address: &str) -> Source {
        Source::Stranger { name: name.to_owned(), address: Some(address.parse().unwrap()) }
    }

    #[test]
    fn attempts_are_used_up_and_come_back() {
        let attempts = Attempts::default();
        let zoe = stranger("zoe", "192.0.2.7");
        for _ in 0..NAME_IN_NETWORK.burst() {
            assert_eq!(attempts.take(&zoe, 1_000), Ok(()));
        }

        assert_eq!(attempts.take(&zoe, 1_000), Err(Wait(30)));
        assert_eq!(attempts.take(&stranger("max", "192.0.2.7"), 1_000), Ok(()));
        assert_eq!(attempts.take(&stranger("zoe", "192.0.2.8"), 1_000), Ok(()));
        assert_eq!(attempts.take(&Source::Browser("b".to_owned()), 1_000), Ok(()));
        assert_eq!(attempts.take(&Source::Account(1), 1_000), Ok(()));

        // A refused attempt costs nothing, and one comes back with each pause.
        assert_eq!(attempts.take(&zoe, 21_500), Err(Wait(10)));
        assert_eq!(attempts.take(&zoe, 31_000), Ok(()));
        assert_eq!(attempts.take(&zoe, 31_000), Err(Wait(30)));
        attempts.succeeded(&zoe);
        assert_eq!(attempts.take(&zoe, 31_000), Ok(()));
    }

    #[test]
    fn a_network_that_fails_often_leaves_each_name_two_attempts() {
        let attempts = Attempts::default();
        for number in 0..NETWORK.burst() * 3 {
            assert_eq!(attempts.take(&stranger(&format!("x{number}"), "192.0.2.7"), 0), Ok(()));
        }

        let zoe = stranger("zoe", "192.0.2.7");
        for _ in 0..NAME_IN_SUSPECT_NETWORK.burst() {
            assert_eq!(attempts.take(&zoe, 0), Ok(()));
        }
        assert_eq!(attempts.take(&zoe, 0), Err(Wait(300)));

        // However often it failed, it is trusted again when its own budget is back.
        let later_ms = 10_000 * NETWORK.burst();
        assert_eq!(attempts.take(&stranger("max", "192.0.2.7"), later_ms), Ok(()));

        for _ in 1..NAME_IN_NETWORK.burst() {
            assert_eq!(attempts.take(&stranger("max", "192.0.2.7"), later_ms), Ok(()));
        }
    }

    #[test]
    fn many_networks_together_are_slow_too() {
        let attempts = Attempts::default();
        for number in 0..NAME.burst() {
            let address = format!("198.51.{}.{}", number / 250, number % 250);
            assert_eq!(attempts.take(&stranger("zoe", &address), 0), Ok(()));
        }

        assert_eq!(attempts.take(&stranger("zoe", "203.0.113.1"), 0), Err(Wait(60)));
        assert_eq!(attempts.take(&stranger("max", "203.0.113.1"), 0), Ok(()));
        assert_eq!(attempts.take(&Source::Browser("zoe's".to_owned()), 0), Ok(()));
    }

    #[test]
    fn people_who_know_their_passwords_use_up_nothing() {
        let attempts = Attempts::default();
        for number in 0..NETWORK.burst() * 3 {
            let source = stranger(&format!("p{number}"), "192.0.2.7");
            assert_eq!(attempts.take(&source, 0), Ok(()));
            attempts.succeeded(&source);
        }
        for _ in 0..NAME_IN_NETWORK.burst() {
            assert_eq!(attempts.take(&stranger("zoe", "192.0.2.7"), 0), Ok(()));
        }
    }

    #[test]
    fn an_address_of_version_6_is_its_network() {
        let attempts = Attempts::default();
        for number in 0..NAME_IN_NETWORK.burst() {
            assert_eq!(
                attempts.take(&stranger("zoe", &format!("2001:db8::{number:x}")), 0),
                Ok(())
            );
        }

        assert_eq!(attempts.take(&stranger("zoe", "2001:db8::ffff"), 0), Err(Wait(30)));
        assert_eq!(attempts.take(&stranger("zoe", "2001:db8:0:1::1"), 0), Ok(()));

        let mapped =
            ["::ffff:192.0.2.1", "192.0.2.1"].map(|address| network_of(address.parse().unwrap()));
        assert_eq!(mapped[0], mapped[1]);
    }

    #[test]
    fn memory_is_bounded() {
        let attempts = Attempts::default();
        for number in 0..REMEMBERED_MAX.get() + 10 {
            attempts.take(&stranger(&number.to_string(), "192.0.2.7"), 0).unwrap();
        }
        assert_eq!(attempts.0.lock().sources.len(), REMEMBERED_MAX.get());
    }
}

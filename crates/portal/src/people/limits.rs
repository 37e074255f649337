//! How often somebody may try to sign in.
//!
//! Each try takes a place; a place comes back after some time. What is kept of an address or a name is one number, the
//! time at which all its places are back, and of so many of them only that the table stays small: what was not seen for
//! longest is forgotten first.

use lru::LruCache;
use parking_lot::Mutex;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroUsize;

/// Tries that one address may make in a row, and after how long each comes back.
pub const TRIES_PER_ADDRESS_MAX: i64 = 30;
pub const ADDRESS_PAUSE_MS: i64 = 10_000;
/// Tries that may be made for one name in a row, from wherever they come, and after how long each comes back.
pub const TRIES_PER_NAME_MAX: i64 = 10;
pub const NAME_PAUSE_MS: i64 = 30_000;
/// Addresses and names that are remembered.
const REMEMBERED_MAX: NonZeroUsize = NonZeroUsize::new(20_000).expect("it is not zero");

/// Who tries.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Source {
    Address(IpAddr),
    Name(String),
}

/// The tries of late.
#[derive(Debug)]
pub struct Tries(Mutex<LruCache<Source, i64>>);

/// No try is left. One comes back after so many seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait(pub i64);

impl Default for Tries {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(REMEMBERED_MAX)))
    }
}

impl Tries {
    /// Takes a try of this address.
    pub fn of_address(&self, address: IpAddr, now_ms: i64) -> Result<(), Wait> {
        self.take(Source::Address(network_of(address)), TRIES_PER_ADDRESS_MAX, ADDRESS_PAUSE_MS, now_ms)
    }

    /// Takes a try for this name.
    pub fn of_name(&self, name: &str, now_ms: i64) -> Result<(), Wait> {
        self.take(Source::Name(name.to_owned()), TRIES_PER_NAME_MAX, NAME_PAUSE_MS, now_ms)
    }

    /// Gives a name all its tries back: whoever knows the password is no guesser.
    pub fn forget_name(&self, name: &str) {
        self.0.lock().pop(&Source::Name(name.to_owned()));
    }

    fn take(&self, source: Source, tries_max: i64, pause_ms: i64, now_ms: i64) -> Result<(), Wait> {
        let mut known = self.0.lock();
        let whole_at = known.get(&source).copied().unwrap_or(now_ms).max(now_ms);
        let over_ms = whole_at + pause_ms - now_ms - tries_max * pause_ms;
        if over_ms > 0 {
            return Err(Wait((over_ms + 999) / 1_000));
        }
        known.put(source, whole_at + pause_ms);
        Ok(())
    }
}

/// Who has one address of version 6 has 2^64 of them.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_used_up_and_come_back() {
        let tries = Tries::default();
        for _ in 0..TRIES_PER_NAME_MAX {
            assert_eq!(tries.of_name("zoe", 1_000), Ok(()));
        }
        assert_eq!(tries.of_name("zoe", 1_000), Err(Wait(30)));
        assert_eq!(tries.of_name("max", 1_000), Ok(()));
        // A refused try costs nothing, and one comes back with each pause.
        assert_eq!(tries.of_name("zoe", 21_500), Err(Wait(10)));
        assert_eq!(tries.of_name("zoe", 31_000), Ok(()));
        assert_eq!(tries.of_name("zoe", 31_000), Err(Wait(30)));
        tries.forget_name("zoe");
        assert_eq!(tries.of_name("zoe", 31_000), Ok(()));
    }

    #[test]
    fn an_address_of_version_6_is_its_network() {
        let tries = Tries::default();
        for number in 0..TRIES_PER_ADDRESS_MAX {
            let address = format!("2001:db8::{number:x}").parse().unwrap();
            assert_eq!(tries.of_address(address, 0), Ok(()));
        }
        assert_eq!(tries.of_address("2001:db8::ffff".parse().unwrap(), 0), Err(Wait(10)));
        assert_eq!(tries.of_address("2001:db8:0:1::1".parse().unwrap(), 0), Ok(()));
        let mapped = ["::ffff:192.0.2.1", "192.0.2.1"].map(|address| network_of(address.parse().unwrap()));
        assert_eq!(mapped[0], mapped[1]);
    }

    #[test]
    fn memory_is_bounded() {
        let tries = Tries::default();
        for number in 0..REMEMBERED_MAX.get() + 10 {
            tries.of_name(&number.to_string(), 0).unwrap();
        }
        assert_eq!(tries.0.lock().len(), REMEMBERED_MAX.get());
    }
}

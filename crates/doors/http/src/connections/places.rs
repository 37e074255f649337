//! The places of a door: how many connections it has open, how many of them from one address, and a
//! small reserve for health checks when no place is left.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use tokio::task::AbortHandle;

/// Most connections beyond the limits that are open at once, for health checks. A further one ends
/// the oldest of them: a health check asks at once and gets its response before this many others
/// have come, and a silent client is ended.
pub const RESERVE_MAX: usize = 32;
/// Leading bits of an IPv6 address that identify one client.
const IPV6_NETWORK_BITS: u32 = 64;

/// The places of one door.
pub struct Places {
    max: usize,
    per_address_max: usize,
    taken: Mutex<Taken>,
    reserve: Mutex<VecDeque<AbortHandle>>,
    open: metrics::Gauge,
}

#[derive(Default)]
struct Taken {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// The place of one connection, until it is dropped.
pub struct Place {
    places: Arc<Places>,
    address: IpAddr,
}

raingauge_core::names! {
    /// Why a connection gets no place.
    pub enum Refusal {
        /// All places are taken.
        Full = "full",
        /// Its address has as many connections as one address may have.
        Address = "address",
    }
}

impl Places {
    pub fn new(door: &'static str, max: usize, per_address_max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            per_address_max,
            taken: Mutex::default(),
            reserve: Mutex::default(),
            open: metrics::gauge!("raingauge_connections", "door" => door),
        })
    }

    pub fn take(self: &Arc<Self>, address: IpAddr) -> Result<Place, Refusal> {
        let address = network_of(address);
        let mut taken = self.taken.lock();
        if taken.all >= self.max {
            return Err(Refusal::Full);
        }

        let of_address = taken.by_address.entry(address).or_default();
        if *of_address >= self.per_address_max {
            return Err(Refusal::Address);
        }

        *of_address += 1;
        taken.all += 1;
        self.open.set(taken.all as f64);

        Ok(Place { places: Arc::clone(self), address })
    }

    /// Keeps a connection in the reserve. Returns whether an older one had to end for it.
    pub fn reserve(&self, connection: AbortHandle) -> bool {
        let mut reserve = self.reserve.lock();
        reserve.retain(|connection| !connection.is_finished());
        let oldest = if reserve.len() < RESERVE_MAX { None } else { reserve.pop_front() };
        reserve.push_back(connection);
        oldest.is_some_and(|oldest| {
            oldest.abort();
            true
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        taken.all -= 1;
        self.places.open.set(taken.all as f64);
        if let Some(of_address) = taken.by_address.get_mut(&self.address) {
            *of_address -= 1;
            if *of_address == 0 {
                taken.by_address.remove(&self.address);
            }
        }
    }
}

/// Returns what counts as one address: an IPv4 address, or the network of an IPv6 address.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() >> IPV6_NETWORK_BITS << IPV6_NETWORK_BITS).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn places_are_limited_together_and_by_address_and_come_back() {
        let places = Places::new("test", 3, 2);
        let refusal = |address| places.take(ip(address)).err();
        let mut held: Vec<Place> =
            [places.take(ip("10.0.0.1")), places.take(ip("::ffff:10.0.0.1"))]
                .into_iter()
                .flatten()
                .collect();

        assert_eq!(held.len(), 2);
        assert_eq!(refusal("10.0.0.1"), Some(Refusal::Address));

        held.extend(places.take(ip("2001:db8::1")));
        assert_eq!(refusal("10.0.0.2"), Some(Refusal::Full));

        held.remove(0);
        assert!(places.take(ip("10.0.0.1")).is_ok());
        held.clear();
        assert!(places.taken.lock().by_address.is_empty());
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let places = Places::new("test", 10, 1);
        let held = places.take(ip("2001:db8:0:1::1")).ok();
        assert!(held.is_some());
        assert_eq!(places.take(ip("2001:db8:0:1:ffff::9")).err(), Some(Refusal::Address));
        assert!(places.take(ip("2001:db8:0:2::1")).is_ok());
    }

    #[tokio::test]
    async fn a_full_reserve_ends_its_oldest_connection() {
        let places = Places::new("test", 0, 1);
        let silent = || tokio::spawn(std::future::pending::<()>());
        let oldest = silent();
        assert!(!places.reserve(oldest.abort_handle()));
        for _ in 1..RESERVE_MAX {
            assert!(!places.reserve(silent().abort_handle()));
        }
        assert!(places.reserve(silent().abort_handle()));
        assert!(oldest.await.is_err_and(|error| error.is_cancelled()));
        assert_eq!(places.reserve.lock().len(), RESERVE_MAX);
    }
}

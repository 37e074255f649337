//! Networks, as settings write them: `10.0.0.0/8`, `::1`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// All addresses with the same leading bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

/// The text is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is neither an address nor a network such as 10.0.0.0/8")]
pub struct NotANetwork;

impl Network {
    /// Whether an address belongs to the network. A version 4 address mapped into version 6 counts
    /// as version 4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                leads(32, self.bits, own.to_bits().into(), other.to_bits().into())
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                leads(128, self.bits, own.to_bits(), other.to_bits())
            }
            _ => false,
        }
    }
}

/// Whether two numbers of this width have the same leading bits.
fn leads(width: u32, bits: u32, one: u128, other: u128) -> bool {
    (one ^ other).checked_shr(width - bits).unwrap_or(0) == 0
}

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| NotANetwork)?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(width), |bits| bits.parse().map_err(|_| NotANetwork))?;
        if bits > width { Err(NotANetwork) } else { Ok(Self { address, bits }) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.address, self.bits)
    }
}

/// Whether a host name denotes this machine. An empty one comes from no browser.
pub fn is_loopback_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_address =
        name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback());
    name.is_empty()
        || name.eq_ignore_ascii_case("localhost")
        || name.ends_with(".localhost")
        || is_address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_that_begin_like_it() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("0.0.0.0/0", "203.0.113.9", "2001:db8::1"),
            ("::1", "::1", "::2"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
            ("192.0.2.0/31", "::ffff:192.0.2.1", "192.0.2.2"),
        ] {
            let network: Network = network.parse().unwrap();
            assert!(network.contains(inside.parse().unwrap()), "{inside} is in {network}");
            assert!(!network.contains(outside.parse().unwrap()), "{outside} is not in {network}");
        }
        for wrong in
            ["", "10.0.0.0/33", "10.0.0/8", "::/129", "localhost", "10.0.0.0/8/8", "10.0.0.0/-1"]
        {
            assert_eq!(wrong.parse::<Network>(), Err(NotANetwork), "{wrong}");
        }
    }

    #[test]
    fn only_names_of_this_machine_are_loopback() {
        for own in [
            "",
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:1",
            "127.9.9.9",
            "[::1]:8080",
            "a.localhost:1",
        ] {
            assert!(is_loopback_name(own), "{own}");
        }
        for foreign in [
            "evil.example",
            "localhost.evil.example",
            "192.0.2.7:80",
            "127.0.0.1.evil.example",
            "[2001:db8::1]",
        ] {
            assert!(!is_loopback_name(foreign), "{foreign}");
        }
    }
}

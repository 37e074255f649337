//! Which addresses are public. Everything else leads to this machine, to its network, or nowhere.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks of IPv4 that are not public, each with the length of its prefix
/// (<https://www.iana.org/assignments/iana-ipv4-special-registry>).
const V4: [(Ipv4Addr, u32); 15] = [
    // This host and its network.
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    // Private networks.
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    // Carrier-grade NAT.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::LOCALHOST, 8),
    // Link-local, where clouds offer credentials.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    // Assignments of protocols, and relays of 6to4.
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    // Documentation and benchmarks.
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast; reserved, with the broadcast address.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// Parts of the public space of IPv6, 2000::/3, that are not public
/// (<https://www.iana.org/assignments/iana-ipv6-special-registry>).
const V6: [(Ipv6Addr, u32); 3] = [
    // Assignments of protocols, with Teredo, which hides an address of IPv4.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    // Documentation.
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Whether an address is one of the internet. An address of IPv6 that stands for one of IPv4 is
/// what that is.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(address) => is_public_v4(address),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    !V4.iter().any(|(network, len)| (bits ^ network.to_bits()) >> (32 - len) == 0)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    let is_in = |network: Ipv6Addr, len: u32| (bits ^ network.to_bits()) >> (128 - len) == 0;
    let global = Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0);
    is_in(global, 3) && !V6.iter().any(|(network, len)| is_in(*network, *len))
}

/// The address of IPv4 that an address of IPv6 stands for: mapped (::ffff:a.b.c.d), translated by
/// NAT64 (64:ff9b::a.b.c.d), or reached by 6to4 (2002:AABB:CCDD::).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] => Some(v4(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_public_text(text: &str) -> bool {
        is_public(text.parse().expect("an address"))
    }

    #[test]
    fn addresses_of_the_internet_are_public() {
        let public = [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:200::1",
            "2a00::1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::1",
        ];
        for text in public {
            assert!(is_public_text(text), "{text}");
        }
    }

    #[test]
    fn all_others_are_not() {
        let others = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "192.168.255.255",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::1.1.1.1",
            "::ffff:0:1.1.1.1",
            "::ffff:0.0.0.0",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1.1.1.1",
            "2002:7f00:1::1",
            "2002:a00:1::",
            "2002:c0a8:101::1",
            "2001::1",
            "2001:1ff::1",
            "2001:db8::1",
            "3fff::1",
            "4000::1",
            "5f00::1",
            "100::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
        ];
        for text in others {
            assert!(!is_public_text(text), "{text}");
        }
    }
}

//! When a certificate expires (RFC 5280, 4.1.2.5). The library that checks certificates does not
//! expose it.

/// ASN.1 tags: the version of a certificate, and the two forms of a time.
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Returns the last second of a certificate (DER), in seconds since 1970; `None` when it cannot be
/// read.
pub fn end_s(certificate: &[u8]) -> Option<i64> {
    let (_, signed, _) = element(certificate)?;
    let (_, mut rest, _) = element(signed)?;
    let (first, _, behind) = element(rest)?;
    if first == VERSION {
        rest = behind;
    }

    // Serial number, algorithm, issuer.
    for _ in 0..3 {
        rest = element(rest)?.2;
    }
    let (_, validity, _) = element(rest)?;
    let (_, _, behind_begin) = element(validity)?;
    let (tag, time, _) = element(behind_begin)?;

    time_s(tag, std::str::from_utf8(time).ok()?)
}

/// Returns the first element of some DER: its tag, its content, and the bytes after it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // The number of length bytes that follow.
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };

    let (content, behind) = rest.split_at_checked(len)?;
    Some((tag, content, behind))
}

fn time_s(tag: u8, text: &str) -> Option<i64> {
    let text = match tag {
        // Years of two digits stand for 1950 to 2049.
        UTC_TIME => format!("{}{text}", if text.get(..2)? < "50" { "20" } else { "19" }),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let part = |from: usize, to: usize| text.get(from..to);
    let date = [part(0, 4)?, part(4, 6)?, part(6, 8)?];
    let time = [part(8, 10)?, part(10, 12)?, part(12, 14)?];
    raingauge_core::time::parse_time_s(&format!("{}T{}Z", date.join("-"), time.join(":")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    #[test]
    fn the_end_of_a_certificate_is_read() {
        let key = KeyPair::generate().unwrap();
        for (year, end) in [
            (2031, "2031-02-03T00:00:00Z"),
            (2049, "2049-02-03T00:00:00Z"),
            (2150, "2150-02-03T00:00:00Z"),
        ] {
            let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            params.not_after = date_time_ymd(year, 2, 3);
            let certificate = params.self_signed(&key).unwrap();
            assert_eq!(end_s(certificate.der()), raingauge_core::time::parse_time_s(end));
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_end() {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["localhost".to_owned()])
            .unwrap()
            .self_signed(&key)
            .unwrap();
        let der = certificate.der();
        assert!((0..der.len()).all(|len| end_s(&der[..len]).is_none()));
        assert_eq!(end_s(&[0x30, 0x85, 1, 1, 1, 1, 1]), None);
    }
}

//! Random keys, values and numbers, with a liking for edges.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Keys of every type, with one hash tag, so that commands on several of them work in a cluster.
const KINDS: [char; 5] = ['s', 'h', 'e', 'z', 'l'];
const KEYS_OF_KIND: u32 = 2;
/// Share of keys that are of another type than the command wants.
const WRONG_TYPE: f64 = 0.07;
/// The key of a sorted set whose members have one score.
pub const ONE_SCORE: &[u8] = b"{o}x";
/// The year 2065, and the year 2001, in seconds.
const FAR_S: i64 = 3_000_000_000;
const PAST_S: i64 = 1_000_000_000;

const EDGES: [&str; 21] = [
    "0",
    "-1",
    "1",
    "2",
    "10",
    "100",
    "-0",
    "+1",
    "01",
    " 1",
    "1 ",
    "",
    "1e2",
    "1.5",
    "abc",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551616",
    "4294967296",
    "-9223372036854775809",
];
const FLOATS: [&str; 22] = [
    "0",
    "1",
    "-1",
    "0.1",
    "0.2",
    "3.25",
    "-2.5",
    "1e3",
    "5.0e3",
    "1e-7",
    "inf",
    "-inf",
    "+inf",
    "nan",
    "1e400",
    "3.0",
    "17179869184.5",
    "0.30000000000000004",
    "abc",
    "",
    " 1",
    "1.7e308",
];

/// Times to live that are over at once, or no times at all: none of them ends during a case.
const BAD_TTLS: [&str; 8] =
    ["0", "-1", "-100", "abc", "", "1.5", "9223372036854775807", "-9223372036854775808"];

/// The source of everything random in a case.
pub struct Draw {
    pub random: StdRng,
    /// Draws names of entries from many instead of a few, so that collections grow large.
    pub is_wide: bool,
}

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self { random: StdRng::seed_from_u64(seed), is_wide: false }
    }

    /// A word for a slot of a template.
    pub fn slot(&mut self, name: &'static str) -> Vec<u8> {
        let text = match name {
            "s" | "h" | "e" | "z" | "l" => return self.key(name.as_bytes()[0] as char),
            "x" => return ONE_SCORE.to_vec(),
            "any" => {
                let kind = KINDS[self.random.random_range(0..KINDS.len())];
                return self.key(kind);
            }
            "value" => return self.value(),
            "field" | "member" => return self.entry(),
            "int" => self.integer(),
            "edge" => self.edge(),
            "badttl" => BAD_TTLS[self.random.random_range(0..BAD_TTLS.len())].to_owned(),
            "small" => self.random.random_range(-3..=12_i64).to_string(),
            "index" => self.index(),
            "count" => self.random.random_range(-2..=6_i64).to_string(),
            "positive" => self.random.random_range(1..=6_i64).to_string(),
            "float" | "score" => self.float(),
            "min" | "max" => self.bound(),
            "lex" => return self.lex(),
            "pattern" => self.pattern(),
            "far" => (FAR_S / 3 + self.apart_s()).to_string(),
            "farms" => (FAR_S * 300 + self.apart_s() * 1_000).to_string(),
            "at" => self.moment(1).to_string(),
            "atms" => self.moment(1_000).to_string(),
            "bit" => self.random.random_range(0..=1_u8).to_string(),
            "offset" => self.offset(),
            "type" => self.bit_type(),
            "db" => self.random.random_range(0..=1_u8).to_string(),
            other => unreachable!("no slot {other:?}"),
        };
        text.into_bytes()
    }

    pub fn key(&mut self, kind: char) -> Vec<u8> {
        let kind = if self.random.random_bool(WRONG_TYPE) {
            KINDS[self.random.random_range(0..KINDS.len())]
        } else {
            kind
        };
        let number = self.random.random_range(1..=KEYS_OF_KIND);
        format!("{{o}}{kind}{number}").into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        match self.random.random_range(0..20) {
            0..9 => self.random.random_range(-20..=200_i64).to_string().into_bytes(),
            9..12 => self.edge().into_bytes(),
            12..14 => self.float().into_bytes(),
            14..17 => self.entry(),
            17 => b"\x00\xff\r\n$5\r\n".to_vec(),
            18 => {
                let len = self.random.random_range(40..600);
                self.bytes(len)
            }
            _ => {
                let len = self.random.random_range(1_000..9_000);
                self.bytes(len)
            }
        }
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.random.random()).collect()
    }

    /// A field or a member.
    fn entry(&mut self) -> Vec<u8> {
        if self.is_wide {
            return format!("n{:03}", self.random.random_range(0..400)).into_bytes();
        }
        match self.random.random_range(0..12) {
            0 => self.random.random_range(0..5_u8).to_string().into_bytes(),
            1 => Vec::new(),
            2 => b"\xff\x00b".to_vec(),
            3 => format!("n{:03}", self.random.random_range(0..400)).into_bytes(),
            4 => vec![b'L'; 70],
            _ => vec![b'a' + self.random.random_range(0..7)],
        }
    }

    fn edge(&mut self) -> String {
        EDGES[self.random.random_range(0..EDGES.len())].to_owned()
    }

    fn integer(&mut self) -> String {
        match self.random.random_range(0..4) {
            0 => self.edge(),
            _ => self.random.random_range(-50..=50_i64).to_string(),
        }
    }

    fn index(&mut self) -> String {
        match self.random.random_range(0..12) {
            0 => self.edge(),
            1 => self.random.random_range(-400..=400_i64).to_string(),
            _ => self.random.random_range(-6..=8_i64).to_string(),
        }
    }

    fn float(&mut self) -> String {
        match self.random.random_range(0..5) {
            0 => FLOATS[self.random.random_range(0..FLOATS.len())].to_owned(),
            1 => format!("{}", f64::from(self.random.random_range(-400..=400_i32)) / 8.0),
            _ => self.random.random_range(-6..=12_i64).to_string(),
        }
    }

    fn bound(&mut self) -> String {
        let open = if self.random.random_bool(0.3) { "(" } else { "" };
        match self.random.random_range(0..6) {
            0 => "-inf".to_owned(),
            1 => "+inf".to_owned(),
            _ => format!("{open}{}", self.float()),
        }
    }

    fn lex(&mut self) -> Vec<u8> {
        match self.random.random_range(0..8) {
            0 => b"-".to_vec(),
            1 => b"+".to_vec(),
            2 => self.entry(),
            mark => {
                let mut bound = if mark % 2 == 0 { b"[".to_vec() } else { b"(".to_vec() };
                bound.extend(self.entry());
                bound
            }
        }
    }

    fn pattern(&mut self) -> String {
        let all =
            ["*", "?", "[a-c]", "n0*", "[^a]", "*1", "\\*", "{o}z*", "a*b?c", "", "[", "n?[13]*"];
        all[self.random.random_range(0..all.len())].to_owned()
    }

    /// Seconds to add to a relative expiry. Minutes lie between two of them: which of two expiries
    /// is the later one, as `GT` and `LT` ask, must not depend on when a server takes them.
    fn apart_s(&mut self) -> i64 {
        self.random.random_range(0..1_000_000) * 60
    }

    /// A moment that is far away or long past, in units of a second's part.
    fn moment(&mut self, per_s: i64) -> i64 {
        let base = if self.random.random_bool(0.8) { FAR_S } else { PAST_S };
        (base + self.random.random_range(0..1_000)) * per_s
    }

    fn offset(&mut self) -> String {
        match self.random.random_range(0..12) {
            0 => self.edge(),
            1 => self.random.random_range(0..20_000_i64).to_string(),
            _ => self.random.random_range(0..70_i64).to_string(),
        }
    }

    fn bit_type(&mut self) -> String {
        let sign = if self.random.random_bool(0.5) { 'i' } else { 'u' };
        let bits = [1, 4, 5, 8, 13, 16, 32, 63, 64, 65, 0][self.random.random_range(0..11)];
        format!("{sign}{bits}")
    }
}

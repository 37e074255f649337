//! What "the same reply" means for each command: the same bytes, but for the exceptions below.

use raingauge_resp_client::Reply;
use std::cmp::Ordering;

/// Clocks of two servers are asked one after the other.
const CLOCK_MS: i64 = 2_000;
/// Digits from which on Redis 7.0 prints a score exactly and not as short as possible.
const LONG_SCORE: usize = 15;

/// How the replies to a command are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    Exact,
    /// Elements in any order.
    Unordered,
    /// Pairs of key and value, in any order.
    UnorderedPairs,
    /// Scores may be printed differently.
    Scores,
    /// Sums of decimals may be more precise.
    Precise,
    Seconds,
    Milliseconds,
    /// The beginning of an error.
    Prefix,
    /// Errors may have other texts.
    Refusals,
    /// The server under test may refuse what exceeds a limit of its own.
    Limited,
    /// The same of a command that changes nothing.
    LimitedRead,
    Ignored,
}

/// How errors begin with which raingauge refuses more than its limits allow.
const LIMITS: [&[u8]; 2] = [b"ERR Insufficient memory", b"ERR bits are written to strings"];

/// Commands that are not compared byte for byte, each with the reason.
pub const EXCEPTIONS: &[(&str, Rule, &str)] = &[
    ("SMEMBERS", Rule::Unordered, "a set has no order"),
    ("SINTER", Rule::Unordered, "a set has no order"),
    ("SUNION", Rule::Unordered, "a set has no order"),
    ("SDIFF", Rule::Unordered, "a set has no order"),
    ("HKEYS", Rule::Unordered, "a hash has no order"),
    ("HVALS", Rule::Unordered, "a hash has no order"),
    ("HGETALL", Rule::UnorderedPairs, "a hash has no order"),
    ("KEYS", Rule::Unordered, "a database has no order"),
    ("TTL", Rule::Seconds, "two clocks"),
    ("PTTL", Rule::Milliseconds, "two clocks"),
    ("EXPIRETIME", Rule::Seconds, "relative expiries begin at two clocks"),
    ("PEXPIRETIME", Rule::Milliseconds, "relative expiries begin at two clocks"),
    ("ZSCORE", Rule::Scores, "Redis 7.0 prints 17 digits, 7.2 the shortest that read back"),
    ("ZMSCORE", Rule::Scores, "as ZSCORE"),
    ("ZINCRBY", Rule::Scores, "as ZSCORE"),
    ("ZADD", Rule::Scores, "as ZSCORE, with INCR"),
    ("ZRANGE", Rule::Scores, "as ZSCORE"),
    ("ZREVRANGE", Rule::Scores, "as ZSCORE"),
    ("ZRANGEBYSCORE", Rule::Scores, "as ZSCORE"),
    ("ZREVRANGEBYSCORE", Rule::Scores, "as ZSCORE"),
    ("ZPOPMIN", Rule::Scores, "as ZSCORE"),
    ("ZPOPMAX", Rule::Scores, "as ZSCORE"),
    ("ZMPOP", Rule::Scores, "as ZSCORE"),
    ("ZUNION", Rule::Scores, "as ZSCORE"),
    ("ZINTER", Rule::Scores, "as ZSCORE"),
    ("ZDIFF", Rule::Scores, "as ZSCORE"),
    ("EXEC", Rule::Refusals, "a wrong number of arguments is refused with another sentence"),
    ("SELECT", Rule::Refusals, "numbers beyond 32 bits are refused with another sentence"),
    ("SWAPDB", Rule::Refusals, "as SELECT"),
    ("ZRANK", Rule::Refusals, "WITHSCORE of 7.2 changes how wrong arguments are refused"),
    ("ZREVRANK", Rule::Refusals, "as ZRANK"),
    ("LCS", Rule::LimitedRead, "raingauge limits the work of one command"),
    ("SETBIT", Rule::Limited, "raingauge limits strings whose bits are written"),
    ("BITFIELD", Rule::Limited, "as SETBIT"),
    ("BITOP", Rule::Limited, "as SETBIT"),
    (
        "INCRBYFLOAT",
        Rule::Precise,
        "Redis rounds to the 64 bits of a long double, raingauge is exact",
    ),
    ("HINCRBYFLOAT", Rule::Precise, "as INCRBYFLOAT"),
    ("NOSUCHCOMMAND", Rule::Prefix, "an unknown command may be answered with a reason behind"),
    ("OBJECT", Rule::Ignored, "encodings and reference counts are details of Redis"),
];

/// The rule of a command.
pub fn of(words: &[Vec<u8>]) -> Rule {
    let name = words.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
    let found = EXCEPTIONS.iter().find(|(command, ..)| command.as_bytes() == name);
    found.map_or(Rule::Exact, |(_, rule, _)| *rule)
}

/// Whether two replies are the same by a rule.
pub fn is_same(rule: Rule, expected: &Reply, actual: &Reply) -> bool {
    if expected == actual || is_same_error(expected, actual) {
        return true;
    }
    match rule {
        Rule::Exact => false,
        Rule::Unordered => sorted(expected, 1) == sorted(actual, 1) && is_alike(expected, actual),
        Rule::UnorderedPairs => {
            sorted(expected, 2) == sorted(actual, 2) && is_alike(expected, actual)
        }
        Rule::Scores => is_same_score(expected, actual),
        Rule::Limited => false,
        Rule::LimitedRead => is_limit(actual),
        Rule::Seconds => is_near(expected, actual, CLOCK_MS / 1_000),
        Rule::Milliseconds => is_near(expected, actual, CLOCK_MS),
        Rule::Prefix => match (expected, actual) {
            (Reply::Error(expected), Reply::Error(actual)) => actual.starts_with(expected),
            _ => false,
        },
        Rule::Precise | Rule::Refusals => expected.error().is_some() && actual.error().is_some(),
        Rule::Ignored => expected.error().is_some() == actual.error().is_some(),
    }
}

/// Whether a difference is one that the rule knows, but after which the servers are no longer
/// comparable.
pub fn is_known(rule: Rule, expected: &Reply, actual: &Reply) -> bool {
    match (rule, expected, actual) {
        (Rule::Precise, Reply::Bulk(left), Reply::Bulk(right)) => {
            left.len().max(right.len()) > LONG_SCORE
                && number(left).zip(number(right)).is_some_and(|(left, right)| {
                    (left - right).abs() <= left.abs() * f64::EPSILON + f64::EPSILON
                })
        }
        // Redis computes with numbers beyond those of a double.
        (Rule::Precise, Reply::Bulk(_), Reply::Error(_)) => true,
        // A longer form is queued by one, and refused by the other.
        (Rule::Refusals, Reply::Error(_), Reply::Simple(queued)) => queued == b"QUEUED",
        (Rule::Limited, expected, actual) => expected.error().is_none() && is_limit(actual),
        _ => false,
    }
}

/// Whether a reply is the refusal of a limit.
fn is_limit(reply: &Reply) -> bool {
    let Reply::Error(text) = reply else {
        return false;
    };
    LIMITS.iter().any(|limit| text.starts_with(limit))
}

/// Whether both are the same error up to the first byte that is no text: Redis stops at a NUL and
/// replaces line ends in what it quotes.
fn is_same_error(expected: &Reply, actual: &Reply) -> bool {
    let text = |reply: &Reply| match reply {
        Reply::Error(text) => {
            let is_text = |byte: &&u8| byte.is_ascii_graphic() || **byte == b' ';
            Some(text.iter().take_while(is_text).copied().collect::<Vec<u8>>())
        }
        _ => None,
    };
    let (Some(left), Some(right)) = (text(expected), text(actual)) else {
        return false;
    };
    let len = left.trim_ascii_end().len().min(right.trim_ascii_end().len());
    let is_cut =
        |reply: &Reply, text: &[u8]| reply.bytes().is_some_and(|all| all.len() > text.len());
    (is_cut(expected, &left) || is_cut(actual, &right)) && left[..len] == right[..len]
}

/// The text of a score, printed the same way whatever the server does; anything else as it is.
pub fn plain_score(reply: &Reply) -> String {
    let score = reply.bytes().and_then(number);
    score.map_or_else(|| format!("{reply:?}"), |score| format!("{score:?}"))
}

/// Whether both are collections of the same type.
fn is_alike(expected: &Reply, actual: &Reply) -> bool {
    std::mem::discriminant(expected) == std::mem::discriminant(actual)
        && expected.elements().is_some()
}

/// The elements in groups of `width`, in an order of their own.
pub fn sorted(reply: &Reply, width: usize) -> Vec<Vec<String>> {
    let text = |reply: &Reply| format!("{reply:?}");
    let elements = reply.elements().unwrap_or_default();
    let mut groups: Vec<Vec<String>> =
        elements.chunks(width).map(|group| group.iter().map(text).collect()).collect();
    groups.sort_unstable();
    groups
}

fn is_near(expected: &Reply, actual: &Reply, tolerance: i64) -> bool {
    match (expected.integer(), actual.integer()) {
        (Some(expected), Some(actual)) => {
            expected > 0 && actual > 0 && expected.abs_diff(actual) <= tolerance.unsigned_abs()
        }
        _ => false,
    }
}

fn is_same_score(expected: &Reply, actual: &Reply) -> bool {
    if expected == actual {
        return true;
    }
    match (expected, actual) {
        (Reply::Bulk(left), Reply::Bulk(right)) | (Reply::Double(left), Reply::Double(right)) => {
            // A zero has no sign here.
            let is_loose = left.len() > LONG_SCORE || left == b"-0";
            is_loose && number(left) == number(right) && number(left).is_some()
        }
        _ => {
            let (left, right) = (expected.elements(), actual.elements());
            let (left, right) = (left.unwrap_or_default(), right.unwrap_or_default());
            is_alike(expected, actual)
                && left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| is_same_score(left, right))
        }
    }
}

fn number(text: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(number).filter(|number| number.partial_cmp(number) == Some(Ordering::Equal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.as_bytes().to_vec())
    }

    #[test]
    fn exceptions_allow_no_more_than_they_say() {
        let array = |texts: &[&str]| Reply::Array(texts.iter().map(|text| bulk(text)).collect());
        let same = is_same;
        assert!(!same(Rule::Exact, &bulk("1"), &bulk("1.0")));

        assert!(same(Rule::Unordered, &array(&["a", "b"]), &array(&["b", "a"])));
        assert!(!same(Rule::Unordered, &array(&["a", "b"]), &array(&["b", "b"])));
        let set = Reply::Set(vec![bulk("b"), bulk("a")]);
        assert!(!same(Rule::Unordered, &array(&["a", "b"]), &set));

        let pairs = [array(&["a", "1", "b", "2"]), array(&["b", "2", "a", "1"])];
        assert!(same(Rule::UnorderedPairs, &pairs[0], &pairs[1]));
        assert!(!same(Rule::UnorderedPairs, &pairs[0], &array(&["a", "2", "b", "1"])));

        assert!(same(Rule::Scores, &bulk("0.10000000000000001"), &bulk("0.1")));
        assert!(!same(Rule::Scores, &bulk("3"), &bulk("3.0")));
        assert!(!same(Rule::Scores, &bulk("0.10000000000000001"), &bulk("0.2")));

        assert_eq!(plain_score(&bulk("1.6999999999999999e+308")), plain_score(&bulk("1.7e+308")));
        let sums = ["-9223372036854775769", "-9223372036854775768.75", "-9223372036854700000"];
        let [rounded, exact, other] = sums.map(bulk);
        assert!(is_known(Rule::Precise, &rounded, &exact));
        assert!(!is_known(Rule::Precise, &rounded, &other));
        assert!(!is_known(Rule::Precise, &bulk("1.5"), &bulk("2.5")));

        assert!(same(Rule::Milliseconds, &Reply::Integer(5_000), &Reply::Integer(4_990)));
        assert!(!same(Rule::Milliseconds, &Reply::Integer(-1), &Reply::Integer(-2)));
        assert!(!same(Rule::Milliseconds, &Reply::Integer(5_000), &Reply::Integer(9_990)));

        let error = |text: &str| Reply::Error(text.as_bytes().to_vec());
        assert!(same(Rule::Exact, &error("ERR option "), &error("ERR option \u{fffd} $5")));
        assert!(!same(Rule::Exact, &error("ERR option x"), &error("ERR syntax \u{fffd}")));
        assert!(same(Rule::Scores, &bulk("-0"), &bulk("0")));
        let refused = error("ERR Insufficient memory, and so on");
        assert!(is_known(Rule::Limited, &bulk("abc"), &refused));
        assert!(!is_known(Rule::Exact, &bulk("abc"), &refused));
        assert!(same(Rule::Prefix, &error("ERR unknown"), &error("ERR unknown: why")));
        assert!(!same(Rule::Prefix, &error("ERR unknown"), &error("ERR syntax")));
    }
}

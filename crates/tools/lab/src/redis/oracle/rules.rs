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
    /// Scores, and pairs with equal scores in the order of members: as they are.
    Seconds,
    Milliseconds,
    /// The beginning of an error.
    Prefix,
    Ignored,
}

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
    ("NOSUCHCOMMAND", Rule::Prefix, "an unknown command may be answered with a reason behind"),
    ("OBJECT", Rule::Ignored, "encodings and reference counts are details of Redis"),
    ("WAIT", Rule::Ignored, "replicas are counted differently"),
];

/// The rule of a command.
pub fn of(words: &[Vec<u8>]) -> Rule {
    let name = words.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
    let found = EXCEPTIONS.iter().find(|(command, ..)| command.as_bytes() == name);
    found.map_or(Rule::Exact, |(_, rule, _)| *rule)
}

/// Whether two replies are the same by a rule.
pub fn is_same(rule: Rule, expected: &Reply, actual: &Reply) -> bool {
    if expected == actual {
        return true;
    }
    match rule {
        Rule::Exact => false,
        Rule::Unordered => sorted(expected, 1) == sorted(actual, 1) && is_alike(expected, actual),
        Rule::UnorderedPairs => {
            sorted(expected, 2) == sorted(actual, 2) && is_alike(expected, actual)
        }
        Rule::Scores => is_same_score(expected, actual),
        Rule::Seconds => is_near(expected, actual, CLOCK_MS / 1_000),
        Rule::Milliseconds => is_near(expected, actual, CLOCK_MS),
        Rule::Prefix => match (expected, actual) {
            (Reply::Error(expected), Reply::Error(actual)) => actual.starts_with(expected),
            _ => false,
        },
        Rule::Ignored => expected.error().is_some() == actual.error().is_some(),
    }
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
            left.len() > LONG_SCORE && number(left) == number(right) && number(left).is_some()
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

        assert!(same(Rule::Milliseconds, &Reply::Integer(5_000), &Reply::Integer(4_990)));
        assert!(!same(Rule::Milliseconds, &Reply::Integer(-1), &Reply::Integer(-2)));
        assert!(!same(Rule::Milliseconds, &Reply::Integer(5_000), &Reply::Integer(9_990)));

        let error = |text: &str| Reply::Error(text.as_bytes().to_vec());
        assert!(same(Rule::Prefix, &error("ERR unknown"), &error("ERR unknown: why")));
        assert!(!same(Rule::Prefix, &error("ERR unknown"), &error("ERR syntax")));
    }
}

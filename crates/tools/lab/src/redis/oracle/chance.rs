//! Replies of commands that choose at random: both must be choices that the rules allow.

use super::rules::plain_score;
use super::steps::Words;
use raingauge_resp_client::Reply;
use std::collections::BTreeSet;

/// Whether both replies are possible choices from `all`, the listing before the command.
/// `is_pairs` says that the listing has values beside its entries.
pub fn is_possible(
    all: &Reply,
    is_pairs: bool,
    words: &Words,
    expected: &Reply,
    actual: &Reply,
) -> bool {
    if expected == actual {
        return true;
    }
    if std::mem::discriminant(expected) != std::mem::discriminant(actual) {
        return false;
    }

    // RESP3 lists scores as arrays of two, which `flat` opens.
    let texts = |reply: &Reply| flat(reply).into_iter().map(plain_score).collect::<Vec<String>>();
    let listed = texts(all);
    let listed_width = if is_pairs { 2 } else { 1 };
    let entries: Vec<&[String]> = listed.chunks(listed_width).collect();
    let has_values = words.get(3).is_some();

    let left = texts(expected);
    let right = texts(actual);
    let width = if has_values { 2 } else { 1 };
    let is_choice = |chosen: &[String]| {
        chosen.chunks(width).all(|chosen| entries.iter().any(|entry| entry.starts_with(chosen)))
    };

    let may_repeat = words.get(2).is_some_and(|count| count.starts_with(b"-"));
    let is_distinct = |chosen: &[String]| {
        let names: BTreeSet<&String> = chosen.chunks(width).map(|entry| &entry[0]).collect();
        may_repeat || names.len() * width == chosen.len()
    };

    left.len() == right.len()
        && is_choice(&right)
        && is_choice(&left)
        && is_distinct(&right)
        && is_alike(expected, actual)
}

/// The bytes of a choice, one member or several.
pub fn members(reply: &Reply) -> Vec<&[u8]> {
    flat(reply).into_iter().filter_map(Reply::bytes).collect()
}

/// The leaves of a reply.
fn flat(reply: &Reply) -> Vec<&Reply> {
    match reply.elements() {
        Some(elements) => elements.iter().flat_map(flat).collect(),
        None => vec![reply],
    }
}

/// Whether nested replies have the same types.
fn is_alike(left: &Reply, right: &Reply) -> bool {
    let (inner_left, inner_right) = (left.elements(), right.elements());
    std::mem::discriminant(left) == std::mem::discriminant(right)
        && match (inner_left, inner_right) {
            (Some(left), Some(right)) => {
                left.len() == right.len()
                    && left.iter().zip(right).all(|(left, right)| is_alike(left, right))
            }
            _ => true,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.as_bytes().to_vec())
    }

    fn array(texts: &[&str]) -> Reply {
        Reply::Array(texts.iter().map(|text| bulk(text)).collect())
    }

    #[test]
    fn a_choice_is_of_what_there_is() {
        let words = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        let all = array(&["a", "b", "c"]);
        let pop: Words = words(&["SPOP", "e"]);
        assert!(is_possible(&all, false, &pop, &bulk("a"), &bulk("c")));
        assert!(!is_possible(&all, false, &pop, &bulk("a"), &bulk("x")));
        assert!(!is_possible(&all, false, &pop, &bulk("a"), &Reply::NullBulk));

        let two: Words = words(&["SRANDMEMBER", "e", "2"]);
        assert!(is_possible(&all, false, &two, &array(&["a", "b"]), &array(&["c", "b"])));
        assert!(!is_possible(&all, false, &two, &array(&["a", "b"]), &array(&["b", "b"])));
        assert!(!is_possible(&all, false, &two, &array(&["a", "b"]), &array(&["b"])));
        let repeated: Words = words(&["SRANDMEMBER", "e", "-2"]);
        assert!(is_possible(&all, false, &repeated, &array(&["a", "b"]), &array(&["b", "b"])));

        let all = array(&["f", "1", "g", "2"]);
        let values: Words = words(&["HRANDFIELD", "h", "1", "WITHVALUES"]);
        assert!(is_possible(&all, true, &values, &array(&["f", "1"]), &array(&["g", "2"])));
        assert!(!is_possible(&all, true, &values, &array(&["f", "1"]), &array(&["g", "1"])));
        let names: Words = words(&["HRANDFIELD", "h", "1"]);
        assert!(!is_possible(&all, true, &names, &array(&["f"]), &array(&["2"])));
    }
}

//! What a change of the catalog may do, given the newest versions of all counters. Every adapter
//! decides with these functions, inside its transaction.

use super::{Change, Error, Versioned};
use raingauge_core::counter::{Counter, Problem, State};
use raingauge_core::limits::{COUNTER_ID_MAX, COUNTERS_MAX};
use raingauge_core::ruleset::conflicts;

/// What remains to be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing: the counter has this configuration already.
    Keep(Versioned),
    /// Add this version.
    Add(Versioned),
}

pub fn create(
    newest: &[Versioned],
    mut counter: Counter,
    change: Change,
) -> Result<Decision, Error> {
    if counter.id == 0 {
        counter.id = next_id(newest)?;
    } else if find(newest, counter.id).is_some() {
        return Err(Error::IdTaken(counter.id));
    }
    check(newest, &counter)?;
    Ok(Decision::Add(versioned(counter, 1, change)))
}

pub fn replace(
    newest: &[Versioned],
    counter: Counter,
    expected: Option<u32>,
    change: Change,
) -> Result<Decision, Error> {
    let current = find(newest, counter.id).ok_or(Error::NotFound(counter.id))?;
    if expected.is_some_and(|expected| expected != current.version) {
        return Err(Error::VersionMismatch { id: counter.id, current: current.version });
    }
    if current.counter == counter {
        return Ok(Decision::Keep(current.clone()));
    }
    check(newest, &counter)?;
    Ok(Decision::Add(versioned(counter, current.version + 1, change)))
}

fn find(newest: &[Versioned], id: u32) -> Option<&Versioned> {
    newest.iter().find(|version| version.counter.id == id)
}

/// An id is never reused, so the next one lies behind those of archived counters, too.
fn next_id(newest: &[Versioned]) -> Result<u32, Error> {
    let largest = newest.iter().map(|version| version.counter.id).max().unwrap_or(0);
    if largest < COUNTER_ID_MAX {
        return Ok(largest + 1);
    }
    let detail =
        format!("the largest id, {COUNTER_ID_MAX}, is in use: choose a smaller one that is free");
    Err(Error::Invalid(vec![Problem::new("id", detail)]))
}

/// Collects every reason why a counter must not be saved. An invalid configuration should not get
/// this far, but every instance reads what is saved, so it is checked once more.
fn check(newest: &[Versioned], counter: &Counter) -> Result<(), Error> {
    let others =
        || newest.iter().map(|version| &version.counter).filter(|other| other.id != counter.id);
    let mut problems = counter.problems();
    let in_use = others().filter(|other| other.state != State::Archived).count();
    if counter.state != State::Archived && in_use >= COUNTERS_MAX {
        let detail = format!(
            "{COUNTERS_MAX} counters are in use, which is the most there may be: archive one first"
        );
        problems.push(Problem::new("state", detail));
    }
    problems.extend(conflicts(counter, others()));
    if problems.is_empty() { Ok(()) } else { Err(Error::Invalid(problems)) }
}

fn versioned(counter: Counter, version: u32, change: Change) -> Versioned {
    Versioned {
        counter,
        version,
        changed_by: change.by,
        reason: change.reason,
        changed_at: change.at_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn counter(id: u32, state: &str) -> Counter {
        let json = json!({"id": id, "name": "n", "template": format!("t{id}"), "eventType": "e", "state": state});
        Counter::from_json(&json).unwrap()
    }

    fn change() -> Change {
        Change { by: "b".to_owned(), reason: "r".to_owned(), at_s: 7 }
    }

    fn newest(ids: impl Iterator<Item = u32>) -> Vec<Versioned> {
        ids.map(|id| versioned(counter(id, "draft"), 1, change())).collect()
    }

    fn problem_fields(answer: Result<Decision, Error>) -> Vec<String> {
        let Err(Error::Invalid(problems)) = answer else { panic!("{answer:?} is no refusal") };
        problems.into_iter().map(|problem| problem.field).collect()
    }

    #[test]
    fn the_number_of_counters_is_limited() {
        let id = COUNTERS_MAX as u32 + 7;
        let mut full = newest(1..=COUNTERS_MAX as u32);
        full.push(versioned(counter(id, "archived"), 1, change()));
        assert_eq!(problem_fields(create(&full, counter(0, "draft"), change())), ["state"]);
        assert_eq!(
            problem_fields(replace(&full, counter(id, "paused"), None, change())),
            ["state"]
        );
        assert!(create(&full, counter(0, "archived"), change()).is_ok());
        assert!(replace(&full, counter(1, "active"), None, change()).is_ok());
        full[0].counter.state = State::Archived;

        let Ok(Decision::Add(added)) = create(&full, counter(0, "draft"), change()) else {
            panic!("there is room")
        };
        assert_eq!((added.counter.id, added.version), (id + 1, 1));
    }

    #[test]
    fn behind_the_largest_id_a_smaller_one_must_be_chosen() {
        let newest = newest([COUNTER_ID_MAX].into_iter());
        assert_eq!(problem_fields(create(&newest, counter(0, "draft"), change())), ["id"]);
        assert!(create(&newest, counter(3, "draft"), change()).is_ok());
    }

    #[test]
    fn what_is_wrong_is_reported_together() {
        let mut wrong = counter(2, "draft");
        (wrong.name, wrong.template) = (String::new(), "t1".to_owned());
        assert_eq!(problem_fields(create(&newest(1..=1), wrong, change())), ["name", "template"]);
    }
}

use std::collections::HashSet;

use super::*;
use crate::Drain;
use crate::spec::Scope;

fn keys(command: &[&str]) -> Vec<usize> {
    let command: Vec<&[u8]> = command.iter().map(|word| word.as_bytes()).collect();
    let drain = Drain::of(&[&command]);
    let command = drain.get(0);

    let mut found = Vec::new();
    let spec = command.spec().expect("a known command");
    spec.key_positions(command.arguments, |at, _| found.push(at));
    found
}

#[test]
fn each_command_has_one_row() {
    let ids: HashSet<_> = all().map(|spec| spec.id).collect();
    let names: HashSet<_> = all().map(|spec| spec.name).collect();
    let rows = all().count();

    assert_eq!(ids.len(), rows);
    assert_eq!(names.len(), rows);
    assert!(rows * 3 < SLOTS);

    for spec in all() {
        assert_eq!(spec.name, spec.name.to_ascii_lowercase());
        assert!(spec.summary.ends_with('.') && spec.arity != 0, "{}", spec.name);
        if let Some(container) = spec.container() {
            assert!(find(container.as_bytes()).is_some(), "{}", spec.name);
        }
    }
}

#[test]
fn names_are_found_in_any_case() {
    for spec in all() {
        match spec.name.split_once('|') {
            None => {
                let upper = spec.name.to_ascii_uppercase();
                assert_eq!(find(upper.as_bytes()).map(|found| found.id), Some(spec.id));
            }
            Some((container, name)) => {
                let upper = name.to_ascii_uppercase();
                let found = find_sub(container, upper.as_bytes());
                assert_eq!(found.map(|found| found.id), Some(spec.id));
                assert!(find(spec.name.as_bytes()).is_none());
            }
        }
    }

    assert!(find(b"").is_none() && find(b"ge").is_none() && find(b"gett").is_none());
    assert!(find(&[b'x'; 70_000]).is_none());
}

#[test]
fn keys_are_found_among_the_arguments() {
    assert_eq!(keys(&["get", "k"]), [1]);
    assert_eq!(keys(&["mset", "a", "1", "b", "2"]), [1, 3]);
    assert_eq!(keys(&["del", "a", "b", "c"]), [1, 2, 3]);
    assert_eq!(keys(&["zunionstore", "d", "2", "a", "b", "weights", "1", "2"]), [1, 3, 4]);
    assert_eq!(keys(&["zunionstore", "d", "9", "a", "b"]), [1]);
    assert_eq!(keys(&["zunionstore", "d", "x", "a", "b"]), [1]);
    assert_eq!(keys(&["lmpop", "2", "a", "b", "left"]), [2, 3]);
    assert_eq!(keys(&["bitop", "and", "d", "a", "b"]), [2, 3, 4]);
    assert_eq!(keys(&["copy", "a", "b"]), [1, 2]);
    assert_eq!(keys(&["object", "encoding", "k"]), [2]);
    assert_eq!(keys(&["memory", "usage", "k"]), [2]);
    assert_eq!(keys(&["ping"]), [0; 0]);
}

#[test]
fn what_tells_how_the_door_is_used_can_be_reset() {
    for name in ["rain.hot", "rain.sizes", "rain.doctor"] {
        let spec = find(name.as_bytes()).expect("a command");
        assert!(spec.accepts(1) && spec.accepts(2), "{name}");
    }
}

#[test]
fn old_clients_read_three_numbers() {
    let legacy = |name: &str| find(name.as_bytes()).expect("a command").legacy_keys();

    assert_eq!(legacy("get"), (1, 1, 1));
    assert_eq!(legacy("mset"), (1, -1, 2));
    assert_eq!(legacy("copy"), (1, 2, 1));
    assert_eq!(legacy("bitop"), (2, -1, 1));
    assert_eq!(legacy("zunionstore"), (1, 1, 1));
    assert_eq!(legacy("lmpop"), (0, 0, 0));
    assert_eq!(legacy("ping"), (0, 0, 0));
}

#[test]
fn every_command_that_changes_something_needs_a_scope() {
    let scope = |name: &str| find(name.as_bytes()).expect("a command").scope();

    assert_eq!(scope("get"), Scope::ObjectsRead);
    assert_eq!(scope("set"), Scope::ObjectsWrite);
    assert_eq!(scope("flushall"), Scope::ObjectsWrite);
    assert_eq!(scope("subscribe"), Scope::ObjectsRead);
    assert_eq!(scope("publish"), Scope::ObjectsWrite);
    assert_eq!(scope("rain.count"), Scope::CountsRead);
    assert_eq!(scope("rain.add"), Scope::EventsWrite);
    assert_eq!(scope("ping"), Scope::Any);

    for spec in all() {
        if spec.is_write() || spec.flags.has(Flags::ADMIN) {
            assert_ne!(spec.scope(), Scope::Any, "{}", spec.name);
        }
    }
}

//! Clear errors for what is wrong outside.

use crate::support::{Place, layout};
use raingauge_core::plan::Plan;
use raingauge_cql::schema::{self, migrate};
use raingauge_cql::{self as cql, Error, Options};
use raingauge_ports::buckets::{BucketReader, Query, generation_of};

fn refused(place: &Place, options: Options) -> Error {
    place.block_on(cql::Cluster::connect(options)).err().expect("it is refused")
}

#[test]
fn wrong_settings_are_named() {
    let Some(place) = Place::new() else { return };
    let nobody =
        Options { contact_points: vec!["127.0.0.1:1".to_owned()], ..place.options.clone() };
    let error = refused(&place, nobody);
    assert!(
        matches!(error, Error::Unreachable { .. }) && error.to_string().contains("127.0.0.1:1"),
        "{error}"
    );

    let empty = Options { keyspace: "nowhere".to_owned(), ..place.options.clone() };
    let error = refused(&place, empty);
    assert!(matches!(error, Error::SchemaTooOld { found: 0, .. }), "{error}");
    assert!(error.to_string().contains("raingauge migrate"), "{error}");

    let named = Options { keyspace: "a;b".to_owned(), ..place.options.clone() };
    assert!(matches!(refused(&place, named), Error::Keyspace(_)));
}

#[test]
fn migrating_again_and_twice_at_once_changes_nothing() {
    let Some(place) = Place::new() else { return };
    let options = &place.options;
    let layout = layout();
    let (left, right) = place
        .block_on(async { tokio::join!(migrate(options, &layout), migrate(options, &layout)) });
    for migrated in [left, right] {
        assert_eq!(migrated.expect("migrated").from, schema::VERSION);
    }
}

#[test]
fn a_schema_of_a_newer_program_is_left_alone() {
    let Some(place) = Place::new() else { return };
    place.run(&format!(
        "INSERT INTO {}.schema_version (id, version) VALUES (0, 99)",
        place.options.keyspace
    ));
    assert!(matches!(
        refused(&place, place.options.clone()),
        Error::SchemaTooNew { found: 99, .. }
    ));
    let migrated = place.block_on(migrate(&place.options, &layout()));
    assert!(matches!(migrated, Err(Error::SchemaTooNew { .. })));
}

#[test]
fn a_table_that_was_altered_is_named() {
    let Some(place) = Place::new() else { return };
    let reader = cql::Reader::new(place.cql());
    place.run(&format!("DROP TABLE {}.tile_table", place.options.keyspace));

    let error = refused(&place, place.options.clone());
    assert!(
        matches!(error, Error::Altered { .. }) && error.to_string().contains("tile_table"),
        "{error}"
    );

    let query = Query {
        generation: generation_of(1, 0),
        key: "k".to_owned(),
        plan: Plan::new(0, 900).unwrap(),
    };

    let read = place.block_on(reader.sums(vec![query])).remove(0);
    assert!(read.is_err(), "a count that cannot be read is no 0");
}

/// Processes that differ in what decides counting would count the same log differently.
#[test]
fn settings_that_differ_between_processes_are_refused() {
    let Some(place) = Place::new() else { return };
    let cql = place.cql();
    let settings = |window: &str| [("dedupe.window_hours".to_owned(), window.to_owned())].into();
    let check = |log, window| place.block_on(cql.check_settings(log, &settings(window)));

    check("events", "24").expect("the first settings are kept");
    check("events", "24").expect("the same again");

    let error = check("events", "48").expect_err("another window");
    assert!(matches!(error, Error::SettingsDiffer { .. }), "{error}");
    assert!(
        error.to_string().contains("dedupe.window_hours is 48 here, and 24 elsewhere"),
        "{error}"
    );
    check("others", "48").expect("another log");
    place.block_on(cql.put_settings("events", &settings("48"))).expect("migrated");
    check("events", "48").expect("the new ones");
    check("events", "24").expect_err("the old ones");
}

/// The first id of an epoch is the topic that is counted, and stays so.
#[test]
fn a_topic_with_another_id_is_recognized() {
    let Some(place) = Place::new() else { return };
    let cql = place.cql();
    let is_same =
        |epoch, id| place.block_on(cql.is_same_topic("test-log", epoch, id)).expect("answered");
    assert!(is_same(0, 7) && is_same(0, 7));
    assert!(!is_same(0, 8), "made again");
    assert!(is_same(1, 8), "and the epoch raised");
    assert!(is_same(0, 7) && !is_same(1, 7));
    assert!(place.block_on(cql.is_same_topic("other-log", 0, 8)).expect("answered"));

    // Migrating again forgets no topic.
    place.block_on(cql.put_settings("test-log", &[].into())).expect("stored");
    assert!(!is_same(0, 8));
}

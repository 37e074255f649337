//! The contract of the catalog.

mod policy;

use crate::BoxFuture;
use crate::catalog::{Catalog, Change, Error, Versioned};
use raingauge_core::counter::{Counter, State};
use raingauge_core::filter::Condition;
use raingauge_core::retention::RetentionDays;
use raingauge_core::value::{FieldValue, Value};
use raingauge_policy::cache::Policy;
use std::future::poll_fn;
use std::task::Poll;

pub use policy::whole_policy;

/// Runs the whole suite. `fresh` returns an empty catalog each time.
pub async fn suite<C: Catalog>(fresh: impl AsyncFn() -> C) {
    an_empty_catalog_has_nothing(&fresh().await).await;
    ids_are_given_or_chosen(&fresh().await).await;
    a_configuration_comes_back_whole(&fresh().await).await;
    every_version_is_kept(&fresh().await).await;
    a_change_names_the_version_it_is_based_on(&fresh().await).await;
    an_equal_configuration_is_no_change(&fresh().await).await;
    conflicting_templates_are_refused(&fresh().await).await;
    an_archived_counter_leaves_its_template_to_others(&fresh().await).await;
    a_wrong_configuration_is_refused(&fresh().await).await;
    the_revision_grows_with_changes_only(&fresh().await).await;
    reports_what_changed_since_a_revision(&fresh().await).await;
    of_conflicting_counters_created_at_once_one_wins(&fresh().await).await;
    ids_chosen_at_once_differ(&fresh().await).await;
    no_concurrent_change_is_lost(&fresh().await).await;
    policy::the_cache_policy_is_the_default_until_it_is_set(&fresh().await).await;
    policy::a_policy_comes_back_whole(&fresh().await).await;
    policy::a_change_of_the_policy_names_the_version_it_is_based_on(&fresh().await).await;
    policy::every_version_of_the_policy_is_kept(&fresh().await).await;
    policy::an_equal_policy_is_no_change(&fresh().await).await;
    policy::the_revision_grows_with_the_policy(&fresh().await).await;
    policy::no_concurrent_change_of_the_policy_is_lost(&fresh().await).await;
}

/// A small counter with this template, without an id.
pub fn counter(template: &str) -> Counter {
    Counter {
        id: 0,
        name: template.to_owned(),
        template: template.to_owned(),
        event_type: "rain_drop".to_owned(),
        filter: None,
        value: Value::default(),
        retention_days: RetentionDays::default(),
        active_from: None,
        active_until: None,
        state: State::Active,
        owner: String::new(),
        description: String::new(),
    }
}

pub fn change(reason: &str) -> Change {
    Change { by: "weather".to_owned(), reason: reason.to_owned(), at_s: 1_727_215_200 }
}

pub async fn an_empty_catalog_has_nothing(catalog: &dyn Catalog) {
    assert_eq!(catalog.list().await.unwrap(), []);
    assert!(matches!(catalog.get(1).await, Err(Error::NotFound(1))));
    assert!(matches!(catalog.versions(1).await, Err(Error::NotFound(1))));
    let unknown = Counter { id: 1, ..counter("a") };
    assert!(matches!(
        catalog.replace(unknown.clone(), None, change("")).await,
        Err(Error::NotFound(1))
    ));
    assert!(matches!(catalog.replace(unknown, Some(1), change("")).await, Err(Error::NotFound(1))));
    assert_eq!(catalog.list().await.unwrap(), []);
}

pub async fn reports_what_changed_since_a_revision(catalog: &dyn Catalog) {
    for template in ["a", "b", "c", "d"] {
        catalog.create(counter(template), change("")).await.unwrap();
    }
    catalog.set_cache_policy(Policy::default(), None, change("")).await.unwrap();

    let mut revision = catalog.revision().await.unwrap();
    for id in [2, 4, 2] {
        let current = catalog.get(id).await.unwrap();
        let edited = Counter { description: current.version.to_string(), ..current.counter };
        let edited = catalog.replace(edited, None, change("")).await.unwrap();
        let changed = catalog.changed_since(revision).await.unwrap();

        assert!(changed.contains(&edited), "{changed:?}");
        assert!(changed.is_sorted_by_key(|found| found.counter.id), "{changed:?}");

        let newest = catalog.list().await.unwrap();
        assert!(changed.iter().all(|found| newest.contains(found)), "{changed:?}");
        revision = catalog.revision().await.unwrap();
    }
}

pub async fn ids_are_given_or_chosen(catalog: &dyn Catalog) {
    let mut ids = Vec::new();
    for (id, template) in [(0, "a"), (34, "b"), (0, "c"), (7, "d")] {
        ids.push(
            catalog
                .create(Counter { id, ..counter(template) }, change(""))
                .await
                .unwrap()
                .counter
                .id,
        );
    }

    assert_eq!(ids, [1, 34, 35, 7]);
    let taken = catalog.create(Counter { id: 34, ..counter("e") }, change("")).await;
    assert!(matches!(taken, Err(Error::IdTaken(34))));

    // An archived counter keeps its id, which its counts and its versions carry.
    let archived = Counter { id: 35, state: State::Archived, ..counter("c") };
    catalog.replace(archived, None, change("")).await.unwrap();

    let next = catalog.create(counter("f"), change("")).await.unwrap();
    assert_eq!((next.counter.id, next.version), (36, 1));
    assert_eq!(listed(catalog).await, [(1, 1), (7, 1), (34, 1), (35, 2), (36, 1)]);
}

pub async fn a_configuration_comes_back_whole(catalog: &dyn Catalog) {
    let condition = |operator: &str| Condition {
        operator: operator.to_owned(),
        conditions: None,
        lhs: Some("data.city".to_owned()),
        rhs: (operator != "exists").then(|| "Zürich \"'\\ ☔".into()),
    };

    let all = Condition {
        operator: "and".to_owned(),
        conditions: Some(vec![condition("eq"), condition("exists")]),
        lhs: None,
        rhs: None,
    };

    let whole = Counter {
        id: 12,
        name: "Größe ☔ \"'; --".to_owned(),
        filter: Some(all),
        value: Value::Field(FieldValue { field: "data.amount".to_owned(), scale: 100 }),
        retention_days: RetentionDays { quarter: Some(1), hour: Some(36_600), day: None },
        active_from: Some(0),
        active_until: Some(253_402_300_799),
        state: State::Paused,
        owner: "o".repeat(2_000),
        description: "two\nlines\t☔".to_owned(),
        ..counter("rain:☔:{city_id}")
    };

    let plain = Counter {
        id: 13,
        retention_days: RetentionDays::FOREVER,
        value: Value::Fixed(-5),
        ..counter("plain")
    };

    for counter in [whole, plain] {
        let change =
            Change { by: "Zoë".to_owned(), reason: "it's \"new\"\n☔".to_owned(), at_s: -1 };
        let created = catalog.create(counter.clone(), change).await.unwrap();
        let expected = Versioned {
            version: 1,
            changed_by: "Zoë".to_owned(),
            reason: "it's \"new\"\n☔".to_owned(),
            changed_at: -1,
            counter,
        };

        assert_eq!(created, expected);
        assert_eq!(catalog.get(expected.counter.id).await.unwrap(), expected);
        assert!(catalog.list().await.unwrap().contains(&expected));
    }
}

pub async fn every_version_is_kept(catalog: &dyn Catalog) {
    let mut kept = vec![catalog.create(counter("a"), change("first")).await.unwrap()];
    catalog.create(counter("b"), change("another")).await.unwrap();

    for version in 2..=5 {
        let described = Counter { description: version.to_string(), ..kept[0].counter.clone() };
        let change =
            Change { at_s: 100 - i64::from(version), ..change(&format!("change {version}")) };
        let replaced = catalog.replace(described, None, change).await.unwrap();
        assert_eq!((replaced.version, &*replaced.reason), (version, &*format!("change {version}")));
        kept.insert(0, replaced);
    }

    assert_eq!(catalog.versions(1).await.unwrap(), kept);
    assert_eq!(catalog.get(1).await.unwrap(), kept[0]);
    assert_eq!(catalog.versions(2).await.unwrap().len(), 1);
    assert_eq!(listed(catalog).await, [(1, 5), (2, 1)]);
}

pub async fn a_change_names_the_version_it_is_based_on(catalog: &dyn Catalog) {
    let first = catalog.create(counter("a"), change("")).await.unwrap();
    let described = |text: &str| Counter { description: text.to_owned(), ..first.counter.clone() };
    assert_eq!(catalog.replace(described("one"), Some(1), change("")).await.unwrap().version, 2);

    for expected in [0, 1, 3, u32::MAX] {
        let late = catalog.replace(described("late"), Some(expected), change("")).await;
        assert!(
            matches!(late, Err(Error::VersionMismatch { id: 1, current: 2 })),
            "{expected}: {late:?}"
        );
    }

    assert_eq!(catalog.get(1).await.unwrap().counter.description, "one");
    assert_eq!(catalog.replace(described("two"), Some(2), change("")).await.unwrap().version, 3);
    assert_eq!(catalog.replace(described("any"), None, change("")).await.unwrap().version, 4);
}

pub async fn an_equal_configuration_is_no_change(catalog: &dyn Catalog) {
    let first = catalog.create(counter("a"), change("first")).await.unwrap();
    let revision = catalog.revision().await.unwrap();
    for expected in [None, Some(1)] {
        assert_eq!(
            catalog.replace(first.counter.clone(), expected, change("again")).await.unwrap(),
            first
        );
    }
    let late = catalog.replace(first.counter.clone(), Some(2), change("again")).await;
    assert!(matches!(late, Err(Error::VersionMismatch { id: 1, current: 1 })));
    assert_eq!(catalog.versions(1).await.unwrap(), [first]);
    assert_eq!(catalog.revision().await.unwrap(), revision);
}

pub async fn conflicting_templates_are_refused(catalog: &dyn Catalog) {
    catalog
        .create(Counter { state: State::Draft, ..counter("rain:{city}") }, change(""))
        .await
        .unwrap();
    let other = catalog.create(counter("snow:{city}"), change("")).await.unwrap();
    let created = catalog.create(counter("rain:{country}"), change("")).await;
    assert_eq!(problem_fields(created), ["template"]);

    let conflicting = Counter { template: "rain:7".to_owned(), ..other.counter.clone() };
    let replaced = catalog.replace(conflicting, None, change("")).await;
    assert_eq!(problem_fields(replaced), ["template"]);

    // A counter does not conflict with its own earlier versions.
    let renamed = Counter { template: "snow:{town}".to_owned(), ..other.counter };
    assert_eq!(catalog.replace(renamed, Some(1), change("")).await.unwrap().version, 2);
    assert_eq!(listed(catalog).await, [(1, 1), (2, 2)]);
}

pub async fn an_archived_counter_leaves_its_template_to_others(catalog: &dyn Catalog) {
    let old = catalog.create(counter("rain:{city}"), change("")).await.unwrap().counter;
    let archived = Counter { state: State::Archived, ..old.clone() };
    catalog.replace(archived.clone(), None, change("")).await.unwrap();
    let new = catalog.create(counter("rain:{city}"), change("")).await.unwrap().counter;
    assert_eq!(problem_fields(catalog.replace(old.clone(), None, change("")).await), ["template"]);
    catalog.replace(Counter { state: State::Archived, ..new }, None, change("")).await.unwrap();
    assert_eq!(catalog.replace(old, Some(2), change("")).await.unwrap().version, 3);
    let also = catalog.create(Counter { id: 9, ..archived }, change("")).await;
    assert_eq!(also.unwrap().counter.state, State::Archived);
}

pub async fn a_wrong_configuration_is_refused(catalog: &dyn Catalog) {
    let wrong = Counter { name: String::new(), ..counter("a:{") };
    assert_eq!(problem_fields(catalog.create(wrong, change("")).await), ["name", "template"]);
    let first = catalog.create(counter("a"), change("")).await.unwrap();
    let wrong = Counter { event_type: String::new(), ..first.counter };
    assert_eq!(problem_fields(catalog.replace(wrong, None, change("")).await), ["eventType"]);
    assert_eq!(listed(catalog).await, [(1, 1)]);
}

pub async fn the_revision_grows_with_changes_only(catalog: &dyn Catalog) {
    let mut last = catalog.revision().await.unwrap();
    let mut grew = async || {
        let revision = catalog.revision().await.unwrap();
        assert!(revision >= last, "the revision fell from {last} to {revision}");
        std::mem::replace(&mut last, revision) < revision
    };

    let first = catalog.create(counter("a"), change("")).await.unwrap().counter;
    assert!(grew().await);
    catalog.create(counter("b"), change("")).await.unwrap();
    assert!(grew().await);
    catalog.create(counter("b"), change("")).await.unwrap_err();
    catalog.replace(first.clone(), Some(3), change("")).await.unwrap_err();
    assert!(!grew().await);
    catalog.replace(Counter { state: State::Paused, ..first }, Some(1), change("")).await.unwrap();
    assert!(grew().await);
    assert!(!grew().await);
}

pub async fn of_conflicting_counters_created_at_once_one_wins(catalog: &dyn Catalog) {
    let templates = ["a:{x}", "a:{y}", "{x}:b", "a:b", "{x}:{y}", "a:{z}"];
    let answers = at_once(
        templates.iter().map(|template| catalog.create(counter(template), change(""))).collect(),
    )
    .await;
    let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert_eq!(won.len(), 1);
    for answer in lost {
        assert_eq!(problem_fields(answer), ["template"]);
    }
    assert_eq!(listed(catalog).await, [(1, 1)]);
}

pub async fn ids_chosen_at_once_differ(catalog: &dyn Catalog) {
    let templates: Vec<String> = (0..8).map(|number| format!("t{number}")).collect();
    let answers = at_once(
        templates.iter().map(|template| catalog.create(counter(template), change(""))).collect(),
    )
    .await;
    let mut ids: Vec<u32> = answers.into_iter().map(|answer| answer.unwrap().counter.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7, 8]);
}

pub async fn no_concurrent_change_is_lost(catalog: &dyn Catalog) {
    const EDITORS: u32 = 4;
    const CHANGES: u32 = 5;

    catalog
        .create(Counter { description: "0".to_owned(), ..counter("a") }, change(""))
        .await
        .unwrap();
    let editor = || -> BoxFuture<'_, ()> {
        Box::pin(async {
            for _ in 0..CHANGES {
                increment(catalog, 1).await;
            }
        })
    };

    at_once((0..EDITORS).map(|_| editor()).collect()).await;
    let versions = catalog.versions(1).await.unwrap();
    assert_eq!(versions[0].counter.description, (EDITORS * CHANGES).to_string());
    assert_eq!(versions.len() as u32, EDITORS * CHANGES + 1);
}

/// Adds 1 to the number in a counter's description, and repeats until its change is the next
/// version.
pub async fn increment(catalog: &dyn Catalog, id: u32) {
    loop {
        let current = catalog.get(id).await.unwrap();
        let number: u32 = current.counter.description.parse().unwrap();
        let next = Counter { description: (number + 1).to_string(), ..current.counter };
        match catalog.replace(next, Some(current.version), change("one more")).await {
            Ok(replaced) => return assert_eq!(replaced.version, current.version + 1),
            Err(Error::VersionMismatch { current: newer, .. }) => assert!(newer > current.version),
            Err(error) => panic!("{error}"),
        }
    }
}

async fn listed(catalog: &dyn Catalog) -> Vec<(u32, u32)> {
    let counters = catalog.list().await.unwrap();
    counters.into_iter().map(|versioned| (versioned.counter.id, versioned.version)).collect()
}

fn problem_fields(answer: Result<Versioned, Error>) -> Vec<String> {
    match answer {
        Err(Error::Invalid(problems)) => {
            problems.into_iter().map(|problem| problem.field).collect()
        }
        other => panic!("expected a refusal, not {other:?}"),
    }
}

/// Drives all futures concurrently, on whichever runtime the suite runs.
pub(super) async fn at_once<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut running: Vec<(BoxFuture<'_, T>, Option<T>)> =
        futures.into_iter().map(|future| (future, None)).collect();
    poll_fn(|context| {
        for (future, answer) in running.iter_mut().filter(|(_, answer)| answer.is_none()) {
            if let Poll::Ready(ready) = future.as_mut().poll(context) {
                *answer = Some(ready);
            }
        }
        if running.iter().all(|(_, answer)| answer.is_some()) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    running.into_iter().filter_map(|(_, answer)| answer).collect()
}

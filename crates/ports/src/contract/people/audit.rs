//! The contract of the audit log.

use super::{AWKWARD, NOW_S, entry};
use crate::people::{AuditTrail, Entry, Filter};
use raingauge_core::limits::AUDIT_ENTRIES_MAX;

async fn objects(people: &dyn AuditTrail, filter: Filter) -> Vec<String> {
    people.entries(filter).await.unwrap().into_iter().map(|entry| entry.object).collect()
}

pub async fn entries_come_newest_first_in_pages(people: &dyn AuditTrail) {
    let awkward = Entry {
        address: "2001:db8::1".to_owned(),
        details: format!("{{\"text\":{AWKWARD:?}}}"),
        outcome: "version_mismatch".to_owned(),
        ..entry(NOW_S, AWKWARD, "counter.replace", AWKWARD)
    };

    people.record(awkward.clone()).await.unwrap();

    for number in 1..=4 {
        // Entries of the same second keep their order.
        people
            .record(entry(NOW_S + number / 3, "zoe", "counter.create", &number.to_string()))
            .await
            .unwrap();
    }

    let all = people.entries(Filter::default()).await.unwrap();
    assert_eq!(all.len(), 5);
    assert!(all.windows(2).all(|pair| pair[0].id > pair[1].id), "{all:?}");
    assert_eq!(Entry { id: 0, ..all[4].clone() }, awkward);

    let first = Filter { limit: 2, ..Filter::default() };
    assert_eq!(objects(people, first.clone()).await, ["4", "3"]);

    let second = Filter { before: all[1].id, ..first };
    assert_eq!(objects(people, second).await, ["2", "1"]);

    let limit = usize::MAX;
    assert!(
        objects(people, Filter { limit, ..Filter::default() }).await.len() <= AUDIT_ENTRIES_MAX
    );
}

pub async fn entries_are_filtered(people: &dyn AuditTrail) {
    for (at, who, verb, object) in [
        (0, "zoe", "counter.create", "counter 34"),
        (10, "zoe", "counter.replace", "counter 34"),
        (20, "max", "counter.replace", "counter 340"),
        (30, "100% max_", "token.create", "token shop"),
    ] {
        people.record(entry(NOW_S + at, who, verb, object)).await.unwrap();
    }

    let by = |who: &str, verb: &str, object: &str| {
        let [who, verb, object] = [who, verb, object].map(str::to_owned);
        Filter { who, verb, object, ..Filter::default() }
    };
    let objects = async |filter| objects(people, filter).await;
    assert_eq!(objects(by("zoe", "", "")).await, ["counter 34", "counter 34"]);
    assert_eq!(objects(by("max", "", "")).await, ["token shop", "counter 340"]);
    assert_eq!(objects(by("", "counter.", "")).await.len(), 3);
    assert_eq!(objects(by("zoe", "counter.replace", "")).await, ["counter 34"]);
    assert_eq!(objects(by("", "", "shop")).await, ["token shop"]);

    // No character in a filter acts as a pattern or terminates the text.
    assert_eq!(objects(by("100%", "", "")).await, ["token shop"]);

    for nothing in ["%", "_", "z_e", "' OR '1'='1", "\\"] {
        let found = objects(by(nothing, "counter", "")).await;
        assert_eq!(found, [""; 0], "{nothing}");
    }

    let between = Filter { from_s: NOW_S + 10, to_s: NOW_S + 30, ..Filter::default() };
    assert_eq!(objects(between).await, ["counter 340", "counter 34"]);
}

pub async fn old_entries_are_swept(people: &dyn AuditTrail) {
    for at in [0, 10] {
        people.record(entry(NOW_S + at, "zoe", "counter.create", &at.to_string())).await.unwrap();
    }
    people.sweep_entries(NOW_S + 10).await.unwrap();
    let left = people.entries(Filter::default()).await.unwrap();
    assert_eq!(left.iter().map(|entry| &*entry.object).collect::<Vec<_>>(), ["10"]);
    // An id is never reused, so paging that began earlier continues at the right place.
    people.sweep_entries(i64::MAX).await.unwrap();
    people.record(entry(NOW_S, "zoe", "counter.create", "new")).await.unwrap();
    assert!(people.entries(Filter::default()).await.unwrap()[0].id > left[0].id);
}

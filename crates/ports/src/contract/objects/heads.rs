//! Heads, by name, in order, and by when they expire.

use super::{Subject, drop_head, key, put};
use crate::objects::{
    Effect, Error, Group, INTERNAL_DATABASE, Key, KeyCount, OBJECT_NAME_LEN_MAX,
    OBJECT_SCAN_HEAD_LEN, ObjectControl, ObjectStore, Old,
};
use bytes::Bytes;

pub async fn what_is_put_is_found(subject: &Subject<impl ObjectStore + ObjectControl>) {
    assert_eq!(subject.head(0, "a").await, None);
    let long = "v".repeat(100_000);
    subject.put(vec![put(0, "a", "one", Old::Absent), put(0, "b", &long, Old::Unknown)]).await;

    let keys = vec![key(0, "b"), key(0, "none"), key(0, "a"), key(0, "b")];
    let heads = subject.store.heads(keys.clone(), usize::MAX).await.expect("heads");
    let long = Some(Bytes::from(long));
    assert_eq!(heads, [long.clone(), None, Some("one".into()), long.clone()]);

    // What exceeds the bytes is the last that is read, and the first is read in any case.
    for (keys, bytes_max, expected) in [
        (&keys[..], 99_999, &heads[..1]),
        (&keys[..], 100_000, &heads[..3]),
        (&keys[1..], 0, &heads[1..3]),
    ] {
        let found = subject.store.heads(keys.to_vec(), bytes_max).await;
        assert_eq!(found.as_deref(), Ok(expected), "{bytes_max} bytes");
    }

    let binary = Key::new(0, Bytes::from_static(b"\0\xff\n"));
    let head = Bytes::from_static(b"\0");
    subject
        .put(vec![Effect::PutHead {
            key: binary.clone(),
            head: head.clone(),
            expires_ms: None,
            wide: None,
            old: Old::Absent,
        }])
        .await;
    assert_eq!(subject.store.heads(vec![binary], 0).await, Ok(vec![Some(head)]));
    assert_eq!(subject.store.heads(Vec::new(), 0).await, Ok(Vec::new()));
}

pub async fn effects_happen_in_their_order(subject: &Subject<impl ObjectStore + ObjectControl>) {
    subject
        .put(vec![
            put(0, "a", "one", Old::Absent),
            drop_head(0, "a", Old::Present),
            put(0, "a", "two", Old::Absent),
            put(0, "b", "one", Old::Absent),
            drop_head(0, "b", Old::Present),
        ])
        .await;
    assert_eq!(subject.head(0, "a").await, Some("two".into()));
    assert_eq!(subject.head(0, "b").await, None);

    let first = subject.put(vec![put(0, "a", "three", Old::Present)]).await;
    let second = subject.put(vec![put(0, "a", "four", Old::Present)]).await;
    let empty = subject.put(Vec::new()).await;
    assert!(first < second && second < empty);
    assert_eq!(subject.head(0, "a").await, Some("four".into()));
    assert_eq!(subject.store.progress().submitted(), empty);
}

pub async fn keys_are_counted_whatever_was_known_of_them(
    subject: &Subject<impl ObjectStore + ObjectControl>,
) {
    for turn in ["one", "two"] {
        subject.put(vec![put(0, "a", turn, Old::Unknown), put(0, "b", turn, Old::Unknown)]).await;
        assert_eq!(subject.count(0).await, 2);
    }
    subject.put(vec![drop_head(0, "none", Old::Unknown)]).await;
    assert_eq!(subject.count(0).await, 2);

    subject.put(vec![drop_head(0, "a", Old::Present), put(0, "c", "", Old::Absent)]).await;
    assert_eq!(subject.count(0).await, 2);
    subject.put(vec![put(0, "a", "", Old::Unknown), drop_head(0, "a", Old::Unknown)]).await;
    assert_eq!(subject.count(0).await, 2);

    subject.put(vec![drop_head(0, "b", Old::Unknown), drop_head(0, "c", Old::Present)]).await;
    assert_eq!(subject.count(0).await, 0);
    assert_eq!(subject.count(1).await, 0);
}

pub async fn keys_that_expire_are_counted(subject: &Subject<impl ObjectStore + ObjectControl>) {
    let stays = |name: &str, old: Old| put(0, name, "v", old);
    let expires = |database: u8, name: &str, old: Old| Effect::PutHead {
        key: key(database, name),
        head: Bytes::from_static(b"v"),
        expires_ms: Some(9_000_000_000_000),
        wide: None,
        old,
    };
    let assert_counted = async |database: u8, keys: u64, expiring: u64| {
        assert_eq!(subject.store.count(database).await, Ok(KeyCount { keys, expiring }));
    };

    subject
        .put(vec![
            expires(0, "a", Old::Absent),
            expires(0, "b", Old::Unknown),
            stays("c", Old::Absent),
        ])
        .await;
    assert_counted(0, 3, 2).await;
    for (effects, expiring) in [
        (vec![stays("a", Old::Expiring)], 1),
        (vec![stays("b", Old::Unknown)], 0),
        (vec![expires(0, "c", Old::Present)], 1),
        (vec![expires(0, "c", Old::Expiring), expires(0, "c", Old::Unknown)], 1),
        (vec![expires(0, "b", Old::Unknown)], 2),
        (vec![drop_head(0, "c", Old::Expiring), expires(0, "d", Old::Absent)], 2),
    ] {
        subject.put(effects).await;
        assert_counted(0, 3, expiring).await;
    }

    subject.put(vec![drop_head(0, "b", Old::Unknown), expires(1, "b", Old::Absent)]).await;
    assert_counted(0, 2, 1).await;
    assert_counted(1, 1, 1).await;
    subject.put(vec![Effect::Swap { a: 0, b: 1 }]).await;
    assert_counted(0, 1, 1).await;
    assert_counted(1, 2, 1).await;

    subject.put(vec![Effect::Flush { database: 1 }, expires(1, "e", Old::Unknown)]).await;
    assert_counted(1, 1, 1).await;
    subject.put(vec![drop_head(1, "e", Old::Expiring)]).await;
    assert_counted(1, 0, 0).await;
}

pub async fn keys_are_scanned_in_order(subject: &Subject<impl ObjectStore + ObjectControl>) {
    let names: Vec<String> = (0..20).map(|number| format!("key {number:02}")).collect();
    for name in names.iter().rev() {
        subject.put(vec![put(0, name, name, Old::Absent)]).await;
    }
    subject.put(vec![drop_head(0, "key 07", Old::Present)]).await;
    let long = "v".repeat(OBJECT_SCAN_HEAD_LEN + 1);
    subject.put(vec![put(1, "key 03", &long, Old::Absent)]).await;
    let cut = subject.store.scan(1, None, 1).await.expect("a part");
    assert_eq!(cut[0].head, long[..OBJECT_SCAN_HEAD_LEN]);

    let mut found = Vec::new();
    let mut after = None;
    loop {
        let part = subject.store.scan(0, after, 3).await.expect("a part");
        assert!(part.len() <= 3);
        let Some(last) = part.last() else {
            break;
        };
        after = Some(last.name.clone());
        assert!(part.iter().all(|found| found.name == found.head));
        found.extend(part.into_iter().map(|found| found.name));
    }

    let expected: Vec<Bytes> =
        names.into_iter().filter(|name| name != "key 07").map(Bytes::from).collect();
    assert_eq!(found, expected);
    let behind = subject.store.scan(0, Some(Bytes::from_static(b"key 055")), 1).await;
    assert_eq!(behind.expect("a part")[0].name, "key 06");
}

pub async fn what_expires_becomes_due(subject: &Subject<impl ObjectStore + ObjectControl>) {
    let expiring = |database: u8, name: &str, expires_ms: Option<i64>| Effect::PutHead {
        key: key(database, name),
        head: Bytes::from_static(b"v"),
        expires_ms,
        wide: None,
        old: Old::Unknown,
    };
    subject
        .put(vec![
            expiring(0, "past", Some(1_000)),
            expiring(INTERNAL_DATABASE, "past", Some(2_000)),
            expiring(0, "persisted", Some(1_500)),
            expiring(0, "prolonged", Some(1_500)),
            expiring(0, "dropped", Some(1_500)),
            expiring(0, "never", None),
            expiring(0, "future", Some(9_000_000_000_000)),
        ])
        .await;
    subject
        .put(vec![
            expiring(0, "persisted", None),
            expiring(0, "prolonged", Some(9_000_000_000_000)),
            drop_head(0, "dropped", Old::Expiring),
        ])
        .await;

    // An engine may be late by two seconds.
    let due = async || {
        let mut due = subject.store.due(1_000_000, 10).await.expect("due keys");
        due.sort_unstable();
        due
    };
    let expected = [key(0, "past"), key(INTERNAL_DATABASE, "past")];
    assert_eq!(due().await, expected);
    assert_eq!(due().await, expected);
    assert_eq!(subject.store.due(1_000_000, 1).await.expect("due keys").len(), 1);
    assert_eq!(subject.store.due(999, 10).await, Ok(Vec::new()));

    subject.put(vec![drop_head(0, "past", Old::Expiring)]).await;
    assert_eq!(due().await, expected[1..]);
}

pub async fn limits_are_errors(subject: &Subject<impl ObjectStore + ObjectControl>) {
    let invalid = |effect: Effect| {
        let group = Group { effects: vec![put(0, "a", "", Old::Absent), effect] };
        assert!(matches!(subject.store.submit(group), Err(Error::Invalid(_))));
    };
    invalid(put(0, &"n".repeat(OBJECT_NAME_LEN_MAX + 1), "", Old::Absent));
    invalid(put(INTERNAL_DATABASE + 1, "a", "", Old::Absent));
    invalid(Effect::Swap { a: 0, b: 200 });
    assert_eq!(subject.head(0, "a").await, None);
    assert_eq!(subject.count(0).await, 0);

    let longest = "n".repeat(OBJECT_NAME_LEN_MAX);
    subject.put(vec![put(0, &longest, "v", Old::Absent), put(0, "", "v", Old::Absent)]).await;
    assert_eq!(subject.head(0, &longest).await, Some("v".into()));
    assert_eq!(subject.names(0).await, [Bytes::new(), Bytes::from(longest)]);
}

//! Databases, and when groups are durable.

use super::{Subject, put, put_entry, put_wide};
use crate::objects::{
    Durability, Effect, Group, INTERNAL_DATABASE, ObjectControl, ObjectStore, Old, SyncMode,
};
use bytes::Bytes;

pub async fn databases_do_not_mix(subject: &Subject<impl ObjectStore + ObjectControl>) {
    let in_each = [0, 1, 15, INTERNAL_DATABASE];
    for database in in_each {
        subject.put(vec![put(database, "a", &database.to_string(), Old::Absent)]).await;
    }
    for database in in_each {
        assert_eq!(subject.head(database, "a").await, Some(Bytes::from(database.to_string())));
        assert_eq!(subject.count(database).await, 1);
        assert_eq!(subject.names(database).await.len(), 1);
    }
    assert_eq!(subject.count(2).await, 0);
}

pub async fn a_flush_removes_all_of_a_database(
    subject: &Subject<impl ObjectStore + ObjectControl>,
) {
    subject
        .put(vec![
            put(0, "a", "1", Old::Absent),
            put_wide(0, "h", 1, Old::Absent),
            put_entry(0, 1, "f", "v"),
            put(1, "a", "kept", Old::Absent),
        ])
        .await;
    subject.put(vec![Effect::Flush { database: 0 }, put(0, "b", "2", Old::Absent)]).await;

    assert_eq!(subject.names(0).await, [Bytes::from_static(b"b")]);
    assert_eq!(subject.count(0).await, 1);
    assert_eq!(subject.entries(0, 1).await, []);
    assert_eq!(subject.head(0, "a").await, None);
    assert_eq!(subject.head(1, "a").await, Some("kept".into()));

    // A key that was flushed is unknown to nobody.
    subject.put(vec![put(0, "a", "3", Old::Unknown)]).await;
    assert_eq!(subject.count(0).await, 2);
    subject.put(vec![Effect::Flush { database: 0 }, Effect::Flush { database: 1 }]).await;
    assert_eq!(subject.count(0).await + subject.count(1).await, 0);
    assert_eq!(subject.store.due(i64::MAX / 2, 10).await, Ok(Vec::new()));
}

pub async fn databases_are_exchanged(subject: &Subject<impl ObjectStore + ObjectControl>) {
    subject
        .put(vec![
            put(0, "a", "of 0", Old::Absent),
            put_wide(0, "h", 1, Old::Absent),
            put_entry(0, 1, "f", "v"),
            put(1, "a", "of 1", Old::Absent),
        ])
        .await;
    subject.put(vec![Effect::Swap { a: 0, b: 1 }, put(0, "b", "later", Old::Absent)]).await;

    assert_eq!(subject.head(0, "a").await, Some("of 1".into()));
    assert_eq!(subject.head(1, "a").await, Some("of 0".into()));
    assert_eq!(subject.names(0).await, [Bytes::from_static(b"a"), Bytes::from_static(b"b")]);
    assert_eq!((subject.count(0).await, subject.count(1).await), (2, 2));
    assert_eq!(subject.entries(0, 1).await, []);
    assert_eq!(subject.entries(1, 1).await.len(), 1);

    // With itself, and with one that has nothing.
    subject.put(vec![Effect::Swap { a: 1, b: 1 }, Effect::Swap { a: 1, b: 2 }]).await;
    assert_eq!((subject.count(1).await, subject.count(2).await), (0, 2));
    assert_eq!(subject.entries(2, 1).await.len(), 1);
}

pub async fn groups_become_durable_in_every_mode(
    subject: &Subject<impl ObjectStore + ObjectControl>,
) {
    let store = &subject.store;
    for (turn, mode) in [SyncMode::Always, SyncMode::EverySecond, SyncMode::No].iter().enumerate() {
        store.set_sync_mode(*mode);
        assert_eq!(store.sync_mode(), *mode);
        let effects = vec![put(0, "a", &turn.to_string(), Old::Unknown)];
        let stamp = store.submit(Group { effects }).expect("it is taken");
        assert_eq!(subject.head(0, "a").await, Some(Bytes::from(turn.to_string())));

        store.durable(stamp, Durability::Written).await.expect("it is written");
        assert!(store.progress().written() >= stamp);
        store.durable(stamp, Durability::Synced).await.expect("it is synced");
        assert!(store.progress().synced() >= stamp);
    }
}

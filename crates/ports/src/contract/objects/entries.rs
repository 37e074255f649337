//! Wide objects and their entries.

use super::{Subject, drop_head, put, put_entry, put_wide};
use crate::objects::{Effect, ObjectControl, ObjectStore, Old};
use bytes::Bytes;

fn pairs(pairs: &[(&str, &str)]) -> Vec<(Bytes, Bytes)> {
    let bytes = |text: &str| Bytes::from(text.to_owned());
    pairs.iter().map(|(sub, value)| (bytes(sub), bytes(value))).collect()
}

pub async fn entries_are_read_in_order(subject: &Subject<impl ObjectStore + ObjectControl>) {
    subject.put(vec![put_wide(0, "h", 1, Old::Absent), put_entry(0, 1, "b", "2")]).await;
    subject.put(vec![put_entry(0, 1, "c", "3"), put_entry(0, 1, "a", "1")]).await;
    subject.put(vec![put_entry(0, 2, "", "other")]).await;
    assert_eq!(subject.entries(0, 1).await, pairs(&[("a", "1"), ("b", "2"), ("c", "3")]));
    assert_eq!(subject.entries(0, 2).await, pairs(&[("", "other")]));
    assert_eq!(subject.entries(0, 3).await, []);

    let dropped = Effect::DropEntry { database: 0, id: 1, sub: Bytes::from_static(b"b") };
    subject.put(vec![dropped, put_entry(0, 1, "d", ""), put_entry(0, 1, "a", "new")]).await;
    assert_eq!(subject.entries(0, 1).await, pairs(&[("a", "new"), ("c", "3"), ("d", "")]));

    let mut read = Vec::new();
    let mut after = None;
    loop {
        let page = subject.store.entries(0, 1, after, 0).await.expect("a page");
        assert!(!page.entries.is_empty(), "there is one more");
        after = page.entries.last().map(|(sub, _)| sub.clone());
        read.extend(page.entries);
        if !page.has_more {
            break;
        }
    }
    assert_eq!(read, pairs(&[("a", "new"), ("c", "3"), ("d", "")]));
}

pub async fn a_killed_object_has_no_entries(subject: &Subject<impl ObjectStore + ObjectControl>) {
    let put_both = vec![
        put_wide(0, "h", 1, Old::Absent),
        put_entry(0, 1, "a", "1"),
        put_wide(0, "i", 2, Old::Absent),
        put_entry(0, 2, "a", "2"),
    ];
    subject.put(put_both).await;
    subject.put(vec![drop_head(0, "h", Old::Present), Effect::Kill { database: 0, id: 1 }]).await;
    assert_eq!(subject.head(0, "h").await, None);
    assert_eq!(subject.entries(0, 1).await, []);
    assert_eq!(subject.entries(0, 2).await, pairs(&[("a", "2")]));
    assert_eq!(subject.count(0).await, 1);

    // An object that is made and killed in one group leaves nothing.
    subject.put(vec![put_entry(0, 3, "a", ""), Effect::Kill { database: 0, id: 3 }]).await;
    assert_eq!(subject.entries(0, 3).await, []);
}

pub async fn a_head_that_was_not_known_takes_its_object_along(
    subject: &Subject<impl ObjectStore + ObjectControl>,
) {
    let all = || [("h", 1), ("i", 2), ("j", 3)];
    for (name, id) in all() {
        subject.put(vec![put_wide(0, name, id, Old::Unknown), put_entry(0, id, "a", "1")]).await;
    }
    subject
        .put(vec![
            put(0, "h", "text", Old::Unknown),
            drop_head(0, "i", Old::Unknown),
            put_wide(0, "j", 3, Old::Unknown),
        ])
        .await;
    // What follows is known from the effect before it.
    subject.put(vec![put(0, "h", "text", Old::Present)]).await;
    subject.store.checkpoint().await.expect("the store found out");

    assert_eq!(subject.entries(0, 1).await, []);
    assert_eq!(subject.entries(0, 2).await, []);
    assert_eq!(subject.entries(0, 3).await, pairs(&[("a", "1")]));
    assert_eq!(subject.count(0).await, 2);
}

pub async fn an_object_moves_to_another_key(subject: &Subject<impl ObjectStore + ObjectControl>) {
    subject.put(vec![put_wide(0, "h", 1, Old::Absent), put_entry(0, 1, "a", "1")]).await;
    subject.put(vec![drop_head(0, "h", Old::Present), put_wide(0, "i", 1, Old::Absent)]).await;
    assert_eq!(subject.names(0).await, [Bytes::from_static(b"i")]);
    assert_eq!(subject.entries(0, 1).await, pairs(&[("a", "1")]));
}

pub async fn numbers_are_not_used_twice(subject: &Subject<impl ObjectStore + ObjectControl>) {
    assert_eq!(subject.store.status().next_id, 0);
    subject.put(vec![put_wide(0, "h", 7, Old::Absent), put_entry(0, 7, "a", "1")]).await;
    assert_eq!(subject.store.status().next_id, 8);
    subject.put(vec![drop_head(0, "h", Old::Present), Effect::Kill { database: 0, id: 7 }]).await;
    assert_eq!(subject.store.status().next_id, 8);
}

//! The contract of documents of products.

use crate::campaigns::{DocumentStore, Put, StoredDocument};
use serde_json::{Value as Json, json};
use std::future::poll_fn;
use std::task::Poll;

/// Runs the whole suite. `fresh` returns a store without documents each time.
pub async fn suite<D: DocumentStore>(fresh: impl AsyncFn() -> D) {
    a_place_without_documents_has_nothing(&fresh().await).await;
    a_document_comes_back_whole(&fresh().await).await;
    every_version_is_kept(&fresh().await).await;
    a_change_names_the_version_it_is_based_on(&fresh().await).await;
    numbers_are_never_given_twice(&fresh().await).await;
    a_deleted_document_can_return(&fresh().await).await;
    reports_what_changed_since_a_revision(&fresh().await).await;
    of_changes_at_once_one_wins(&fresh().await).await;
}

/// A document that is not stored yet.
pub fn document(kind: &str, id: &str, configuration: Json) -> StoredDocument {
    StoredDocument {
        kind: kind.to_owned(),
        id: id.to_owned(),
        version: 0,
        configuration,
        is_deleted: false,
        changed_by: "zoe".to_owned(),
        reason: String::new(),
        changed_ms: 1_727_215_200_123,
    }
}

fn deleted(kind: &str, id: &str) -> StoredDocument {
    StoredDocument { is_deleted: true, ..document(kind, id, Json::Null) }
}

async fn stored(
    documents: &dyn DocumentStore,
    document: StoredDocument,
    base: u32,
) -> StoredDocument {
    match documents.put(document, base).await.unwrap() {
        Put::Stored(stored) => stored,
        Put::Conflict { current } => panic!("the document is at version {current}"),
    }
}

async fn a_place_without_documents_has_nothing(documents: &dyn DocumentStore) {
    assert_eq!(documents.newest().await.unwrap(), []);
    assert_eq!(documents.get("campaign", "1", None).await.unwrap(), None);
    assert_eq!(documents.get("campaign", "1", Some(1)).await.unwrap(), None);
    assert_eq!(documents.versions("campaign", "1").await.unwrap(), []);

    let changed = documents.changed_since(0).await.unwrap();
    assert_eq!((changed.revision, changed.documents.len()), (0, 0));
    let put = documents.put(document("campaign", "1", json!({})), 1).await.unwrap();
    assert_eq!(put, Put::Conflict { current: 0 });
}

async fn a_document_comes_back_whole(documents: &dyn DocumentStore) {
    let configuration = json!({
        "name": "Größe ☔ \"'; --",
        "rule": { "operator": "in", "lhs": "var.país", "rhs": ["SG", 1.5, -7] },
        "description": "d".repeat(60_000),
        "owner": null,
    });
    let whole = StoredDocument {
        changed_by: "token:☔ \"'".to_owned(),
        reason: "it's \"new\"\n☔".to_owned(),
        ..document("destination", "rewards-1_A", configuration)
    };

    let kept = stored(documents, whole.clone(), 0).await;
    assert_eq!(kept, StoredDocument { version: 1, ..whole });
    assert_eq!(documents.get("destination", "rewards-1_A", None).await.unwrap(), Some(kept));
    assert_eq!(documents.get("destination", "rewards-1_a", None).await.unwrap(), None);
    assert_eq!(documents.get("budget", "rewards-1_A", None).await.unwrap(), None);
}

async fn every_version_is_kept(documents: &dyn DocumentStore) {
    let mut versions = Vec::new();
    for number in 0..3 {
        let next = document("cap", "calm", json!({ "max": number }));
        versions.insert(0, stored(documents, next, number).await);
    }
    stored(documents, document("cap", "busy", json!({})), 0).await;

    assert_eq!(documents.versions("cap", "calm").await.unwrap(), versions);
    let second = documents.get("cap", "calm", Some(2)).await.unwrap();
    assert_eq!(second.as_ref(), Some(&versions[1]));
    assert_eq!(documents.get("cap", "calm", Some(4)).await.unwrap(), None);

    let newest = documents.newest().await.unwrap();
    let named: Vec<_> = newest.iter().map(|found| (found.id.as_str(), found.version)).collect();
    assert_eq!(named, [("busy", 1), ("calm", 3)]);
}

async fn a_change_names_the_version_it_is_based_on(documents: &dyn DocumentStore) {
    let first = stored(documents, document("budget", "all", json!({ "max": 1 })), 0).await;
    stored(documents, first.clone(), 1).await;
    for base in [0, 1, 3, u32::MAX] {
        let late = documents.put(first.clone(), base).await.unwrap();
        assert_eq!(late, Put::Conflict { current: 2 }, "{base}");
    }
    assert_eq!(documents.versions("budget", "all").await.unwrap().len(), 2);
}

async fn numbers_are_never_given_twice(documents: &dyn DocumentStore) {
    let new = || document("campaign", "", json!({ "id": 0, "name": "rain" }));
    let first = stored(documents, new(), 0).await;
    assert_eq!((first.id.as_str(), &first.configuration["id"]), ("1", &json!(1)));

    // Names, numbers with signs or zeros in front, and other kinds do not count.
    stored(documents, document("campaign", "9", json!({ "id": 9 })), 0).await;
    stored(documents, document("campaign", "007", json!({})), 0).await;
    stored(documents, document("campaign", "99x", json!({})), 0).await;
    stored(documents, document("other", "50", json!({})), 0).await;
    assert_eq!(stored(documents, new(), 0).await.id, "10");
    stored(documents, deleted("campaign", "10"), 1).await;
    assert_eq!(stored(documents, new(), 0).await.id, "11");
    assert_eq!(stored(documents, document("other", "", json!({})), 0).await.id, "51");
}

async fn a_deleted_document_can_return(documents: &dyn DocumentStore) {
    let holdout = || document("holdout", "outside", json!({ "share": 1 }));
    stored(documents, holdout(), 0).await;
    let gone = stored(documents, deleted("holdout", "outside"), 1).await;
    assert_eq!((gone.version, gone.is_deleted), (2, true));

    assert_eq!(documents.newest().await.unwrap(), []);
    assert_eq!(documents.get("holdout", "outside", None).await.unwrap(), Some(gone));
    let first = documents.get("holdout", "outside", Some(1)).await.unwrap();
    assert!(first.is_some_and(|first| !first.is_deleted));

    let late = documents.put(holdout(), 1).await.unwrap();
    assert_eq!(late, Put::Conflict { current: 2 });
    assert_eq!(stored(documents, holdout(), 0).await.version, 3);
    assert_eq!(documents.newest().await.unwrap().len(), 1);
}

async fn reports_what_changed_since_a_revision(documents: &dyn DocumentStore) {
    let put = async |id: &str, base| stored(documents, document("cap", id, json!({})), base).await;
    put("a", 0).await;
    put("b", 0).await;
    let all = documents.changed_since(0).await.unwrap();
    assert_eq!(all.documents.len(), 2);
    assert!(all.revision > 0);

    let nothing = documents.changed_since(all.revision).await.unwrap();
    assert_eq!((nothing.revision, nothing.documents.len()), (all.revision, 0));
    put("a", 1).await;
    let newest = put("a", 2).await;
    let gone = stored(documents, deleted("cap", "b"), 1).await;

    let changed = documents.changed_since(all.revision).await.unwrap();
    assert!(changed.revision > all.revision);
    assert_eq!(changed.documents, [newest, gone]);
    let refused = documents.put(document("cap", "a", json!({})), 1).await.unwrap();
    assert_eq!(refused, Put::Conflict { current: 3 });
    assert_eq!(documents.changed_since(changed.revision).await.unwrap().documents, []);
}

async fn of_changes_at_once_one_wins(documents: &dyn DocumentStore) {
    stored(documents, document("cap", "calm", json!({})), 0).await;
    let change = |number: u32| documents.put(document("cap", "calm", json!({ "max": number })), 1);
    let new = || documents.put(document("campaign", "", json!({})), 0);

    // Driven concurrently, on whichever runtime the suite runs.
    let mut running: Vec<_> =
        (0..6).map(change).chain((0..6).map(|_| new())).map(|put| (put, None)).collect();
    poll_fn(|context| {
        for (put, answer) in running.iter_mut().filter(|(_, answer)| answer.is_none()) {
            if let Poll::Ready(ready) = put.as_mut().poll(context) {
                *answer = Some(ready.unwrap());
            }
        }
        let is_done = running.iter().all(|(_, answer)| answer.is_some());
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;

    let answers: Vec<Put> = running.into_iter().filter_map(|(_, answer)| answer).collect();
    let of_calm = answers[..6].iter();
    assert_eq!(of_calm.filter(|put| matches!(put, Put::Stored(_))).count(), 1);
    let mut numbers: Vec<&str> = answers[6..]
        .iter()
        .filter_map(|put| match put {
            Put::Stored(stored) => Some(stored.id.as_str()),
            Put::Conflict { .. } => None,
        })
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, ["1", "2", "3", "4", "5", "6"]);
}

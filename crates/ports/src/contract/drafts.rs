//! The contract of drafts.

use crate::BoxFuture;
use crate::drafts::{Draft, Drafts, Error, State};
use serde_json::json;
use std::future::poll_fn;
use std::task::Poll;

const NOW_S: i64 = 1_727_215_200;

/// Runs the whole suite. `fresh` returns a store without drafts each time.
pub async fn suite<D: Drafts>(fresh: impl AsyncFn() -> D) {
    a_place_without_drafts_has_nothing(&fresh().await).await;
    a_draft_comes_back_whole(&fresh().await).await;
    a_change_names_the_revision_it_is_based_on(&fresh().await).await;
    open_and_ended_drafts_are_listed_apart(&fresh().await).await;
    of_changes_at_once_one_wins(&fresh().await).await;
    ids_chosen_at_once_differ(&fresh().await).await;
}

fn draft(name: &str) -> Draft {
    Draft::new("counter", json!({ "name": name }), 0, "Ada", NOW_S)
}

pub async fn a_place_without_drafts_has_nothing(drafts: &dyn Drafts) {
    assert_eq!(drafts.list(true, 10).await.unwrap(), []);
    assert_eq!(drafts.list(false, 10).await.unwrap(), []);
    for id in [0, 1, u64::from(u32::MAX)] {
        assert!(matches!(drafts.get(id).await, Err(Error::NotFound(found)) if found == id));
    }
    assert!(matches!(
        drafts.replace(Draft { id: 1, revision: 1, ..draft("a") }).await,
        Err(Error::NotFound(1))
    ));
}

pub async fn a_draft_comes_back_whole(drafts: &dyn Drafts) {
    let configuration = json!({
        "id": 12,
        "name": "Größe ☔ \"'; --",
        "template": "rain:☔:{city_id}",
        "value": { "field": "data.amount", "scale": 100 },
        "description": "d".repeat(2_000),
        "activeFrom": 0,
        "owner": null,
    });
    for state in State::ALL {
        let whole = Draft {
            state,
            kind: "points programme".to_owned(),
            configuration: configuration.clone(),
            base_version: 7,
            applied_version: 8,
            reason: "it's \"new\"\n☔".to_owned(),
            reviewer: "Zoë".to_owned(),
            comment: "c".repeat(2_000),
            changed_at: NOW_S + 5,
            changed_by: "Bob".to_owned(),
            contributors: ["Ada", "Zoë \"'", "Bob"].map(str::to_owned).to_vec(),
            ..draft("a")
        };

        let kept = drafts.create(whole.clone()).await.unwrap();
        assert_eq!(kept, Draft { id: kept.id, revision: 1, ..whole });
        assert!(kept.id > 0);
        assert_eq!(drafts.get(kept.id).await.unwrap(), kept);
    }
}

pub async fn a_change_names_the_revision_it_is_based_on(drafts: &dyn Drafts) {
    let first = drafts.create(draft("a")).await.unwrap();
    let said =
        |reason: &str, revision| Draft { reason: reason.to_owned(), revision, ..first.clone() };
    let second = drafts.replace(said("one", 1)).await.unwrap();
    assert_eq!(second, said("one", 2));

    for revision in [0, 1, 3, u32::MAX] {
        let late = drafts.replace(said("late", revision)).await;
        assert!(
            matches!(late, Err(Error::RevisionMismatch { current: 2, .. })),
            "{revision}: {late:?}"
        );
    }

    // A change without effect still counts as a change: its caller continues from the returned
    // revision.
    assert_eq!(drafts.replace(second.clone()).await.unwrap().revision, 3);
    assert_eq!(drafts.get(first.id).await.unwrap(), said("one", 3));

    let edited = drafts.replace(said("two", 3).edited_by("Zoë").edited_by("Ada")).await.unwrap();
    let kept = drafts.get(first.id).await.unwrap();
    assert_eq!(
        (kept.contributors.as_slice(), kept.changed_by.as_str()),
        (&["Ada", "Zoë"].map(str::to_owned)[..], "Ada")
    );
    assert_eq!(kept, edited);
}

pub async fn open_and_ended_drafts_are_listed_apart(drafts: &dyn Drafts) {
    for (number, state) in (0..).zip(State::ALL) {
        let changed_at = NOW_S + [3, 1, 4, 2, 5][number as usize];
        drafts.create(Draft { state, changed_at, ..draft(state.name()) }).await.unwrap();
    }
    let names = async |is_open, limit| {
        let found = drafts.list(is_open, limit).await.unwrap();
        let name = |draft: Draft| draft.configuration["name"].as_str().unwrap().to_owned();
        found.into_iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(true, 10).await, ["draft", "rejected", "review"]);
    assert_eq!(names(true, 2).await, ["draft", "rejected"]);
    assert_eq!(names(false, 10).await, ["withdrawn", "applied"]);
}

pub async fn of_changes_at_once_one_wins(drafts: &dyn Drafts) {
    let first = drafts.create(draft("a")).await.unwrap();
    let change = |number: u32| Draft { reason: number.to_string(), ..first.clone() };
    let answers = at_once((0..6).map(|number| drafts.replace(change(number))).collect()).await;
    let won: Vec<Draft> = answers.into_iter().filter_map(Result::ok).collect();
    assert_eq!(won.len(), 1);
    assert_eq!(drafts.get(first.id).await.unwrap(), won[0]);
}

pub async fn ids_chosen_at_once_differ(drafts: &dyn Drafts) {
    let answers =
        at_once((0..6).map(|number| drafts.create(draft(&format!("t{number}")))).collect()).await;
    let mut ids: Vec<u64> = answers.into_iter().map(|answer| answer.unwrap().id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 6);
    assert_eq!(drafts.list(true, 10).await.unwrap().len(), 6);
}

/// Drives all futures concurrently, on whichever runtime the suite runs.
async fn at_once<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
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

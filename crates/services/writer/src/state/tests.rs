use super::*;
use crate::control::Control;
use serde_json::json;

fn counter(description: &str) -> Counter {
    valued(1, description)
}

fn valued(value: i64, description: &str) -> Counter {
    let json = json!({"id": 1, "name": "n", "template": "k", "eventType": "t", "value": value,
        "description": description});
    Counter::from_json(&json).unwrap()
}

fn change(version: u32, counter: Counter) -> Change {
    Change { version, changed_at: 0, put_back: false, counter }
}

fn begin(after_s: i64, offset: Offset) -> Begin {
    Begin { after_s, offset, ..Begin::default() }
}

fn since(state: &State) -> Vec<Offset> {
    state.counters[&1].parts[0].rules.iter().map(|rule| rule.since).collect()
}

#[test]
fn a_backfill_replaces_what_it_covers_and_keeps_the_rest() {
    let mut state = State::default();
    state.set_counter(change(1, counter("")), 0, 0, true);
    state.begin_backfill(1, begin(86_400, 10));
    state.begin_backfill(1, begin(0, 99));
    assert_eq!(state.queue, [1], "while one is undecided there is no other");
    state.switch(1, 1, 7);
    assert_eq!(state.counters[&1].timeline().parts(), [(0, 4_096), (86_400, 4_097)]);
    state.begin_backfill(1, begin(86_400, 20));
    state.switch(1, 2, 7);
    assert_eq!(state.counters[&1].timeline().parts(), [(0, 4_096), (86_400, 4_098)]);
    state.retire(1, 1);
    assert!(
        state.retired.is_empty(),
        "generation 1 is still counted for those who have not switched to 2"
    );
    state.begin_backfill(1, begin(0, 30));
    state.switch(1, 3, 7);
    assert_eq!(state.counters[&1].timeline().parts(), [(0, 4_099)]);
    state.retire(1, 3);
    assert_eq!((&state.retired[..], state.open()), (&[4_096, 4_097, 4_098][..], vec![]));
    state.forget_removed(4_097);
    assert_eq!(state.retired, [4_096, 4_098]);
    assert_eq!(State::from_json(&state.to_json()).unwrap(), state);
}

/// Other partitions get a backfill's entry when this one has it at the head of its queue, and begin
/// with its first rule.
#[test]
fn what_a_backfill_begins_with_is_kept_while_it_is_undecided() {
    let mut state = State::default();
    let paused = Counter { state: Life::Paused, ..counter("") };
    state.set_counter(change(1, paused.clone()), 0, 0, true);
    state.begin_backfill(1, begin(0, 10));
    state.set_counter(change(2, Counter { owner: "someone".to_owned(), ..paused }), 20, 0, true);
    state.forget_before(30);
    assert_eq!(since(&state), [20]);
    let backfill = state.counters[&1].backfill.as_ref().expect("it is undecided");
    assert_eq!(backfill.rules[0].counter, counter(""), "entries before it are counted");
    state.switch(1, 1, 40);
    state.forget_before(30);
    assert_eq!(since(&state), [20]);
}

/// What each partition that has not switched yet is asked for is counted in those that have.
#[test]
fn what_a_switch_replaces_is_counted_until_it_is_retired() {
    let mut state = State::default();
    state.set_counter(change(1, counter("")), 0, 0, true);

    let generations = |state: &State, filled: Option<u32>, time_s: i64| {
        state.view(filled).generations_at(0, time_s).collect::<Vec<_>>()
    };
    state.begin_backfill(1, begin(86_400, 10));
    assert_eq!(generations(&state, None, 86_400), [4_096]);
    assert_eq!(
        generations(&state, Some(1), 86_400),
        [4_096, 4_097],
        "what has caught up is counted as well"
    );
    assert_eq!(generations(&state, Some(1), 0), [4_096], "but only once where both have the same");
    state.switch(1, 1, 7);
    assert_eq!(generations(&state, None, 86_400), [4_097, 4_096]);
    assert_eq!(generations(&state, None, 0), [4_096]);
    state.retire(1, 1);
    assert_eq!(generations(&state, None, 86_400), [4_097]);
}

#[test]
fn a_change_of_what_is_counted_cancels_where_that_is_decided_and_a_change_of_words_nowhere() {
    for decides in [true, false] {
        let mut state = State::default();
        state.set_counter(change(1, counter("")), 5, 0, decides);
        state.begin_backfill(1, begin(0, 6));
        state.set_counter(change(1, counter("again")), 7, 0, decides);
        state.set_counter(change(2, counter("b")), 8, 0, decides);
        assert_eq!(
            state.queue,
            [1],
            "the same version again changes nothing, and words change no counts"
        );
        state.set_counter(change(3, valued(2, "b")), 9, 0, decides);
        assert_eq!(
            (state.queue.is_empty(), &state.retired[..]),
            (decides, if decides { &[4_097][..] } else { &[] })
        );
        assert_eq!(since(&state), [5, 8, 9]);

        if !decides {
            let rules = &state.counters[&1].backfill.as_ref().unwrap().rules;
            assert_eq!(rules.iter().map(|rule| rule.since).collect::<Vec<_>>(), [0, 8, 9]);
            state.cancel(1, 1, "the counter was changed", 9);
        }

        let backfill = state.counters[&1].backfill.as_ref().unwrap();
        assert_eq!(
            (backfill.status, &*backfill.reason),
            (BackfillStatus::Cancelled, "the counter was changed")
        );
        state.forget_before(9);
        assert_eq!(since(&state), [9]);
    }
}

#[test]
fn old_news_of_a_backfill_change_nothing() {
    let mut state = State::default();
    state.set_counter(change(1, counter("")), 0, 0, false);

    let numbered = |number| Begin { number: Some(number), ..Begin::default() };
    state.cancel(1, 3, "given up before it came here", 0);
    state.begin_backfill(1, numbered(3));
    assert!(state.queue.is_empty());
    state.begin_backfill(1, numbered(5));

    let before = state.clone();
    state.begin_backfill(1, numbered(5));
    state.begin_backfill(1, numbered(6));
    state.switch(1, 4, 0);
    state.cancel(1, 4, "", 0);
    state.retire(1, 5);
    assert_eq!(state, before);
    state.switch(1, 5, 0);

    let before = state.clone();
    state.switch(1, 5, 9);
    state.cancel(1, 5, "too late", 9);
    assert_eq!(state, before);
}

#[test]
fn backfills_of_several_counters_wait_for_each_other() {
    let mut state = State::default();
    for id in 1..=3 {
        state.set_counter(
            change(1, Counter { id, template: format!("k{id}"), ..counter("") }),
            0,
            0,
            true,
        );
        state.begin_backfill(id, begin(0, 10));
    }

    assert_eq!((&state.queue[..], state.begun), (&[1, 2, 3][..], 1));
    state.switch(2, 1, 0);
    assert_eq!(state.queue, [1, 2, 3], "only the first one is filled");
    state.cancel(2, 1, "", 0);
    assert_eq!((&state.queue[..], state.begun), (&[1, 3][..], 1));
    state.switch(1, 1, 0);
    assert_eq!((&state.queue[..], state.begun), (&[3][..], 2));
}

fn erase(state: &mut State, number: u32, offset: Offset, replaces: Option<u32>) {
    state.erase(1, Erasure { number, offset }, replaces, 7);
}

/// Erased counts are retired like those that a backfill replaces, and no later backfill counts the
/// entries before the erasure.
#[test]
fn an_erasure_begins_from_nothing() {
    let mut state = State::default();
    state.set_counter(change(1, counter("")), 0, 0, true);
    state.begin_backfill(1, begin(86_400, 10));
    erase(&mut state, 2, 20, None);

    let known = &state.counters[&1];
    let backfill = known.backfill.as_ref().unwrap();
    assert_eq!(
        (backfill.status, &*backfill.reason),
        (BackfillStatus::Cancelled, "the counts of the counter were erased")
    );
    assert_eq!((known.timeline().parts(), known.newest), (&[(0, 4_098)][..], 2));
    assert_eq!(
        (since(&state), state.queue.is_empty(), &state.retired[..]),
        (vec![20], true, &[4_097][..])
    );

    let counted: Vec<_> = state.view(None).generations_at(0, 86_400).collect();
    assert_eq!(
        counted,
        [4_098, 4_096],
        "readers that have not heard of it are answered by what was"
    );
    assert_eq!(State::from_json(&state.to_json()).unwrap(), state);

    state.retire(1, 2);
    assert_eq!((&state.retired[..], state.open()), (&[4_097, 4_096][..], vec![]));
    state.begin_backfill(1, begin(0, 30));

    let rules = &state.counters[&1].backfill.as_ref().unwrap().rules;
    assert_eq!(
        rules.iter().map(|rule| rule.since).collect::<Vec<_>>(),
        [20],
        "nothing counts what was erased"
    );
    state.switch(1, 3, 7);
    assert_eq!(state.counters[&1].timeline().parts(), [(0, 4_099)]);
    state.forget_before(25);
    assert_eq!(since(&state), [20]);
}

#[test]
fn old_news_of_an_erasure_change_nothing() {
    let mut state = State::default();
    erase(&mut state, 1, 3, None);
    assert!(state.counters.is_empty(), "nobody has told of the counter");
    state.set_counter(change(1, counter("")), 0, 0, false);
    state.begin_backfill(1, Begin { number: Some(2), ..Begin::default() });

    let before = state.clone();
    erase(&mut state, 2, 5, None);
    erase(&mut state, 3, 5, Some(2));
    assert_eq!(state, before, "neither one that came too late, nor one before what comes first");
    state.switch(1, 2, 0);
    erase(&mut state, 3, 6, Some(2));
    assert_eq!(state.counters[&1].erased, Some(Erasure { number: 3, offset: 6 }));

    let before = state.clone();
    erase(&mut state, 3, 8, Some(2));
    assert_eq!(state, before);
}

/// Numbers grow for ever, and a generation is used again only when nothing of it is left.
#[test]
fn generations_never_wrap_onto_what_is_left_of_one() {
    let mut state = State::default();
    state.set_counter(change(1, counter("")), 0, 0, true);

    // The first backfill keeps generation 0 for the days before.
    for number in 1..=4_095 {
        state.begin_backfill(1, begin(86_400, 0));
        state.switch(1, number, 0);
        state.retire(1, number);
        state.retired.clear();
    }

    state.begin_backfill(1, begin(86_400, 0));
    let backfill = state.counters[&1].backfill.clone().unwrap();
    assert_eq!(
        (backfill.number, backfill.generation),
        (4_097, 4_097),
        "generation 4096 still answers"
    );
    state.switch(1, 4_097, 0);
    assert_eq!(state.counters[&1].timeline().parts(), [(0, 4_096), (86_400, 4_097)]);
    assert_eq!(state.counters[&1].answers_by(), 4_097, "and is the newest all the same");
}

#[test]
fn an_older_version_counts_only_where_the_catalog_was_put_back() {
    let mut state = State::default();
    state.set_counter(change(3, counter("new")), 5, 0, true);
    state.begin_backfill(1, begin(0, 0));

    let before = state.clone();
    state.set_counter(change(2, counter("old news of another process")), 6, 0, true);
    assert_eq!(state, before, "neither the counter nor its backfill");
    state.set_counter(Change { put_back: true, ..change(2, counter("restored")) }, 7, 0, true);
    assert_eq!(
        (state.counters[&1].version, state.counters[&1].counter.description.as_str()),
        (2, "restored")
    );
    state.set_counter(change(3, counter("again")), 8, 0, true);
    assert_eq!(since(&state), [5, 7, 8]);
}

/// A catalog that lost its newest version gives the number to another configuration.
#[test]
fn of_two_configurations_with_one_version_the_later_one_counts() {
    let dated =
        |version, changed_at, value| Change { changed_at, ..change(version, valued(value, "")) };
    let mut state = State::default();
    state.set_counter(dated(7, 1_000, 1), 1, 0, true);
    state.set_counter(dated(7, 1_060, 2), 2, 0, true);
    state.set_counter(dated(7, 1_000, 1), 3, 0, true);
    assert_eq!(state.counters[&1].counter, valued(2, ""), "whichever came last");
    state.set_counter(dated(6, 1_090, 3), 4, 0, true);
    assert_eq!(state.counters[&1].counter, valued(2, ""), "clocks differ a little");
    state.set_counter(dated(6, 1_200, 3), 5, 0, true);
    assert_eq!(state.counters[&1].counter, valued(3, ""), "the catalog lost two versions");
}

#[test]
fn entries_look_as_they_always_did_and_old_ones_are_read() {
    let change = Control::counter(2, 0, counter(""));
    let json: serde_json::Value = serde_json::from_slice(&change.to_json()).unwrap();
    assert!(json.get("put_back").is_none() && json.get("changed_at").is_none(), "{json}");
    assert_eq!(serde_json::from_value::<Control>(json).unwrap(), change);
    let old: Control = serde_json::from_str(r#"{"kind":"backfill","counter":34}"#).unwrap();
    assert_eq!(old, Control::backfill(34));
    let old: Control =
        serde_json::from_str(r#"{"kind":"backfill","counter":34,"after_s":86400}"#).unwrap();
    assert!(matches!(
        old,
        Control::Backfill { counter: 34, after_s: Some(86_400), number: None, .. }
    ));
}

/// A state of the first versions, in the middle of a backfill.
#[test]
fn a_state_of_the_first_versions_goes_on() {
    let json = json!({"format": 1, "retired": [4_097], "counters": {"1": {
        "version": 2, "counter": counter(""), "kept_from": {"quarter_s": 0, "hour_s": 0, "day_s": 0},
        "parts": [{"from_s": 0, "generation": 4_098, "rules": [{"since": 0, "counter": counter("")}]}],
        "backfill": {"status": "running", "generation": 4_099, "from": 10, "position": 20, "afterS": 0,
            "counted": 5, "stampBaseUs": 3, "endedAt": 0}}}});

    let mut state = State::from_json(json.to_string().as_bytes()).unwrap();
    assert_eq!(
        (&state.queue[..], state.counters[&1].newest, state.counters[&1].answers_by()),
        (&[1][..], 3, 2)
    );

    let (_, backfill) = state.front().unwrap();
    assert_eq!((backfill.number, backfill.position, backfill.rules.len()), (3, 20, 1));
    state.switch(1, 3, 0);
    assert_eq!(state.counters[&1].timeline().parts(), [(0, 4_099)]);
}

#[test]
fn a_state_of_another_format_is_refused() {
    assert!(
        State::from_json(br#"{"format":2,"counters":{},"retired":[]}"#)
            .unwrap_err()
            .contains("format 2")
    );
    assert!(State::from_json(b"{").is_err());
}

/// A worker that has lost its partition may write later than its successor, with less progress.
#[test]
fn progress_only_grows() {
    let of = |begun, phase, position| {
        let counter = 1;
        let number = 1;
        let from = 10;
        let counted = 0;
        let stamp_us = 0;

        let reason = String::new();
        Progress { begun, counter, number, from, position, counted, stamp_us, phase, reason }
            .stored()
    };

    let stored = [
        of(1, Phase::Filling, 20),
        of(1, Phase::Filling, 1 << 39),
        of(1, Phase::Failed, 15),
        of(1, Phase::Filled, 12),
        of(1, Phase::Filled, u64::MAX),
        of(2, Phase::Filling, 10),
    ];

    assert!(stored.is_sorted_by(|earlier, later| earlier.rank < later.rank), "{stored:?}");
    assert_eq!(Progress::from_json(&stored[3].bytes).unwrap().position, 12);
}

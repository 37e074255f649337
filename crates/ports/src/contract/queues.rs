//! The contract of queues.

use crate::points::{
    Burial, Depth, Letter, LetterSelection, QUEUE_BODY_LEN_MAX, QUEUE_CALL_LEN_MAX,
    QUEUE_DELAY_S_MAX, QUEUE_ID_LEN_MAX, QueueControl, QueueError, QueueName, Queues, Receipt,
    Receive, ReceivedLetter, Shelf,
};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const QUEUE: QueueName = QueueName::Retry;
/// A visibility and a delay that a test waits for.
const SHORT: Duration = Duration::from_secs(2);
/// One that no test outlives.
const LONG: Duration = Duration::from_secs(600);
/// Longest time until a letter is there that has to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the whole suite. `fresh` returns empty queues each time; `pass` advances the clock that
/// they follow, where it does not advance by itself.
pub async fn suite<Q>(fresh: impl AsyncFn() -> Q, pass: impl AsyncFn(Duration))
where
    Q: Queues + QueueControl,
{
    what_is_sent_is_received_whole(&fresh().await).await;
    many_letters_are_each_received(&fresh().await).await;
    a_letter_that_is_not_deleted_comes_back(&fresh().await, &pass).await;
    a_void_receipt_deletes_nothing(&fresh().await, &pass).await;
    a_delayed_letter_waits(&fresh().await, &pass).await;
    visibility_is_changed_in_both_directions(&fresh().await, &pass).await;
    a_receive_waits_for_the_first_letter(&fresh().await).await;
    the_dead_are_kept_with_their_reasons(&fresh().await).await;
    the_dead_are_redriven_or_discarded(&fresh().await).await;
    peeking_receives_nothing(&fresh().await).await;
    queues_do_not_mix(&fresh().await).await;
    limits_are_errors(&fresh().await).await;
}

/// A call that answers at once.
pub fn receive(len_max: usize, visibility: Duration) -> Receive {
    Receive { len_max, visibility, wait: Duration::ZERO }
}

pub fn letters(ids: &[&str]) -> Vec<Letter> {
    ids.iter().map(|id| Letter::new(*id, format!("body of {id}"))).collect()
}

pub fn burial(received: &ReceivedLetter) -> Burial {
    Burial {
        received: received.clone(),
        reason: "too_old".to_owned(),
        last_error: "the table has no row".to_owned(),
    }
}

fn ids(received: &[ReceivedLetter]) -> BTreeSet<String> {
    received.iter().map(|received| received.letter.id.clone()).collect()
}

fn set(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

fn receipts(received: &[ReceivedLetter]) -> Vec<Receipt> {
    received.iter().map(|received| received.receipt.clone()).collect()
}

/// Receives until this many letters are there.
async fn receive_all<Q: Queues>(
    queues: &Q,
    len: usize,
    visibility: Duration,
) -> Vec<ReceivedLetter> {
    let deadline = Instant::now() + PATIENCE;
    let mut all = Vec::new();
    while all.len() < len {
        assert!(Instant::now() < deadline, "{} of {len} letters were received", all.len());
        let next = Receive { len_max: len - all.len(), visibility, wait: SHORT };
        all.extend(queues.receive(QUEUE, next).await.unwrap());
    }
    all
}

async fn receive_one<Q: Queues>(queues: &Q, visibility: Duration) -> ReceivedLetter {
    receive_all(queues, 1, visibility).await.remove(0)
}

async fn is_drained<Q: Queues>(queues: &Q) -> bool {
    queues.receive(QUEUE, receive(10, LONG)).await.unwrap().is_empty()
}

/// Waits until the figures of a queue are these, as far as operators rely on them.
async fn assert_depth<Q: QueueControl>(queues: &Q, waiting: u64, in_flight: u64, dead: u64) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let expected = Depth { waiting, in_flight, dead, oldest_ms: None };
        let found = Depth { oldest_ms: None, ..queues.depth(QUEUE).await.unwrap() };
        if found == expected {
            return;
        }
        assert!(Instant::now() < deadline, "{found:?} is not {expected:?}");
        tokio::task::yield_now().await;
    }
}

async fn what_is_sent_is_received_whole<Q: Queues>(queues: &Q) {
    assert!(is_drained(queues).await);
    let body = "{\"näme\": \"☔ \\\" '\", \"n\": 1.50}\n\tline <&> \u{fffe}\u{1}";
    let letter = Letter::new("shop:o-1/☔", body).because("the table `vertical` has no row");
    let plain = Letter::new("", "");
    queues.send(QUEUE, vec![letter.clone(), plain.clone()], Duration::ZERO).await.unwrap();

    let mut received = receive_all(queues, 2, LONG).await;
    received.sort_by(|a, b| a.letter.id.cmp(&b.letter.id));
    assert_eq!(received.iter().map(|one| &one.letter).collect::<Vec<_>>(), [&plain, &letter]);
    assert!(received.iter().all(|one| one.receives == 1 && one.sent_ms > 0));
    assert!(is_drained(queues).await);

    queues.delete(QUEUE, receipts(&received)).await.unwrap();
    queues.send(QUEUE, Vec::new(), Duration::ZERO).await.unwrap();
    queues.delete(QUEUE, Vec::new()).await.unwrap();
    assert!(is_drained(queues).await);
}

async fn many_letters_are_each_received<Q: Queues + QueueControl>(queues: &Q) {
    let names: Vec<String> = (0..25).map(|number| format!("o-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    queues.send(QUEUE, letters(&names), Duration::ZERO).await.unwrap();
    assert_depth(queues, 25, 0, 0).await;
    assert!(queues.receive(QUEUE, receive(0, LONG)).await.unwrap().is_empty());

    let some = receive_all(queues, 3, LONG).await;
    assert_eq!(some.len(), 3);
    assert_depth(queues, 22, 3, 0).await;
    let rest = receive_all(queues, 22, LONG).await;
    let all = [some, rest].concat();
    assert_eq!(ids(&all), set(&names));

    // A letter that was sent twice is there twice.
    queues.delete(QUEUE, receipts(&all)).await.unwrap();
    assert_depth(queues, 0, 0, 0).await;
    queues.send(QUEUE, letters(&["o-1", "o-1"]), Duration::ZERO).await.unwrap();
    assert_eq!(receive_all(queues, 2, LONG).await.len(), 2);
}

async fn a_letter_that_is_not_deleted_comes_back<Q: Queues>(
    queues: &Q,
    pass: &impl AsyncFn(Duration),
) {
    queues.send(QUEUE, letters(&["o-1"]), Duration::ZERO).await.unwrap();
    let first = receive_one(queues, SHORT).await;
    assert!(is_drained(queues).await);

    pass(SHORT).await;
    let second = receive_one(queues, LONG).await;
    assert_eq!(second.letter, first.letter);
    assert_eq!((second.receives, second.sent_ms), (2, first.sent_ms));
    assert_ne!(second.receipt, first.receipt);
}

async fn a_void_receipt_deletes_nothing<Q: Queues>(queues: &Q, pass: &impl AsyncFn(Duration)) {
    queues.send(QUEUE, letters(&["o-1"]), Duration::ZERO).await.unwrap();
    let first = receive_one(queues, SHORT).await;
    pass(SHORT).await;
    let second = receive_one(queues, LONG).await;

    queues.delete(QUEUE, vec![first.receipt.clone()]).await.unwrap();
    queues.change_visibility(QUEUE, vec![(first.receipt, Duration::ZERO)]).await.unwrap();
    queues.change_visibility(QUEUE, vec![(second.receipt.clone(), Duration::ZERO)]).await.unwrap();
    let third = receive_one(queues, LONG).await;
    assert_eq!(third.letter.id, "o-1");

    // Deleting twice is no error either.
    queues.delete(QUEUE, vec![third.receipt.clone(), second.receipt]).await.unwrap();
    queues.delete(QUEUE, vec![third.receipt]).await.unwrap();
    assert!(is_drained(queues).await);
}

async fn a_delayed_letter_waits<Q: Queues + QueueControl>(
    queues: &Q,
    pass: &impl AsyncFn(Duration),
) {
    queues.send(QUEUE, letters(&["late"]), SHORT).await.unwrap();
    assert!(is_drained(queues).await);
    assert_depth(queues, 1, 0, 0).await;
    queues.send(QUEUE, letters(&["now"]), Duration::ZERO).await.unwrap();
    assert_eq!(receive_one(queues, LONG).await.letter.id, "now");

    pass(SHORT).await;
    assert_eq!(receive_one(queues, LONG).await.letter.id, "late");
}

async fn visibility_is_changed_in_both_directions<Q: Queues>(
    queues: &Q,
    pass: &impl AsyncFn(Duration),
) {
    queues.send(QUEUE, letters(&["o-1", "o-2"]), Duration::ZERO).await.unwrap();
    let received = receive_all(queues, 2, SHORT).await;
    let prolonged = &received[0];
    queues.change_visibility(QUEUE, vec![(prolonged.receipt.clone(), LONG)]).await.unwrap();
    pass(SHORT).await;
    let back = receive_one(queues, LONG).await;
    assert_eq!(back.letter.id, received[1].letter.id);
    assert!(is_drained(queues).await);

    // A receipt outlives the change of its visibility.
    queues.delete(QUEUE, vec![prolonged.receipt.clone()]).await.unwrap();
    queues.change_visibility(QUEUE, vec![(back.receipt, Duration::ZERO)]).await.unwrap();
    let again = receive_one(queues, LONG).await;
    assert_eq!((again.letter.id, again.receives), (back.letter.id, 3));
    assert!(is_drained(queues).await);
}

async fn a_receive_waits_for_the_first_letter<Q: Queues>(queues: &Q) {
    let waiting = Receive { len_max: 10, visibility: LONG, wait: Duration::from_secs(15) };
    let received = queues.receive(QUEUE, waiting);
    let sent = async {
        tokio::task::yield_now().await;
        queues.send(QUEUE, letters(&["o-1"]), Duration::ZERO).await
    };
    let (received, sent) = tokio::join!(received, sent);
    sent.unwrap();
    assert_eq!(ids(&received.unwrap()), set(&["o-1"]));
}

async fn the_dead_are_kept_with_their_reasons<Q: Queues + QueueControl>(queues: &Q) {
    let letter = Letter::new("o-1", "{}").because("no row SG.food");
    queues.send(QUEUE, vec![letter.clone()], Duration::ZERO).await.unwrap();
    let received = receive_one(queues, Duration::ZERO).await;
    assert_eq!(received.receives, 1);
    let received = receive_one(queues, LONG).await;
    queues.bury(QUEUE, vec![burial(&received)]).await.unwrap();
    assert_depth(queues, 0, 0, 1).await;
    assert!(is_drained(queues).await);

    let found = queues.peek(QUEUE, Shelf::Dead, 10).await.unwrap();
    let [dead] = &found[..] else {
        panic!("{found:?} is not one dead letter");
    };
    assert_eq!(dead.letter, letter);
    let death = dead.death.as_ref().expect("it is dead");
    assert_eq!((death.reason.as_str(), death.attempts), ("too_old", 2));
    assert_eq!(death.last_error, "the table has no row");
    assert!(death.died_ms >= dead.sent_ms && dead.sent_ms == received.sent_ms);
}

async fn the_dead_are_redriven_or_discarded<Q: Queues + QueueControl>(queues: &Q) {
    queues.send(QUEUE, letters(&["a", "b", "c", "d"]), Duration::ZERO).await.unwrap();
    let received = receive_all(queues, 4, LONG).await;
    queues.bury(QUEUE, received.iter().map(burial).collect()).await.unwrap();
    assert_depth(queues, 0, 0, 4).await;

    let named = |ids: &[&str]| LetterSelection::Ids(set(ids).into_iter().collect());
    assert_eq!(queues.redrive(QUEUE, named(&["b", "nobody"])).await.unwrap(), 1);
    let back = receive_one(queues, LONG).await;
    assert_eq!((back.letter.id.as_str(), back.receives), ("b", 1));
    assert_eq!(queues.discard(QUEUE, named(&["a"])).await.unwrap(), 1);
    assert_depth(queues, 0, 1, 2).await;

    assert_eq!(queues.redrive(QUEUE, LetterSelection::All).await.unwrap(), 2);
    assert_eq!(ids(&receive_all(queues, 2, LONG).await), set(&["c", "d"]));
    assert_eq!(queues.redrive(QUEUE, LetterSelection::All).await.unwrap(), 0);
    assert_eq!(queues.discard(QUEUE, LetterSelection::All).await.unwrap(), 0);
    assert_depth(queues, 0, 3, 0).await;
}

async fn peeking_receives_nothing<Q: Queues + QueueControl>(queues: &Q) {
    queues.send(QUEUE, letters(&["a", "b", "c"]), Duration::ZERO).await.unwrap();
    let seen = queues.peek(QUEUE, Shelf::Waiting, 2).await.unwrap();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|one| one.death.is_none() && one.letter.body.starts_with("body of")));
    assert_eq!(queues.peek(QUEUE, Shelf::Dead, 2).await.unwrap(), []);

    let received = receive_all(queues, 3, LONG).await;
    assert_eq!(ids(&received), set(&["a", "b", "c"]));

    // Whether a look sees what is hidden is a fact that callers can ask for.
    let seen = queues.peek(QUEUE, Shelf::Waiting, 10).await.unwrap();
    assert_eq!(seen.len(), if queues.shows_hidden() { 3 } else { 0 });
}

async fn queues_do_not_mix<Q: Queues + QueueControl>(queues: &Q) {
    for queue in QueueName::ALL {
        queues.send(queue, letters(&[queue.name()]), Duration::ZERO).await.unwrap();
    }
    for queue in QueueName::ALL {
        let wait = Receive { len_max: 10, visibility: LONG, wait: SHORT };
        let received = queues.receive(queue, wait).await.unwrap();
        assert_eq!(ids(&received), set(&[queue.name()]));
        queues.bury(queue, received.iter().map(burial).collect()).await.unwrap();
    }
    assert_eq!(queues.discard(QueueName::Award, LetterSelection::All).await.unwrap(), 1);
    assert_depth(queues, 0, 0, 1).await;
}

async fn limits_are_errors<Q: Queues>(queues: &Q) {
    let is_too_large = |sent: Result<(), QueueError>| matches!(sent, Err(QueueError::TooLarge(_)));
    let long_id = Letter::new("i".repeat(QUEUE_ID_LEN_MAX + 1), "");
    let long_body = Letter::new("a", "b".repeat(QUEUE_BODY_LEN_MAX + 1));
    for letter in [long_id, long_body] {
        let both = [letters(&["small"]), vec![letter]].concat();
        assert!(is_too_large(queues.send(QUEUE, both, Duration::ZERO).await));
    }
    let many = vec![Letter::new("a", ""); QUEUE_CALL_LEN_MAX + 1];
    assert!(is_too_large(queues.send(QUEUE, many, Duration::ZERO).await));
    let late = Duration::from_secs(QUEUE_DELAY_S_MAX + 1);
    assert!(is_too_large(queues.send(QUEUE, letters(&["a"]), late).await));
    assert!(is_drained(queues).await);

    // The largest letters travel whole, several in one call.
    let id = "i".repeat(QUEUE_ID_LEN_MAX);
    let largest = Letter::new(id, "\"".repeat(QUEUE_BODY_LEN_MAX)).because("e".repeat(9_999));
    queues.send(QUEUE, vec![largest.clone(); 3], Duration::ZERO).await.unwrap();
    let received = receive_all(queues, 3, LONG).await;
    assert!(received.iter().all(|one| one.letter == largest));
}

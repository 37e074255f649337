use super::*;
use parking_lot::Mutex;
use raingauge_memory as memory;
use raingauge_ports::BoxFuture;
use raingauge_ports::clock::SystemClock;
use raingauge_ports::points::{Letter, QueueControl, Shelf};

/// Queues that cannot bury one letter, and note for how long others are hidden.
struct Stubborn {
    engine: Arc<memory::Queues>,
    hidden: Mutex<Vec<Duration>>,
}

const STUBBORN: &str = "stubborn";

impl Queues for Stubborn {
    fn send(
        &self,
        queue: QueueName,
        letters: Vec<Letter>,
        delay: Duration,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        self.engine.send(queue, letters, delay)
    }

    fn receive(
        &self,
        queue: QueueName,
        receive: Receive,
    ) -> BoxFuture<'_, Result<Vec<ReceivedLetter>, QueueError>> {
        self.engine.receive(queue, receive)
    }

    fn delete(
        &self,
        queue: QueueName,
        receipts: Vec<Receipt>,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        self.engine.delete(queue, receipts)
    }

    fn change_visibility(
        &self,
        queue: QueueName,
        changes: Vec<(Receipt, Duration)>,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        self.hidden.lock().extend(changes.iter().map(|(_, pause)| *pause));
        self.engine.change_visibility(queue, changes)
    }

    fn bury(
        &self,
        queue: QueueName,
        burials: Vec<Burial>,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        if burials.iter().any(|burial| burial.received.letter.id == STUBBORN) {
            let refused = QueueError::TooLarge("it is too large".to_owned());
            return Box::pin(async { Err(refused) });
        }
        self.engine.bury(queue, burials)
    }
}

fn letterbox() -> (Arc<memory::Queues>, Arc<Stubborn>, Letterbox) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let engine = Arc::new(memory::Queues::new(Arc::clone(&clock)));
    let hidden = Mutex::default();
    let stubborn = Arc::new(Stubborn { engine: Arc::clone(&engine), hidden });
    let queues = Arc::clone(&stubborn) as Arc<dyn Queues>;
    let retry = RetryOptions::default();
    (engine, stubborn, Letterbox::new(queues, clock, QueueName::Award, retry))
}

#[tokio::test]
async fn a_letter_that_cannot_be_buried_keeps_no_other_from_being_settled() {
    let (engine, _, letterbox) = letterbox();
    let ids = [STUBBORN, "dead", "done"];
    let letters = ids.map(|id| Letter::new(id, "{}")).to_vec();
    engine.send(QueueName::Award, letters, Duration::ZERO).await.unwrap();
    let received = letterbox.receive(10, Duration::ZERO).await.unwrap();
    let dead = || Outcome::Dead { reason: MALFORMED, why: "it is".to_owned() };
    let outcomes = received.into_iter().map(|letter| {
        let outcome = if letter.letter.id == "done" { Outcome::Done } else { dead() };
        (letter, outcome)
    });

    let settled = letterbox.settle(outcomes.collect()).await;
    assert!(matches!(settled, Err(QueueError::TooLarge(_))), "{settled:?}");
    let buried = engine.peek(QueueName::Award, Shelf::Dead, 10).await.unwrap();
    assert_eq!(buried.iter().map(|letter| &*letter.letter.id).collect::<Vec<_>>(), ["dead"]);
    let depth = engine.depth(QueueName::Award).await.unwrap();
    assert_eq!((depth.waiting, depth.in_flight), (0, 1), "the stubborn one comes again");
}

/// SQS gives a letter up after a thousand receives, whatever they were for.
#[tokio::test]
async fn a_letter_outlives_an_outage_of_days_by_few_receives() {
    let (engine, stubborn, letterbox) = letterbox();
    let letter = vec![Letter::new("a", "{}")];
    engine.send(QueueName::Award, letter, Duration::ZERO).await.unwrap();
    let received = letterbox.receive(1, Duration::ZERO).await.unwrap().remove(0);
    for receives in 1..=1_000 {
        let received = ReceivedLetter { receives, ..received.clone() };
        let outcome = Outcome::Soon(Duration::from_secs(2));
        letterbox.settle(vec![(received, outcome)]).await.unwrap();
    }
    let pauses = stubborn.hidden.lock().clone();
    assert_eq!(pauses[0], Duration::from_secs(2));
    assert!(pauses.iter().all(|pause| *pause <= SOON_MAX));
    let days = pauses.iter().sum::<Duration>().as_secs() / 86_400;
    assert!(days >= 3, "{days} days");
}

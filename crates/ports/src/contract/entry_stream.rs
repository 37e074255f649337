//! The contract of the stream of entries.

use crate::log::Batch;
use crate::points::EntryStream;
use raingauge_core::event::Event;
use std::collections::{BTreeMap, BTreeSet};

const SOURCE: &str = "raingauge/points";
const MEMBERS: usize = 7;
const ROUNDS: usize = 3;
const ROUND_LEN: usize = 50;

/// An event as a consumer of the stream receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedEvent {
    pub key: String,
    pub subject: String,
    pub source: String,
    pub id: String,
    pub kind: String,
    /// In milliseconds since 1970.
    pub time_ms: i64,
    pub data: String,
}

/// Runs the whole suite over a stream of several partitions that is empty at first. `received`
/// returns everything in it, by partition and then in the order of the partition, once that is at
/// least a number of events.
pub async fn suite(
    stream: &dyn EntryStream,
    mut received: impl AsyncFnMut(usize) -> Vec<ReceivedEvent>,
) {
    stream.publish(Batch::default()).await.expect("there is nothing to do");
    assert_eq!(received(0).await, []);

    let mut sent = Vec::new();
    for round in 0..ROUNDS {
        let events: Vec<ReceivedEvent> = (0..ROUND_LEN).map(|place| event(round, place)).collect();
        stream.publish(batch(&events)).await.expect("published");
        sent.extend(events);
        let found = received(sent.len()).await;
        assert_eq!(found.len(), sent.len(), "a call returns when its events are durable");
        assert_eq!(by_member(&found), by_member(&sent), "each is whole, and in order");
    }
    is_repeated_after_an_error(stream, &mut received, &sent).await;
}

/// A caller that does not know what is in the stream publishes the same again.
async fn is_repeated_after_an_error(
    stream: &dyn EntryStream,
    received: &mut impl AsyncFnMut(usize) -> Vec<ReceivedEvent>,
    sent: &[ReceivedEvent],
) {
    let again = &sent[sent.len() - ROUND_LEN..];
    stream.publish(batch(again)).await.expect("published again");
    let mut known = BTreeSet::new();
    let found = received(sent.len()).await;
    let first = found.into_iter().filter(|event| known.insert(event.id.clone()));
    assert_eq!(by_member(&first.collect::<Vec<_>>()), by_member(sent), "an id keeps its place");
}

/// Members are those of several partitions, and one has a name that is no word.
fn event(round: usize, place: usize) -> ReceivedEvent {
    let number = round * ROUND_LEN + place;
    let member = match number % MEMBERS {
        0 => "Ünal 🌧".to_owned(),
        other => format!("member-{other}"),
    };
    ReceivedEvent {
        key: member.clone(),
        subject: member,
        source: SOURCE.to_owned(),
        id: format!("rain:0:{number}"),
        kind: "raingauge.points.awarded".to_owned(),
        time_ms: 1_727_136_000_250 + number as i64,
        data: format!(r#"{{"points": {number}, "balance": "0.50"}}"#),
    }
}

fn batch(events: &[ReceivedEvent]) -> Batch {
    let mut batch = Batch::default();
    for event in events {
        batch.push(&Event {
            id: event.id.as_str().into(),
            source: event.source.as_str().into(),
            subject: Some(event.subject.as_str().into()),
            ..Event::of_data(&event.kind, event.time_ms, &event.data)
        });
    }
    batch
}

fn by_member(events: &[ReceivedEvent]) -> BTreeMap<&str, Vec<&ReceivedEvent>> {
    let mut members = BTreeMap::<_, Vec<_>>::new();
    for event in events {
        members.entry(event.key.as_str()).or_default().push(event);
    }
    members
}

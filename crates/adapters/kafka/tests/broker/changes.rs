//! The stream of tiles, from a writer to a reader.

use crate::support::{made, options, until};
use raingauge_core::tile::Tile;
use raingauge_core::tile::id::TileId;
use raingauge_kafka::{self as kafka, listen};
use raingauge_ports::tiles::{Part, TileChanges, TileFeed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longer than a broker waits for a message before it says that there is none.
const AT_THE_END: Duration = Duration::from_millis(300);

fn heartbeat(position: u64) -> TileChanges {
    TileChanges::Heartbeat { partition: 0, position, at_ms: 7 }
}

#[tokio::test]
async fn who_listens_hears_everything_in_order_and_of_no_gap() {
    let Some(options) = options("changes") else {
        return;
    };
    made(&options, 1).await;

    let topic = kafka::Topic::open(options).await.expect("the topic opens");
    let feed = kafka::Feed::new(&topic).expect("a feed");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&heard);
    let _listening =
        listen(&topic, move |change| told.lock().unwrap().push(change)).expect("listening");

    until("the first word is heard", || {
        feed.publish(0, heartbeat(0));
        heard.lock().unwrap().contains(&heartbeat(0))
    });
    feed.publish(0, heartbeat(1));
    until("the second word is heard", || heard.lock().unwrap().contains(&heartbeat(1)));
    heard.lock().unwrap().clear();

    let mut tile = Tile::default();
    let mut published = Vec::new();

    for round in 2..6 {
        tile.add(3, 1);
        let part = Part { id: TileId::day(20_000), writer: 5, included: round, tile: tile.clone() };
        for change in [TileChanges::Tile { key: "a:b".to_owned(), part }, heartbeat(round)] {
            feed.publish(0, change.clone());
            published.push(change);
        }

        // The listener needs some time here: it waits until the broker reports the partition's end.
        let began = Instant::now();
        until("it is heard", || {
            heard.lock().unwrap().len() >= published.len() && began.elapsed() > AT_THE_END
        });
        assert_eq!(*heard.lock().unwrap(), published);
    }
}

use crate::support::{One, options, shown};
use raingauge_kafka::{EPOCH_STEP, Options};
use raingauge_ports::contract::log::{self as contract, batch, texts};
use raingauge_ports::log::{Error, EventLog, EventSink, LogTimes};
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use std::collections::HashMap;

#[tokio::test]
async fn the_log_keeps_the_contract() {
    let Some(options) = options("contract") else {
        return;
    };
    let one = One::new(&options).await;
    contract::keeps_what_it_accepts(&one.sink, &one.log).await;
    contract::is_in_order(&one.sink, &one.log).await;
    contract::goes_forward(&one.log);
    contract::passes_over_events_alone(&one.sink, &one.log).await;
    contract::wakes_those_who_wait(&one.sink, &one.log).await;
}

/// An event and its repetitions meet in one partition, and each batch says how far to wait.
#[tokio::test]
async fn events_are_spread_by_their_identity() {
    let Some(options) = options("spread") else {
        return;
    };
    crate::support::made(&options, 4).await;

    let topic = raingauge_kafka::Topic::open(options).await.unwrap();
    let sink = raingauge_kafka::Sink::new(&topic).unwrap();
    assert_eq!((topic.partitions(), sink.partitions()), (4, 4));

    let ids: Vec<String> = (0..400).map(|number| format!("id-{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut ends = HashMap::new();

    for _ in 0..2 {
        let appended = sink.append(batch(&ids)).await.unwrap();
        assert_eq!((appended.accepted, appended.duplicates), (400, 0));
        ends.extend(appended.ends);
    }

    let note = sink.append_control(2, b"note".to_vec()).await.unwrap();
    assert_eq!(note, ends[&2] + 1);

    let mut found = Vec::new();
    for partition in 0..4 {
        let log = topic.log(partition).unwrap();
        crate::support::shown(&log, ends[&partition]);

        let texts = texts(&log, 0);
        assert!(texts.len() > 50, "a fair share");
        found.extend(texts.into_iter().filter(|text| text != "[note]"));
    }

    found.sort_by_key(|id| id[3..].parse::<usize>().unwrap());
    assert_eq!(found, ids);
}

/// A topic that is recreated begins again with offset 0; the epoch keeps offsets growing, and who
/// stood in the old topic goes on with the beginning of the new one.
#[tokio::test]
async fn an_epoch_moves_all_offsets() {
    let Some(options) = options("epoch") else {
        return;
    };
    let one = One::new(&Options { epoch: 3, ..options.clone() }).await;
    let base = 3 * EPOCH_STEP;
    assert_eq!((one.log.start(), one.log.end(), one.log.start_ms()), (base, base, 0));
    assert_eq!(one.append(batch(&["a", "b"])).await, base + 2);
    assert_eq!(texts(&one.log, base + 1), ["b"]);

    let first = one.log.read(EPOCH_STEP + 17, 1_000).unwrap();
    assert_eq!(first[0].base, base);
    assert_eq!(texts(&one.log, EPOCH_STEP + 17), ["a", "b"]);

    let older = One::open(&options).await;
    assert!(
        matches!(older.log.read(base + 1, 1), Err(Error::Corrupt(_))),
        "the epoch was not lowered by mistake"
    );
    assert!(matches!(older.log.read(3, 1), Err(Error::Corrupt(_))), "it was not recreated unseen");
}

#[tokio::test]
async fn a_full_queue_tells_the_caller_to_come_back() {
    let Some(options) = options("queue") else {
        return;
    };
    // The queue fills while the producer still waits for more to send with it, however busy the
    // machine is.
    let linger = [("linger.ms".to_owned(), "2000".to_owned())].into();
    let one = One::new(&Options { queue_bytes_max: 64 << 10, properties: linger, ..options }).await;
    let ids: Vec<String> = (0..100).map(|number| format!("{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let waiting: Vec<_> = (0..300).map(|_| one.sink.append(batch(&ids))).collect();

    let mut busy = 0;
    let mut end = 0;
    for answer in waiting {
        match answer.await {
            Ok(appended) => end = appended.ends[0].1,
            Err(Error::Busy { retry_after }) => {
                assert!(retry_after > std::time::Duration::ZERO);
                busy += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }

    assert!(busy > 0 && end > 0, "{busy} of 300 batches of 100 did not fit 64 KiB");

    // What was handed over before the queue was full may still be under way.
    let deadline = std::time::Instant::now() + crate::support::SOON;
    let last = loop {
        match one.sink.append(batch(&ids)).await {
            Err(Error::Busy { .. }) => {
                assert!(std::time::Instant::now() < deadline, "the queue empties")
            }
            appended => break appended.unwrap().ends[0].1,
        }
    };

    assert!(last > end);
    crate::support::shown(&one.log, last);
    assert_eq!(texts(&one.log, 0), ids);
}

/// A log reports the range that the brokers have trimmed, and reads the rest.
#[tokio::test]
async fn a_trimmed_range_is_reported() {
    let Some(options) = options("trimmed") else {
        return;
    };
    let options = Options { epoch: 1, ..options };
    let one = One::new(&options).await;
    one.append(batch(&["a", "b", "c", "d"])).await;
    assert_eq!(one.log.start_ms(), 0, "nothing was ever trimmed");

    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", options.brokers.join(",")).create().unwrap();
    let mut places = TopicPartitionList::new();
    places.add_partition_offset(&options.topic, 0, Offset::Offset(2)).unwrap();
    admin.delete_records(&places, &AdminOptions::new()).await.unwrap();
    crate::support::until("the start has moved", || one.log.start() == EPOCH_STEP + 2);
    contract::tells_what_was_trimmed(&one.log);
    assert_eq!(texts(&one.log, EPOCH_STEP + 2), ["c", "d"]);

    assert!(
        matches!(one.log.read(7, 1), Err(Error::Trimmed { .. })),
        "an older epoch does not reach into what is gone"
    );
}

/// A search by time begins at the end when nothing is that late.
#[tokio::test]
async fn an_offset_is_found_by_its_time() {
    let Some(options) = options("times") else {
        return;
    };
    let one = One::new(&options).await;
    let end = one.append(batch(&["a"])).await;
    shown(&one.log, end);

    let appended_ms = one.log.appended_ms(0).expect("it is there");
    assert_eq!(one.log.begin_since(appended_ms), 0);
    assert_eq!(one.log.begin_since(appended_ms + 1), end);
}

//! The leases of readers, from one process to all.

use crate::support::{made, options, until};
use raingauge_kafka as kafka;
use raingauge_ports::leases::{LeaseMessage, LeaseTopic};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

#[tokio::test]
async fn all_receive_the_same_in_one_order_and_senders_get_results() {
    let Some(options) = options("leases") else {
        return;
    };
    made(&options, 3).await;

    let topic = kafka::Topic::open(options.clone()).await.expect("the topic opens");
    let leases = kafka::Leases::open(&topic).await.expect("the leases open");
    let heard = [(); 2].map(|()| Arc::new(Mutex::new(Vec::new())));
    let _listening = heard.each_ref().map(|heard| {
        let heard = Arc::clone(heard);
        leases.listen(move |message| heard.lock().unwrap().push(message)).expect("listening")
    });
    let granted = Arc::new(AtomicUsize::new(0));
    let send = |message: &LeaseMessage| {
        let granted = Arc::clone(&granted);
        leases.send(
            message,
            Box::new(move |is_there| {
                let _ = granted.fetch_add(usize::from(is_there), Ordering::SeqCst);
            }),
        );
    };

    let opening = LeaseMessage::Barrier { process: 1, number: 1, sent_ms: 0 };
    until("both listen", || {
        send(&opening);
        heard.iter().all(|heard| heard.lock().unwrap().contains(&opening))
    });

    // What was sent before is heard before.
    let messages: Vec<LeaseMessage> = (0..100)
        .map(|offset| LeaseMessage::Held { reader: offset % 3, heard: vec![offset, 0, offset] })
        .collect();
    granted.store(0, Ordering::SeqCst);
    messages.iter().for_each(&send);

    let ours = |heard: &Mutex<Vec<LeaseMessage>>| {
        let held = |message: &&LeaseMessage| matches!(message, LeaseMessage::Held { .. });
        heard.lock().unwrap().iter().filter(held).cloned().collect::<Vec<_>>()
    };
    until("all is heard", || heard.iter().all(|heard| ours(heard).len() == messages.len()));
    assert!(heard.iter().all(|heard| ours(heard) == messages));
    until("all is granted", || granted.load(Ordering::SeqCst) >= messages.len());
}

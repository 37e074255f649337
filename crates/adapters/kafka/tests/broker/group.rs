use crate::support::{SOON, foreign, made, options};
use raingauge_kafka::{self as kafka, Assigned, Group, Options};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use std::collections::BTreeSet;
use tokio::sync::watch;
use tokio::time::timeout;

async fn holds(
    assigned: &mut watch::Receiver<Assigned>,
    what: impl Fn(&BTreeSet<u16>) -> bool,
) -> BTreeSet<u16> {
    let held = timeout(SOON, assigned.wait_for(|assigned| what(&assigned.partitions))).await;
    held.expect("it comes in time").expect("the group goes on").partitions.clone()
}

#[tokio::test]
async fn each_partition_has_one_member() {
    let Some(options) = options("group") else {
        return;
    };
    made(&options, 4).await;

    let topic = kafka::Topic::open(options.clone()).await.unwrap();
    let first = Group::join(&topic).unwrap();
    let mut of_first = first.assigned();
    assert_eq!(holds(&mut of_first, |held| held.len() == 4).await, (0..4).collect());

    let second = Group::join(&topic).unwrap();
    let mut of_second = second.assigned();
    let theirs = holds(&mut of_second, |held| held.len() == 2).await;
    let ours = holds(&mut of_first, |held| held.len() == 2).await;

    assert!(ours.is_disjoint(&theirs), "{ours:?} and {theirs:?}");

    drop(second);
    assert_eq!(holds(&mut of_first, |held| held.len() == 4).await, (0..4).collect());
}

/// A process with a name keeps its partitions while it is away for less than its session lasts.
#[tokio::test]
async fn a_named_member_keeps_its_partitions() {
    let Some(options) = options("named") else {
        return;
    };
    made(&options, 4).await;

    let named = |name: &str| Options { instance_id: Some(name.to_owned()), ..options.clone() };
    let (one, two) = (
        kafka::Topic::open(named("one")).await.unwrap(),
        kafka::Topic::open(named("two")).await.unwrap(),
    );
    let (first, second) = (Group::join(&one).unwrap(), Group::join(&two).unwrap());
    let (mut of_first, mut of_second) = (first.assigned(), second.assigned());
    let ours = holds(&mut of_first, |held| held.len() == 2).await;

    let theirs = holds(&mut of_second, |held| held.len() == 2).await;

    drop(second);
    let second = Group::join(&two).unwrap();
    let mut of_second = second.assigned();
    assert_eq!(holds(&mut of_second, |held| held.len() == 2).await, theirs, "the same as before");
    assert!(!of_first.has_changed().unwrap(), "the partitions stayed with the first writer");

    drop(second);
    let all = holds(&mut of_first, |held| held.len() == 4).await;
    assert!(all.is_superset(&ours), "its session is over");
}

/// Two processes with one name are a mistake, which the coordinator reports to the older one. That
/// process joins again, since it cannot recognize the mistake: the coordinator reports the same
/// when a session expired during a broker outage.
#[tokio::test]
async fn a_name_is_held_once() {
    let Some(options) = options("twins") else {
        return;
    };
    made(&options, 2).await;

    let topic = kafka::Topic::open(Options { instance_id: Some("twin".to_owned()), ..options })
        .await
        .unwrap();
    let first = Group::join(&topic).unwrap();
    let mut of_first = first.assigned();
    holds(&mut of_first, |held| held.len() == 2).await;

    let second = Group::join(&topic).unwrap();
    holds(&mut second.assigned(), |held| held.len() == 2).await;

    let fenced = timeout(SOON, of_first.wait_for(|assigned| assigned.failure.is_some()))
        .await
        .expect("the fence arrives")
        .unwrap()
        .clone();

    assert!(fenced.partitions.is_empty());
    drop(second);
    assert_eq!(holds(&mut of_first, |held| held.len() == 2).await, (0..2).collect());
    assert!(of_first.borrow().failure.is_none());
}

#[tokio::test]
async fn positions_are_reported_to_the_group() {
    let Some(options) = options("positions") else {
        return;
    };
    let options = Options { epoch: 2, ..options };
    made(&options, 2).await;

    let topic = kafka::Topic::open(options.clone()).await.unwrap();
    let group = Group::join(&topic).unwrap();
    holds(&mut group.assigned(), |held| held.len() == 2).await;

    let producer = foreign(&options, &[]);
    for _ in 0..3 {
        crate::support::produce(&producer, &options.topic, &[], b"");
    }
    crate::support::flush(&producer);

    let mut config = ClientConfig::new();
    let asking: BaseConsumer = config
        .set("bootstrap.servers", options.brokers.join(","))
        .set("group.id", &options.group)
        .create()
        .unwrap();

    crate::support::until("the position is known", || {
        group.commit(0, options.base() + 3);
        let mut place = rdkafka::TopicPartitionList::new();
        place.add_partition(&options.topic, 0);

        let known = asking.committed_offsets(place, SOON).unwrap();
        known.elements()[0].offset() == rdkafka::Offset::Offset(3)
    });
}

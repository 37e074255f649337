//! The contract of the consumer store.

use crate::consumers::{ConsumerStore, Name, Record};

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn record(key: &str, value: &str) -> Record {
    (key.into(), value.into())
}

/// Records and position move together, and a change replaces what was there.
pub fn keeps_records_with_the_position(store: &dyn ConsumerStore) {
    let rain = name("rain");
    assert_eq!(store.positions().expect("positions"), []);
    assert_eq!(store.get(&rain, b"a").expect("a value"), None);

    let changes = vec![
        (b"a".to_vec(), Some(b"1".to_vec())),
        (b"b".to_vec(), Some(b"2".to_vec())),
        (b"a".to_vec(), Some(b"3".to_vec())),
    ];

    store.commit(&rain, 0, changes).expect("committed");
    assert_eq!(store.positions().expect("positions"), [(rain.clone(), 0)]);
    assert_eq!(store.get(&rain, b"a").expect("a value"), Some(b"3".to_vec()));

    let changes =
        vec![(b"b".to_vec(), None), (b"none".to_vec(), None), (b"".to_vec(), Some(vec![]))];
    store.commit(&rain, 7, changes).expect("committed");
    assert_eq!(store.positions().expect("positions"), [(rain.clone(), 7)]);
    assert_eq!(store.get(&rain, b"b").expect("a value"), None);
    assert_eq!(store.get(&rain, b"").expect("a value"), Some(vec![]));
    assert_eq!(
        store.scan(&rain, b"", None, 9).expect("records"),
        [record("", ""), record("a", "3")]
    );

    store.commit(&rain, 9, Vec::new()).expect("committed");
    assert_eq!(store.positions().expect("positions"), [(rain.clone(), 9)]);
    store.remove(&rain).expect("removed");
}

/// Records are read in order, by prefix, in pages of any size.
pub fn reads_records_in_order(store: &dyn ConsumerStore) {
    let rain = name("rain");
    let keys: [&[u8]; 7] = [b"b", b"a\xff", b"a", b"\xff\xff", b"a\0", b"ab", b"\xff"];
    let changes = keys.map(|key| (key.to_vec(), Some(key.to_vec()))).to_vec();
    store.commit(&rain, 1, changes).expect("committed");

    let keys_of = |prefix: &[u8], after: Option<&[u8]>, len_max| -> Vec<Vec<u8>> {
        let records = store.scan(&rain, prefix, after, len_max).expect("records");
        assert!(records.iter().all(|(key, value)| key == value));
        records.into_iter().map(|(key, _)| key).collect()
    };

    let mut sorted = keys.map(<[u8]>::to_vec).to_vec();
    sorted.sort();
    assert_eq!(keys_of(b"", None, usize::MAX), sorted);
    assert_eq!(keys_of(b"a", None, 9), sorted[..4]);
    assert_eq!(keys_of(b"\xff", None, 9), sorted[5..]);
    assert_eq!(keys_of(b"none", None, 9), Vec::<Vec<u8>>::new());
    assert_eq!(keys_of(b"", None, 0), Vec::<Vec<u8>>::new());

    let mut paged = Vec::new();
    let mut after = None::<Vec<u8>>;
    loop {
        let page = keys_of(b"", after.as_deref(), 2);
        let Some(last) = page.last() else { break };
        after = Some(last.clone());
        paged.extend(page);
    }

    assert_eq!(paged, sorted);
    assert_eq!(keys_of(b"a", Some(b"ab"), 9), [b"a\xff"]);
    store.remove(&rain).expect("removed");
}

/// No consumer reads or changes the records of another, whatever their names.
pub fn keeps_consumers_apart(store: &dyn ConsumerStore) {
    let names = [name("rain"), name("rain-2"), name("rai")];
    for (position, consumer) in (1..).zip(&names) {
        let change = (b"key".to_vec(), Some(consumer.as_str().into()));
        store.commit(consumer, position, vec![change]).expect("committed");
    }

    let mut positions = store.positions().expect("positions");
    positions.sort();

    let [rain, rain_2, rai] = names;
    assert_eq!(positions, [(rai.clone(), 3), (rain.clone(), 1), (rain_2.clone(), 2)]);

    store.remove(&rain).expect("removed");
    assert_eq!(store.get(&rain, b"key").expect("a value"), None);

    for other in [&rain_2, &rai] {
        let records = store.scan(other, b"", None, 9).expect("records");
        assert_eq!(records, [record("key", other.as_str())]);
    }

    assert_eq!(store.positions().expect("positions").len(), 2);
    store.remove(&rain_2).expect("removed");
    store.remove(&rai).expect("removed");
    assert_eq!(store.positions().expect("positions"), []);
}

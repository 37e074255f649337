//! The contract of the result cache. `prefix` keeps the keys of one run apart from those of
//! another.

use crate::cache::ResultCache;
use raingauge_core::limits::KEY_LEN_MAX;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(600);
/// Keys of the largest batch that a request makes, with three lookups per range.
const KEYS_MANY: i64 = 3_000;
/// How often time may be advanced before an entry must be gone.
const MOVES_MAX: usize = 20_000;

/// The key printed in the published description, behind a prefix.
pub fn key(prefix: &str, name: &str) -> String {
    format!("{prefix}:{name}:id:34:rain_drops:city:111222:1727215200:1727399700")
}

/// Values by key, in the order of the keys; a missing value differs from 0.
pub async fn keeps_what_is_put(cache: &dyn ResultCache, prefix: &str) {
    let keys = |names: &[&str]| names.iter().map(|name| key(prefix, name)).collect::<Vec<_>>();
    assert_eq!(cache.get(Vec::new()).await.expect("got"), []);
    cache.put(Vec::new(), LONG).await.expect("put");
    assert_eq!(cache.get(keys(&["a", "b"])).await.expect("got"), [None, None]);
    let values = [("a", 487), ("zero", 0), ("least", i64::MIN), ("most", i64::MAX)];
    let entries = values.iter().map(|(name, value)| (key(prefix, name), *value)).collect();
    cache.put(entries, LONG).await.expect("put");
    let found = cache.get(keys(&["most", "b", "a", "least", "zero", "a"])).await.expect("got");
    assert_eq!(found, [Some(i64::MAX), None, Some(487), Some(i64::MIN), Some(0), Some(487)]);
    cache.put(vec![(key(prefix, "a"), -1)], LONG).await.expect("put");
    assert_eq!(cache.get(keys(&["a", "most"])).await.expect("got"), [Some(-1), Some(i64::MAX)]);
}

/// As many keys as one request may ask for, each of the maximum length.
pub async fn takes_many_at_once(cache: &dyn ResultCache, prefix: &str) {
    let key = |number: i64| format!("{prefix}:{number:0>KEY_LEN_MAX$}");
    let entries = (0..KEYS_MANY)
        .filter(|number| number % 3 != 0)
        .map(|number| (key(number), -number))
        .collect();
    cache.put(entries, LONG).await.expect("put");
    let found = cache.get((0..KEYS_MANY).map(key).collect()).await.expect("got");
    let expected: Vec<_> =
        (0..KEYS_MANY).map(|number| (number % 3 != 0).then_some(-number)).collect();
    assert_eq!(found, expected);
}

/// An entry is gone after its lifetime, and no other one is. `move_on` lets some time pass.
pub async fn forgets_in_time(
    cache: &dyn ResultCache,
    prefix: &str,
    mut move_on: impl AsyncFnMut(),
) {
    let (short, long) = (key(prefix, "short"), key(prefix, "long"));
    cache.put(vec![(long.clone(), 2)], LONG).await.expect("put");
    cache.put(vec![(short.clone(), 1)], Duration::from_secs(2)).await.expect("put");
    assert_eq!(
        cache.get(vec![short.clone(), long.clone()]).await.expect("got"),
        [Some(1), Some(2)]
    );

    for _ in 0..MOVES_MAX {
        move_on().await;
        let found = cache.get(vec![short.clone(), long.clone()]).await.expect("got");
        assert_eq!(found[1], Some(2), "an entry that has time left stays");

        if found[0].is_none() {
            return;
        }
    }

    panic!("an entry outlived its time");
}

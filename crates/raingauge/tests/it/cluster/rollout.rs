//! A rollout over two readers, conducted by the portal of another process.

use super::place::{Place, start};
use super::roles::{NOON_S, settle};
use crate::rollout::{ANY, begin, count_ten, phase, while_asked};
use crate::server::until;
use serde_json::json;

/// Redis, where nothing listens.
const NO_REDIS: [(&str, &str); 2] =
    [("cache.result", "redis"), ("cache.redis_urls", "redis://127.0.0.1:1")];
const VERSION: &str = "raingauge_cache_policy_version";

#[test]
fn readers_follow_a_rollout_and_one_that_opens_a_breaker_goes_back() {
    let Some(place) = Place::new(1) else { return };
    let homes = ["a", "b"]
        .map(|name| place.home_with(&[&NO_REDIS[..], &[("cluster.instance", name)]].concat()));
    let home = place.home_with(&NO_REDIS);
    let (portal, readers) = std::thread::scope(|scope| {
        let readers = homes.each_ref().map(|home| scope.spawn(|| start(home, "reader")));
        let portal = scope.spawn(|| start(&home, "writer,portal"));
        (portal.join().expect("it starts"), readers.map(|reader| reader.join().expect("it starts")))
    });

    count_ten(&portal);
    readers.iter().for_each(|reader| settle(&portal, &portal, reader, place.partitions));

    let policy = || portal.get("/v1/cache-policy").json();
    let ended = |id: u32| {
        while_asked(&readers.each_ref(), || {
            let (to, shares, breakers) =
                if id == 1 { ("live", "50,100", "1000") } else { ("result", "100", "0") };
            begin(&portal, to, shares, ANY, breakers);
            phase(&portal, id, |phase| phase["name"] == "ended")
        })
    };

    portal.send("PUT", "/v1/cache-policy", &[], br#"{"strategy": "none"}"#).expect(200);

    let report = ended(1);
    assert_eq!(report["phase"]["end"], "finished", "{report}");
    assert_eq!((&policy()["strategy"], &policy()["version"]), (&json!("live"), &json!(3)));

    for reader in &readers {
        assert_eq!(reader.metric(VERSION), 3.0);
        until("it answers from memory", || {
            assert_eq!(reader.count("drops:a", NOON_S, NOON_S + 7_200), 10);
            (reader.metric("raingauge_cache_hits_total{strategy=\"live\"}") > 0.0).then_some(())
        });
    }

    // Counts are right all the while: what Redis does not answer is read from the store.
    let report = ended(2);
    let why = report["phase"]["why"].as_str().unwrap_or_default();
    assert!(report["phase"]["end"] == "broken" && why.contains("breaker"), "{report}");
    assert_eq!((&policy()["strategy"], &policy()["version"]), (&json!("live"), &json!(5)));

    for reader in &readers {
        until("it follows the previous policy", || (reader.metric(VERSION) == 5.0).then_some(()));
    }
}

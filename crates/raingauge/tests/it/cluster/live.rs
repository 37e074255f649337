//! Readers under `live`: their tiles follow the writers over Kafka, and are dropped when the reader
//! has missed part of the stream.

use super::load::Load;
use super::place::{Place, start};
use super::roles::{NOON_S, settle};
use crate::client::{Client, event, forever};
use crate::crash::load::create_counters;
use crate::server::{Home, Server, until};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Longer than the stream of changes may be silent.
const FROZEN: Duration = Duration::from_secs(6);
const STORAGE_READS: &str = "raingauge_cql_read_requests_total";
const VERSION: &str = "raingauge_cache_policy_version";

struct Scene {
    /// Two readers under `live`; a third one is excepted.
    live: [Server; 2],
    stored: Server,
    /// Writer and portal.
    writer: Server,
    random: StdRng,
    load: Load,
    homes: [Home; 3],
    place: Place,
}

impl Scene {
    fn new() -> Option<Self> {
        let place = Place::new(2)?;
        let homes = ["a", "b", "stored"].map(|name| place.home_with(&[("cluster.instance", name)]));
        let (writer, [first, second, stored]) = std::thread::scope(|scope| {
            let readers = homes.each_ref().map(|home| scope.spawn(|| start(home, "reader")));
            let writer = scope.spawn(|| place.start("writer,portal"));
            (
                writer.join().expect("it starts"),
                readers.map(|reader| reader.join().expect("it starts")),
            )
        });

        let random = StdRng::seed_from_u64(crate::crash::seed());
        let load = Load::new("live");
        Some(Self { live: [first, second], stored, writer, random, load, homes, place })
    }

    fn readers(&self) -> [&Server; 3] {
        [&self.live[0], &self.live[1], &self.stored]
    }

    /// Sets a policy, and waits until it is in force at every reader. Returns how long that took.
    fn set_policy(&self, policy: &Value) -> Duration {
        let set = self
            .writer
            .send("PUT", "/v1/cache-policy", &[], policy.to_string().as_bytes())
            .expect(200);
        let began = Instant::now();
        let version = set["version"].as_f64().expect("a version");
        for reader in self.readers() {
            until("the policy is in force at the reader", || {
                (reader.metric(VERSION) == version).then_some(())
            });
        }
        began.elapsed()
    }
}

impl Drop for Scene {
    /// A failed test shows the logs of the readers.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.homes.iter().for_each(|home| eprintln!("{}", home.errors()));
        }
    }
}

#[test]
fn live_readers_follow_the_writers_and_read_again_what_they_missed() {
    let Some(mut scene) = Scene::new() else {
        return;
    };
    create_counters(&scene.writer);
    scene.writer.create(
        json!({"id": 70, "name": "heard", "template": "heard:{city}", "eventType": "heard",
        "retentionDays": forever()}),
    );

    for reader in scene.readers() {
        settle(&scene.writer, &scene.writer, reader, scene.place.partitions);
    }
    let live = json!({"strategy": "live", "overrides": {"stored": {"strategy": "none"}}});
    for policy in [&json!({"strategy": "none"}), &live] {
        println!("a policy was in force at three readers after {:?}", scene.set_policy(policy));
    }

    events_are_heard_of_without_a_read(&scene);
    scene.load.send_all(&[&scene.writer], 15, &mut scene.random);
    scene.load.settle(&scene.writer);
    compare(&mut scene);

    // Some of the tiles are in memory now. The next events change them, and add late events to
    // earlier days.
    for _ in 0..3 {
        scene.load.send_all(&[&scene.writer], 5, &mut scene.random);
        scene.load.settle(&scene.writer);
        compare(&mut scene);
    }

    a_frozen_reader_reads_again_what_it_missed(&mut scene);
    compare(&mut scene);
    events_are_heard_of_without_a_read(&scene);
    erased_counts_are_answered_by_nobody(&scene);
}

/// All readers count the events that were waited for.
fn compare(scene: &mut Scene) {
    for reader in [&scene.stored].into_iter().chain(&scene.live) {
        scene.load.compare(reader, &mut scene.random);
    }
}

/// Both readers see an event at once after the wait, although they read nothing for it.
fn events_are_heard_of_without_a_read(scene: &Scene) {
    let key = "heard:oslo";
    let ask = |reader: &Client| reader.count(key, NOON_S, NOON_S + 900);
    let mut sent = ask(&scene.stored);
    let mut send = || {
        sent += 1;
        scene.writer.count_events(&[event(
            "heard",
            &format!("heard-{sent}"),
            NOON_S,
            json!({"city": "oslo"}),
        )]);
        assert_eq!(ask(&scene.stored), sent);

        sent
    };

    let seen_by_both =
        |count: i64| scene.live.each_ref().map(|reader| assert_eq!(ask(reader), count));
    seen_by_both(send());

    let reads = || scene.live.each_ref().map(|reader| reader.metric(STORAGE_READS));

    // On a machine that stalls for seconds the stream is silent, and counts are read from the
    // store; so it may need another try.
    until("an event is seen and nothing was read for it", || {
        let before = reads();
        seen_by_both(send());
        (reads() == before).then_some(())
    });

    for reader in &scene.live {
        assert!(reader.metric("raingauge_live_changes_total") > 0.0);
    }
}

/// Readers with tiles in memory follow an erasure of all keys, and count what comes after it.
fn erased_counts_are_answered_by_nobody(scene: &Scene) {
    let ask = |reader: &Client| reader.count("heard:oslo", NOON_S, NOON_S + 900);
    assert!(scene.readers().iter().all(|reader| ask(reader) > 0));
    scene.writer.send("DELETE", "/v1/counters/70/keys", &[], b"").expect(200);

    let follows = |count| scene.readers().iter().all(|reader| ask(reader) == count).then_some(());
    until("every reader answers by the erasure", || follows(0));
    scene.writer.count_events(&[event(
        "heard",
        "after the erasure",
        NOON_S,
        json!({"city": "oslo"}),
    )]);
    assert_eq!(follows(1), Some(()));

    scene
        .writer
        .send("POST", "/v1/counters/70/purge", &[], b"")
        .expect_problem(409, "counter_not_archived");
}

/// While the reader is frozen, events are counted for longer than it may miss them.
fn a_frozen_reader_reads_again_what_it_missed(scene: &mut Scene) {
    let drops = |reader: &Client| {
        ["gap", "silence", "lapse"].map(|reason| {
            reader.metric(&format!("raingauge_live_drops_total{{reason=\"{reason}\"}}"))
        })
    };

    let before: f64 = drops(&scene.live[0]).iter().sum();
    scene.live[0].signal("STOP");

    let began = Instant::now();
    while began.elapsed() < FROZEN {
        // The first of these wait until the frozen reader's lease has run out.
        scene.load.send_all(&[&scene.writer], 2, &mut scene.random);
        scene.load.settle(&scene.writer);
        scene.load.compare(&scene.live[1], &mut scene.random);
    }

    scene.live[0].signal("CONT");

    // From its first answer on: what it holds in memory is too old to be used.
    scene.load.compare(&scene.live[0], &mut scene.random);
    until("it has dropped its tiles", || {
        (drops(&scene.live[0]).iter().sum::<f64>() > before).then_some(())
    });
    println!(
        "gaps, silences and lapses of the reader that was frozen: {:?}",
        drops(&scene.live[0])
    );
    scene.load.compare(&scene.live[0], &mut scene.random);
}

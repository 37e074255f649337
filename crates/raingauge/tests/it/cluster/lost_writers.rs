//! Writers that are killed, replaced, frozen and thawed under load, while every event is counted
//! once.

use super::load::Load;
use super::place::{Place, start};
use super::roles::settle;
use crate::client::Client;
use crate::crash::load::create_counters;
use crate::server::{Home, Server, until};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;

/// Writers with names of their own keep their partitions when they come back soon.
struct Scene {
    portal: Server,
    /// One by tiles, one by the three tables.
    readers: [Server; 2],
    homes: [Home; 2],
    random: StdRng,
    load: Load,
    _reader_home: Home,
    place: Place,
}

impl Scene {
    fn new() -> Option<Self> {
        let place = Place::new(3)?;
        let homes = ["a", "b"].map(|name| place.home_with(&[("cluster.instance", name)]));
        let reader_home = place.home_with(&[("cql.read_plan", "tables")]);
        let portal = place.start("portal");
        let readers = [place.start("reader"), start(&reader_home, "reader")];
        let random = StdRng::seed_from_u64(crate::crash::seed());
        let load = Load::new("rides");
        Some(Self { portal, readers, homes, random, load, _reader_home: reader_home, place })
    }

    fn writer(&self, index: usize) -> Server {
        start(&self.homes[index], "writer")
    }

    #[track_caller]
    fn compare(&mut self) {
        for reader in &self.readers {
            self.load.compare(reader, &mut self.random);
        }
    }

    /// Sends to a writer until it is killed.
    fn kill_under_load(&mut self, writer: Server) {
        let client: Client = (*writer).clone();
        // The moment of the kill is the random part.
        let life = Duration::from_millis(self.random.random_range(50..400));
        let load = &mut self.load;
        let random = &mut self.random;
        std::thread::scope(|scope| {
            scope.spawn(move || while load.send(&client, "/v1/events", random) {});
            std::thread::sleep(life);
            writer.kill();
        });
    }
}

impl Drop for Scene {
    /// A failed test shows the logs of the writers.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.homes.iter().for_each(|home| eprintln!("{}", home.errors()));
        }
    }
}

/// Waits until two writers share the partitions.
fn until_shared(writers: [&Client; 2]) {
    until("both count", || writers.iter().all(|writer| partitions_of(writer) >= 1.0).then_some(()));
}

fn partitions_of(writer: &Client) -> f64 {
    writer.metric("raingauge_partitions_counted")
}

#[test]
fn every_event_is_counted_once_whatever_happens_to_the_writers() {
    let Some(mut scene) = Scene::new() else {
        return;
    };
    let first = scene.writer(0);
    create_counters(&scene.portal);

    for reader in &scene.readers {
        settle(&scene.portal, &first, reader, scene.place.partitions);
    }
    scene.load.send_all(&[&first], 15, &mut scene.random);
    scene.load.settle(&first);
    scene.compare();

    // Killed, and started again.
    scene.kill_under_load(first);
    let first = scene.writer(0);
    scene.load.settle(&first);
    scene.compare();

    // Killed, and its partitions go to another.
    let second = scene.writer(1);
    until_shared([&first, &second]);
    scene.load.send_all(&[&first, &second], 10, &mut scene.random);
    scene.kill_under_load(first);
    scene.load.settle(&second);
    assert_eq!(partitions_of(&second), f64::from(scene.place.partitions));
    scene.compare();

    // Frozen for longer than its session lasts while it has something to count, and thawed.
    let first = scene.writer(0);
    until_shared([&first, &second]);
    scene.load.send_all(&[&first], 10, &mut scene.random);
    first.signal("STOP");
    scene.load.send_all(&[&second], 10, &mut scene.random);
    scene.load.settle(&second);
    scene.compare();
    first.signal("CONT");
    until("the one that was frozen takes part again", || {
        scene.compare();
        (partitions_of(&first) >= 1.0 && partitions_of(&second) < f64::from(scene.place.partitions))
            .then_some(())
    });
    scene.load.send_all(&[&first, &second], 10, &mut scene.random);
    scene.load.settle(&second);
    scene.compare();
    println!("{} rides", scene.load.len());
}

//! A client that sends rides, some of them twice and many of them late, and remembers what was
//! acknowledged.

use crate::client::Client;
use crate::crash::load::{END_S, Ride, START_S, post_rides};
use crate::model::Model;
use crate::server::until;
use raingauge_ports::record::identity;
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};

/// Ranges, and their counts.
type Expected<'a> = (Vec<(&'a str, i64, i64)>, Vec<i64>);

pub struct Load {
    name: String,
    next_id: u32,
    sent: Vec<Ride>,
    /// The counts of the acknowledged rides.
    model: Model,
    /// Batches that got no answer.
    pending: Vec<Vec<Ride>>,
}

impl Load {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            next_id: 0,
            sent: Vec::new(),
            model: Model::default(),
            pending: Vec::new(),
        }
    }

    /// Sends one batch: new rides, some of them twice, among rides of earlier batches. Returns
    /// whether it was acknowledged.
    pub fn send(&mut self, client: &Client, path: &str, random: &mut StdRng) -> bool {
        let fresh: Vec<Ride> =
            (0..random.random_range(1..=200)).map(|_| self.ride(random)).collect();
        let mut batch = fresh.clone();
        batch.extend(fresh.choose_multiple(random, 5).cloned());
        batch.extend(self.sent.choose_multiple(random, 40).cloned());
        batch.shuffle(random);

        let answer = post_rides(client, path, &batch);
        let is_acknowledged = answer.is_some_and(|answer| {
            assert!(
                matches!(answer.status, 200 | 429 | 503 | 504),
                "{} {}",
                answer.status,
                answer.text()
            );
            answer.status == 200
        });

        if is_acknowledged {
            self.note(fresh)
        } else {
            self.pending.push(fresh)
        }

        is_acknowledged
    }

    /// Sends `batches` batches, all of which are acknowledged.
    pub fn send_all(&mut self, clients: &[&Client], batches: usize, random: &mut StdRng) {
        for index in 0..batches {
            let path =
                if random.random_bool(0.2) { "/v1/events?wait=applied" } else { "/v1/events" };
            assert!(self.send(clients[index % clients.len()], path, random), "the writer answers");
        }
    }

    fn ride(&mut self, random: &mut StdRng) -> Ride {
        self.next_id += 1;
        Ride::random(format!("{}-{}", self.name, self.next_id), random)
    }

    fn note(&mut self, rides: Vec<Ride>) {
        rides.iter().for_each(|ride| ride.count_in(&mut self.model));
        self.sent.extend(rides);
    }

    /// Sends again what may not have arrived, and waits until everything that was ever sent is
    /// counted.
    pub fn settle(&mut self, client: &Client) {
        let pending = std::mem::take(&mut self.pending);
        // With this many, some fall into each partition: waiting for them includes everything
        // before them.
        let newest: Vec<Ride> = self.sent.iter().rev().take(64).cloned().collect();
        for batch in pending.iter().chain([&newest]).filter(|batch| !batch.is_empty()) {
            until("the rides are counted", || {
                let answer = post_rides(client, "/v1/events?wait=applied", batch)?;
                (answer.status == 200).then_some(())
            });
        }
        pending.into_iter().for_each(|batch| self.note(batch));
    }

    /// Compares many ranges of every key with the model.
    #[track_caller]
    pub fn compare(&self, reader: &Client, random: &mut StdRng) {
        for (ranges, expected) in self.ranges(random) {
            assert_eq!(reader.counts(&ranges), expected, "{ranges:?}");
        }
    }

    /// Returns ranges of each key, and their counts.
    fn ranges(&self, random: &mut StdRng) -> Vec<Expected<'_>> {
        let mut all = Vec::new();
        for key in self.model.keys() {
            let mut ranges = vec![
                (key, START_S, END_S),
                (key, END_S - 7_200, END_S),
                (key, END_S - 3_600, END_S - 900),
            ];

            ranges.extend((0..20).map(|_| {
                let from = random.random_range(START_S..END_S);
                (key, from, random.random_range(from..END_S))
            }));
            let expected =
                ranges.iter().map(|(key, from, to)| self.model.count(key, *from, *to)).collect();
            all.push((ranges, expected));
        }

        all
    }

    pub fn len(&self) -> usize {
        self.sent.len()
    }
}

/// Returns ids of events of the source `tests`, one for each partition in its order.
pub fn ids_of_each_partition(name: &str, partitions: u16) -> Vec<String> {
    let id_for = |partition: u16| {
        let ids = (0..).map(|number| format!("{name}-{number}"));
        let is_of =
            |id: &String| identity("tests", id) % u128::from(partitions) == u128::from(partition);
        ids.into_iter().find(is_of).expect("some id falls there")
    };
    (0..partitions).map(id_for).collect()
}

//! Readers and acknowledgements in any order, with messages that are slow, lost or read late: no
//! answer from memory lacks an event that was acknowledged before the query.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

const READERS: usize = 2;
const PROCESSES: usize = 2;

#[derive(Clone, Debug)]
enum Step {
    /// Events are stored, and the readers are to hear of them.
    Store,
    /// A reader receives the next message of the tile stream.
    Hear(usize),
    /// A reader reads the store and caches what it found.
    Fill(usize),
    /// A reader sends a lease message.
    Renew(usize),
    /// The next message of a reader is appended to the topic, or is lost.
    Append(usize, bool),
    /// A reader learns that its next message is in the topic.
    Granted(usize),
    End(usize),
    /// A process is asked to acknowledge what is stored now.
    Acknowledge(usize),
    /// ... and sends a barrier, which is appended to the topic at once or is lost.
    Barrier(usize, bool),
    /// A process reads the next message of the topic.
    Read(usize),
    /// A process misses the next message of the topic, and learns that it did.
    Miss(usize),
    Wait(i64),
}

fn any_step() -> impl Strategy<Value = Step> {
    let reader = 0..READERS;
    let process = 0..PROCESSES;
    prop_oneof![
        4 => Just(Step::Store),
        8 => reader.clone().prop_map(Step::Hear),
        6 => reader.clone().prop_map(Step::Fill),
        6 => reader.clone().prop_map(Step::Renew),
        6 => (reader.clone(), prop::bool::weighted(0.9))
            .prop_map(|(reader, is_kept)| Step::Append(reader, is_kept)),
        6 => reader.clone().prop_map(Step::Granted),
        1 => reader.prop_map(Step::End),
        4 => process.clone().prop_map(Step::Acknowledge),
        6 => (process.clone(), prop::bool::weighted(0.9))
            .prop_map(|(process, is_kept)| Step::Barrier(process, is_kept)),
        9 => process.clone().prop_map(Step::Read),
        1 => process.prop_map(Step::Miss),
        4 => prop_oneof![1..50_i64, 400..1_900_i64, 2_000..2_200_i64].prop_map(Step::Wait),
    ]
}

/// The model counts a single number, which is also the offset.
#[derive(Default)]
struct Reader {
    lease: Lease,
    heard: Offset,
    /// The reader's answer from memory.
    memory: Option<Offset>,
    /// How much of the tile stream the reader has read.
    read: usize,
    /// Messages on their way into the topic, and messages in the topic whose grant the reader has
    /// not learned of.
    sending: VecDeque<(LeaseMessage, i64)>,
    granted: VecDeque<i64>,
}

struct Process {
    holders: Holders,
    read: usize,
    /// Barriers that the process has sent.
    barriers: u64,
    /// What the process is to acknowledge, and the first barrier that it sent after that was
    /// stored.
    asked: Option<(Offset, u64)>,
}

struct World {
    now_ms: i64,
    stored: Offset,
    stream: Vec<Offset>,
    topic: Vec<LeaseMessage>,
    readers: Vec<Reader>,
    processes: Vec<Process>,
    acknowledged: Offset,
    acknowledgements: usize,
    from_memory: usize,
}

impl World {
    fn new() -> Self {
        let process = |number| Process {
            holders: Holders::new(number as u64),
            read: 0,
            barriers: 0,
            asked: None,
        };
        Self {
            now_ms: 0,
            stored: 1,
            stream: Vec::new(),
            topic: Vec::new(),
            readers: (0..READERS).map(|_| Reader::default()).collect(),
            processes: (0..PROCESSES).map(process).collect(),
            acknowledged: 0,
            acknowledgements: 0,
            from_memory: 0,
        }
    }

    fn step(&mut self, step: Step) {
        let now_ms = self.now_ms;
        match step {
            Step::Store => {
                self.stored += 1;
                self.stream.push(self.stored);
            }
            Step::Hear(of) => {
                let reader = &mut self.readers[of];
                if let Some(told) = self.stream.get(reader.read) {
                    reader.read += 1;
                    reader.heard = *told;
                    reader.memory = reader.memory.map(|memory| memory.max(*told));
                }
            }
            Step::Fill(of) if self.readers[of].lease.holds(now_ms) => {
                self.readers[of].memory = Some(self.stored)
            }
            Step::Renew(of) => {
                let reader = &mut self.readers[of];
                let word = LeaseMessage::Held { reader: of as u64, heard: vec![reader.heard] };
                reader.sending.push_back((word, now_ms));
            }
            Step::Append(of, is_kept) => {
                if let Some((word, sent_ms)) =
                    self.readers[of].sending.pop_front().filter(|_| is_kept)
                {
                    self.topic.push(word);
                    self.readers[of].granted.push_back(sent_ms);
                }
            }
            Step::Granted(of) => self.grant(of),
            Step::End(of) => {
                let reader = &mut self.readers[of];
                reader.lease.end();
                self.topic.push(LeaseMessage::Ended { reader: of as u64 });

                // The reader restarts under a new id, while messages of its old id may still be on
                // their way.
                *reader = Reader { read: reader.read, heard: reader.heard, ..Reader::default() };
            }
            Step::Acknowledge(of) => {
                let process = &mut self.processes[of];
                process.asked.get_or_insert((self.stored, process.barriers + 1));
            }
            Step::Barrier(of, is_kept) => {
                let number = self.processes[of].barriers + 1;
                self.processes[of].barriers = number;

                if is_kept {
                    self.topic.push(LeaseMessage::Barrier {
                        process: of as u64,
                        number,
                        sent_ms: now_ms,
                    });
                }
            }
            Step::Read(of) => {
                let process = &mut self.processes[of];
                if let Some(message) = self.topic.get(process.read) {
                    process.read += 1;
                    process.holders.note(message.clone(), now_ms);
                }
            }
            Step::Miss(of) => {
                let process = &mut self.processes[of];
                if process.read < self.topic.len() {
                    process.read += 1;
                    process.holders.note(LeaseMessage::Gap, now_ms);
                }
            }
            Step::Wait(ms) => self.now_ms += ms,
            Step::Fill(_) => {}
        }

        self.answer_acknowledgements();
        self.ask_everybody();
    }

    /// Extends the lease as a reader does when it learns that its message is in the topic.
    fn grant(&mut self, of: usize) {
        let reader = &mut self.readers[of];
        if let Some(sent_ms) = reader.granted.pop_front() {
            if !reader.lease.holds(self.now_ms) {
                reader.memory = None;
            }
            reader.lease.extend(sent_ms);
        }
    }

    fn answer_acknowledgements(&mut self) {
        for process in &mut self.processes {
            let Some((end, number)) = process.asked else {
                continue;
            };
            if process.holders.have_heard(&[(0, end)], number) {
                process.asked = None;
                self.acknowledged = self.acknowledged.max(end);
                self.acknowledgements += 1;
            }
        }
    }

    fn ask_everybody(&mut self) {
        for reader in &self.readers {
            if let Some(memory) = reader.memory.filter(|_| reader.lease.holds(self.now_ms)) {
                self.from_memory += 1;
                assert!(
                    memory >= self.acknowledged,
                    "{memory} was answered, {} acknowledged",
                    self.acknowledged
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 3_000,
        ..ProptestConfig::default()
    })]
    #[test]
    fn nothing_is_acknowledged_that_a_reader_with_a_lease_has_not_heard_of(
        steps in prop::collection::vec(any_step(), 0..400),
    ) {
        let mut world = World::new();
        steps.into_iter().for_each(|step| world.step(step));
    }
}

/// One reader renews its lease again and again while a process acknowledges events.
#[test]
fn acknowledgements_go_on_while_readers_hold_leases_and_when_one_dies() {
    let mut world = World::new();
    let settle = |world: &mut World| {
        for of in 0..READERS - 1 {
            let renewal = [
                Step::Hear(of),
                Step::Renew(of),
                Step::Append(of, true),
                Step::Granted(of),
                Step::Fill(of),
            ];
            renewal.into_iter().for_each(|step| world.step(step));
        }

        (0..PROCESSES).for_each(|of| world.step(Step::Barrier(of, true)));
        (0..40 * PROCESSES).for_each(|turn| world.step(Step::Read(turn % PROCESSES)));
        world.step(Step::Wait(100));
    };

    // The last reader takes its lease once and is never heard of again.
    let once =
        [Step::Renew(READERS - 1), Step::Append(READERS - 1, true), Step::Granted(READERS - 1)];
    once.into_iter().for_each(|step| world.step(step));

    for _ in 0..60 {
        world.step(Step::Store);
        (0..PROCESSES).for_each(|of| world.step(Step::Acknowledge(of)));
        settle(&mut world);
    }

    assert!(
        world.acknowledgements > 60 && world.from_memory > 60,
        "{} {}",
        world.acknowledgements,
        world.from_memory
    );
    assert_eq!(world.processes[0].holders.len(), READERS - 1);
}

/// Whether a lease has expired is unknown until everything that was in the topic by then has been
/// read.
#[test]
fn a_word_that_was_not_read_yet_may_have_extended_a_lease() {
    let mut holders = Holders::new(0);
    let barrier = |number, sent_ms| LeaseMessage::Barrier { process: 0, number, sent_ms };
    holders.note(barrier(1, 0), 1);
    holders.note(barrier(2, 5_000), 5_001);
    holders.note(LeaseMessage::Held { reader: 1, heard: vec![7] }, 5_002);
    assert!(!holders.have_heard(&[(0, 8)], 2) && holders.have_heard(&[(0, 7)], 2));
    holders.note(barrier(3, 5_010), 5_002 + LEASE_MS + GRACE_MS + 1);
    assert!(!holders.have_heard(&[(0, 8)], 2), "the barrier is older than the end of the lease");
    holders.note(barrier(4, 5_002 + LEASE_MS + GRACE_MS), 8_000);
    assert!(holders.have_heard(&[(0, 8)], 4) && holders.is_empty());
    assert!(!holders.have_heard(&[(0, 8)], 5), "a reader may have got a lease since");
}

use super::*;
use crate::record::Identity;
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;

const WINDOW_MS: i64 = 240;
const RULES: u64 = 5;

/// A message: its offset, its append time, and its identity if it has one.
type Message = (Offset, i64, Option<Identity>);

/// Each chunk holds some messages: most offsets hold none, as where transactions are written. Time
/// mostly grows.
fn logs() -> impl Strategy<Value = Vec<Message>> {
    let gap = prop_oneof![6 => 1..9_000_u64, 3 => Just(4_096), 1 => 40_000..120_000_u64];
    let step = prop_oneof![
        6 => 0..4_i64,
        3 => Just(10),
        2 => 0..60_i64,
        1 => 200..400_i64,
        2 => -80..0_i64,
    ];
    let id = prop_oneof![9 => (0..40_u128).prop_map(Some), 1 => Just(None)];

    proptest::collection::vec((gap, step, id), 1..120).prop_map(|steps| {
        let mut offset = 0;
        let mut now_ms = 10_000;
        let spread = |id: u128| id.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C834);
        let at = |(gap, step, id): (u64, i64, Option<u128>)| {
            (offset, now_ms) = (offset + gap, now_ms + step);
            (offset, now_ms, id.map(spread))
        };

        steps.into_iter().map(at).collect()
    })
}

/// The stored chunks of one partition, by their numbers.
#[derive(Default)]
struct Stored(RefCell<BTreeMap<u64, Vec<u8>>>);

impl Stored {
    fn put(&self, chunk: &Chunk) {
        self.0.borrow_mut().insert(chunk.number, chunk.bytes.clone());
    }
}

/// A reader of a partition: its worker, or a process that still believes it is.
struct Reader {
    recorder: Recorder,
    from: Offset,
    /// Chunks that are complete and not stored yet.
    unstored: Vec<Chunk>,
    restored: usize,
    read: usize,
}

impl Reader {
    /// Takes over at an offset and rebuilds the window before it.
    fn open(log: &[Message], store: &Stored, from: Offset, ids_max: usize) -> Self {
        let reference = log.iter().rev().find(|(offset, ..)| *offset < from);
        let begin = reference.map_or(from, |(_, appended_ms, _)| {
            let begin_ms = begin_ms(WINDOW_MS, *appended_ms);
            log.iter()
                .find(|(_, appended_ms, _)| *appended_ms >= begin_ms)
                .expect("the reference, at least")
                .0
        });
        let recorder = Recorder::new(Window::new(WINDOW_MS, ids_max), RULES, begin, true);
        let mut reader = Self { recorder, from, unstored: Vec::new(), restored: 0, read: 0 };
        reader.rebuild(log, store);
        reader
    }

    fn rebuild(&mut self, log: &[Message], store: &Stored) {
        loop {
            if let Some(number) = self.recorder.look_for(self.from) {
                let found = store.0.borrow().get(&number).cloned();
                if found.is_some_and(|bytes| self.recorder.restore(&bytes).is_some()) {
                    self.restored += 1;
                    continue;
                }
            }

            let next = log.iter().find(|(offset, ..)| *offset >= self.recorder.next());
            let Some(message) = next.filter(|(offset, ..)| *offset < self.from) else {
                return;
            };
            self.take(message);
            self.read += 1;
        }
    }

    fn take(&mut self, (offset, appended_ms, identity): &Message) -> Option<Verdict> {
        let verdict = match identity {
            Some(identity) => Some(self.recorder.see(*offset, *appended_ms, *identity)),
            None => {
                self.recorder.pass(*offset, *appended_ms);
                None
            }
        };
        self.unstored.append(&mut self.recorder.take_full());
        verdict
    }

    /// Counts the next message and compares the verdict.
    fn step(&mut self, log: &[Message], expected: &[Option<Verdict>]) {
        let place =
            log.partition_point(|(offset, ..)| *offset < self.recorder.next().max(self.from));
        if let Some(message) = log.get(place) {
            assert_eq!(self.take(message), expected[place], "the message at offset {}", message.0);
        }
    }
}

/// An event in the life of the readers.
#[derive(Clone, Debug)]
enum Act {
    /// A new reader takes over; the previous one goes on as a zombie.
    TakeOver(prop::sample::Index),
    Count(prop::sample::Index, usize),
    /// Stores one of the waiting chunks, in any order.
    Store(prop::sample::Index, prop::sample::Index),
    Crash(prop::sample::Index),
    /// The store loses chunks, or returns other bytes than it was given.
    Lose(u64),
    Spoil(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    use prop::sample::Index;
    let act = prop_oneof![
        3 => any::<Index>().prop_map(Act::TakeOver),
        8 => (any::<Index>(), 1..40_usize).prop_map(|(who, steps)| Act::Count(who, steps)),
        8 => (any::<Index>(), any::<Index>()).prop_map(|(who, which)| Act::Store(who, which)),
        2 => any::<Index>().prop_map(Act::Crash),
        1 => (2..5_u64).prop_map(Act::Lose),
        1 => (2..5_u64).prop_map(Act::Spoil),
    ];
    proptest::collection::vec(act, 1..60)
}

proptest! {
    /// The verdict on a message follows from the log alone, whichever reader takes over at
    /// whichever offset, and whichever chunks are stored by which reader.
    #[test]
    fn chunks_change_no_verdict(
        log in logs(),
        acts in acts(),
        ids_max in prop_oneof![1..40_usize, Just(1_000)],
    ) {
        let mut whole = Recorder::new(Window::new(WINDOW_MS, ids_max), RULES, 0, false);
        let judge = |(offset, appended_ms, identity): &Message| {
            let verdict = identity.map(|identity| whole.see(*offset, *appended_ms, identity));
            if identity.is_none() {
                whole.pass(*offset, *appended_ms);
            }
            verdict
        };
        let expected: Vec<_> = log.iter().map(judge).collect();

        let store = Stored::default();
        let mut readers = Vec::<Reader>::new();
        let end = log.last().map_or(0, |(offset, ..)| offset + 1);
        for act in acts {
            match act {
                Act::TakeOver(from) => {
                    readers.push(Reader::open(
                        &log,
                        &store,
                        from.index(end as usize) as Offset,
                        ids_max,
                    ));
                }
                _ if readers.is_empty() => {}
                Act::Count(who, steps) => {
                    let who = who.index(readers.len());
                    (0..steps).for_each(|_| readers[who].step(&log, &expected));
                }
                Act::Store(who, which) => {
                    let who = who.index(readers.len());
                    let unstored = &mut readers[who].unstored;
                    if !unstored.is_empty() {
                        store.put(&unstored.swap_remove(which.index(unstored.len())));
                    }
                }
                Act::Crash(who) => drop(readers.swap_remove(who.index(readers.len()))),
                Act::Lose(modulo) => store.0.borrow_mut().retain(|number, _| number % modulo != 0),
                Act::Spoil(modulo) => store.0.borrow_mut().retain(|number, bytes| {
                    let place = *number as usize % bytes.len();
                    bytes[place] ^= u8::from(number % modulo == 0);
                    true
                }),
            }
        }
    }

    /// Two readers of the same messages make the same chunks, wherever they began.
    #[test]
    fn a_chunk_follows_from_the_log(log in logs(), from in any::<prop::sample::Index>()) {
        let chunks = |from: usize| {
            let mut recorder =
                Recorder::new(Window::new(WINDOW_MS, 1_000), RULES, log[from].0, true);
            for (offset, appended_ms, identity) in &log[from..] {
                match identity {
                    Some(identity) => drop(recorder.see(*offset, *appended_ms, *identity)),
                    None => recorder.pass(*offset, *appended_ms),
                }
            }
            recorder.take_full()
        };
        let whole = chunks(0);
        let part = chunks(from.index(log.len()));
        prop_assert_eq!(&part[..], &whole[whole.len() - part.len()..]);
    }

    #[test]
    fn a_chunk_reads_as_it_was_written(log in logs(), flip in any::<prop::sample::Index>()) {
        let mut content = Content::default();
        for (offset, appended_ms, identity) in &log {
            content.push(*offset, *appended_ms, identity.map(Fingerprint::of));
        }
        let mut bytes = content.encode(RULES, 3);
        prop_assert_eq!(Content::decode(&bytes, RULES, 3), Some(content.clone()));
        prop_assert_eq!(Content::decode(&bytes, RULES, 4), None);
        prop_assert_eq!(Content::decode(&bytes, RULES + 1, 3), None);
        prop_assert_eq!(Content::decode(&bytes[1..], RULES, 3), None);
        let place = flip.index(bytes.len());
        bytes[place] ^= 1;
        prop_assert_eq!(Content::decode(&bytes, RULES, 3), None);
    }
}

/// A successor reads the messages of less than two chunks. Without chunks it reads the window.
#[test]
fn a_takeover_reads_the_end_of_the_window_only() {
    let log: Vec<Message> = (0..1_000)
        .map(|place| (place * 1_000, 10_000 + place as i64 / 10, Some(u128::from(place) << 64)))
        .collect();
    let store = Stored::default();
    let end = log.last().map_or(0, |(offset, ..)| offset + 1);
    let first = Reader::open(&log, &store, end, 10_000);

    assert_eq!((first.restored, first.read), (0, 1_000));

    for chunk in &first.unstored {
        store.put(chunk);
    }
    let next = Reader::open(&log, &store, end, 10_000);
    assert_eq!(
        (next.restored as u64, next.read),
        (end / CHUNK_OFFSETS, (end % CHUNK_OFFSETS / 1_000 + 1) as usize)
    );

    // The messages of a missing chunk are read, and the chunk is made again.
    store.0.borrow_mut().retain(|number, _| *number != 7);
    let gap = Reader::open(&log, &store, end, 10_000);
    assert_eq!(gap.restored as u64, end / CHUNK_OFFSETS - 1);
    assert_eq!(gap.unstored.iter().map(|chunk| chunk.number).collect::<Vec<_>>(), [7]);
}

/// Kept as bytes, so that chunks of this version stay readable.
#[test]
fn a_chunk_of_version_1_is_read() {
    let mut content = Content::default();
    content.push(
        98_304,
        1_700_000_000_000,
        Some(Fingerprint::of(0x0123_4567_89ab_cdef_0011_2233_4455_6677)),
    );
    content.push(98_310, 1_700_000_000_001, None);
    let head = "01090000000000000003000000000000000780010000000000";
    let last = "efcdab896745230133221100";
    let runs = "020000000068e5cf8b010000010000000168e5cf8b01000000000000";
    let text: String = content.encode(9, 3).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(text, format!("{head}{runs}{last}c93b77f76c3e8dd0"));
}

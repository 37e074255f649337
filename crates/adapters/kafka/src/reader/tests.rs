use super::*;
use crate::control::{self, ControlRules, Place};
use proptest::prelude::*;
use raingauge_core::event::Event;
use raingauge_ports::dedupe::CHUNK_OFFSETS;
use raingauge_ports::record::Entry;
use rdkafka::message::OwnedMessage;

const WINDOW_MS: i64 = 240;

fn options(epoch: u16) -> Arc<Options> {
    let options = Options {
        dedupe_window_ms: WINDOW_MS,
        dedupe_ids_max: 20,
        future_allowance_s: 0,
        epoch,
        ..Options::default()
    };
    Arc::new(options)
}

#[derive(Clone, Debug)]
enum Kind {
    Event(u8),
    Control,
    Poison,
    /// From later than when it is appended.
    Future(u8),
    /// No message has this offset.
    Nothing,
}

fn partitions() -> impl Strategy<Value = Vec<(i64, Kind)>> {
    let kind = prop_oneof![
        8 => (0..30_u8).prop_map(Kind::Event),
        1 => Just(Kind::Control),
        1 => Just(Kind::Poison),
        1 => (0..30_u8).prop_map(Kind::Future),
        2 => Just(Kind::Nothing),
    ];

    let step = prop_oneof![6 => Just(0_i64), 4 => 1..40_i64, 1 => 200..400_i64, 1 => -60..0_i64];
    proptest::collection::vec((step, kind), 1..120).prop_map(|steps| {
        let mut now_ms = 1_000_000;
        let at = |(step, kind)| {
            now_ms += step;
            (now_ms, kind)
        };
        steps.into_iter().map(at).collect()
    })
}

/// The messages of a partition, by their offsets.
fn messages(partition: &[(i64, Kind)]) -> Vec<OwnedMessage> {
    let message = |(offset, (appended_ms, kind)): (usize, &(i64, Kind))| {
        let event = |id: &u8, time_ms| Event {
            id: id.to_string().into(),
            ..Event::of_data("t", time_ms, "{}")
        };
        let (headers, payload) = match kind {
            Kind::Nothing => return None,
            Kind::Event(id) => (Some(message::headers_of(&event(id, 1_000))), "{}"),
            Kind::Future(id) => (Some(message::headers_of(&event(id, 9_000_000))), "{}"),
            Kind::Control => (Some(message::control_headers(None)), "note"),
            Kind::Poison => (None, "noise"),
        };

        let appended = Timestamp::LogAppendTime(*appended_ms);
        let payload = Some(payload.as_bytes().to_vec());
        Some(OwnedMessage::new(payload, None, "t".to_owned(), appended, 0, offset as i64, headers))
    };
    partition.iter().enumerate().filter_map(message).collect()
}

type Entries = Vec<(Offset, i64, String)>;

/// Reads messages, now and then answering, and lists offsets, times and entries.
fn read(
    reader: &mut Reader,
    messages: &[OwnedMessage],
    end: i64,
    chunk: usize,
) -> (Entries, Vec<i64>) {
    let mut seen = Vec::new();
    let mut poison = Vec::new();
    let mut list = |reader: &mut Reader| {
        poison.extend(reader.poison().iter().map(|poison| poison.message.offset()));
        for block in &reader.answer().blocks {
            for entry in block.entries(0) {
                let (offset, entry) = entry.unwrap();
                let text = match entry {
                    Entry::Event(event) => event.id.into_owned(),
                    Entry::Control(_) => "control".to_owned(),
                    Entry::Void => "void".to_owned(),
                };
                seen.push((offset, block.appended_ms, text));
            }
        }
    };

    for some in messages.chunks(chunk) {
        for message in some {
            reader.take(message).unwrap();
        }
        list(reader);
    }

    reader.skip_to(end);
    list(reader);
    (seen, poison)
}

proptest! {
    /// Wherever reading begins, and however it is cut, each offset holds the same.
    #[test]
    fn what_an_offset_holds_does_not_depend_on_where_reading_began(
        partition in partitions(),
        cut in any::<prop::sample::Index>(),
        chunks in (1..9_usize, 1..9_usize),
    ) {
        let messages = messages(&partition);
        let end = partition.len() as i64;
        let options = options(3);
        let (whole, _) = read(&mut Reader::new(&options, 0, 0, false), &messages, end, chunks.0);
        prop_assert_eq!(whole.len() as i64, end);
        prop_assert!(
            whole.iter().zip(0..).all(|((offset, ..), place)| *offset == options.base() + place)
        );

        for place in 1..whole.len() {
            let nothing = matches!(partition[place].1, Kind::Nothing);
            prop_assert_eq!(
                whole[place].1,
                if nothing { whole[place - 1].1 } else { partition[place].0 }
            );
        }

        let from = cut.index(partition.len()) as i64;
        // As a cursor finds where to begin.
        let reference = messages.iter().rev().find(|message| message.offset() < from);
        let begin = match reference {
            None => from,
            Some(message) => {
                let begin_ms = raingauge_ports::dedupe::begin_ms(
                    WINDOW_MS,
                    message.timestamp().to_millis().unwrap(),
                );
                messages
                    .iter()
                    .find(|message| message.timestamp().to_millis().unwrap() >= begin_ms)
                    .unwrap()
                    .offset()
            }
        };
        let mut reader = Reader::new(&options, begin, from, true);
        reader.keep_poison_from(from + 2);
        let rest: Vec<_> =
            messages.iter().filter(|message| message.offset() >= begin).cloned().collect();
        let (seen, poison) = read(&mut reader, &rest, end, chunks.1);
        prop_assert_eq!(&seen[..], &whole[from as usize..]);
        let refused = |(_, kind): &(i64, Kind)| matches!(kind, Kind::Poison | Kind::Future(_));
        let expected: Vec<i64> =
            (from + 2..end).filter(|offset| refused(&partition[*offset as usize])).collect();
        prop_assert_eq!(poison, expected);
    }
}

#[test]
fn a_producers_time_is_refused() {
    let message =
        OwnedMessage::new(None, None, "t".to_owned(), Timestamp::CreateTime(1), 0, 7, None);
    assert_eq!(
        Reader::new(&options(0), 0, 0, false).take(&message),
        Err(Unfit::NotAppendTime { offset: 7 })
    );
}

/// What is put aside counts toward the bytes that a read may hold.
#[test]
fn refused_messages_take_memory() {
    let appended = Timestamp::LogAppendTime(1_000);
    let mut reader = Reader::new(&options(0), 0, 0, false);
    reader.keep_poison_from(0);

    for offset in 0..10 {
        let message = OwnedMessage::new(
            Some(vec![b'x'; 20_000]),
            None,
            "t".to_owned(),
            appended,
            0,
            offset,
            None,
        );
        reader.take(&message).unwrap();
    }

    assert!(reader.bytes() > 200_000, "{} bytes are counted of 200,000", reader.bytes());
    assert_eq!(reader.poison().len(), 10);
    reader.answer();
    assert_eq!((reader.poison().len(), reader.bytes()), (0, 0));
}

/// Who may write into the topic can repeat a signed entry; it takes effect once.
#[test]
fn a_copy_of_a_signed_control_entry_counts_nothing() {
    let controls = ControlRules { keys: vec![b"key".to_vec()], ..ControlRules::default() };
    let options = Arc::new(Options { controls, dedupe_window_ms: 60_000, ..Options::default() });
    let place = Place { epoch: 0, partition: 0 };
    let signed = |nonce| control::sign(b"key", place, 1_000, [nonce; 16], b"note");
    let message = |(offset, signature): (i64, String)| {
        let headers = message::control_headers(Some(&signature));
        let appended = Timestamp::LogAppendTime(1_000 + offset);
        OwnedMessage::new(
            Some(b"note".to_vec()),
            None,
            "t".to_owned(),
            appended,
            0,
            offset,
            Some(headers),
        )
    };

    let messages: Vec<_> =
        [(0, signed(1)), (1, signed(1)), (2, signed(2))].into_iter().map(message).collect();
    let (seen, poison) = read(&mut Reader::new(&options, 0, 0, false), &messages, 3, 3);
    let texts: Vec<&str> = seen.iter().map(|(.., text)| text.as_str()).collect();
    assert_eq!((texts, poison), (vec!["control", "void", "control"], Vec::new()));
}

/// Who restores chunks reads the last of their messages once more, and goes on only when it is
/// still that one.
#[test]
fn chunks_of_another_log_are_noticed() {
    let options = Arc::new(Options { dedupe_window_ms: 60_000, ..Options::default() });
    let message = |offset: i64, appended_ms: i64| {
        let event = Event { id: offset.to_string().into(), ..Event::of_data("t", 1_000, "{}") };
        let headers = message::headers_of(&event);
        let appended = Timestamp::LogAppendTime(appended_ms);

        OwnedMessage::new(
            Some(b"{}".to_vec()),
            None,
            "t".to_owned(),
            appended,
            0,
            offset,
            Some(headers),
        )
    };

    let last = CHUNK_OFFSETS as i64 - 3;
    let mut first = Reader::new(&options, 0, 0, true);
    [message(5, 1_000), message(last, 2_000)]
        .iter()
        .for_each(|message| first.take(message).unwrap());
    first.skip_to(last + 10);

    let chunk = first.take_full().remove(0);
    assert!(Reader::new(&options, 0, 0, true).take_full().is_empty());

    let restored = || {
        let mut next = Reader::new(&options, 0, last + 10, true);
        assert_eq!(next.look_for(), Some(0));
        assert!(next.restore(&chunk.bytes));
        assert_eq!((next.next(), next.resumes_at(0)), (CHUNK_OFFSETS as i64, last));

        next
    };

    restored().take(&message(last, 2_000)).unwrap();
    let unfit = |message: OwnedMessage| restored().take(&message).unwrap_err();
    assert_eq!(unfit(message(last, 2_001)), Unfit::Replaced { offset: last, appended_ms: 2_001 });
    assert_eq!(
        unfit(message(last + 5, 2_000)),
        Unfit::Replaced { offset: last + 5, appended_ms: 2_000 }
    );

    // What has been trimmed cannot be compared.
    let mut trimmed = restored();
    assert_eq!(trimmed.resumes_at(last + 1), CHUNK_OFFSETS as i64);
    trimmed.take(&message(last + 5, 3_000)).unwrap();
}

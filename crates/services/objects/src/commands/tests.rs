//! Replies and events beside those of Redis, as `scripts/record-redis-replies` recorded them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use raingauge_memory::Objects as Twin;
use raingauge_ports::clock::ManualClock;
use raingauge_resp::{Command, Controls, Drain, Failure, Protocol, Replies, Spec};

use crate::{Objects, Options, Session, Space, Subscriber};

/// A command with what Redis answered.
struct Recorded {
    line: usize,
    arguments: Vec<Vec<u8>>,
    older: String,
    newer: String,
    events: Vec<String>,
}

/// Reads a file of sections. Each begins with nothing stored.
fn sections(path: &Path) -> Vec<Vec<Recorded>> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut sections: Vec<Vec<Recorded>> = Vec::new();

    for (number, line) in text.lines().enumerate() {
        if line.starts_with("##") {
            sections.push(Vec::new());
            continue;
        }
        let section = sections.last_mut().expect("a section before the first command");
        match (line.split_at(line.len().min(2)), section.last_mut()) {
            (("= ", reply), Some(last)) => {
                last.older = reply.to_owned();
                last.newer = reply.to_owned();
            }
            (("2 ", reply), Some(last)) => last.older = reply.to_owned(),
            (("3 ", reply), Some(last)) => last.newer = reply.to_owned(),
            (("! ", event), Some(last)) => last.events.push(event.to_owned()),
            _ => section.push(Recorded {
                line: number + 1,
                arguments: words(line),
                older: String::new(),
                newer: String::new(),
                events: Vec::new(),
            }),
        }
    }
    sections
}

/// The words of a line; within quotes there may be spaces, and bytes such as `\xff`.
fn words(line: &str) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();

    while !rest.is_empty() {
        let (word, behind) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').expect("a closing quote"),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(unescaped(word));
        rest = behind.trim_start();
    }
    words
}

fn unescaped(word: &str) -> Vec<u8> {
    let mut pieces = word.split("\\x");
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();

    for piece in pieces {
        bytes.push(u8::from_str_radix(&piece[..2], 16).unwrap());
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    bytes
}

/// A reply as the files write it: a space for each line break.
fn shown(reply: &[u8]) -> String {
    let mut shown = String::new();
    let text = reply.strip_suffix(b"\r\n").unwrap_or(reply);
    let mut bytes = text.iter().copied().peekable();

    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' if bytes.next_if_eq(&b'\n').is_some() => shown.push(' '),
            b' '..=b'~' => shown.push(char::from(byte)),
            _ => shown.push_str(&format!("\\x{byte:02x}")),
        }
    }
    shown.trim_end().to_owned()
}

/// A door without commands of its own.
struct NoControls;

impl Controls for NoControls {
    fn control(&mut self, _: Command<'_>, _: &mut Replies) -> Result<(), Failure> {
        Err(Failure::Syntax)
    }

    fn ran(&mut self, _: &'static Spec, _: u64, _: bool) {}
}

/// A keyspace with a connection of one protocol and a subscriber to all events.
struct Stage {
    objects: Arc<Objects>,
    session: Session,
    protocol: Protocol,
    subscriber: Subscriber,
    forgets: bool,
}

impl Stage {
    fn new(protocol: Protocol) -> Stage {
        Stage::with(protocol, Options::of_memory(64 << 20))
    }

    /// A keyspace that keeps no object in memory from one command to the next.
    fn forgetful(protocol: Protocol) -> Stage {
        let options = Options { resident_bytes: 1, ..Options::of_memory(64 << 20) };

        Stage { forgets: true, ..Stage::with(protocol, options) }
    }

    fn with(protocol: Protocol, options: Options) -> Stage {
        let twin = Arc::new(Twin::new());
        let clock = Arc::new(ManualClock::at_s(1_700_000_000));
        let objects = Objects::open(twin.clone(), twin, clock, options);
        objects.set_notify_flags("KEA").unwrap();

        let mut subscriber = objects.pubsub().subscriber(1 << 20);
        subscriber.subscribe(Space::Pattern, Bytes::from("__keyevent@0__:*"));
        let session = objects.session();

        Stage { objects, session, protocol, subscriber, forgets: false }
    }

    /// The reply to a line as the files write it.
    async fn answer(&mut self, line: &str) -> String {
        self.reply(&words(line)).await
    }

    async fn reply(&mut self, arguments: &[Vec<u8>]) -> String {
        let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        let drain = Drain::of(&[&arguments]);
        let mut replies = Replies::new(self.protocol);

        let ran =
            self.objects.run(&mut self.session, &mut NoControls, &drain, 0, &mut replies).await;
        assert_eq!(ran.next, 1, "a command of objects: {arguments:?}");
        shown(&replies.take().concat())
    }

    fn events(&mut self) -> Vec<String> {
        let mut events = Vec::new();
        while let Some(message) = self.subscriber.try_next() {
            let event = message.channel.splitn(2, |byte| *byte == b':').nth(1).unwrap();
            let key = String::from_utf8_lossy(&message.payload);
            events.push(format!("{} {key}", String::from_utf8_lossy(event)));
        }
        events
    }
}

/// Runs a file in one protocol, and returns what differs.
async fn differences(path: &Path, protocol: Protocol, stage: fn(Protocol) -> Stage) -> Vec<String> {
    let name = path.file_name().unwrap().to_string_lossy();
    let mut differences = Vec::new();

    for section in sections(path) {
        let mut stage = stage(protocol);
        for recorded in section {
            let expected = match protocol {
                Protocol::Two => &recorded.older,
                Protocol::Three => &recorded.newer,
            };
            let reply = stage.reply(&recorded.arguments).await;
            let events = stage.events();
            // The encoding of a string tells how it came about, which the store does not keep.
            if stage.forgets && recorded.arguments[0] == b"OBJECT" {
                continue;
            }
            if (&reply, &events) != (expected, &recorded.events) {
                differences.push(format!(
                    "{name}:{} {protocol:?}\n  Redis: {expected} {:?}\n  here:  {reply} {events:?}",
                    recorded.line, recorded.events
                ));
            }
        }
    }
    differences
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands/recorded");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());

    files.collect()
}

#[tokio::test]
async fn replies_and_events_are_those_of_redis() {
    let mut differing = Vec::new();
    for path in files() {
        for protocol in [Protocol::Two, Protocol::Three] {
            differing.extend(differences(&path, protocol, Stage::new).await);
        }
    }

    assert!(differing.is_empty(), "{} differences:\n{}", differing.len(), differing.join("\n"));
}

/// What comes from the store again before each command, packed or record by record, is the same.
#[tokio::test]
async fn replies_are_the_same_when_nothing_stays_in_memory() {
    let mut differing = Vec::new();
    for path in files() {
        differing.extend(differences(&path, Protocol::Two, Stage::forgetful).await);
    }

    assert!(differing.is_empty(), "{} differences:\n{}", differing.len(), differing.join("\n"));
}

#[tokio::test]
async fn ranks_come_with_scores_where_asked() {
    for (protocol, score) in [(Protocol::Two, "$3 2.5"), (Protocol::Three, ",2.5")] {
        let mut stage = Stage::new(protocol);
        stage.answer("ZADD z 1 a 2.5 b 3 c").await;

        assert_eq!(stage.answer("ZRANK z b WITHSCORE").await, format!("*2 :1 {score}"));
        assert_eq!(stage.answer("ZREVRANK z b withscore").await, format!("*2 :1 {score}"));
        assert_eq!(stage.answer("ZRANK z b FOO").await, "-ERR syntax error");
        assert_eq!(
            stage.answer("ZRANK z b WITHSCORE FOO").await,
            "-ERR wrong number of arguments for 'zrank' command"
        );
    }

    let mut stage = Stage::new(Protocol::Two);
    assert_eq!(stage.answer("ZRANK z nobody WITHSCORE").await, "*-1");
}

/// A walk of a large set visits each member that stays once, from one cursor to the next.
#[tokio::test]
async fn a_large_sorted_set_is_walked_in_pieces() {
    let mut stage = Stage::new(Protocol::Two);
    for member in 0..1_000 {
        stage.answer(&format!("ZADD z {member} m{member:03}")).await;
    }
    assert_eq!(stage.answer("OBJECT ENCODING z").await, "$8 skiplist");

    let mut seen = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let reply = stage.answer(&format!("ZSCAN z {cursor} COUNT 100")).await;
        let mut parts = reply.split(' ');
        cursor = parts.by_ref().nth(2).unwrap().to_owned();
        seen.extend(parts.filter(|part| part.starts_with('m')).map(str::to_owned));
        if cursor == "0" {
            break;
        }
    }

    seen.sort_unstable();
    let all: Vec<String> = (0..1_000).map(|member| format!("m{member:03}")).collect();
    assert_eq!(seen, all);
}

#[tokio::test]
async fn an_edit_in_the_middle_of_a_long_list_is_refused() {
    let mut stage = Stage::new(Protocol::Two);
    for part in 0..42 {
        let values: String = (0..500).map(|value| format!(" {part}:{value}")).collect();
        stage.answer(&format!("RPUSH l{values}")).await;
    }

    let reply = stage.answer("LINSERT l BEFORE 21:0 x").await;
    assert_eq!(
        reply,
        "-ERR the edit would move 10500 entries of the list, at most 10000 are allowed"
    );
    assert_eq!(stage.answer("LREM l 0 21:0").await.split(' ').next(), Some("-ERR"));
    assert_eq!(stage.answer("LLEN l").await, ":21000");
    assert_eq!(stage.answer("LINSERT l BEFORE 10:0 x").await, ":21001");
}

#[tokio::test]
async fn members_that_no_record_could_hold_are_refused() {
    let mut stage = Stage::new(Protocol::Two);
    let long = "x".repeat(61_441);

    let reply = stage.answer(&format!("ZADD z 1 a 2 {long}")).await;
    assert_eq!(reply, "-ERR a field or member has at most 61440 bytes");
    assert_eq!(stage.answer("EXISTS z").await, ":0");
}

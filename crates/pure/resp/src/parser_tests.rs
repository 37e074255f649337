use bytes::BufMut;
use proptest::prelude::*;

use super::*;

const TRUSTED: ParserLimits = ParserLimits { trusted: true, bulk_bytes_max: 64 << 20 };
const GUEST: ParserLimits = ParserLimits { trusted: false, bulk_bytes_max: 64 << 20 };

type Commands = Vec<Vec<Vec<u8>>>;

/// Feeds pieces to a parser as a connection does, and gives the commands and the failure.
fn parse(limits: ParserLimits, pieces: &[&[u8]]) -> (Commands, Option<String>) {
    let mut parser = Parser::new(limits);
    let mut drain = Drain::new();
    let mut commands = Vec::new();

    for piece in pieces {
        let mut rest = *piece;

        while !rest.is_empty() {
            let mut space = parser.space();
            let len = rest.len().min(space.remaining_mut());
            space.put_slice(&rest[..len]);
            rest = &rest[len..];

            loop {
                let result = parser.drain(&mut drain);
                let found = drain.commands().map(|command| {
                    command.arguments.iter().map(<[u8]>::to_vec).collect::<Vec<_>>()
                });
                commands.extend(found);

                if let Err(failure) = result {
                    return (commands, Some(failure.to_string()));
                }
                if drain.is_empty() {
                    break;
                }
            }
        }
    }

    (commands, None)
}

fn failure(limits: ParserLimits, bytes: &[u8]) -> String {
    parse(limits, &[bytes]).1.expect("a failure")
}

fn encode(command: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
    for argument in command {
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

#[test]
fn both_forms_of_requests_are_read() {
    let bytes = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\nPING\r\n\r\n*0\r\n*-1\r\nset \"a b\" 1\nGET x\r\n*1\r\n$4\r\nQU";
    let (commands, failure) = parse(TRUSTED, &[bytes, b"IT\r\n"]);

    let mut quoted = words("set x 1");
    quoted[1] = b"a b".to_vec();
    assert_eq!(failure, None);
    assert_eq!(commands, [words("GET a"), words("PING"), quoted, words("GET x"), words("QUIT")]);
}

#[test]
fn failures_are_worded_as_redis_words_them() {
    let text = |what: &str| format!("ERR Protocol error: {what}");

    assert_eq!(failure(TRUSTED, b"*x\r\n"), text("invalid multibulk length"));
    assert_eq!(failure(TRUSTED, b"*1048577\r\n"), text("invalid multibulk length"));
    assert_eq!(failure(TRUSTED, b"*1\r\nfoo\r\n"), text("expected '$', got 'f'"));
    assert_eq!(failure(TRUSTED, b"*1\r\n\r\n"), text("expected '$', got '\r'"));
    assert_eq!(failure(TRUSTED, b"*1\r\n$-1\r\n"), text("invalid bulk length"));
    assert_eq!(failure(TRUSTED, b"*1\r\n$x\r\n"), text("invalid bulk length"));
    assert_eq!(failure(TRUSTED, b"*1\r\n$67108865\r\n"), text("invalid bulk length"));
    assert_eq!(failure(TRUSTED, b"set \"a\r\n"), text("unbalanced quotes in request"));

    let long = vec![b'1'; RESP_INLINE_BYTES_MAX + 1];
    assert_eq!(failure(TRUSTED, &long), text("too big inline request"));
    let line = [b"*".as_slice(), &long].concat();
    assert_eq!(failure(TRUSTED, &line), text("too big mbulk count string"));
    let line = [b"*1\r\n$".as_slice(), &long].concat();
    assert_eq!(failure(TRUSTED, &line), text("too big bulk count string"));
}

#[test]
fn what_came_before_a_failure_is_there() {
    let (commands, failure) = parse(TRUSTED, &[b"PING\r\n*1\r\n$4\r\nPING\r\n*x\r\n"]);

    assert_eq!(commands, [words("PING"), words("PING")]);
    assert!(failure.is_some());
}

#[test]
fn a_guest_sends_short_commands_one_at_a_time() {
    let text = |what: &str| format!("ERR Protocol error: {what}");

    assert_eq!(failure(GUEST, b"*11\r\n"), text("unauthenticated multibulk length"));
    assert_eq!(failure(GUEST, b"*1\r\n$16385\r\n"), text("unauthenticated bulk length"));

    // The command behind the login has the limits of the caller that logged in.
    let mut parser = Parser::new(GUEST);
    let mut drain = Drain::new();
    parser.space().put_slice(b"AUTH x\r\n*1\r\n$16385\r\n");
    parser.drain(&mut drain).expect("a login");
    assert_eq!(drain.len(), 1);
    parser.set_limits(TRUSTED);
    parser.drain(&mut drain).expect("an unfinished command");
    assert!(drain.is_empty());
}

#[test]
fn a_large_argument_has_a_buffer_of_its_size() {
    let large = vec![b'x'; RESP_LARGE_BYTES_MIN * 3];
    let command = vec![b"SET".to_vec(), b"k".to_vec(), large.clone()];
    let bytes = [encode(&command), encode(&words("GET k"))].concat();

    let mut parser = Parser::new(TRUSTED);
    let mut drain = Drain::new();
    let mut rest = &bytes[..];
    while drain.is_empty() {
        let mut space = parser.space();
        let len = rest.len().min(space.remaining_mut());
        space.put_slice(&rest[..len]);
        rest = &rest[len..];
        parser.drain(&mut drain).expect("well formed");
    }

    let value = drain.get(0).arguments.bytes(2);
    assert_eq!(value, large);
    assert_eq!(value.as_ptr(), drain.get(0).arguments.at(2).as_ptr());
    // Nothing but the small arguments lies in the buffer that is shared.
    assert!(drain.buffers.shared.len() < RESP_READ_BYTES_MIN * 2);

    let mut queue = Drain::new();
    queue.push(drain.get(0).arguments);
    assert_eq!(queue.get(0).arguments.bytes(2).as_ptr(), value.as_ptr());
}

#[test]
fn the_memory_of_a_claimed_length_is_not_taken_before_its_bytes() {
    let mut parser = Parser::new(TRUSTED);
    let mut drain = Drain::new();

    parser.space().put_slice(b"*1048576\r\n$1000\r\nabc");
    parser.drain(&mut drain).expect("an unfinished command");
    assert!(drain.is_empty());
    assert!(parser.spans.capacity() < 16);
}

fn arguments() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => proptest::collection::vec(any::<u8>(), 0..20),
        1 => (RESP_LARGE_BYTES_MIN - 2..RESP_LARGE_BYTES_MIN + 100).prop_map(|len| vec![b'v'; len]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_cut_of_the_bytes_gives_the_same_commands(
        commands in proptest::collection::vec(proptest::collection::vec(arguments(), 1..5), 1..8),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
        trusted: bool,
    ) {
        // What a guest may not send is left out for it.
        let commands: Commands = commands
            .into_iter()
            .filter(|command| trusted || command.iter().all(|argument| argument.len() < 1000))
            .collect();
        let bytes: Vec<u8> = commands.iter().flat_map(|command| encode(command)).collect();

        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let pieces: Vec<&[u8]> = places.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();

        let limits = if trusted { TRUSTED } else { GUEST };
        let (found, failure) = parse(limits, &pieces);
        prop_assert_eq!(failure, None);
        prop_assert_eq!(found, commands);
    }

    #[test]
    fn any_bytes_are_read_alike_however_they_are_cut(
        bytes in proptest::collection::vec(
            prop_oneof![Just(b'*'), Just(b'$'), Just(b'\r'), Just(b'\n'), Just(b'1'), Just(b'"'), any::<u8>()],
            0..200,
        ),
        cut in any::<proptest::sample::Index>(),
    ) {
        let at = cut.index(bytes.len() + 1);
        let whole = parse(TRUSTED, &[&bytes]);
        let halves = parse(TRUSTED, &[&bytes[..at], &bytes[at..]]);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();

        prop_assert_eq!(&whole, &halves);
        prop_assert_eq!(&whole, &parse(TRUSTED, &single));
    }
}

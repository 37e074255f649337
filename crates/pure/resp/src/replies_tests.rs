use super::*;

fn text(replies: &mut Replies) -> String {
    String::from_utf8(replies.take().concat()).expect("text")
}

fn written(protocol: Protocol, write: impl FnOnce(&mut Replies)) -> String {
    let mut replies = Replies::new(protocol);
    write(&mut replies);
    text(&mut replies)
}

#[test]
fn each_protocol_has_its_own_bytes() {
    let both =
        |write: fn(&mut Replies)| (written(Protocol::Two, write), written(Protocol::Three, write));

    assert_eq!(both(|r| r.null()), ("$-1\r\n".into(), "_\r\n".into()));
    assert_eq!(both(|r| r.null_array()), ("*-1\r\n".into(), "_\r\n".into()));
    assert_eq!(both(|r| r.map(2)), ("*4\r\n".into(), "%2\r\n".into()));
    assert_eq!(both(|r| r.set(2)), ("*2\r\n".into(), "~2\r\n".into()));
    assert_eq!(both(|r| r.push(3)), ("*3\r\n".into(), ">3\r\n".into()));
    assert_eq!(both(|r| r.double(1.5)), ("$3\r\n1.5\r\n".into(), ",1.5\r\n".into()));
    assert_eq!(both(|r| r.boolean(true)), (":1\r\n".into(), "#t\r\n".into()));
    assert_eq!(both(|r| r.verbatim("ab")), ("$2\r\nab\r\n".into(), "=6\r\ntxt:ab\r\n".into()));
    assert_eq!(both(|r| r.integer(-7)), (":-7\r\n".into(), ":-7\r\n".into()));
    assert_eq!(both(|r| r.bulk(b"")), ("$0\r\n\r\n".into(), "$0\r\n\r\n".into()));
    assert_eq!(both(|r| r.error("ERR a\r\nb")), ("-ERR a  b\r\n".into(), "-ERR a  b\r\n".into()));
}

#[test]
fn a_roll_back_leaves_what_stood_before_the_mark() {
    let large = Bytes::from(vec![b'x'; SHARED_BYTES_MIN]);

    let mut replies = Replies::new(Protocol::Two);
    replies.ok();
    let mark = replies.mark();
    replies.integer(1);
    replies.shared(large.clone());
    replies.shared(large.clone());
    replies.roll_back(mark);

    assert_eq!(replies.len(), 5);
    replies.integer(2);
    assert_eq!(text(&mut replies), "+OK\r\n:2\r\n");

    replies.shared(large);
    let mark = replies.mark();
    replies.ok();
    replies.roll_back(mark);
    assert_eq!(replies.len(), SHARED_BYTES_MIN + "$4096\r\n\r\n".len());
}

#[test]
fn the_first_bytes_are_taken_at_any_length() {
    let large = Bytes::from(vec![b'x'; SHARED_BYTES_MIN]);
    let write = |replies: &mut Replies| {
        replies.ok();
        replies.shared(large.clone());
        replies.integer(1);
    };
    let whole = written(Protocol::Two, write);

    for len in [0, 3, 5, 10, 12, 100, 4108, 4110, whole.len()] {
        let mut replies = Replies::new(Protocol::Two);
        write(&mut replies);

        let first = replies.take_first(len).concat();
        assert_eq!(first, whole.as_bytes()[..len]);
        assert_eq!(replies.len(), whole.len() - len);
        assert_eq!(replies.take().concat(), whole.as_bytes()[len..]);
    }
}

#[test]
fn strings_beyond_a_bound_are_left_out() {
    let mut replies = Replies::new(Protocol::Two);
    replies.bulk(&[b'x'; 100]);
    let before = replies.len();
    replies.bound(64);
    for _ in 0..1_000 {
        replies.bulk(&[b'x'; 20]);
    }
    assert!(replies.len() <= before + 64);
    assert!(replies.unbound());

    replies.bound(64);
    replies.bulk(&[b'x'; 20]);
    assert!(!replies.unbound());
    replies.bulk(&[b'x'; 100]);
    assert!(replies.len() > before + 100);
}

//! Copies between two real servers, which the tests start themselves.

use super::*;
use std::process::{Child, Command, Stdio};

/// A redis-server of the test's own; ends with it.
struct Server {
    address: Address,
    child: Child,
    _folder: tempfile::TempDir,
}

impl Server {
    fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// `None` where no redis-server is installed.
    fn start_with(options: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..10 {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            drop(listener);

            let mut command = Command::new("redis-server");
            command.args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--enable-debug-command",
                "yes",
            ]);
            command.args(options).arg("--dir").arg(folder.path()).stdout(Stdio::null());
            let Ok(mut child) = command.spawn() else {
                eprintln!("skipped: there is no redis-server on this machine");
                return None;
            };

            let address = Address::local(port);
            while child.try_wait().unwrap().is_none() {
                if Connection::open(&address).is_ok() {
                    return Some(Self { address, child, _folder: folder });
                }
                std::thread::yield_now();
            }
        }
        panic!("redis-server does not start");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn fill(address: &Address) {
    let mut connection = Connection::open(address).unwrap();
    let mut all = |words: &[&str]| {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        connection.done(&words).unwrap();
    };
    for number in 0..2_000 {
        all(&["SET", &format!("text:{number}"), "value"]);
    }
    all(&["SET", "empty", ""]);
    all(&["SET", "expires", "x", "PXAT", "99999999999999"]);
    all(&["SETRANGE", "large", "300000", "end"]);
    all(&["HSET", "hash", "f", "1", "g", ""]);
    all(&["PEXPIREAT", "hash", "99999999999998"]);
    all(&["SADD", "set", "a", "b"]);
    all(&["ZADD", "sorted", "0.1", "a", "-inf", "b", "3", "c"]);
    all(&["RPUSH", "list", "a", "b", "a"]);
    all(&["XADD", "stream", "*", "f", "v"]);
    for number in 0..2_500 {
        let member = format!("m{number}");
        all(&["HSET", "wide hash", &member, "v"]);
        all(&["SADD", "wide set", &member]);
        all(&["ZADD", "wide sorted", &number.to_string(), &member]);
        all(&["RPUSH", "wide list", &member]);
    }
    all(&["SELECT", "3"]);
    all(&["SET", "elsewhere", "1"]);
}

/// Digests of all keys but streams.
fn digests(address: &Address) -> Vec<(Vec<u8>, Reply, Reply)> {
    let mut connection = Connection::open(address).unwrap();
    let mut all = Vec::new();
    for database in [&b"0"[..], b"3"] {
        connection.done(&[b"SELECT", database]).unwrap();
        let keys = connection.done(&[b"KEYS", b"*"]).unwrap();
        for key in keys.elements().unwrap().iter().filter_map(Reply::bytes) {
            if key != b"stream" {
                let digest = connection.done(&[b"DEBUG", b"DIGEST-VALUE", key]).unwrap();
                let expiry = connection.done(&[b"PEXPIRETIME", key]).unwrap();
                all.push((key.to_vec(), digest, expiry));
            }
        }
    }
    all.sort_by(|left, right| left.0.cmp(&right.0));
    all
}

#[test]
fn a_copy_has_every_object_with_its_expiry_and_can_be_repeated() {
    let (Some(from), Some(to)) = (Server::start(), Server::start()) else {
        return;
    };
    fill(&from.address);
    // What an interrupted copy has left, and what has changed since.
    let mut connection = Connection::open(&to.address).unwrap();
    connection.done(&[b"RPUSH", b"list", b"old", b"old"]).unwrap();
    connection.done(&[b"SADD", b"text:1", b"old"]).unwrap();
    connection.done(&[b"HSET", b"wide hash", b"old", b"old"]).unwrap();

    let (from, to) = (from.address.clone(), to.address.clone());
    let options = Options { from: from.clone(), to: to.clone(), databases: vec![], pattern: None };
    for _ in 0..2 {
        let mut reports = 0;
        let totals = run(&options, &mut |_| reports += 1).unwrap();
        assert!(reports > 0);
        assert_eq!((totals.keys, totals.vanished), (2_012, 0));
        assert_eq!(totals.left_out, BTreeMap::from([("stream".to_owned(), 1)]));
        assert_eq!(totals.expected, 2_013);

        assert_eq!(digests(&from), digests(&to));
    }
}

#[test]
fn a_server_that_says_only_how_soon_keys_expire_is_copied_too() {
    let options = ["--rename-command", "PEXPIRETIME", ""];
    let (Some(from), Some(to)) = (Server::start_with(&options), Server::start()) else {
        return;
    };
    let mut source = Connection::open(&from.address).unwrap();
    source.done(&[b"SET", b"expires", b"x", b"PX", b"1000000"]).unwrap();
    source.done(&[b"SET", b"stays", b"x"]).unwrap();
    let options = Options {
        from: from.address.clone(),
        to: to.address.clone(),
        databases: vec![],
        pattern: None,
    };
    assert_eq!(run(&options, &mut |_| {}).unwrap().keys, 2);

    let mut copy = Connection::open(&to.address).unwrap();
    let mut left_ms = |key: &[u8]| copy.done(&[b"PTTL", key]).unwrap().integer().unwrap();
    let expires = left_ms(b"expires");
    assert!((1..=1_001_000).contains(&expires), "{expires}");
    assert_eq!(left_ms(b"stays"), -1);
}

#[test]
fn a_copy_is_limited_to_a_pattern_and_to_databases() {
    let (Some(from), Some(to)) = (Server::start(), Server::start()) else {
        return;
    };
    fill(&from.address);
    let options = Options {
        from: from.address.clone(),
        to: to.address.clone(),
        databases: vec![0],
        pattern: Some("wide *".to_owned()),
    };
    assert_eq!(run(&options, &mut |_| {}).unwrap().keys, 4);
    assert_eq!(databases(&mut Connection::open(&to.address).unwrap()).unwrap(), [(0, 4)]);
}

#[test]
fn a_refused_write_ends_the_copy() {
    let (Some(from), Some(to)) = (Server::start(), Server::start()) else {
        return;
    };
    fill(&from.address);
    let mut connection = Connection::open(&to.address).unwrap();
    connection.done(&[b"CONFIG", b"SET", b"maxmemory", b"1"]).unwrap();
    let options = Options {
        from: from.address.clone(),
        to: to.address.clone(),
        databases: vec![],
        pattern: None,
    };
    let error = run(&options, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("OOM") || error.contains("EXECABORT"), "{error}");
}

//! Objects move in from a Redis.

use super::oracle::resp_address;
use super::{Client, home, ok};
use raingauge_lab::redis::server::Redis;
use raingauge_resp_client::{Connection, Reply};

#[test]
fn objects_of_a_redis_are_copied_by_a_command() {
    let Some(redis) = Redis::start(&[]).expect("a Redis") else {
        return;
    };
    let mut from = Connection::open(&redis.address()).expect("a connection");
    let mut fill = |words: &[&str]| {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        from.done(&words).expect("a write");
    };
    for number in 0..1_200 {
        fill(&["SET", &format!("text:{number}"), &number.to_string()]);
        fill(&["ZADD", "board", &number.to_string(), &format!("m{number}")]);
        fill(&["RPUSH", "queue", &number.to_string()]);
    }
    fill(&["SET", "brief", "x", "PXAT", "99999999999999"]);
    fill(&["HSET", "hash", "field", "value"]);
    fill(&["SADD", "set", "a", "b"]);
    fill(&["SELECT", "2"]);
    fill(&["SET", "other", "1"]);

    let home = home();
    let server = home.start();
    let (from, to) = (redis.address().to_string(), resp_address(&server).to_string());
    for _ in 0..2 {
        let copied = home.run(&["objects", "copy", "--from", &from, "--to", &to, "--json"]).json();
        assert_eq!(copied["keys"], 1_206, "{copied}");
    }

    let mut client = Client::new(&server);
    let text = |text: &str| Reply::Bulk(text.as_bytes().to_vec());
    assert_eq!(client.integer(&["DBSIZE"]), 1_205);
    assert_eq!(client.call(&["GET", "text:77"]), text("77"));
    assert_eq!(client.integer(&["ZRANK", "board", "m700"]), 700);
    assert_eq!(client.integer(&["LLEN", "queue"]), 1_200);
    assert_eq!(client.call(&["LINDEX", "queue", "-1"]), text("1199"));
    assert_eq!(client.call(&["HGET", "hash", "field"]), text("value"));
    assert_eq!(client.integer(&["SCARD", "set"]), 2);
    let expires_ms = client.integer(&["PEXPIRETIME", "brief"]);
    assert!(expires_ms.abs_diff(99_999_999_999_999) < 60_000, "{expires_ms}");
    assert_eq!(client.call(&["SELECT", "2"]), ok());
    assert_eq!(client.call(&["GET", "other"]), text("1"));

    let ran = home.run(&["objects", "copy", "--from", "redis://127.0.0.1:1", "--to", &to]);
    assert!(!ran.status.success() && ran.errors.contains("127.0.0.1:1"), "{ran:?}");
}

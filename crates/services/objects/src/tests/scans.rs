//! Walks over all keys.

use super::between::Between;
use super::stage::{NOW_S, Stage};
use crate::limits::NAMES_PAGE_LEN;
use bytes::Bytes;
use raingauge_ports::objects::{Effect, Group, Key, ObjectStore as _, Old};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// Names of a reply of SCAN, and its cursor.
fn page(reply: &str) -> (String, Vec<String>) {
    let words: Vec<&str> = reply.split(' ').collect();
    let names = words[4..].iter().skip(1).step_by(2).map(|name| (*name).to_owned());
    (words[2].to_owned(), names.collect())
}

#[tokio::test]
async fn keys_that_stay_are_returned() {
    let stage = Stage::of_memory(4_096);
    let mut client = stage.client();
    for number in 0..200 {
        client.send(&format!("SET key:{number} 1")).await;
        client.send(&format!("SET other:{number} 1 EX 5")).await;
    }

    let mut found = BTreeSet::new();
    let mut cursor = "0".to_owned();
    let mut number = 0;
    loop {
        let reply = client.send(&format!("SCAN {cursor} COUNT 7 MATCH key:*")).await;
        let (next, names) = page(&reply);
        found.extend(names);
        client.send(&format!("DEL other:{number}")).await;
        client.send(&format!("SET new:{number} 1")).await;
        number += 1;
        if next == "0" {
            break;
        }
        cursor = next;
    }
    assert_eq!(found.len(), 200);

    stage.clock.set_s(NOW_S + 5);
    client.send_all(&["FLUSHDB", "SET a 1", "RPUSH b 1", "SET c 1 PX 1"]).await;
    stage.clock.set_s(NOW_S + 6);
    client
        .expect(&[
            ("KEYS *", "*2 $1 a $1 b"),
            ("KEYS b", "*1 $1 b"),
            ("KEYS [ac]", "*1 $1 a"),
            ("SCAN 0 TYPE list", "*2 $1 0 *1 $1 b"),
            ("SCAN 0 COUNT 0", "-ERR syntax error"),
            ("SCAN 0 COUNT x", "-ERR value is not an integer or out of range"),
            ("SCAN x", "-ERR invalid cursor"),
            ("SCAN +0", "*2 $1 0 *2 $1 a $1 b"),
            ("SCAN ", "*2 $1 0 *2 $1 a $1 b"),
            ("SCAN -1", "*2 $1 0 *0"),
            ("SCAN 0 TYPE", "-ERR syntax error"),
        ])
        .await;
    let mut random = BTreeSet::new();
    for _ in 0..100 {
        random.insert(client.send("RANDOMKEY").await);
    }
    assert_eq!(random, BTreeSet::from(["$1 a".to_owned(), "$1 b".to_owned()]));
    client.expect(&[("FLUSHDB", "+OK"), ("RANDOMKEY", "$-1"), ("KEYS *", "*0")]).await;
}

#[tokio::test]
async fn a_visit_meets_every_key_or_fails() {
    let stage = Stage::new();
    let mut client = stage.client();
    let len = 2 * NAMES_PAGE_LEN + 1;
    for number in 0..len {
        client.send(&format!("SET key:{number:06} 1")).await;
    }
    client.expect(&[("SET gone 1 PX 1", "+OK"), ("SELECT 1", "+OK"), ("SET other 1", "+OK")]).await;
    stage.clock.set_s(NOW_S + 1);

    let options = stage.objects.options().clone();
    let (stage, store) = stage.behind(options, Between::new(&stage.store));
    let mut names = Vec::new();
    let visited = stage.objects.visit_names(0, |name| names.push(name.clone())).await;
    assert_eq!(visited, Ok(()));
    assert_eq!((names.len(), &names[len - 1][..]), (len, &b"key:002000"[..]));
    assert!(names.is_sorted());

    store.sound_scans.store(1, Ordering::SeqCst);
    let visited = stage.objects.visit_names(0, |_| {}).await;
    assert!(visited.is_err_and(|failure| failure.to_string().contains("a bad sector")));
}

#[tokio::test]
async fn a_key_that_cannot_be_decoded_is_listed_as_it_is_counted() {
    let stage = Stage::new();
    let damaged = Effect::PutHead {
        key: Key { database: 0, name: "damaged".into() },
        head: Bytes::from_static(b"?"),
        expires_ms: None,
        wide: None,
        old: Old::Absent,
    };
    stage.store.submit(Group { effects: vec![damaged] }).expect("a group");

    let dialogue = [("DBSIZE", ":1"), ("KEYS *", "*1 $7 damaged"), ("RANDOMKEY", "$7 damaged")];
    let mut client = stage.reopened().client();
    client.expect(&dialogue).await;
    client.expect(&[("SCAN 0", "*2 $1 0 *1 $7 damaged")]).await;
}

#[tokio::test]
async fn a_small_set_of_integers_is_walked_in_its_order() {
    let stage = Stage::new();
    let mut client = stage.client();
    client
        .expect(&[
            ("SADD s 10 -1 2", ":3"),
            ("SSCAN s 0 COUNT 1", "*2 $1 0 *3 $2 -1 $1 2 $2 10"),
            ("SSCAN s 0 MATCH 1*", "*2 $1 0 *1 $2 10"),
        ])
        .await;
}

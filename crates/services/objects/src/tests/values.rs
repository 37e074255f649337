//! Strings, hashes and sets beyond what can be recorded: limits, random picks, walks of large
//! collections, and what Redis 7.0 does not have.

use std::collections::BTreeSet;

use super::stage::{Client, Stage};
use raingauge_resp::Protocol;

/// The bulk strings of a reply, in their order: every second word behind the lengths.
fn bulks(reply: &str) -> Vec<String> {
    let words = reply.split(' ').filter(|word| !word.starts_with(['*', '$', '~', '%', ':']));
    words.map(str::to_owned).collect()
}

fn distinct(members: &[String]) -> BTreeSet<&str> {
    members.iter().map(String::as_str).collect()
}

#[tokio::test]
async fn a_lock_is_renewed_and_released_by_its_owner_alone() {
    let mut client = Stage::new().client();
    client
        .expect(&[
            ("SET lock me", "+OK"),
            ("SET lock you IFEQ other", "$-1"),
            ("SET lock me2 IFEQ me EX 10", "+OK"),
            ("TTL lock", ":10"),
            ("SET lock x IFEQ wrong GET", "$3 me2"),
            ("SET none x IFEQ x", "$-1"),
            ("SET lock x IFEQ", "-ERR syntax error"),
            ("SET lock x NX IFEQ me2", "-ERR syntax error"),
            ("DELIFEQ lock me", ":0"),
            ("DELIFEQ lock me2", ":1"),
            ("DELIFEQ lock me2", ":0"),
            ("SADD set a", ":1"),
            ("DELIFEQ set a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ])
        .await;
}

#[tokio::test]
async fn a_string_beyond_its_limit_is_refused_before_it_changes() {
    let mut client = Stage::new().client();
    let long = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    client
        .expect(&[
            ("SET s abc", "+OK"),
            ("SETRANGE s 67108862 abc", long),
            ("SETRANGE new 67108864 a", long),
            ("STRLEN s", ":3"),
            ("EXISTS new", ":0"),
        ])
        .await;

    let refused = client.send("SETBIT s 67108864 1").await;
    assert!(refused.starts_with("-ERR bits are written"), "{refused}");
    let refused = client.send("BITFIELD s SET u8 67108857 1").await;
    assert!(refused.starts_with("-ERR bits are written"), "{refused}");
    assert_eq!(client.send("GETBIT s 4294967295").await, ":0");
}

#[tokio::test]
async fn a_field_or_member_that_no_record_holds_is_refused() {
    let mut client = Stage::new().client();
    let name = "x".repeat(61_441);
    for command in [
        format!("HSET h a 1 {name} 1"),
        format!("HSETNX h {name} 1"),
        format!("HINCRBY h {name} 1"),
        format!("HINCRBYFLOAT h {name} 1"),
        format!("SADD h a {name}"),
    ] {
        let reply = client.send(&command).await;
        assert!(reply.starts_with("-ERR a field or member"), "{}", &reply[..40.min(reply.len())]);
    }
    assert_eq!(client.send("EXISTS h").await, ":0");
    assert_eq!(client.send(&format!("SISMEMBER s {name}")).await, ":0");
}

#[tokio::test]
async fn random_members_are_distinct_and_leave_with_spop() {
    let mut client = Stage::new().client();
    let members: Vec<String> = (0..200).map(|member| format!("m{member}")).collect();
    client.send(&format!("SADD s {}", members.join(" "))).await;

    let picked = bulks(&client.send("SRANDMEMBER s 50").await);
    assert_eq!((picked.len(), distinct(&picked).len()), (50, 50));
    let picked = bulks(&client.send("SRANDMEMBER s -500").await);
    assert_eq!(picked.len(), 500);

    let popped = bulks(&client.send("SPOP s 150").await);
    assert_eq!((popped.len(), distinct(&popped).len()), (150, 150));
    let left = bulks(&client.send("SMEMBERS s").await);
    assert_eq!(left.len(), 50);
    assert!(distinct(&popped).is_disjoint(&distinct(&left)));

    // Both together are all members.
    let all: BTreeSet<&str> = distinct(&popped).union(&distinct(&left)).copied().collect();
    assert_eq!(all, distinct(&members));
    assert_eq!(client.send("SRANDMEMBER s -1048577").await, "-ERR value is out of range");
}

#[tokio::test]
async fn random_fields_come_with_their_values() {
    let mut client = Stage::new().client();
    let pairs: Vec<String> = (0..100).map(|field| format!("f{field} v{field}")).collect();
    client.send(&format!("HSET h {}", pairs.join(" "))).await;

    for protocol in [Protocol::Two, Protocol::Three] {
        client.protocol = protocol;
        let reply = client.send("HRANDFIELD h 20 WITHVALUES").await;
        let nested = protocol == Protocol::Three;
        assert!(reply.starts_with(if nested { "*20 *2 $" } else { "*40 $" }), "{reply}");

        let picked = bulks(&reply);
        for pair in picked.chunks(2) {
            assert_eq!(pair[0][1..], pair[1][1..]);
        }
        assert_eq!(distinct(&picked).len(), 40);
    }
}

/// Walks a collection to its end, and returns what it found.
async fn walk(client: &mut Client, command: &str, mut between: impl AsyncFnMut()) -> Vec<String> {
    let mut found = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let reply = client.send(&command.replace("CURSOR", &cursor)).await;
        let mut words = bulks(&reply);
        cursor = words.remove(0);
        found.extend(words);
        if cursor == "0" {
            return found;
        }
        between().await;
    }
}

#[tokio::test]
async fn a_walk_finds_what_stays_while_others_leave() {
    let stage = Stage::new();
    let mut client = stage.client();
    let mut other = stage.client();
    for member in 0..1_000 {
        client.send_all(&[&format!("SADD s stays{member}"), &format!("SADD s goes{member}")]).await;
    }

    let mut gone = 0;
    let found = walk(&mut client, "SSCAN s CURSOR COUNT 100 MATCH stays*", async || {
        for _ in 0..20 {
            other.send(&format!("SREM s goes{gone}")).await;
            gone += 1;
        }
    })
    .await;
    assert_eq!(distinct(&found).len(), 1_000);
    assert!(found.iter().all(|member| member.starts_with("stays")));
}

#[tokio::test]
async fn large_collections_are_as_they_were_after_a_restart() {
    let stage = Stage::new();
    let mut client = stage.client();
    let members: Vec<String> = (0..2_000).map(|member| member.to_string()).collect();
    let pairs: Vec<String> = (0..2_000).map(|field| format!("f{field} {field}")).collect();
    client.send(&format!("SADD s {}", members.join(" "))).await;
    client.send(&format!("HSET h {}", pairs.join(" "))).await;
    client
        .expect(&[
            ("SREM s 7 8 9", ":3"),
            ("SADD s 7 x", ":2"),
            ("HDEL h f1 f2", ":2"),
            ("HINCRBY h f3 100", ":103"),
            ("HSET h f1 back", ":1"),
            ("EXPIRE h 100", ":1"),
        ])
        .await;

    let mut client = stage.reopened().client();
    client
        .expect(&[
            ("SCARD s", ":1999"),
            ("SMISMEMBER s 7 8 9 x 1999", "*5 :1 :0 :0 :1 :1"),
            ("HLEN h", ":1999"),
            ("HMGET h f1 f2 f3 f1999", "*4 $4 back $-1 $3 103 $4 1999"),
            ("TTL h", ":100"),
        ])
        .await;
}

#[tokio::test]
async fn a_large_string_is_as_it_was_after_a_restart() {
    let stage = Stage::new();
    let mut client = stage.client();
    let text = "0123456789".repeat(10_000);
    client.send(&format!("SET s {text}")).await;
    client
        .expect(&[
            ("GETRANGE s 99998 -1", "$2 89"),
            ("APPEND s !", ":100001"),
            ("SETRANGE s 1 x", ":100001"),
            ("SETBIT s 7 1", ":0"),
        ])
        .await;

    let mut client = stage.reopened().client();
    client.expect(&[("STRLEN s", ":100001"), ("GETRANGE s 0 2", "$3 1x2")]).await;
    client.expect(&[("GETRANGE s -2 -1", "$2 9!")]).await;
}

#[tokio::test]
async fn what_one_command_answers_is_bounded() {
    let stage = Stage::of_memory(1 << 20);
    let mut client = stage.client();
    let value = "x".repeat(60_000);
    client.send_all(&[&format!("SET k {value}"), &format!("HSET h f {value}")]).await;
    let many = " k".repeat(300);
    for command in [&format!("MGET{many}"), "HRANDFIELD h -300 WITHVALUES"] {
        let reply = client.send(command).await;
        assert!(reply.starts_with("-ERR the command answers more than"), "{}", &reply[..60]);
    }
    let few = client.send("MGET k k").await;
    assert_eq!(few.len(), "*2 $60000  $60000 ".len() + 2 * value.len());
}

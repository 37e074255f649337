//! Commands about all keys in a transaction, which see what it has changed so far.

use super::stage::{Client, NOW_S, Stage};

/// Sends a transaction of the commands, apart by semicolons, and returns what EXEC answers.
async fn transact(client: &mut Client, commands: &str) -> String {
    let commands: Vec<&str> = commands.split("; ").collect();
    let replies = client.send_all(&[&["MULTI"], &commands[..], &["EXEC"]].concat()).await;
    let queued = format!("+OK {}", "+QUEUED ".repeat(commands.len()));
    replies.strip_prefix(&queued).unwrap_or(&replies).to_owned()
}

#[tokio::test]
async fn a_transaction_counts_and_lists_what_it_changed() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.send_all(&["SET a 1", "SET b 1", "SADD c 1", "SET e 1 EX 5"]).await;
    stage.clock.set_s(NOW_S + 5);

    // `e` has expired and is counted until a command finds it.
    let commands = "DBSIZE; SET a 2; SET d 1; DBSIZE; GET e; DBSIZE; DEL b; DBSIZE";
    assert_eq!(transact(&mut client, commands).await, "*8 :4 +OK +OK :5 $-1 :4 :1 :3");
    let commands = "SET b 1; KEYS *b*; DEL d; KEYS d; SETNX d 1; SETNX d 2; KEYS d; DBSIZE";
    let replies = transact(&mut client, commands).await;
    assert_eq!(replies, "*8 +OK *1 $1 b :1 *0 :1 :0 *1 $1 d :4");
    assert_eq!(client.send("DBSIZE").await, ":4");
}

#[tokio::test]
async fn a_transaction_sees_what_it_flushed_and_swapped() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.send_all(&["SET a 1", "SET b 1", "SELECT 1", "SET x 1", "SELECT 0"]).await;
    let cases = [
        (
            "FLUSHDB; DBSIZE; RANDOMKEY; SET n 1; KEYS *; SCAN 0",
            "*6 +OK :0 $-1 +OK *1 $1 n *2 $1 0 *1 $1 n",
        ),
        (
            "SET m 1; SWAPDB 0 1; DBSIZE; SET y 1; DBSIZE; SELECT 1; DBSIZE; SELECT 0",
            "*8 +OK +OK :1 +OK :2 +OK :2 +OK",
        ),
        (
            "SELECT 1; FLUSHDB; SWAPDB 0 1; DBSIZE; SELECT 0; DBSIZE; RANDOMKEY",
            "*7 +OK +OK +OK :2 +OK :0 $-1",
        ),
    ];
    for (commands, replies) in cases {
        assert_eq!(transact(&mut client, commands).await, replies, "{commands}");
    }
}

#[tokio::test]
async fn a_page_of_a_transaction_has_the_changes_of_its_range() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.send_all(&["SET b 1", "SET d 1", "SET f 1", "SADD h 1"]).await;

    // The page ends with `d`, so that `e` belongs to the next one.
    let commands = "SET a 1; DEL b; SET e 1; SCAN 0 COUNT 2; SCAN 0 TYPE set; SCAN 0 MATCH a*";
    let replies = transact(&mut client, commands).await;
    let page = replies.strip_prefix("*6 +OK :1 +OK *2 ").expect("a page");
    let words: Vec<&str> = page.split(' ').collect();
    let cursor = words[1];
    assert_eq!(words[2..].join(" "), "*2 $1 d $1 a *2 $1 0 *1 $1 h *2 $1 0 *1 $1 a");
    let rest = client.send(&format!("SCAN {cursor}")).await;
    assert_eq!(rest, "*2 $1 0 *3 $1 e $1 f $1 h");
}

#[tokio::test]
async fn asking_too_often_about_too_many_keys_is_refused() {
    let stage = Stage::new();
    let sets: Vec<String> = (0..2_000).map(|number| format!("SET key:{number} 1; ")).collect();
    let commands = format!("{}{}", sets.concat(), ["DBSIZE"; 501].join("; "));
    let replies = transact(&mut stage.client(), &commands).await;
    assert_eq!(replies.matches(":2000").count(), 500);
    assert!(replies.ends_with("too many keys to ask so often about all keys"), "{replies}");
}

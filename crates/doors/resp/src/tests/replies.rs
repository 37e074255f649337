use super::*;
use crate::limits::RESP_SUBSCRIPTIONS_MAX;

#[tokio::test]
async fn a_reply_waits_for_its_disk_and_later_ones_for_it() {
    let house = House::open().await;
    let mut client = house.connect().await;
    let mut other = house.connect().await;
    client.ask("set seen 1\r\n", "+OK\r\n").await;

    house.store.hold();
    client.send("get seen\r\nset k v\r\nget seen\r\n").await;
    client.expect("$1\r\n1\r\n").await;

    // Reading goes on while replies wait, and what nobody changed is answered to others.
    client.send("set k w\r\n").await;
    other.ask("get seen\r\n", "$1\r\n1\r\n").await;
    until(async || other.text("client list").await.contains("tot-cmds=5")).await;

    let mut byte = [0];
    assert!(client.stream.try_read(&mut byte).is_err(), "a reply came before its sync");
    house.store.release();
    client.expect("+OK\r\n$1\r\n1\r\n+OK\r\n").await;
}

#[tokio::test]
async fn a_client_that_ends_its_side_still_reads_its_replies() {
    let house = House::open().await;
    let mut client = house.connect().await;
    let mut other = house.connect().await;

    house.store.hold();
    client.send("set k v\r\n").await;
    client.stream.shutdown().await.expect("an end of what is sent");
    until(async || other.text("client list").await.contains("cmd=set")).await;

    house.store.release();
    client.expect("+OK\r\n").await;
    client.expect_end().await;
}

#[tokio::test]
async fn a_failed_disk_ends_connections_without_the_replies() {
    let house = House::open().await;
    let mut client = house.connect().await;

    house.store.hold();
    client.send("set k v\r\n").await;
    let mut other = house.connect().await;
    until(async || other.text("client list").await.contains("cmd=set")).await;

    house.store.fail("the disk is gone");
    client.expect_end().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let settings = Settings { output_bytes_max: 1 << 20, ..Settings::default() };
    let house = House::with(settings, &[]).await;
    let mut client = house.connect().await;
    let value = "x".repeat(60_000);
    client.ask(format!("set k {value}\r\n"), "+OK\r\n").await;

    // The kernel holds a few megabytes; what goes beyond them waits in the door.
    let mut other = house.connect().await;
    let requests = "get k\r\n".repeat(1000);
    until(async || {
        let sent = tokio::time::timeout(PATIENCE, client.stream.write_all(requests.as_bytes()));
        sent.await.expect("the door never stops to read").is_err()
    })
    .await;
    let stats = other.text("info stats").await;
    assert!(stats.contains("client_output_buffer_limit_disconnections:1"), "{stats}");
}

#[tokio::test]
async fn a_pipeline_of_any_size_is_answered_to_a_client_that_reads_late() {
    let settings = Settings { output_bytes_max: 1 << 20, ..Settings::default() };
    let house = House::with(settings, &[]).await;
    let mut client = house.connect().await;
    let value = "x".repeat(60_000);
    client.ask(format!("set k {value}\r\n"), "+OK\r\n").await;

    // Sixty megabytes of replies, for which the client waits until it has sent everything.
    let count = 1000;
    let reply = format!("$60000\r\n{value}\r\n");
    client.send("get k\r\n".repeat(count)).await;
    for _ in 0..count {
        client.expect(&reply).await;
    }
}

#[tokio::test]
async fn replies_can_be_switched_off() {
    let house = House::open().await;
    let mut client = house.connect().await;

    client.ask("client reply off\r\nset a 1\r\nping\r\nclient reply on\r\n", "+OK\r\n").await;
    client.ask("client reply skip\r\nset a 2\r\nget a\r\n", "$1\r\n2\r\n").await;
    client.ask("client reply skip\r\nnope\r\nget a\r\n", "$1\r\n2\r\n").await;
    client.ask("client reply skip\r\nping\r\nping\r\n", "+PONG\r\n").await;
    client.send("client reply off\r\nsubscribe a\r\nunsubscribe a\r\nclient reply on\r\n").await;
    client.expect("*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n").await;
    client.expect("*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n+OK\r\n").await;
    client.ask("client reply maybe\r\n", "-ERR syntax error\r\n").await;
}

#[tokio::test]
async fn messages_reach_subscribers_in_both_protocols() {
    let house = House::open().await;
    let mut two = house.connect().await;
    let mut three = house.connect().await;
    let mut sender = house.connect().await;

    two.ask("subscribe a\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n").await;
    three.send("hello 3\r\n").await;
    until(async || three.line().await == "$7" && three.line().await == "modules").await;
    three.expect("*0\r\n").await;
    three.ask("psubscribe a*\r\n", ">3\r\n$10\r\npsubscribe\r\n$2\r\na*\r\n:1\r\n").await;

    sender.ask("publish a hi\r\n", ":2\r\n").await;
    two.expect("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n").await;
    three.expect(">4\r\n$8\r\npmessage\r\n$2\r\na*\r\n$1\r\na\r\n$2\r\nhi\r\n").await;

    two.ask(
        "get k\r\n",
        "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET \
         are allowed in this context\r\n",
    )
    .await;
    two.ask("ping\r\n", "*2\r\n$4\r\npong\r\n$0\r\n\r\n").await;
    three.ask("get k\r\n", "_\r\n").await;

    two.ask("unsubscribe\r\n", "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n").await;
    two.ask("unsubscribe\r\n", "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n").await;
    two.ask("get k\r\n", "$-1\r\n").await;
    sender.ask("publish a hi\r\n", ":1\r\n").await;
}

#[tokio::test]
async fn a_connection_listens_to_as_many_channels_as_it_may() {
    let house = House::open().await;
    let mut client = house.connect().await;
    let subscribe = |numbers: std::ops::RangeInclusive<usize>| {
        numbers.fold("subscribe".to_owned(), |line, number| format!("{line} {number:06}")) + "\r\n"
    };
    let confirmed = |number| format!("*3\r\n$9\r\nsubscribe\r\n$6\r\n{number:06}\r\n:{number}\r\n");
    let refused = format!(
        "-ERR a connection listens to {RESP_SUBSCRIPTIONS_MAX} channels and patterns at most\r\n"
    );

    // An inline command is one line of at most 64 KiB.
    const STEP: usize = 5_000;
    for first in (1..RESP_SUBSCRIPTIONS_MAX).step_by(STEP) {
        let numbers = first..=(first + STEP - 1).min(RESP_SUBSCRIPTIONS_MAX - 1);
        let expected: String = numbers.clone().map(confirmed).collect();
        client.ask(subscribe(numbers), expected).await;
    }
    let last = RESP_SUBSCRIPTIONS_MAX;
    client.ask(subscribe(last..=last + 1), &refused).await;
    client.ask(subscribe(last..=last), confirmed(last)).await;
    client.ask(subscribe(last + 1..=last + 1), &refused).await;
    client.ask("psubscribe *\r\n", &refused).await;
}

#[tokio::test]
async fn the_end_of_a_subscription_does_not_overtake_a_message() {
    let house = House::open().await;
    let mut client = house.connect().await;
    client.send("hello 3\r\n").await;
    until(async || client.line().await == "$7" && client.line().await == "modules").await;
    client.expect("*0\r\n").await;

    client.send("subscribe a\r\npublish a hi\r\nunsubscribe a\r\nping\r\n").await;
    client.expect(">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n:1\r\n").await;
    client.expect(">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n").await;
    client.expect(">3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n+PONG\r\n").await;
}

#[tokio::test]
async fn a_command_that_waits_for_a_key_holds_up_nobody_and_can_be_woken() {
    let house = House::open().await;
    let mut waiting = house.connect().await;
    let mut other = house.connect().await;
    waiting.ask("client id\r\n", ":1\r\n").await;

    // What was answered before is sent while the command waits.
    waiting.send("set a 1\r\nblpop l 0\r\nget a\r\n").await;
    waiting.expect("+OK\r\n").await;
    until(async || other.text("info clients").await.contains("blocked_clients:1")).await;
    assert!(other.text("client list").await.contains("flags=b"));

    other.ask("rpush l x\r\n", ":1\r\n").await;
    waiting.expect("*2\r\n$1\r\nl\r\n$1\r\nx\r\n$1\r\n1\r\n").await;
    until(async || other.text("info clients").await.contains("blocked_clients:0")).await;

    waiting.send("blpop l 0\r\n").await;
    until(async || other.text("client unblock 1 error").await == ":1").await;
    waiting.expect("-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n").await;
    other.ask("client unblock 1\r\n", ":0\r\n").await;
}

#[tokio::test]
async fn a_client_that_leaves_while_it_waits_is_noticed() {
    let house = House::open().await;
    let mut waiting = house.connect().await;
    let mut other = house.connect().await;

    waiting.send("blpop l 0\r\nping\r\n").await;
    until(async || other.text("info clients").await.contains("blocked_clients:1")).await;
    drop(waiting);
    until(async || other.text("info clients").await.contains("connected_clients:1")).await;

    other.ask("rpush l x\r\nllen l\r\n", ":1\r\n:1\r\n").await;
}

#[tokio::test]
async fn messages_arrive_while_a_command_waits() {
    let house = House::open().await;
    let mut waiting = house.connect().await;
    let mut other = house.connect().await;
    waiting.send("hello 3\r\n").await;
    until(async || waiting.line().await == "$7" && waiting.line().await == "modules").await;
    waiting.expect("*0\r\n").await;
    waiting.ask("subscribe a\r\n", ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n").await;
    let message = |text| format!(">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\n{text}\r\n");

    waiting.send("set k 1\r\nblpop l 0\r\nget k\r\nunsubscribe\r\n").await;
    until(async || other.text("info clients").await.contains("blocked_clients:1")).await;
    other.ask("publish a m1\r\npublish a m2\r\n", ":1\r\n:1\r\n").await;
    waiting.expect(format!("+OK\r\n{}{}", message("m1"), message("m2"))).await;

    // One that was published before the command is woken comes before its reply.
    other.ask("publish a m3\r\nrpush l x\r\n", ":1\r\n:1\r\n").await;
    waiting.expect(message("m3")).await;
    waiting.expect("*2\r\n$1\r\nl\r\n$1\r\nx\r\n$1\r\n1\r\n").await;
    waiting.expect(">3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n").await;
    other.ask("publish a m4\r\n", ":0\r\n").await;
}

#[tokio::test]
async fn messages_to_a_client_that_waits_and_does_not_read_are_bounded() {
    let settings = Settings { output_bytes_max: 1 << 20, ..Settings::default() };
    let house = House::with(settings, &[]).await;
    let mut waiting = house.connect().await;
    let mut other = house.connect().await;

    waiting.send("hello 3\r\nsubscribe a\r\nblpop l 0\r\n").await;
    until(async || other.text("info clients").await.contains("blocked_clients:1")).await;
    let publish = format!("publish a {}", "m".repeat(60_000));
    until(async || other.text(&publish).await == ":0").await;
    assert!(other.text("info clients").await.contains("connected_clients:1"));
}

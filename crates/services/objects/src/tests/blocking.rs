//! Commands that wait for something to pop.

use super::between::Between;
use super::stage::{Client, Stage};
use crate::Unblocker;
use raingauge_ports::objects::Error;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Sends a command from a connection of its own, and returns when it waits.
async fn begin(stage: &Stage, command: &'static str) -> JoinHandle<String> {
    let mut client = stage.client();
    let unblocker = client.session.unblocker();
    let task = tokio::spawn(async move { client.send(command).await });
    until_blocked(&unblocker).await;
    task
}

async fn until_blocked(unblocker: &Unblocker) {
    let waits = async {
        while !unblocker.0.lock().waits() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waits).await.expect("it waits");
}

async fn reply_of(task: JoinHandle<String>) -> String {
    let reply = tokio::time::timeout(Duration::from_secs(10), task).await;
    reply.expect("it is woken").expect("no panic")
}

#[tokio::test]
async fn the_first_that_waits_is_served_first() {
    for resident_bytes in [1 << 20, 0] {
        let stage = Stage::of_memory(resident_bytes);
        let first = begin(&stage, "BLPOP q 0").await;
        let second = begin(&stage, "BRPOP q 0").await;
        let third = begin(&stage, "BLPOP q 0").await;
        let mut client = stage.client();
        client.expect(&[("RPUSH q a b", ":2")]).await;
        assert_eq!(reply_of(first).await, "*2 $1 q $1 a");
        assert_eq!(reply_of(second).await, "*2 $1 q $1 b");
        assert!(!third.is_finished());
        client.expect(&[("LPUSH q c", ":1")]).await;
        assert_eq!(reply_of(third).await, "*2 $1 q $1 c");
        client.expect(&[("EXISTS q", ":0")]).await;
    }
}

#[tokio::test]
async fn who_waits_for_several_keys_keeps_its_place() {
    // Without memory, the absence of the other key is forgotten at once.
    for resident_bytes in [1 << 20, 0] {
        let stage = Stage::of_memory(resident_bytes);
        let first = begin(&stage, "BLPOP other q 0").await;
        let second = begin(&stage, "BLPOP q 0").await;
        let lowest = begin(&stage, "BZMPOP 0 2 none z MIN").await;
        let mut client = stage.client();
        client.expect(&[("RPUSH q a", ":1"), ("ZADD z 1 m", ":1")]).await;
        assert_eq!(reply_of(first).await, "*2 $1 q $1 a");
        assert_eq!(reply_of(lowest).await, "*2 $1 z *1 *2 $1 m $1 1");
        assert!(!second.is_finished());
        client.expect(&[("RPUSH q b", ":1")]).await;
        assert_eq!(reply_of(second).await, "*2 $1 q $1 b");
    }
}

#[tokio::test]
async fn a_swap_leaves_the_order_of_those_that_wait() {
    // Without memory, each swap inside a transaction makes them try again.
    let stage = Stage::of_memory(0);
    let mut client = stage.client();
    let commands = ["BLPOP q 0", "BLPOP x q y 0", "BLPOP q z 0", "BLPOP y q 0"];
    let mut waiting = Vec::new();
    for command in commands {
        waiting.push(begin(&stage, command).await);
    }

    for _ in 0..20 {
        client.send_all(&["MULTI", "SWAPDB 0 1", "EXEC"]).await;
        let all_wait = || {
            let mut keyspace = stage.objects.lock.hold().expect("a lock");
            keyspace.waiting().waiters(0, "q") == commands.len()
        };
        while !all_wait() {
            tokio::task::yield_now().await;
        }
    }
    client.send("RPUSH q 0 1 2 3").await;
    for (number, task) in waiting.into_iter().enumerate() {
        assert_eq!(reply_of(task).await, format!("*2 $1 q $1 {number}"));
    }
}

#[tokio::test]
async fn a_swap_serves_those_that_wait_in_their_order() {
    // Without memory, what the swap brings has to be loaded.
    for resident_bytes in [1 << 20, 0] {
        let stage = Stage::of_memory(resident_bytes);
        let mut waiting = Vec::new();
        for command in ["BLPOP none a 0", "BLPOP a 0", "BLPOP a 0", "BZPOPMIN a 0"] {
            waiting.push(begin(&stage, command).await);
        }
        let mut client = stage.client();
        client.expect(&[("SELECT 5", "+OK"), ("RPUSH a 1 2", ":2"), ("SELECT 0", "+OK")]).await;
        assert_eq!(client.send_all(&["SWAPDB 0 5", "EXISTS a"]).await, "+OK :0");

        let last = waiting.split_off(2);
        for (number, task) in (1..).zip(waiting) {
            assert_eq!(reply_of(task).await, format!("*2 $1 a $1 {number}"));
        }
        assert!(last.iter().all(|task| !task.is_finished()));
    }
}

#[tokio::test]
async fn a_wait_that_is_tried_again_can_be_ended() {
    let stage = Stage::of_memory(0);
    let mut client = stage.client();
    let mut waiting = stage.client();
    let unblocker = waiting.session.unblocker();
    let task = tokio::spawn(async move { waiting.send("BLPOP q 0").await });
    until_blocked(&unblocker).await;
    client.send_all(&["MULTI", "SWAPDB 0 1", "EXEC"]).await;
    assert!(unblocker.unblock(false));
    assert_eq!(reply_of(task).await, "*-1");
    assert!(!unblocker.unblock(false), "nothing waits");
    client.expect(&[("RPUSH q a", ":1"), ("LLEN q", ":1")]).await;
}

#[tokio::test]
async fn a_connection_that_was_killed_waits_no_more() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.expect(&[("LLEN q", ":0")]).await;
    let mut killed = stage.client();
    killed.session.unblocker().abandon();
    tokio::select! {
        biased;
        reply = killed.send("BLPOP q 0") => panic!("{reply}"),
        () = client.expect(&[("RPUSH q a", ":1"), ("LLEN q", ":1")]) => {}
    }
}

#[tokio::test]
async fn a_wait_ends_once_and_at_once() {
    let stage = Stage::new();
    let mut client = stage.client();
    let commands = ["RPUSH q a", "LLEN q"];

    // What is pushed next stays, even before the connection has noticed.
    let mut waiting = stage.client();
    let unblocker = waiting.session.unblocker();
    let task = tokio::spawn(async move { waiting.send("BLPOP q 0").await });
    until_blocked(&unblocker).await;
    assert!(unblocker.unblock(false));
    assert_eq!(client.send_all(&commands).await, ":1 :1");
    assert!(!unblocker.unblock(false), "its wait has ended");
    assert_eq!(reply_of(task).await, "*-1");
    client.expect(&[("DEL q", ":1")]).await;

    // One that was served cannot be unblocked.
    let mut waiting = stage.client();
    let unblocker = waiting.session.unblocker();
    let task = tokio::spawn(async move { waiting.send("BLPOP q 0").await });
    until_blocked(&unblocker).await;
    assert_eq!(client.send_all(&commands).await, ":1 :0");
    assert!(!unblocker.unblock(true), "its wait has ended");
    assert_eq!(reply_of(task).await, "*2 $1 q $1 a");

    // One that is about to be closed is not answered, whatever happens to its key.
    let mut waiting = stage.client();
    let unblocker = waiting.session.unblocker();
    let task = tokio::spawn(async move { waiting.send("BLPOP q 0.01").await });
    until_blocked(&unblocker).await;
    unblocker.abandon();
    assert_eq!(client.send_all(&commands).await, ":1 :1");
    client.expect(&[("BLPOP none 0.05", "*-1"), ("MULTI", "+OK"), ("SWAPDB 0 1", "+QUEUED")]).await;
    client.expect(&[("EXEC", "*1 +OK"), ("BLPOP none 0.05", "*-1")]).await;
    assert!(!task.is_finished());
}

#[tokio::test]
async fn a_wait_that_has_ended_is_not_tried_again() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.expect(&[("SELECT 1", "+OK"), ("RPUSH q a", ":1")]).await;
    let options = stage.objects.options().clone();
    let (stage, late) = stage.behind(options, Between::new(&stage.store));
    let mut waiting = stage.client();
    let unblocker = waiting.session.unblocker();
    let task = tokio::spawn(async move { waiting.send("BLPOP q 0").await });
    until_blocked(&unblocker).await;

    // The transaction brings a key that is not in memory, and the command loads it.
    late.answers.forget_permits(usize::MAX);
    let reads = late.reads.load(Ordering::SeqCst);
    let mut client = stage.client();
    let replies = client.send_all(&["MULTI", "SWAPDB 0 1", "EXEC"]).await;
    assert_eq!(replies, "+OK +QUEUED *1 +OK");
    while late.reads.load(Ordering::SeqCst) == reads {
        tokio::task::yield_now().await;
    }
    assert!(unblocker.unblock(false));
    late.answers.add_permits(10);
    assert_eq!(reply_of(task).await, "*-1");
    client.expect(&[("LLEN q", ":1")]).await;
}

#[tokio::test]
async fn a_chain_of_moves_ends_at_the_last() {
    let stage = Stage::new();
    let last = begin(&stage, "BLPOP c 0").await;
    let second = begin(&stage, "BLMOVE b c LEFT RIGHT 0").await;
    let first = begin(&stage, "BRPOPLPUSH a b 0").await;
    let lowest = begin(&stage, "BZPOPMIN z 0").await;
    let mut client = stage.client();
    let replies = client.send_all(&["MULTI", "RPUSH a x", "ZADD z 2 m 1 l", "EXEC"]).await;
    assert_eq!(replies, "+OK +QUEUED +QUEUED *2 :1 :2");

    assert_eq!(reply_of(first).await, "$1 x");
    assert_eq!(reply_of(second).await, "$1 x");
    assert_eq!(reply_of(last).await, "*2 $1 c $1 x");
    assert_eq!(reply_of(lowest).await, "*3 $1 z $1 l $1 1");
    assert_eq!(stage.objects.stats().submitted, 1);
    client.expect(&[("EXISTS a b c", ":0"), ("ZCARD z", ":1")]).await;
}

#[tokio::test]
async fn a_wait_ends_in_time_and_by_command() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.expect(&[("BLPOP q 0.01", "*-1"), ("BLMOVE q r LEFT LEFT 0.01", "*-1")]).await;

    let mut waiting = stage.client();
    for (with_error, reply) in
        [(false, "*-1"), (true, "-UNBLOCKED client unblocked via CLIENT UNBLOCK")]
    {
        let unblocker = waiting.session.unblocker();
        let ends = async {
            while !unblocker.unblock(with_error) {
                tokio::task::yield_now().await;
            }
        };
        let (replied, ()) = tokio::join!(waiting.send("BLPOP q 0"), ends);
        assert_eq!(replied, reply);
        assert!(!unblocker.unblock(false), "nothing waits");
    }

    // A connection that ended pops nothing.
    let task = begin(&stage, "BLPOP q 0").await;
    task.abort();
    assert!(task.await.is_err());
    client.expect(&[("RPUSH q a", ":1"), ("LLEN q", ":1")]).await;
}

#[tokio::test]
async fn a_command_waits_for_many_keys_at_once() {
    let stage = Stage::new();
    let names: Vec<String> = (0..100_000).map(|number| format!("q:{number}")).collect();
    let names = names.join(" ");
    let command: &'static str = format!("BLPOP {names} q:0 q:0 0").leak();

    // All keys are new to the queue: looking for each among all before it would take minutes.
    let began = Instant::now();
    let waiting = begin(&stage, command).await;
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let mut client = stage.client();
    client.expect(&[("RPUSH q:0 a b", ":2"), ("LLEN q:0", ":1")]).await;
    assert_eq!(reply_of(waiting).await, "*2 $3 q:0 $1 a");
}

#[tokio::test]
async fn a_transaction_does_not_wait() {
    let stage = Stage::new();
    let mut client = stage.client();
    let commands =
        ["MULTI", "BLPOP q 0", "BLMOVE q r LEFT LEFT 0", "RPUSH q a", "BLPOP q 0", "EXEC"];
    let replies = client.send_all(&commands).await;
    let queued = "+QUEUED ".repeat(4);
    assert_eq!(replies, format!("+OK {queued}*4 *-1 $-1 :1 *2 $1 q $1 a"));
}

#[tokio::test]
async fn what_was_replied_before_a_wait_is_sent_first() {
    let stage = Stage::new();
    let Client { objects, mut session, protocol } = stage.client();
    let commands: [&[&[u8]]; 2] = [&[b"SET", b"a", b"1"], &[b"BLPOP", b"q", b"0"]];
    let drain = raingauge_resp::Drain::of(&commands);
    let mut replies = raingauge_resp::Replies::new(protocol);
    let mut door = super::stage::Door(std::sync::Arc::clone(&objects));
    let ran = objects.run(&mut session, &mut door, &drain, 0, &mut replies).await;
    assert_eq!((ran.next, ran.waited), (1, Duration::ZERO));
    assert_eq!(replies.take().concat(), b"+OK\r\n");
}

#[tokio::test]
async fn a_run_tells_how_long_its_commands_waited() {
    let stage = Stage::new();
    let Client { objects, mut session, protocol } = stage.client();
    let commands: [&[&[u8]]; 2] = [&[b"BLPOP", b"q", b"0.01"], &[b"BLPOP", b"q", b"0.01"]];
    let drain = raingauge_resp::Drain::of(&commands);
    let mut replies = raingauge_resp::Replies::new(protocol);
    let mut door = super::stage::Door(std::sync::Arc::clone(&objects));
    let mut waited = Duration::ZERO;
    for next in 0..2 {
        let ran = objects.run(&mut session, &mut door, &drain, next, &mut replies).await;
        waited += ran.waited;
        if ran.next == 2 {
            break;
        }
    }
    assert!(waited >= Duration::from_millis(20), "{waited:?}");
    assert_eq!(replies.take().concat(), b"*-1\r\n*-1\r\n");
}

#[tokio::test]
async fn who_waits_hears_nothing_of_what_the_store_refuses_others() {
    let stage = Stage::new();
    let options = stage.objects.options().clone();
    let (stage, between) = stage.behind(options, Between::new(&stage.store));
    let waiting = begin(&stage, "BLPOP q 0").await;
    let mut client = stage.client();
    *between.refusal.lock() = Some(Error::Full { free_bytes: 0, reserve_bytes: 1 });
    let replies = client.send_all(&["SET k 1", "RPUSH q a"]).await;
    assert!(replies.starts_with("-MISCONF") && replies.ends_with(" :1"), "{replies}");
    assert_eq!(reply_of(waiting).await, "*2 $1 q $1 a");
}

#[tokio::test]
async fn a_wait_that_is_tried_again_is_not_longer_for_that() {
    let stage = Stage::of_memory(0);
    let mut client = stage.client();
    let waiting = begin(&stage, "BLPOP q 0.05").await;
    let ends = async {
        while !waiting.is_finished() {
            client.send_all(&["MULTI", "SWAPDB 0 1", "EXEC"]).await;
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ends).await.expect("it ends");
    assert_eq!(reply_of(waiting).await, "*-1");
}

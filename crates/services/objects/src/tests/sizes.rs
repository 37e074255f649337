//! No command makes an object so large that it cannot be loaded again.

use super::stage::Stage;

const BYTES_MAX: usize = 50_000;

/// A service whose objects take 50,000 bytes at most.
fn stage() -> Stage {
    let mut options = Stage::new().objects.options().clone();
    options.limits.object_bytes_max = BYTES_MAX;
    Stage::with(options, |store| store)
}

/// A command over some members, that many from a number on.
fn with_members(command: &str, from: usize, len: usize) -> String {
    let members = (from..from + len).map(|member| format!(" m{member}"));
    members.fold(command.to_owned(), |command, member| command + &member)
}

/// Fills keys with commands that are accepted: two sets, two lists and a sorted set, of which none
/// is too large, and two of which are together.
async fn fill(stage: &Stage) {
    let entry = "x".repeat(BYTES_MAX * 4 / 5);
    let mut client = stage.client();
    for (set, from) in [("s", 0), ("t", 10_000)] {
        for part in 0..9 {
            let command = with_members(&format!("SADD {set}"), from + part * 100, 100);
            assert_eq!(client.send(&command).await, ":100");
        }
    }
    client.expect(&[("ZADD z 1 m1", ":1")]).await;
    for list in ["l", "m"] {
        assert_eq!(client.send(&format!("RPUSH {list} {entry}")).await, ":1");
    }
}

#[tokio::test]
async fn what_would_be_too_large_is_refused() {
    let commands = [
        // A sorted set takes more for each member than a set does.
        "ZUNIONSTORE d 1 s",
        "ZINTERSTORE d 2 s s",
        "ZDIFFSTORE d 2 s z",
        // Strings grow up to an offset.
        "SETRANGE d 70000 x",
        "SETBIT d 560000 1",
        "BITFIELD d SET u8 #70000 1",
        "BITFIELD d GET u8 0 INCRBY u8 560000 1",
        // What holds for a command holds for it within RAIN.ONCE.
        "SUNIONSTORE d s t",
        "RAIN.ONCE id SUNIONSTORE d s t",
        "RAIN.ONCE id ZUNIONSTORE d 1 s",
        "RAIN.ONCE id SETRANGE d 70000 x",
        // The entry that is moved is not among the arguments.
        "LMOVE l m LEFT RIGHT",
        "RPOPLPUSH l m",
        "BLMOVE l m RIGHT LEFT 0",
        "BRPOPLPUSH l m 0",
    ];
    for command in commands {
        let stage = stage();
        fill(&stage).await;
        let reply = stage.client().send(command).await;
        let refusal = "-ERR the object at '";
        let is_refused = reply.starts_with(refusal) && reply.contains("objects.object_bytes_max");
        assert!(is_refused, "{command}: {reply}");

        // Nothing has changed, and everything can be loaded again.
        let reopened = stage.reopened();
        let mut client = reopened.client();
        client
            .expect(&[
                ("EXISTS d", ":0"),
                ("SCARD s", ":900"),
                ("SCARD t", ":900"),
                ("ZCARD z", ":1"),
                ("LLEN l", ":1"),
                ("LLEN m", ":1"),
            ])
            .await;
    }
}

#[tokio::test]
async fn members_and_entries_are_moved_until_the_target_is_full() {
    let stage = stage();
    fill(&stage).await;
    let mut client = stage.client();
    client.expect(&[("SADD t m899", ":1")]).await;
    let mut moved = 0;
    loop {
        let reply = client.send(&format!("SMOVE s t m{moved}")).await;
        if reply != ":1" {
            assert!(reply.starts_with("-ERR the object at 't'"), "{reply}");
            break;
        }
        moved += 1;
    }
    assert!((50..200).contains(&moved), "{moved}");

    // What the target has already makes it no larger, and the source may be full.
    let entry = format!("$40000 {}", "x".repeat(40_000));
    client
        .expect(&[
            ("SMOVE s t m899", ":1"),
            ("SMOVE t u m899", ":1"),
            (&format!("RPUSH l {}", "x".repeat(9_550)), ":2"),
            ("LMOVE l n LEFT LEFT", &entry),
            ("LMOVE n n LEFT RIGHT", &entry),
        ])
        .await;

    let reopened = stage.reopened();
    let mut client = reopened.client();
    let of_s = format!(":{}", 899 - moved);
    let of_t = format!(":{}", 900 + moved);
    client.expect(&[("SCARD s", &of_s), ("SCARD t", &of_t), ("LLEN n", ":1")]).await;
}

//! The table of commands beside that of a real Redis: clients route and retry by it.

use super::home;
use super::oracle::resp_address;
use raingauge_lab::redis::server::Redis;
use raingauge_resp_client::{Address, Connection, Reply};
use std::collections::BTreeMap;

/// Flags that clients act upon.
const FLAGS: [&str; 5] = ["write", "readonly", "blocking", "pubsub", "movablekeys"];

/// Commands whose rows differ, each with the reason.
const EXCEPTIONS: &[(&str, &str)] =
    &[("zrank", "WITHSCORE, of Redis 7.2, makes it longer"), ("zrevrank", "as zrank")];

/// Arity, positions of keys, and flags of every command.
type Table = BTreeMap<String, (Vec<Option<i64>>, Vec<String>)>;

fn table(address: &Address) -> Table {
    let mut connection = Connection::open(address).expect("a connection");
    let all = connection.done(&[b"COMMAND"]).expect("the table");
    let text =
        |reply: &Reply| String::from_utf8_lossy(reply.bytes().unwrap_or_default()).to_lowercase();
    let row = |row: &Reply| {
        let parts = row.elements().expect("a row");
        let numbers = [1, 3, 4, 5].map(|place| parts.get(place).and_then(Reply::integer));
        let flags = parts[2].elements().unwrap_or_default().iter().map(text);
        let flags = flags.filter(|flag| FLAGS.contains(&flag.as_str())).collect();
        (text(&parts[0]), (numbers.to_vec(), flags))
    };
    all.elements().expect("rows").iter().map(row).collect()
}

#[test]
fn commands_have_the_arity_the_keys_and_the_flags_of_redis() {
    let Some(redis) = Redis::start(&[]).expect("a Redis") else {
        return;
    };
    let home = home();
    let server = home.start();
    let ours = table(&resp_address(&server));
    let theirs = table(&redis.address());
    assert!(ours.len() > 150, "{} commands", ours.len());

    let mut different = Vec::new();
    for (name, (numbers, flags)) in &ours {
        let is_excepted = EXCEPTIONS.iter().any(|(excepted, _)| excepted == name);
        // Commands of raingauge, and of later versions, are not in the other table.
        if let Some((expected, expected_flags)) = theirs.get(name).filter(|_| !is_excepted) {
            let mut flags = flags.clone();
            let mut expected_flags = expected_flags.clone();
            flags.sort_unstable();
            expected_flags.sort_unstable();
            if numbers != expected || flags != expected_flags {
                different.push(format!(
                    "{name}: {numbers:?} {flags:?}, Redis has {expected:?} {expected_flags:?}"
                ));
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

//! The table of commands beside that of a real Redis: clients route and retry by it.

use super::home;
use super::oracle::resp_address;
use raingauge_lab::redis::server::Redis;
use raingauge_resp_client::{Address, Connection, Reply};
use std::collections::{BTreeMap, BTreeSet};

/// Flags that clients act upon.
const FLAGS: [&str; 5] = ["write", "readonly", "blocking", "pubsub", "movablekeys"];

/// Commands whose rows differ, each with the reason.
const EXCEPTIONS: &[(&str, &str)] =
    &[("zrank", "WITHSCORE, of Redis 7.2, makes it longer"), ("zrevrank", "as zrank")];

/// What is compared of a command or subcommand.
#[derive(Debug, PartialEq)]
struct Row {
    /// Its arity, the first key, the last one and the step.
    numbers: Vec<Option<i64>>,
    flags: BTreeSet<String>,
    tips: BTreeSet<String>,
}

type Table = BTreeMap<String, Row>;

fn table(address: &Address) -> Table {
    let mut connection = Connection::open(address).expect("a connection");
    let all = connection.done(&[b"COMMAND"]).expect("the table");
    let text =
        |reply: &Reply| String::from_utf8_lossy(reply.bytes().unwrap_or_default()).to_lowercase();
    let mut table = Table::new();
    let mut waiting: Vec<&Reply> = all.elements().expect("rows").iter().collect();
    while let Some(row) = waiting.pop() {
        let parts = row.elements().expect("a row");
        let texts = |place: usize| parts[place].elements().unwrap_or_default().iter().map(text);
        let numbers = [1, 3, 4, 5].map(|place| parts.get(place).and_then(Reply::integer));
        let flags = texts(2).filter(|flag| FLAGS.contains(&flag.as_str())).collect();
        let row = Row { numbers: numbers.to_vec(), flags, tips: texts(7).collect() };
        table.insert(text(&parts[0]), row);
        waiting.extend(parts[9].elements().unwrap_or_default());
    }
    table
}

#[test]
fn commands_have_the_arity_the_keys_the_flags_and_the_tips_of_redis() {
    let Some(redis) = Redis::start(&[]).expect("a Redis") else {
        return;
    };
    let home = home();
    let server = home.start();
    let ours = table(&resp_address(&server));
    let theirs = table(&redis.address());
    assert!(ours.len() > 150, "{} commands", ours.len());

    let mut different = Vec::new();
    for (name, row) in &ours {
        let is_excepted = EXCEPTIONS.iter().any(|(excepted, _)| excepted == name);
        // Commands of raingauge, and of later versions, are not in the other table.
        if let Some(expected) = theirs.get(name).filter(|_| !is_excepted)
            && row != expected
        {
            different.push(format!("{name}: {row:?}, Redis has {expected:?}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

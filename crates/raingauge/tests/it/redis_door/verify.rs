//! The records of a stopped server are compared with each other by a command.

use super::{Client, home, ok};
use serde_json::json;

/// Members of a set that has an entry for each.
const MEMBERS: i64 = 1_000;

#[test]
fn objects_of_a_stopped_server_are_verified() {
    let home = home();
    let data = home.data().display().to_string();
    let verify = ["objects", "verify", "--data-dir", &data];
    let none = home.run(&verify);
    assert_eq!(none.status.code(), Some(1), "{none:?}");

    let server = home.start();
    let mut client = Client::new(&server);
    // Each is durable before the next is sent, so that none of them may be missing later.
    for number in 0..20 {
        assert_eq!(client.call(&["SET", &format!("key:{number}"), "value"]), ok());
    }
    assert_eq!(client.integer(&["EXPIRE", "key:0", "1000"]), 1);
    let members: Vec<String> = (0..MEMBERS).map(|number| format!("member:{number}")).collect();
    let mut words = vec!["SADD", "wide"];
    words.extend(members.iter().map(String::as_str));
    assert_eq!(client.integer(&words), MEMBERS);
    let keys = client.integer(&["DBSIZE"]);
    assert_eq!(keys, 21);
    server.kill();

    let log = home.data().join("objects/log");
    let mut segments: Vec<_> = std::fs::read_dir(&log)
        .expect("a folder")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|end| end == "objects"))
        .collect();
    segments.sort();
    let segment = segments.first().expect("a segment");
    let sound = std::fs::read(segment).expect("bytes");

    // A bit of an acknowledged write flips.
    let mut damaged = sound.clone();
    let place = damaged.windows(5).position(|bytes| bytes == b"key:7").expect("the key");
    damaged[place] ^= 1;
    std::fs::write(segment, damaged).expect("it can be written");
    let refused = home.run(&verify);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(refused.output.is_empty() && !refused.errors.is_empty(), "{refused:?}");

    std::fs::write(segment, sound).expect("it can be written");
    let verified = home.run(&verify);
    assert!(verified.status.success(), "{verified:?}");
    assert!(verified.output.starts_with("The store is sound: 21 keys, "), "{verified:?}");
    let summary = home.run(&[&verify[..], &["--json"]].concat()).json();
    let found = ["keys", "expiring", "wide", "entries", "behind"].map(|name| &summary[name]);
    assert_eq!(json!(found), json!([21, 1, 1, MEMBERS, 0]));
}

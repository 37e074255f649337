//! Commands about keys and databases. The replies are those of Redis 7.

use super::stage::{NOW_S, Stage, heard};

/// Which events a command has, and whom they are about.
#[tokio::test]
async fn events_are_those_of_redis() {
    let stage = Stage::new();
    let mut client = stage.client();
    let mut listener = stage.subscriber();
    listener.subscribe(crate::Space::Pattern, "__keyevent@0__:*".into());
    stage.objects.set_notify_flags("EAnm").expect("flags");

    let cases: &[(&str, &[&str])] = &[
        ("MGET a", &["keymiss a"]),
        ("MGET a b", &["keymiss a", "keymiss b"]),
        ("OBJECT ENCODING a", &[]),
        ("MEMORY USAGE a", &[]),
        ("GETEX a PERSIST", &["keymiss a"]),
        ("SET a 1 GET", &["keymiss a", "new a", "set a"]),
        ("SETRANGE b 0 x", &["new b", "setrange b"]),
        ("BITOP NOT d none", &["keymiss none"]),
        ("SUNIONSTORE d none a2", &["keymiss none", "keymiss a2"]),
        ("COPY a b REPLACE", &["new b", "copy_to b"]),
        ("RENAME a b", &["new b", "rename_from a", "rename_to b"]),
        ("SET e 1 EXAT 1", &["new e", "set e", "expire e", "expired e"]),
        ("SET b 1 PXAT 1", &["set b", "expire b", "expired b"]),
    ];
    for (command, events) in cases {
        client.send(command).await;
        assert_eq!(heard(&listener), *events, "{command}");
    }
    let stats = stage.objects.stats();
    assert_eq!((stats.hits, stats.misses), (1, 9));
}

#[tokio::test]
async fn keys_are_counted_renamed_and_copied() {
    let stage = Stage::new();
    let mut client = stage.client();
    client
        .expect(&[
            ("SET a 1", "+OK"),
            ("TYPE a", "+string"),
            ("TYPE b", "+none"),
            ("EXISTS a a b", ":2"),
            ("TOUCH a b", ":1"),
            ("RENAME b c", "-ERR no such key"),
            ("RENAME a a", "+OK"),
            ("RENAMENX a a", ":0"),
            ("RPUSH l x y", ":2"),
            ("RENAMENX a l", ":0"),
            ("RENAME l a", "+OK"),
            ("LRANGE a 0 -1", "*2 $1 x $1 y"),
            ("EXISTS l", ":0"),
            ("COPY a b", ":1"),
            ("COPY a b", ":0"),
            ("COPY a a", "-ERR source and destination objects are the same"),
            ("COPY nothing b REPLACE", ":0"),
            ("COPY a b REPLACE", ":1"),
            ("COPY a b DB 99", "-ERR DB index is out of range"),
            ("COPY a b DB", "-ERR syntax error"),
            ("RPUSH b z", ":3"),
            ("LRANGE a 0 -1", "*2 $1 x $1 y"),
            ("DEL a b c", ":2"),
            ("DBSIZE", ":0"),
            ("FOO bar", "-ERR unknown command 'FOO', with args beginning with: 'bar' "),
            ("DEL", "-ERR wrong number of arguments for 'del' command"),
        ])
        .await;
}

#[tokio::test]
async fn databases_are_apart() {
    let stage = Stage::new();
    let mut client = stage.client();
    client
        .expect(&[
            ("SET a 0", "+OK"),
            ("SELECT 1", "+OK"),
            ("GET a", "$-1"),
            ("SET b 1", "+OK"),
            ("SELECT 16", "-ERR DB index is out of range"),
            ("SELECT x", "-ERR value is not an integer or out of range"),
            ("MOVE b 0", ":1"),
            ("MOVE b 0", ":0"),
            ("MOVE b 1", "-ERR source and destination objects are the same"),
            ("DBSIZE", ":0"),
            ("SWAPDB 0 1", "+OK"),
            ("DBSIZE", ":2"),
            ("GET b", "$1 1"),
            ("SWAPDB x 1", "-ERR invalid first DB index"),
            ("SWAPDB 0 y", "-ERR invalid second DB index"),
            ("SELECT 0", "+OK"),
            ("GET a", "$-1"),
            ("SET c 1", "+OK"),
            ("FLUSHDB", "+OK"),
            ("GET c", "$-1"),
            ("SELECT 1", "+OK"),
            ("DBSIZE", ":2"),
            ("FLUSHALL LATER", "-ERR syntax error"),
            ("FLUSHALL ASYNC", "+OK"),
            ("DBSIZE", ":0"),
        ])
        .await;
}

#[tokio::test]
async fn a_pipeline_is_one_group() {
    let stage = Stage::new();
    let mut client = stage.client();
    let replies = client.send_all(&["SET a 1", "INCR a", "GET a", "FLUSHDB", "DEL b", "GET a"]);
    assert_eq!(replies.await, "+OK :2 $1 2 +OK :0 $-1");
    assert_eq!(stage.objects.stats().submitted, 1);

    let replies = client.send_all(&["SELECT 2", "SET a 2", "SWAPDB 0 2", "SELECT 0", "GET a"]);
    assert_eq!(replies.await, "+OK +OK +OK +OK $1 2");
    assert_eq!(stage.reopened().client().send("GET a").await, "$1 2");
}

#[tokio::test]
async fn wide_objects_move_with_their_names() {
    let stage = Stage::new();
    let mut client = stage.client();
    let members: Vec<String> = (0..300).map(|number| format!("SADD s member:{number}")).collect();
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    client.send_all(&members).await;

    client
        .expect(&[
            ("RENAME s t", "+OK"),
            ("COPY t u", ":1"),
            ("SREM t member:7", ":1"),
            ("MOVE t 3", ":1"),
            ("SCARD u", ":300"),
            ("SELECT 3", "+OK"),
            ("SCARD t", ":299"),
        ])
        .await;
    let mut client = stage.reopened().client();
    client.expect(&[("SCARD u", ":300"), ("SCARD s", ":0"), ("SELECT 3", "+OK")]).await;
    client.expect(&[("SISMEMBER t member:7", ":0"), ("SCARD t", ":299")]).await;
    assert_eq!(stage.store.orphans(), []);

    client.expect(&[("SET t text", "+OK"), ("SELECT 0", "+OK"), ("DEL u", ":1")]).await;
    assert_eq!(stage.store.orphans(), []);
}

#[tokio::test]
async fn objects_describe_themselves() {
    let stage = Stage::new();
    let mut client = stage.client();
    client
        .expect(&[
            ("SET a 12", "+OK"),
            ("OBJECT ENCODING a", "$3 int"),
            ("OBJECT REFCOUNT a", ":1"),
            ("OBJECT IDLETIME a", ":0"),
            ("OBJECT ENCODING b", "$-1"),
            ("OBJECT FREQ b", "$-1"),
            ("MEMORY USAGE b", "$-1"),
            ("MEMORY USAGE a SAMPLES -1", "-ERR syntax error"),
            ("OBJECT ENCODING", "-ERR wrong number of arguments for 'object|encoding' command"),
        ])
        .await;
    stage.clock.set_s(super::stage::NOW_S + 17);
    assert_eq!(client.send("OBJECT IDLETIME a").await, ":17");
    assert!(client.send("MEMORY USAGE a").await.starts_with(':'));
}

#[tokio::test]
async fn events_are_published_after_the_change() {
    let stage = Stage::new();
    let mut client = stage.client();
    let mut listener = stage.subscriber();
    listener.subscribe(crate::Space::Pattern, "__key*".into());
    client.send("SET quiet 1").await;
    assert_eq!(listener.try_next(), None);

    stage.objects.set_notify_flags("KEA").expect("flags");
    client.send_all(&["RENAME quiet loud", "RPUSH l 1", "LPOP l", "EXPIRE loud -1"]).await;
    let mut events = Vec::new();
    while let Some(message) = listener.try_next() {
        assert_eq!(message.stamp, 2);
        if message.channel.starts_with(b"__keyspace") {
            let text = String::from_utf8_lossy(&message.channel).into_owned();
            events.push(format!("{text} {}", String::from_utf8_lossy(&message.payload)));
        }
    }
    assert_eq!(
        events,
        [
            "__keyspace@0__:quiet rename_from",
            "__keyspace@0__:loud rename_to",
            "__keyspace@0__:l rpush",
            "__keyspace@0__:l lpop",
            "__keyspace@0__:l del",
            "__keyspace@0__:loud del",
        ]
    );
}

#[tokio::test]
async fn a_copy_into_another_database_looks_at_the_one_that_counts() {
    // Nothing is resident.
    let stage = Stage::of_memory(0);
    let mut client = stage.client();
    client.send_all(&["SET a 1", "SELECT 2", "SET b old", "SELECT 0"]).await;
    client.expect(&[("COPY a b DB 1 DB 2", ":0"), ("SELECT 2", "+OK"), ("GET b", "$3 old")]).await;
}

#[tokio::test]
async fn a_client_that_touches_nothing_leaves_keys_as_idle_as_they_are() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.expect(&[("SET a 1", "+OK")]).await;
    stage.clock.set_s(NOW_S + 10);
    client.session.touches = false;
    client.expect(&[("GET a", "$1 1"), ("OBJECT IDLETIME a", ":10")]).await;
    client.expect(&[("TOUCH a", ":1"), ("OBJECT IDLETIME a", ":0")]).await;
}

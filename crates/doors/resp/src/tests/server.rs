use super::*;
use crate::nodes::Node;
use crate::settings::ClusterMode;

#[tokio::test]
async fn parameters_are_read_and_set() {
    let house = House::open().await;
    let mut client = house.connect().await;

    client.ask("config get maxmemory\r\n", "*2\r\n$9\r\nmaxmemory\r\n$1\r\n0\r\n").await;
    let keepalive = "*2\r\n$13\r\ntcp-keepalive\r\n$2\r\n60\r\n";
    client.ask("config get tcp-keepalive\r\n", keepalive).await;
    client
        .ask(
            "config get appendf*\r\n",
            "*4\r\n$14\r\nappendfilename\r\n$0\r\n\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n",
        )
        .await;
    client.ask("config set appendfsync everysec hz 20\r\n", "+OK\r\n").await;
    client
        .ask("config get appendfsync\r\n", "*2\r\n$11\r\nappendfsync\r\n$8\r\neverysec\r\n")
        .await;
    client.ask("config set notify-keyspace-events KEA\r\n", "+OK\r\n").await;
    assert!(client.text("config get notify-keyspace-events").await.starts_with("*2"));
    client.line().await;
    client.line().await;
    client.line().await;
    assert_eq!(client.line().await, "AKE");

    let text = "-ERR Unknown option or number of arguments for CONFIG SET - 'nope'";
    assert_eq!(client.text("config set nope 1").await, text);
    let text = "-ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - \
                Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
    assert_eq!(client.text("config set notify-keyspace-events Q").await, text);
    assert!(client.text("config set port 1").await.contains("can't set immutable config"));
    assert!(client.text("config set hz x").await.contains("related to argument 'hz'"));
    assert!(client.text("config set hz 1 hz 2").await.contains("duplicate parameter"));

    let info = client.text("info raingauge").await;
    assert!(info.contains("inert_parameter_hz:20") && !info.contains("appendfsync"), "{info}");
}

#[tokio::test]
async fn the_server_describes_itself_under_the_names_that_tools_know() {
    let house = House::open().await;
    let mut client = house.connect().await;
    client.ask("set k v ex 9\r\nget k\r\nget none\r\nnope\r\nhset k a b\r\n", "+OK\r\n$1\r\nv\r\n$-1\r\n-ERR unknown command 'nope', with args beginning with: \r\n-WRONGTYPE Operation against a key holding the wrong kind of value\r\n").await;

    let info = client.text("info").await;
    for part in [
        "# Server\r\nredis_version:7.2.4\r\n",
        "# Clients\r\nconnected_clients:1\r\n",
        "# Memory\r\nused_memory:",
        "keyspace_hits:1\r\n",
        "keyspace_misses:1\r\n",
        "role:master\r\n",
        "# Keyspace\r\ndb0:keys=1,expires=1,avg_ttl=0\r\n",
        "cluster_enabled:0\r\n",
    ] {
        assert!(info.contains(part), "{part} in {info}");
    }
    assert!(!info.contains("cmdstat_"));

    let commands = client.text("info commandstats").await;
    assert!(commands.contains("cmdstat_get:calls=2,usec="), "{commands}");
    client.ask("client id\r\n", ":1\r\n").await;
    client.ask("latency histogram nope\r\n", "*0\r\n").await;
    for name in ["client", "client|id"] {
        client.send(format!("latency histogram {name}\r\n")).await;
        client.expect("*2\r\n$9\r\nclient|id\r\n*4\r\n$5\r\ncalls\r\n:1\r\n").await;
        client.expect("$14\r\nhistogram_usec\r\n*2\r\n:").await;
        // A bound in microseconds, and the calls within it.
        client.line().await;
        client.expect(":1\r\n").await;
    }
    client.ask("config resetstat\r\n", "+OK\r\n").await;
    assert!(!client.text("info commandstats").await.contains("cmdstat_get"));
}

#[tokio::test]
async fn the_table_of_commands_is_readable() {
    let house = House::open().await;
    let mut client = house.connect().await;

    let count: usize = client.text("command count").await[1..].parse().expect("a number");
    assert!(count > 180, "{count}");
    client
        .ask(
            "command info get nope\r\n",
            "*2\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n\
             *3\r\n+@read\r\n+@string\r\n+@fast\r\n*0\r\n\
             *1\r\n*6\r\n$5\r\nflags\r\n*2\r\n+RO\r\n+access\r\n$12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n\
             $5\r\nindex\r\n$4\r\nspec\r\n*2\r\n$5\r\nindex\r\n:1\r\n$9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n\
             $5\r\nrange\r\n$4\r\nspec\r\n*6\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n\
             :0\r\n*0\r\n$-1\r\n",
        )
        .await;
    client.ask("command getkeys mset a 1 b 2\r\n", "*2\r\n$1\r\na\r\n$1\r\nb\r\n").await;
    client.ask("command getkeys echo a\r\n", "-ERR The command has no key arguments\r\n").await;
    client.ask("command getkeys nope a\r\n", "-ERR Invalid command specified\r\n").await;
    client
        .ask("command getkeysandflags get k\r\n", "*1\r\n*2\r\n$1\r\nk\r\n*2\r\n+RO\r\n+access\r\n")
        .await;
    client
        .ask(
            "command getkeysandflags spublish a b\r\n",
            "-ERR The command has no key arguments\r\n",
        )
        .await;
    client.ask("config set zset-max-ziplist-entries 7\r\n", "+OK\r\n").await;
    let alias = "*2\r\n$25\r\nzset-max-listpack-entries\r\n$1\r\n7\r\n";
    client.ask("config get zset-max-listpack-entries\r\n", alias).await;
    client.ask("command list filterby pattern xx*\r\n", "*0\r\n").await;
    assert!(client.text("command docs get").await.starts_with("*2"));

    client.send("hello 3\r\n").await;
    until(async || client.line().await == "$7" && client.line().await == "modules").await;
    client.expect("*0\r\n").await;
    client
        .ask(
            "command info echo\r\n",
            "*1\r\n*10\r\n$4\r\necho\r\n:2\r\n~3\r\n+loading\r\n+stale\r\n+fast\r\n:0\r\n:0\r\n:0\r\n\
             ~2\r\n+@fast\r\n+@connection\r\n~0\r\n~0\r\n~0\r\n",
        )
        .await;
}

#[tokio::test]
async fn slow_commands_are_kept() {
    let house = House::open().await;
    let mut client = house.connect().await;

    client.ask("config set slowlog-log-slower-than 0\r\nslowlog reset\r\n", "+OK\r\n+OK\r\n").await;
    client.ask("client setname me\r\nget k\r\n", "+OK\r\n$-1\r\n").await;
    client.ask("config set slowlog-log-slower-than -1\r\n", "+OK\r\n").await;

    client.send("slowlog get 1\r\n").await;
    client.expect("*1\r\n*6\r\n:").await;
    let mut lines = Vec::new();
    until(async || {
        lines.push(client.line().await);
        lines.last().is_some_and(|line| line == "me")
    })
    .await;
    assert!(lines.iter().any(|line| line == "k"), "{lines:?}");
    client.ask("slowlog reset\r\nslowlog len\r\n", "+OK\r\n:0\r\n").await;

    // The log shows no tokens, not even those of transactions.
    client.ask("config set slowlog-log-slower-than 0\r\n", "+OK\r\n").await;
    let queued = "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n";
    client.ask("auth rg_a\r\nmulti\r\nauth me rg_a\r\nexec\r\n", queued).await;
    client.ask("config set slowlog-log-slower-than -1\r\n", "+OK\r\n").await;
    client.send("slowlog get -1\r\nping\r\n").await;
    let mut lines = Vec::new();
    until(async || {
        lines.push(client.line().await);
        lines.last().is_some_and(|line| line == "+PONG")
    })
    .await;
    assert_eq!(lines.iter().filter(|line| *line == "(redacted)").count(), 3, "{lines:?}");
    assert!(!lines.iter().any(|line| line == "rg_a"), "{lines:?}");

    for count in ["-2", "few"] {
        let refused = "-ERR count should be greater than or equal to -1\r\n";
        client.ask(format!("slowlog get {count}\r\n"), refused).await;
    }
}

#[tokio::test]
async fn answers_that_never_change_are_those_of_redis() {
    let house = House::open().await;
    let mut client = house.connect().await;

    client.ask("role\r\n", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n").await;
    client.ask("wait 0 100\r\n", ":0\r\n").await;
    client.ask("set k v\r\nwaitaof 1 0 0\r\n", "+OK\r\n*2\r\n:1\r\n:0\r\n").await;
    let out_of_range = "-ERR value is out of range, value must between 0 and 1\r\n";
    client.ask("waitaof 2 0 0\r\n", out_of_range).await;
    let not_positive = "-ERR value is out of range, must be positive\r\n";
    client.ask("waitaof 1 -1 0\r\n", not_positive).await;
    client.ask("save\r\nscript flush\r\nfunction flush\r\n", "+OK\r\n+OK\r\n+OK\r\n").await;
    client.ask("bgsave\r\n", "+Background saving started\r\n").await;
    client.ask("acl whoami\r\nacl users\r\n", "$7\r\ndefault\r\n*1\r\n$7\r\ndefault\r\n").await;
    client.ask("acl setuser x\r\n", "-ERR tokens are made in the portal\r\n").await;
    client.ask("acl cat nope\r\n", "-ERR Unknown category 'nope'\r\n").await;
    client.ask("cluster info\r\nreadonly\r\n", "-ERR This instance has cluster support disabled\r\n-ERR This instance has cluster support disabled\r\n").await;
    client
        .ask(
            "xadd s * a b\r\n",
            "-ERR unknown command 'xadd', with args beginning with: 's' '*' 'a' 'b' \
             : raingauge has no streams\r\n",
        )
        .await;
    assert!(client.text("acl list").await.starts_with("*1"));
    client.line().await;
    assert_eq!(client.line().await, "user default on nopass ~* &* +@all");
}

#[tokio::test]
async fn a_single_process_has_every_slot() {
    let settings = Settings { cluster: ClusterMode::Single, ..Settings::default() };
    let house = House::with(settings, &[]).await;
    let mut client = house.connect().await;
    let port = house.address.port();

    client.ask("set foo 1\r\ncluster keyslot foo\r\n", "+OK\r\n:12182\r\n").await;
    client
        .ask("mget foo bar\r\n", "-CROSSSLOT Keys in request don't hash to the same slot\r\n")
        .await;
    client.ask("mget {foo}a foo\r\n", "*2\r\n$-1\r\n$1\r\n1\r\n").await;
    client.ask("select 1\r\n", "-ERR SELECT is not allowed in cluster mode\r\n").await;
    client.ask("select 0\r\n", "+OK\r\n").await;
    let elsewhere = "-ERR Copying to another database is not allowed in cluster mode\r\n";
    client.ask("copy foo {foo}b db 1\r\n", elsewhere).await;
    client.ask("cluster countkeysinslot 12182\r\n", ":1\r\n").await;
    client.ask("cluster getkeysinslot 12182 10\r\n", "*1\r\n$3\r\nfoo\r\n").await;
    client.ask("cluster getkeysinslot 12182 0\r\n", "*0\r\n").await;
    client.ask("cluster getkeysinslot 12182 -1\r\n", "-ERR Invalid number of keys\r\n").await;
    client.ask("cluster countkeysinslot 16384\r\n", "-ERR Invalid slot\r\n").await;
    let refused = "-ERR the keys of a slot are not looked for inside a transaction\r\n";
    client.ask("multi\r\ncluster countkeysinslot 12182\r\n", "+OK\r\n+QUEUED\r\n").await;
    client.ask("exec\r\n", format!("*1\r\n{refused}")).await;
    client.ask("cluster meet 1.2.3.4 5\r\n", "-ERR raingauge assigns slots by itself\r\n").await;
    // Clients that read from replicas begin with this, and give up where it fails.
    client.ask("readonly\r\nreadwrite\r\nasking\r\n", "+OK\r\n+OK\r\n+OK\r\n").await;

    assert!(client.text("cluster info").await.contains("cluster_slots_ok:16384"));
    let nodes = client.text("cluster nodes").await;
    assert!(nodes.contains(&format!(" 127.0.0.1:{port}@")), "{nodes}");
    assert!(nodes.ends_with(" myself,master - 0 0 1 connected 0-16383\n"), "{nodes}");
    let id = client.text("cluster myid").await;
    client.send("cluster slots\r\n").await;
    client
        .expect(format!(
            "*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$40\r\n{id}\r\n*0\r\n"
        ))
        .await;
}

#[tokio::test]
async fn names_of_a_slot_take_no_more_memory_than_replies_may() {
    let cluster = ClusterMode::Single;
    let settings = Settings { cluster, output_bytes_max: 100, ..Settings::default() };
    let house = House::with(settings, &[]).await;
    let mut client = house.connect().await;
    client.ask("mset {foo}1 a {foo}2 b {foo}3 c\r\n", "+OK\r\n").await;
    client.ask("cluster countkeysinslot 12182\r\n", ":3\r\n").await;
    let too_many = "-ERR the names take more than 100 bytes, which resp.output_bytes_max limits: \
                    ask for fewer\r\n";
    client.ask("cluster getkeysinslot 12182 3\r\n", too_many).await;
    client.ask("cluster getkeysinslot 12182 1\r\n", "*1\r\n$6\r\n{foo}1\r\n").await;
}

#[tokio::test]
async fn what_tells_of_keys_waits_for_them() {
    let settings = Settings { cluster: ClusterMode::Single, ..Settings::default() };
    let house = House::with(settings, &[]).await;
    let mut writer = house.connect().await;
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(house.connect().await);
    }
    house.store.hold();
    writer.send("set foo 1\r\n").await;
    until(async || house.objects.stats().submitted == 1).await;

    let info = "*1\r\n$44\r\n# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0\r\n\r\n";
    let questions = [
        ("cluster countkeysinslot 12182\r\n", ":1\r\n"),
        ("cluster getkeysinslot 12182 10\r\n", "*1\r\n$3\r\nfoo\r\n"),
        ("info keyspace\r\n", &info[4..]),
        ("multi\r\ninfo keyspace\r\nexec\r\n", info),
    ];
    others[3].ask("info server\r\nping\r\n", "$").await;
    until(async || others[3].line().await == "+PONG").await;
    for (client, (question, _)) in others.iter_mut().zip(&questions[..3]) {
        client.send(question).await;
        let mut byte = [0];
        let read = client.stream.read_exact(&mut byte);
        assert!(tokio::time::timeout(Duration::from_millis(50), read).await.is_err(), "{question}");
    }
    others[3].ask("multi\r\ninfo keyspace\r\n", "+OK\r\n+QUEUED\r\n").await;
    others[3].send("exec\r\n").await;
    let mut byte = [0];
    let read = others[3].stream.read_exact(&mut byte);
    assert!(tokio::time::timeout(Duration::from_millis(50), read).await.is_err());

    house.store.release();
    writer.expect("+OK\r\n").await;
    for (client, (_, reply)) in others.iter_mut().zip(questions) {
        client.expect(reply).await;
    }
}

#[tokio::test]
async fn a_static_cluster_sends_clients_to_the_right_node() {
    let node =
        |port, first, last| Node { host: "127.0.0.1".into(), port, slots: vec![(first, last)] };
    let settings = Settings {
        cluster: ClusterMode::Static,
        nodes: vec![node(7001, 0, 8191), node(7002, 8192, 16383)],
        announce: "127.0.0.1:7001".into(),
        ..Settings::default()
    };
    let house = House::with(settings, &[]).await;
    let mut client = house.connect().await;

    client
        .ask(
            "set bar 1\r\nget foo\r\nget bar\r\n",
            "+OK\r\n-MOVED 12182 127.0.0.1:7002\r\n$1\r\n1\r\n",
        )
        .await;
    let moved = "-MOVED 12182 127.0.0.1:7002\r\n";
    client.ask("multi\r\nget foo\r\n", format!("+OK\r\n{moved}")).await;
    client
        .ask("exec\r\n", "-EXECABORT Transaction discarded because of previous errors.\r\n")
        .await;
    assert!(
        client
            .text("cluster nodes")
            .await
            .contains(":7002@17002 master - 0 0 2 connected 8192-16383")
    );
}

#[tokio::test]
async fn unfinished_commands_of_all_clients_have_a_bound() {
    // Half of the memory of objects: 32 MiB.
    let settings = Settings { output_bytes_max: 1 << 20, ..Settings::default() };
    let house = House::with(settings, &[]).await;
    let mut small = house.connect().await;
    small.send("*3\r\n$3\r\nset\r\n$1\r\na\r\n$100000\r\n").await;
    let mut quarter = house.connect().await;
    quarter.send("*3\r\n$3\r\nset\r\n$1\r\nb\r\n$60000000\r\n").await;
    quarter.send(vec![b'x'; 8 << 20]).await;
    until(async || house.connect().await.text("client list").await.contains("qbuf=8388")).await;

    // Arguments that are complete count too.
    let mut other = house.connect().await;
    let value = [b"$1000000\r\n", &[b'x'; 1_000_000][..], b"\r\n"].concat();
    let values = value.repeat(40);
    let refused = "-ERR too much of unfinished commands waits on all connections: send smaller \
                   values, or fewer at once\r\n";
    other.send("*1000\r\n$4\r\nmset\r\n").await;
    // The rest meets a closed connection.
    let _ = other.stream.write_all(&values).await;
    other.expect(refused).await;

    // Those that were there first go on, and what the other one had is free again.
    small.send(vec![b'x'; 100_000]).await;
    small.ask("\r\n", "+OK\r\n").await;
    let mut large = house.connect().await;
    large.send("*3\r\n$3\r\nset\r\n$1\r\nc\r\n$20000000\r\n").await;
    large.send(vec![b'x'; 20_000_000]).await;
    large.ask("\r\n", "+OK\r\n").await;
}

use super::*;

#[tokio::test]
async fn commands_are_answered_in_their_order_in_both_forms() {
    let house = House::open().await;
    let mut client = house.connect().await;

    client.ask("PING\r\n", "+PONG\r\n").await;
    client
        .ask(
            "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\nping\r\nget nothing\r\n",
            "+OK\r\n$1\r\nv\r\n+PONG\r\n$-1\r\n",
        )
        .await;
    client
        .ask("nope a b\r\n", "-ERR unknown command 'nope', with args beginning with: 'a' 'b' \r\n")
        .await;
    client.ask("get\r\n", "-ERR wrong number of arguments for 'get' command\r\n").await;
    client
        .ask("select 3\r\nget k\r\nselect 0\r\nget k\r\n", "+OK\r\n$-1\r\n+OK\r\n$1\r\nv\r\n")
        .await;
}

#[tokio::test]
async fn a_protocol_error_ends_the_connection_behind_what_came_before() {
    let house = House::open().await;
    let mut client = house.connect().await;

    client
        .ask("SET a 1\r\n*1\r\n$x\r\n", "+OK\r\n-ERR Protocol error: invalid bulk length\r\n")
        .await;
    client.expect_end().await;

    house.connect().await.ask("get a\r\n", "$1\r\n1\r\n").await;
}

#[tokio::test]
async fn a_request_of_a_browser_runs_no_command_behind_its_head() {
    let house = House::open().await;
    house.connect().await.ask("set a 1\r\n", "+OK\r\n").await;

    let mut browser = house.connect().await;
    browser.send("POST / HTTP/1.1\r\nHost: localhost\r\n\r\nflushall\r\n").await;
    browser.expect_end().await;

    // The line of another method may be one of a command that is answered; the next one is not.
    let mut browser = house.connect().await;
    browser.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\nflushall\r\n").await;
    browser.expect("-ERR wrong number of arguments for 'get' command\r\n").await;
    browser.expect_end().await;
    house.connect().await.ask("get a\r\n", "$1\r\n1\r\n").await;
}

#[tokio::test]
async fn hello_changes_the_protocol() {
    let house = House::open().await;
    let mut client = house.connect().await;

    client.ask("HELLO 4\r\n", "-NOPROTO unsupported protocol version\r\n").await;
    client.send("HELLO 3 SETNAME me\r\n").await;
    client.expect("%8\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.4\r\n").await;
    client
        .expect("$9\r\nraingauge\r\n$5\r\n0.1.0\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n")
        .await;
    client
        .expect("$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n")
        .await;

    client.ask("get nothing\r\n", "_\r\n").await;
    client.ask("client getname\r\n", "$2\r\nme\r\n").await;
    client.ask("reset\r\nget nothing\r\nclient getname\r\n", "+RESET\r\n$-1\r\n$-1\r\n").await;
    client.ask("quit\r\n", "+OK\r\n").await;
    client.expect_end().await;
}

#[tokio::test]
async fn a_login_opens_what_its_scopes_allow() {
    let tokens: &[(&str, &[Scope])] =
        &[("rg_reader", &[Scope::ObjectsRead]), ("rg_all", &[Scope::Admin])];
    let house = House::with(Settings::default(), tokens).await;
    let mut client = house.connect().await;

    client.ask("PING\r\n", "-NOAUTH Authentication required.\r\n").await;
    client.ask("nope\r\n", "-ERR unknown command 'nope', with args beginning with: \r\n").await;
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    client.ask("AUTH rg_wrong\r\n", wrong).await;

    // What follows a login in one piece has its rights already, whatever its length.
    let value = "x".repeat(20_000);
    client
        .ask(
            format!("AUTH app rg_reader\r\nGET k\r\nSET k {value}\r\nECHO {value}\r\n"),
            format!(
                "+OK\r\n$-1\r\n-NOPERM this user has no permissions to run the 'set' command: \
                 it needs the scope objects:write\r\n$20000\r\n{value}\r\n"
            ),
        )
        .await;
    client.ask("acl whoami\r\n", "$9\r\nrg_reader\r\n").await;
    assert!(client.text("config set timeout 1").await.starts_with("-NOPERM"));

    client.ask("AUTH rg_all\r\nSET k v\r\n", "+OK\r\n+OK\r\n").await;
    client.ask("reset\r\nget k\r\n", "+RESET\r\n-NOAUTH Authentication required.\r\n").await;

    let mut guest = house.connect().await;
    guest.ask("*11\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n").await;
    guest.expect_end().await;
}

#[tokio::test]
async fn a_transaction_runs_commands_of_the_door_too() {
    let house = House::open().await;
    let mut client = house.connect().await;

    client
        .ask(
            "multi\r\nset k v\r\nping\r\nselect 1\r\nclient setname n\r\nexec\r\n",
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*4\r\n+OK\r\n+PONG\r\n+OK\r\n+OK\r\n",
        )
        .await;
    client.ask("client getname\r\n", "$1\r\nn\r\n").await;
    client.ask("get k\r\n", "$-1\r\n").await;

    client.send("multi\r\nnope\r\nexec\r\n").await;
    client.expect("+OK\r\n-ERR unknown command 'nope', with args beginning with: \r\n").await;
    client.expect("-EXECABORT Transaction discarded because of previous errors.\r\n").await;
    client.ask("multi\r\nreset\r\nexec\r\n", "+OK\r\n+RESET\r\n-ERR EXEC without MULTI\r\n").await;
}

#[tokio::test]
async fn large_values_go_in_and_out_whole() {
    let house = House::open().await;
    let mut client = house.connect().await;

    let value: Vec<u8> = (0..3_000_000_u32).map(|number| number as u8).collect();
    let set =
        [format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", value.len()).as_bytes(), &value, b"\r\n"]
            .concat();
    client.ask(&set, "+OK\r\n").await;

    let frame = [format!("${}\r\n", value.len()).as_bytes(), &value, b"\r\n"].concat();
    client.ask("get k\r\nping\r\n", [&frame[..], b"+PONG\r\n"].concat()).await;
}

#[tokio::test]
async fn a_client_may_send_everything_before_it_reads() {
    let house = House::open().await;
    let mut client = house.connect().await;
    let count = 50_000;

    let requests: String =
        (0..count).map(|number| format!("SET k{number} v{number}\r\nGET k{number}\r\n")).collect();
    let replies: String = (0..count)
        .map(|number| {
            let value = format!("v{number}");
            format!("+OK\r\n${}\r\n{value}\r\n", value.len())
        })
        .collect();
    client.ask(requests, replies).await;
}

#[tokio::test]
async fn a_transaction_may_change_one_subscription_with_each_command() {
    let house = House::open().await;
    let mut client = house.connect().await;

    client.ask("multi\r\nsubscribe a\r\nping\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n").await;
    client.ask("exec\r\n", "*2\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n").await;
    client.expect("*2\r\n$4\r\npong\r\n$0\r\n\r\n").await;
    house.connect().await.ask("publish a hi\r\n", ":1\r\n").await;
    client.expect("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n").await;

    let mut client = house.connect().await;
    client.ask("multi\r\nsubscribe a b\r\n", "+OK\r\n+QUEUED\r\n").await;
    let refused = "*1\r\n-ERR subscriptions inside a transaction name one channel\r\n";
    client.ask("exec\r\n", refused).await;
}

#[tokio::test]
async fn replies_are_not_switched_off_inside_a_transaction() {
    let house = House::open().await;
    let mut client = house.connect().await;
    let queued = "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n";
    client.ask("multi\r\nset a 1\r\nclient reply off\r\nget a\r\n", queued).await;
    let refused = "-ERR CLIENT REPLY is not allowed inside a transaction\r\n";
    client.ask("exec\r\n", &format!("*3\r\n+OK\r\n{refused}$1\r\n1\r\n")).await;
    client.ask("ping\r\n", "+PONG\r\n").await;
}

#[tokio::test]
async fn nothing_is_begun_for_who_may_not_run_it() {
    let house = House::with(Settings::default(), &[("counts", &[Scope::CountsRead])]).await;
    let mut client = house.connect().await;
    let checkpoints = || house.objects.status().checkpoints;
    client.ask("save x\r\n", "-ERR wrong number of arguments for 'save' command\r\n").await;
    client.ask("save\r\n", "-NOAUTH Authentication required.\r\n").await;
    client.ask("auth counts\r\n", "+OK\r\n").await;
    assert!(client.text("save").await.starts_with("-NOPERM"));
    assert_eq!(checkpoints(), 0);

    // Names of keys are objects.
    for command in ["cluster getkeysinslot 0 10", "cluster countkeysinslot 0"] {
        assert!(client.text(command).await.starts_with("-NOPERM"), "{command}");
    }
}

#[tokio::test]
async fn a_malformed_reset_resets_nothing() {
    let house = House::open().await;
    let mut client = house.connect().await;
    let wrong = "-ERR wrong number of arguments for 'reset' command\r\n";
    client.ask("select 3\r\n", "+OK\r\n").await;
    client.ask("reset x\r\n", wrong).await;
    assert!(client.text("client info").await.contains("db=3"));

    client.ask("multi\r\n", "+OK\r\n").await;
    client.ask("reset x\r\n", wrong).await;
    assert!(client.text("exec").await.starts_with("-EXECABORT"));
}

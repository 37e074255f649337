use super::*;
use raingauge_people::accounts::Accounts;
use raingauge_people::tokens::{MadeTokens, TokenRequest};
use raingauge_ports::clock::ManualClock;

#[tokio::test]
async fn clients_are_listed_and_named() {
    let house = House::open().await;
    let mut client = house.connect().await;

    client.ask("client id\r\n", ":1\r\n").await;
    client.ask("client setname worker\r\n", "+OK\r\n").await;
    client.ask("client setinfo lib-name redis-py\r\n", "+OK\r\n").await;
    let wrong = "-ERR Client names cannot contain spaces, newlines or special characters.\r\n";
    client.ask("client setname \"a b\"\r\n", wrong).await;

    let list = client.text("client list").await;
    assert!(list.starts_with("id=1 addr=127.0.0.1:") && list.ends_with('\n'), "{list}");
    for part in ["name=worker", "db=0", "cmd=client|list", "user=default", "lib-name=redis-py"] {
        assert!(list.contains(part), "{part} in {list}");
    }

    let info = client.text("client info").await;
    assert!(info.contains("cmd=client|info") && info.contains("multi=-1"), "{info}");
    client.ask("client list type pubsub\r\n", "$0\r\n\r\n").await;
    client.ask("client list type who\r\n", "-ERR Unknown client type 'who'\r\n").await;
    client.ask("client list id x\r\n", "-ERR Invalid client ID\r\n").await;
}

#[tokio::test]
async fn clients_are_killed_by_what_they_are() {
    let house = House::open().await;
    let mut client = house.connect().await;
    client.ask("ping\r\n", "+PONG\r\n").await;
    let mut other = house.connect().await;
    other.ask("client id\r\n", ":2\r\n").await;

    client.ask("client kill id 2\r\n", ":1\r\n").await;
    other.expect_end().await;
    client.ask("client kill 1.2.3.4:5\r\n", "-ERR No such client\r\n").await;
    client.ask("client kill maxage 0\r\n", "-ERR maxage should be greater than 0\r\n").await;
    client.ask("client kill maxage 1000\r\n", ":0\r\n").await;
    client.ask("client kill type normal\r\n", ":0\r\n").await;
    client.ask("client kill type normal skipme no\r\n", ":1\r\n").await;
    client.expect_end().await;
}

#[tokio::test]
async fn what_ends_a_wait_does_so_before_the_next_command() {
    let house = House::open().await;
    let mut writer = house.connect().await;
    let blocked = async |writer: &mut Client| {
        until(async || writer.text("info clients").await.contains("blocked_clients:1")).await;
    };
    writer.ask("client id\r\n", ":1\r\n").await;

    let mut waiting = house.connect().await;
    waiting.send("blpop a 0\r\n").await;
    blocked(&mut writer).await;
    writer.ask("client unblock 2\r\nrpush a 1\r\nllen a\r\n", ":1\r\n:1\r\n:1\r\n").await;
    waiting.expect("*-1\r\n").await;
    writer.ask("del a\r\n", ":1\r\n").await;

    waiting.send("blpop a 0\r\n").await;
    blocked(&mut writer).await;
    writer.ask("rpush a 1\r\nclient unblock 2\r\n", ":1\r\n:0\r\n").await;
    waiting.expect("*2\r\n$1\r\na\r\n$1\r\n1\r\n").await;

    // A transaction serves when it ends.
    waiting.send("blpop a 0\r\n").await;
    blocked(&mut writer).await;
    let queued = "+OK\r\n+QUEUED\r\n+QUEUED\r\n";
    writer.send("multi\r\nrpush a 1\r\nclient unblock 2\r\nexec\r\nllen a\r\n").await;
    writer.expect(format!("{queued}*2\r\n:1\r\n:1\r\n:1\r\n")).await;
    waiting.expect("*-1\r\n").await;
    writer.ask("del a\r\n", ":1\r\n").await;

    waiting.send("blpop a 0\r\nset a 2\r\n").await;
    blocked(&mut writer).await;
    writer.ask("client kill id 2\r\nrpush a 1\r\nllen a\r\n", ":1\r\n:1\r\n:1\r\n").await;
    waiting.expect_end().await;

    let mut waiting = house.connect().await;
    waiting.send("blpop b 0\r\n").await;
    blocked(&mut writer).await;
    writer.send("multi\r\nclient kill id 3\r\nrpush b 1\r\nexec\r\nllen b\r\n").await;
    writer.expect(format!("{queued}*2\r\n:1\r\n:1\r\n:1\r\n")).await;
    waiting.expect_end().await;
    writer.ask("llen a\r\n", ":1\r\n").await;
}

#[tokio::test]
async fn a_subscriber_that_was_killed_receives_nothing() {
    let house = House::open().await;
    let mut writer = house.connect().await;
    writer.ask("client id\r\n", ":1\r\n").await;
    let mut listener = house.connect().await;
    listener.ask("subscribe c\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n").await;

    writer.ask("publish c x\r\n", ":1\r\n").await;
    listener.expect("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n").await;
    writer.ask("client kill id 2\r\npublish c x\r\n", ":1\r\n:0\r\n").await;
    listener.expect_end().await;
}

#[tokio::test]
async fn a_pause_holds_commands_back_until_it_ends() {
    let house = House::open().await;
    let mut writer = house.connect().await;
    let mut other = house.connect().await;

    other.ask("client pause 100000 write\r\n", "+OK\r\n").await;
    writer.ask("get k\r\n", "$-1\r\n").await;
    writer.send("set k v\r\n").await;
    until(async || other.text("client list").await.contains("cmd=set")).await;
    until(async || other.text("info clients").await.contains("blocked_clients:1")).await;
    other.ask("get k\r\n", "$-1\r\n").await;

    other.ask("client unpause\r\n", "+OK\r\n").await;
    writer.expect("+OK\r\n").await;
    assert!(other.text("info clients").await.contains("blocked_clients:0"));

    other.ask("client pause 1\r\nget k\r\n", "+OK\r\n$1\r\nv\r\n").await;
    other.ask("client pause -1\r\n", "-ERR timeout is negative\r\n").await;
}

#[tokio::test]
async fn connections_are_bounded() {
    let settings = Settings { connections_max: 1, ..Settings::default() };
    let house = House::with(settings, &[]).await;

    let mut first = house.connect().await;
    first.ask("ping\r\n", "+PONG\r\n").await;
    let mut second = house.connect().await;
    second.expect("-ERR max number of clients reached\r\n").await;
    second.expect_end().await;

    drop(first);
    until(async || {
        let mut third = house.connect().await;
        third.send("ping\r\n").await;
        third.line().await == "+PONG"
    })
    .await;
}

#[tokio::test]
async fn an_idle_client_is_disconnected_when_the_settings_say_so() {
    let house = House::open().await;
    let mut client = house.connect().await;

    client.ask("config set timeout 1\r\n", "+OK\r\n").await;
    client.expect_end().await;
}

#[tokio::test]
async fn the_end_of_the_server_lets_commands_be_answered() {
    let house = House::open().await;
    let mut idle = house.connect().await;
    let mut busy = house.connect().await;
    idle.ask("ping\r\n", "+PONG\r\n").await;
    busy.ask("ping\r\n", "+PONG\r\n").await;

    house.store.hold();
    busy.send("set k v\r\n").await;
    until(async || idle.text("client list").await.contains("cmd=set")).await;
    house.stop.send(true).expect("the door listens");
    idle.expect_end().await;

    house.store.release();
    busy.expect("+OK\r\n").await;
    busy.expect_end().await;
    tokio::time::timeout(PATIENCE, house.serving).await.expect("an end in time").expect("no panic");
}

/// A door at second 1,000 with the token `rg_stays`, and the secret of another that expires at
/// second 1,060.
async fn with_a_token_that_expires(clock: &Arc<ManualClock>) -> (House, String) {
    let people = Arc::new(raingauge_memory::People::default());
    let made = Arc::new(MadeTokens::new(people.clone(), clock.clone()));
    let accounts = Accounts::new(people, clock.clone(), raingauge_people::Options::default());
    let scopes = [Scope::ObjectsRead, Scope::ObjectsWrite].into_iter().collect();
    let request = TokenRequest { name: "made".into(), scopes, lifetime_s: Some(60) };
    let secret = accounts.create_token(request, "zoe").await.expect("a token").secret;
    made.refresh().await.expect("the tokens");
    let tokens = Tokens::new(&auth(&[("rg_stays", &[Scope::Admin])])).with_made(made);
    (House::guarded(Settings::default(), tokens).await, secret)
}

#[tokio::test]
async fn a_token_that_expires_ends_what_listens_and_waits() {
    let clock = Arc::new(ManualClock::at_s(1_000));
    let (house, secret) = with_a_token_that_expires(&clock).await;

    let mut listener = house.connect().await;
    let listens = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
    listener.ask(format!("auth {secret}\r\nsubscribe c\r\n"), format!("+OK\r\n{listens}")).await;
    let mut worker = house.connect().await;
    worker.ask(format!("auth {secret}\r\n"), "+OK\r\n").await;
    worker.send("blpop q 0\r\n").await;
    let mut silent = house.connect().await;
    silent.ask(format!("auth {secret}\r\n"), "+OK\r\n").await;
    let mut stays = house.connect().await;
    stays.ask("auth rg_stays\r\n", "+OK\r\n").await;
    stays.send("blpop r 0\r\n").await;
    let mut admin = house.connect().await;
    admin.ask("auth rg_stays\r\n", "+OK\r\n").await;
    until(async || admin.text("info clients").await.contains("blocked_clients:2")).await;

    clock.set_s(1_060);
    listener.expect_end().await;
    worker.expect_end().await;
    admin.ask("publish c x\r\nrpush q a\r\nllen q\r\n", ":0\r\n:1\r\n:1\r\n").await;
    admin.ask("rpush r a\r\n", ":1\r\n").await;
    stays.expect("*2\r\n$1\r\nr\r\n$1\r\na\r\n").await;
    silent.ask("get a\r\n", "-NOAUTH Authentication required.\r\n").await;
}

#[tokio::test]
async fn a_token_that_expires_ends_the_transaction() {
    let clock = Arc::new(ManualClock::at_s(1_000));
    let (house, secret) = with_a_token_that_expires(&clock).await;
    let open = format!("auth {secret}\r\nwatch k\r\nmulti\r\nset k queued\r\n");
    let mut one = house.connect().await;
    one.ask(&open, "+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n").await;
    let mut other = house.connect().await;
    other.ask(&open, "+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n").await;

    // Its end shows that the logins before it are due.
    let mut listener = house.connect().await;
    let listens = "+OK\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
    listener.ask(format!("auth {secret}\r\nsubscribe c\r\n"), listens).await;
    clock.set_s(1_060);
    listener.expect_end().await;

    one.ask("exec\r\n", "-NOAUTH Authentication required.\r\n").await;
    one.ask("auth rg_stays\r\n", "+OK\r\n").await;
    let info = one.text("client info").await;
    assert!(info.contains("multi=-1") && info.contains("watch=0"), "{info}");
    one.ask("exec\r\nget k\r\n", "-ERR EXEC without MULTI\r\n$-1\r\n").await;

    assert_eq!(other.text("hello 2 auth default rg_stays").await, "*16");
    until(async || other.line().await == "modules").await;
    other.expect("*0\r\n").await;
    other.ask("discard\r\nget k\r\n", "-ERR DISCARD without MULTI\r\n$-1\r\n").await;
}

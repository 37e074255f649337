//! Tokens and scopes at the door, and where it may listen.

use super::{Client, ok};
use crate::auth::{home_with_tokens, token};
use crate::client::drops_counter;
use crate::server::{Home, PATIENCE, Server};
use raingauge_resp_client::Reply;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

fn with_door() -> (Home, Server) {
    let mut home = home_with_tokens();
    home.set("resp.listen", "127.0.0.1:0");
    let server = home.start();
    (home, server)
}

/// One command for each scope.
const COMMANDS: [(&str, &[&str]); 4] = [
    ("objects:read", &["GET", "a"]),
    ("objects:write", &["SET", "a", "1"]),
    ("counts:read", &["RAIN.COUNT", "drops:oslo", "0", "900"]),
    ("events:write", &["RAIN.EVENT", "{}"]),
];

#[test]
fn each_command_asks_for_its_scope() {
    let (_home, server) = with_door();
    server.with_token(&token("admin")).create(drops_counter());

    for (_, command) in COMMANDS {
        let refused = Client::new(&server).refused(command);
        assert_eq!(refused, "NOAUTH Authentication required.");
    }
    for scope in
        ["objects:read", "objects:write", "counts:read", "events:write", "points:read", "admin"]
    {
        let mut client = Client::new(&server);
        assert_eq!(client.call(&["AUTH", &token(scope)]), ok());
        assert_eq!(client.call(&["PING"]), Reply::Simple(b"PONG".to_vec()));
        for (needed, command) in COMMANDS {
            let reply = client.call(command);
            let is_refused = reply.error().is_some_and(|error| error.starts_with("NOPERM "));
            assert_eq!(
                is_refused,
                scope != needed && scope != "admin",
                "{command:?} with {scope}: {reply:?}"
            );
        }
    }
}

#[test]
fn a_token_may_come_with_any_name_and_in_hello() {
    let (_home, server) = with_door();
    let mut client = Client::new(&server);
    assert!(client.refused(&["AUTH", "rg_wrong"]).starts_with("WRONGPASS "));
    assert!(client.refused(&["AUTH", "default", "rg_wrong"]).starts_with("WRONGPASS "));
    assert_eq!(client.call(&["AUTH", "default", &token("objects:read")]), ok());
    assert!(client.call(&["GET", "a"]).is_null());

    let mut client = Client::new(&server);
    let hello = client.call(&[
        "HELLO",
        "3",
        "AUTH",
        "default",
        &token("objects:write"),
        "SETNAME",
        "till-4",
    ]);
    assert!(matches!(hello, Reply::Map(_)), "{hello:?}");
    assert_eq!(client.call(&["SET", "a", "1"]), ok());
}

/// The scope of the command inside counts, not only that of the one around it.
#[test]
fn once_needs_the_scope_of_its_command() {
    let (_home, server) = with_door();
    let mut client = Client::new(&server);
    client.call(&["AUTH", &token("objects:write")]);
    assert_eq!(client.integer(&["RAIN.ONCE", "1", "INCR", "a"]), 1);
    assert!(client.refused(&["RAIN.ONCE", "2", "GET", "a"]).starts_with("NOPERM "));
}

#[test]
fn beyond_loopback_the_door_needs_tokens_and_a_safe_network() {
    let refused = |settings: &[(&str, &str)]| {
        let home = Home::with(settings);
        home.try_start().err().map(|refused| refused.errors)
    };
    let listen = ("resp.listen", "0.0.0.0:0");
    let without = refused(&[listen]).expect("it is refused");
    assert!(
        without.contains("resp.listen") && without.contains("no token is configured"),
        "{without}"
    );
    let plain = refused(&[listen, ("auth.required", "true")]).expect("it is refused");
    assert!(plain.contains("this door speaks no TLS"), "{plain}");
    assert_eq!(refused(&[listen, ("auth.required", "true"), ("server.plaintext", "true")]), None);
}

#[test]
fn an_address_in_use_is_reported_at_once() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    let home = Home::with(&[("resp.listen", &address)]);
    let refused = home.try_start().err().expect("the port is taken");
    assert!(refused.errors.contains(&format!("cannot listen on {address}")), "{}", refused.errors);
}

/// A page of a browser can send lines to any port of its machine, and on loopback no token is asked
/// for: a line of HTTP ends the connection before what follows it is read as commands.
#[test]
fn a_request_of_a_browser_runs_no_command() {
    let home = super::home();
    let server = home.start();
    let address = super::address_of(&server).expect("the address is in the log");
    for head in ["POST / HTTP/1.1\r\n", "Host: localhost\r\n"] {
        let mut stream = TcpStream::connect(&address).expect("the door is open");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        let request = format!("{head}\r\nSET stolen 1\r\n");
        stream.write_all(request.as_bytes()).expect("the request can be sent");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
    }
    assert_eq!(Client::new(&server).integer(&["EXISTS", "stolen"]), 0);
}

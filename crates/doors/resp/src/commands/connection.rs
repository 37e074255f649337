//! `HELLO`, `AUTH`, `PING` and other commands about the connection itself.

use std::sync::atomic::Ordering;

use raingauge_resp::{Arguments, Failure, Id, Protocol, Replies};

use super::clients;
use crate::desk::{Desk, ReplyMode};
use crate::ending::Ending;
use crate::server::REDIS_VERSION;

pub(super) fn run(
    desk: &mut Desk,
    id: Id,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    match id {
        Id::Ping => ping(desk, arguments, replies)?,
        Id::Echo => replies.bulk(arguments.at(1)),
        Id::Hello => hello(desk, arguments, replies)?,
        Id::Auth => {
            auth(desk, arguments)?;
            replies.ok();
        }
        Id::Quit => {
            desk.client.numbers.close_after_reply.store(true, Ordering::Relaxed);
            desk.ending = Some(Ending::Quit);
            replies.ok();
        }
        Id::Reset => {
            reset(desk, replies);
            replies.simple("RESET");
        }
        // A container without its subcommand has the wrong number of arguments.
        _ => return Err(Failure::Syntax),
    }

    Ok(())
}

fn ping(desk: &Desk, arguments: Arguments<'_>, replies: &mut Replies) -> Result<(), Failure> {
    let text = arguments.get(1);
    if arguments.len() > 2 {
        return Err(Failure::Arity("ping"));
    }

    if desk.only_listens() {
        replies.array(2);
        replies.bulk(b"pong");
        replies.bulk(text.unwrap_or_default());
        return Ok(());
    }

    match text {
        Some(text) => replies.bulk(text),
        None => replies.simple("PONG"),
    }
    Ok(())
}

/// Logs in with a token; a name before it is taken, since clients have one to give.
fn auth(desk: &mut Desk, arguments: Arguments<'_>) -> Result<(), Failure> {
    match arguments.len() {
        2 => log_in(desk, arguments.at(1)),
        3 => log_in(desk, arguments.at(2)),
        _ => Err(Failure::Syntax),
    }
}

fn log_in(desk: &mut Desk, secret: &[u8]) -> Result<(), Failure> {
    desk.login.enter(secret)?;
    desk.login.user().clone_into(&mut desk.client.names.lock().user);
    Ok(())
}

/// `HELLO [version [AUTH name token] [SETNAME name]]`.
fn hello(desk: &mut Desk, arguments: Arguments<'_>, replies: &mut Replies) -> Result<(), Failure> {
    let protocol = match arguments.get(1) {
        None => desk.protocol,
        Some(_) => match arguments.integer(1) {
            Ok(2) => Protocol::Two,
            Ok(3) => Protocol::Three,
            Ok(_) => return Err(Failure::text("NOPROTO unsupported protocol version")),
            Err(_) => {
                return Err(Failure::text(
                    "ERR Protocol version is not an integer or out of range",
                ));
            }
        },
    };

    let mut secret = None;
    let mut name = None;
    let mut at = 2;

    while let Some(option) = arguments.get(at) {
        let left = arguments.len() - at - 1;

        if arguments.is(at, "AUTH") && left >= 2 {
            secret = Some(arguments.at(at + 2));
            at += 3;
        } else if arguments.is(at, "SETNAME") && left >= 1 {
            name = Some(clients::checked_name(arguments.at(at + 1))?);
            at += 2;
        } else {
            let option = String::from_utf8_lossy(option);
            return Err(Failure::owned(format!("ERR Syntax error in HELLO option '{option}'")));
        }
    }

    if let Some(secret) = secret {
        log_in(desk, secret)?;
    }
    if !desk.login.is_done() {
        return Err(Failure::text(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        desk.set_name(name);
    }

    set_protocol(desk, protocol, replies);
    greet(desk, replies);
    Ok(())
}

fn greet(desk: &Desk, replies: &mut Replies) {
    let mode = if desk.server.is_cluster() { "cluster" } else { "standalone" };
    let version = env!("CARGO_PKG_VERSION");

    replies.map(8);
    for (name, text) in [("server", "redis"), ("version", REDIS_VERSION), ("raingauge", version)] {
        replies.bulk(name.as_bytes());
        replies.bulk(text.as_bytes());
    }
    for (name, number) in [("proto", desk.protocol.number()), ("id", desk.client.id as i64)] {
        replies.bulk(name.as_bytes());
        replies.integer(number);
    }
    for (name, text) in [("mode", mode), ("role", "master")] {
        replies.bulk(name.as_bytes());
        replies.bulk(text.as_bytes());
    }
    replies.bulk(b"modules");
    replies.array(0);
}

fn set_protocol(desk: &mut Desk, protocol: Protocol, replies: &mut Replies) {
    let number = protocol.number() as u16;

    desk.protocol = protocol;
    replies.set_protocol(protocol);
    desk.client.numbers.protocol.store(number, Ordering::Relaxed);
}

/// Makes the connection as new. Its transaction and database are reset by who holds them.
fn reset(desk: &mut Desk, replies: &mut Replies) {
    desk.subscriber = None;
    desk.publish_subscriptions();
    desk.login.leave();
    "default".clone_into(&mut desk.client.names.lock().user);

    desk.reply_mode = ReplyMode::On;
    desk.set_name(String::new());
    desk.client.numbers.no_evict.store(false, Ordering::Relaxed);
    desk.client.numbers.no_touch.store(false, Ordering::Relaxed);
    set_protocol(desk, Protocol::Two, replies);
}

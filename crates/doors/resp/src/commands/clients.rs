//! `CLIENT`: connections by name and number.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use raingauge_resp::{Arguments, Failure, Id, Replies};

use super::help;
use crate::client::Client;
use crate::desk::{Desk, ReplyMode};
use crate::ending::Ending;
use crate::limits::RESP_CLIENT_NAME_BYTES_MAX;

pub(super) fn run(
    desk: &mut Desk,
    id: Id,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    match id {
        Id::ClientId => replies.integer(desk.client.id as i64),
        Id::ClientGetname => name(desk, replies),
        Id::ClientGetredir => replies.integer(-1),
        Id::ClientHelp => help::reply("client", replies),
        Id::ClientInfo => replies.verbatim(&format!("{}\n", desk.client.line(desk.now_ms()))),
        Id::ClientKill => return kill(desk, arguments, replies),
        Id::ClientList => return list(desk, arguments, replies),
        Id::ClientReply => return reply(desk, arguments, replies),
        Id::ClientTrackinginfo => tracking_info(replies),
        Id::ClientUnblock => return unblock(desk, arguments, replies),

        _ => {
            change(desk, id, arguments)?;
            replies.ok();
        }
    }

    Ok(())
}

/// The subcommands that change something and answer OK.
fn change(desk: &mut Desk, id: Id, arguments: Arguments<'_>) -> Result<(), Failure> {
    match id {
        Id::ClientSetname => {
            let name = checked_name(arguments.at(2))?;
            desk.set_name(name);
        }
        Id::ClientSetinfo => set_info(desk, arguments)?,
        Id::ClientNoEvict => switch(&desk.client.numbers.no_evict, arguments)?,
        Id::ClientNoTouch => switch(&desk.client.numbers.no_touch, arguments)?,
        Id::ClientPause => pause(desk, arguments)?,
        Id::ClientUnpause => desk.server.clients.resume(),
        _ => return Err(Failure::Syntax),
    }

    Ok(())
}

fn name(desk: &Desk, replies: &mut Replies) {
    if desk.name.is_empty() {
        replies.null();
    } else {
        replies.bulk(desk.name.as_bytes());
    }
}

/// A name as clients may give it: printable characters without spaces, so that it is one word of
/// `CLIENT LIST`.
pub(super) fn checked_name(name: &[u8]) -> Result<String, Failure> {
    if name.len() > RESP_CLIENT_NAME_BYTES_MAX {
        return Err(Failure::owned(format!(
            "ERR Client names have {RESP_CLIENT_NAME_BYTES_MAX} bytes at most."
        )));
    }
    if !is_word(name) {
        return Err(Failure::text(
            "ERR Client names cannot contain spaces, newlines or special characters.",
        ));
    }

    Ok(String::from_utf8_lossy(name).into_owned())
}

fn is_word(name: &[u8]) -> bool {
    name.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

fn set_info(desk: &Desk, arguments: Arguments<'_>) -> Result<(), Failure> {
    let option = String::from_utf8_lossy(arguments.at(2)).to_ascii_lowercase();
    let value = arguments.at(3);
    let is_right = is_word(value) && value.len() <= RESP_CLIENT_NAME_BYTES_MAX;
    let value = String::from_utf8_lossy(value).into_owned();

    if option != "lib-name" && option != "lib-ver" {
        let option = String::from_utf8_lossy(arguments.at(2));
        return Err(Failure::owned(format!("ERR Unrecognized option '{option}'")));
    }
    if !is_right {
        return Err(Failure::owned(format!(
            "ERR {option} cannot contain spaces, newlines or special characters."
        )));
    }

    let mut names = desk.client.names.lock();
    if option == "lib-name" {
        names.library = value;
    } else {
        names.library_version = value;
    }
    Ok(())
}

fn switch(flag: &AtomicBool, arguments: Arguments<'_>) -> Result<(), Failure> {
    let is_on = arguments.is(2, "ON");
    if !is_on && !arguments.is(2, "OFF") {
        return Err(Failure::Syntax);
    }

    flag.store(is_on, Ordering::Relaxed);
    Ok(())
}

fn pause(desk: &Desk, arguments: Arguments<'_>) -> Result<(), Failure> {
    let only_writes = match arguments.len() {
        3 => false,
        4 if arguments.is(3, "WRITE") => true,
        4 if arguments.is(3, "ALL") => false,
        4 => return Err(Failure::text("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        _ => return Err(Failure::Syntax),
    };

    let wait_ms = arguments
        .integer(2)
        .map_err(|_| Failure::text("ERR timeout is not an integer or out of range"))?;
    if wait_ms < 0 {
        return Err(Failure::text("ERR timeout is negative"));
    }

    let until_ms = desk.now_ms().saturating_add(wait_ms);
    desk.server.clients.pause(until_ms, only_writes);
    Ok(())
}

/// `CLIENT REPLY`: only ON is answered.
fn reply(desk: &mut Desk, arguments: Arguments<'_>, replies: &mut Replies) -> Result<(), Failure> {
    if arguments.is(2, "ON") {
        desk.reply_mode = ReplyMode::On;
        replies.ok();
    } else if arguments.is(2, "OFF") {
        desk.reply_mode = ReplyMode::Off;
    } else if arguments.is(2, "SKIP") {
        if desk.reply_mode != ReplyMode::Off {
            desk.reply_mode = ReplyMode::SkipNext;
        }
    } else {
        return Err(Failure::Syntax);
    }

    Ok(())
}

/// `CLIENT UNBLOCK id [TIMEOUT | ERROR]`: 1 if a command waited.
fn unblock(desk: &Desk, arguments: Arguments<'_>, replies: &mut Replies) -> Result<(), Failure> {
    let with_error = match arguments.len() {
        3 => false,
        4 if arguments.is(3, "TIMEOUT") => false,
        4 if arguments.is(3, "ERROR") => true,
        _ => return Err(Failure::text("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
    };

    let id = arguments.integer(2)?;
    let client = u64::try_from(id).ok().and_then(|id| desk.server.clients.find(id));
    let unblocker = client.and_then(|client| client.unblocker.lock().clone());
    let was_blocked = unblocker.is_some_and(|unblocker| unblocker.unblock(with_error));

    replies.integer(i64::from(was_blocked));
    Ok(())
}

fn tracking_info(replies: &mut Replies) {
    replies.map(3);
    replies.bulk(b"flags");
    replies.set(1);
    replies.bulk(b"off");
    replies.bulk(b"redirect");
    replies.integer(-1);
    replies.bulk(b"prefixes");
    replies.array(0);
}

/// `CLIENT LIST [TYPE type] [ID id …]`.
fn list(desk: &Desk, arguments: Arguments<'_>, replies: &mut Replies) -> Result<(), Failure> {
    let clients = &desk.server.clients;

    let shown: Vec<Arc<Client>> = if arguments.len() == 2 {
        clients.all()
    } else if arguments.len() == 4 && arguments.is(2, "TYPE") {
        let kind = kind(arguments.at(3))?;
        clients.all().into_iter().filter(|client| client.kind() == kind).collect()
    } else if arguments.len() > 3 && arguments.is(2, "ID") {
        let mut found = Vec::new();
        for index in 3..arguments.len() {
            let id = client_id(arguments, index)?;
            found.extend(clients.find(id));
        }
        found
    } else {
        return Err(Failure::Syntax);
    };

    let now_ms = desk.now_ms();
    let lines: String = shown.iter().map(|client| client.line(now_ms) + "\n").collect();
    replies.verbatim(&lines);
    Ok(())
}

/// The kind of connections that a word names. Those of replication are there none of.
fn kind(word: &[u8]) -> Result<&'static str, Failure> {
    let kinds = ["normal", "pubsub", "master", "replica"];
    let word = if word.eq_ignore_ascii_case(b"slave") { b"replica" } else { word };
    let known = kinds.into_iter().find(|kind| word.eq_ignore_ascii_case(kind.as_bytes()));

    known.ok_or_else(|| {
        let word = String::from_utf8_lossy(word);
        Failure::owned(format!("ERR Unknown client type '{word}'"))
    })
}

fn client_id(arguments: Arguments<'_>, index: usize) -> Result<u64, Failure> {
    let id = arguments.integer(index).ok().and_then(|id| u64::try_from(id).ok());

    id.filter(|id| *id > 0).ok_or(Failure::text("ERR Invalid client ID"))
}

/// Which connections `CLIENT KILL` closes: those that fit in everything that is given.
#[derive(Default)]
struct Filter {
    id: Option<u64>,
    address: Option<String>,
    local: Option<String>,
    kind: Option<&'static str>,
    user: Option<String>,
    max_age_s: Option<i64>,
    skips_caller: bool,
}

impl Filter {
    fn parse(arguments: Arguments<'_>) -> Result<Filter, Failure> {
        let mut filter = Filter { skips_caller: true, ..Filter::default() };
        let mut at = 2;

        while at < arguments.len() {
            if at + 1 == arguments.len() {
                return Err(Failure::Syntax);
            }
            let text = || String::from_utf8_lossy(arguments.at(at + 1)).into_owned();

            if arguments.is(at, "ID") {
                let id = arguments.integer(at + 1).ok().filter(|id| *id > 0);
                let wrong = Failure::text("ERR client-id should be greater than 0");
                filter.id = Some(id.ok_or(wrong)?.unsigned_abs());
            } else if arguments.is(at, "TYPE") {
                filter.kind = Some(kind(arguments.at(at + 1))?);
            } else if arguments.is(at, "ADDR") {
                filter.address = Some(text());
            } else if arguments.is(at, "LADDR") {
                filter.local = Some(text());
            } else if arguments.is(at, "USER") {
                filter.user = Some(text());
            } else if arguments.is(at, "MAXAGE") {
                let age_s = arguments.integer(at + 1)?;
                if age_s <= 0 {
                    return Err(Failure::text("ERR maxage should be greater than 0"));
                }
                filter.max_age_s = Some(age_s);
            } else if arguments.is(at, "SKIPME") {
                filter.skips_caller = arguments.is(at + 1, "YES");
                if !filter.skips_caller && !arguments.is(at + 1, "NO") {
                    return Err(Failure::Syntax);
                }
            } else {
                return Err(Failure::Syntax);
            }

            at += 2;
        }

        Ok(filter)
    }

    fn fits(&self, client: &Client, now_ms: i64) -> bool {
        let age_s = (now_ms - client.since_ms) / 1000;
        let fits = |wanted: &Option<String>, found: &dyn Fn() -> String| {
            wanted.as_ref().is_none_or(|wanted| *wanted == found())
        };

        self.id.is_none_or(|id| id == client.id)
            && self.kind.is_none_or(|kind| kind == client.kind())
            && self.max_age_s.is_none_or(|max_age_s| age_s >= max_age_s)
            && fits(&self.address, &|| client.address.to_string())
            && fits(&self.local, &|| client.local.to_string())
            && fits(&self.user, &|| client.names.lock().user.clone())
    }
}

/// Whether a name is that of a connection, or of those that have not logged in.
fn is_user(desk: &Desk, user: &str) -> bool {
    let clients = desk.server.clients.all();

    user == "default" || clients.iter().any(|client| client.names.lock().user == user)
}

/// `CLIENT KILL address`, or `CLIENT KILL filter value …`.
fn kill(desk: &mut Desk, arguments: Arguments<'_>, replies: &mut Replies) -> Result<(), Failure> {
    let is_old = arguments.len() == 3;
    let filter = if is_old {
        let address = String::from_utf8_lossy(arguments.at(2)).into_owned();
        Filter { address: Some(address), ..Filter::default() }
    } else {
        Filter::parse(arguments)?
    };

    let now_ms = desk.now_ms();
    if let Some(user) = &filter.user
        && !is_user(desk, user)
    {
        return Err(Failure::owned(format!("ERR No such user '{user}'")));
    }

    let mut killed = 0;
    for client in desk.server.clients.all() {
        let is_caller = client.id == desk.client.id;
        if is_caller && filter.skips_caller || !filter.fits(&client, now_ms) {
            continue;
        }

        killed += 1;
        if is_caller {
            // The caller reads the reply before its connection is closed.
            desk.ending = Some(Ending::Quit);
        } else {
            client.kill();
        }
    }

    match (is_old, killed) {
        (true, 0) => return Err(Failure::text("ERR No such client")),
        (true, _) => replies.ok(),
        (false, killed) => replies.integer(killed),
    }
    Ok(())
}

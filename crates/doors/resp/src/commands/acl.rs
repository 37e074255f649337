//! `ACL`: what callers may do. It is read here; tokens are made elsewhere.

use raingauge_resp::{Arguments, Categories, Command, Failure, Id, Replies, Rights, Scope, all};

use super::help;
use crate::desk::Desk;

/// Refusals that `ACL LOG` returns without a number.
const LOG_DEFAULT: usize = 10;

pub(super) fn run(
    desk: &Desk,
    id: Id,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    match id {
        Id::AclCat => categories(arguments, replies)?,
        Id::AclGenpass => password(arguments, replies)?,
        Id::AclGetuser => user(desk, arguments, replies),
        Id::AclHelp => help::reply("acl", replies),
        Id::AclDryrun => dry_run(desk, arguments, replies)?,
        Id::AclLog => log(desk, arguments, replies)?,
        Id::AclWhoami => replies.bulk(desk.login.user().as_bytes()),

        Id::AclList => {
            let user = desk.login.user();
            let pass = if desk.login.is_open() { " nopass" } else { "" };
            let rules = rules(desk.login.rights());
            replies.array(1);
            replies.bulk(format!("user {user} on{pass} ~* &* {rules}").as_bytes());
        }
        Id::AclUsers => {
            replies.array(1);
            replies.bulk(desk.login.user().as_bytes());
        }

        Id::AclLoad | Id::AclSave => {
            return Err(Failure::text(
                "ERR there is no file of rights: tokens are made in the portal",
            ));
        }
        _ => return Err(Failure::text("ERR tokens are made in the portal")),
    }

    Ok(())
}

/// Rights as rules of Redis: those categories that they allow.
fn rules(rights: Rights) -> String {
    let scopes = [
        Scope::ObjectsRead,
        Scope::ObjectsWrite,
        Scope::CountsRead,
        Scope::EventsWrite,
        Scope::Admin,
    ];
    if scopes.iter().all(|scope| rights.has(*scope)) {
        return "+@all".into();
    }

    let mut rules = String::from("-@all +@connection");
    if rights.has(Scope::ObjectsRead) {
        rules.push_str(" +@read +@pubsub");
    }
    if rights.has(Scope::ObjectsWrite) {
        rules.push_str(" +@write");
    }
    if rights.has(Scope::Admin) {
        rules.push_str(" +@admin");
    }
    rules
}

/// `ACL CAT [category]`.
fn categories(arguments: Arguments<'_>, replies: &mut Replies) -> Result<(), Failure> {
    let names: Vec<&str> = match arguments.len() {
        2 => Categories::ALL.iter().map(|(_, name)| *name).collect(),
        3 => {
            let name = String::from_utf8_lossy(arguments.at(2));
            let category = Categories::named(&name.to_ascii_lowercase())
                .ok_or_else(|| Failure::owned(format!("ERR Unknown category '{name}'")))?;
            all().filter(|spec| spec.categories.has(category)).map(|spec| spec.name).collect()
        }
        _ => return Err(Failure::Arity("acl|cat")),
    };

    replies.array(names.len());
    names.iter().for_each(|name| replies.bulk(name.as_bytes()));
    Ok(())
}

/// Random digits of up to 4,096 bits.
fn password(arguments: Arguments<'_>, replies: &mut Replies) -> Result<(), Failure> {
    let bits = match arguments.len() {
        2 => 256,
        _ => arguments.integer(2)?,
    };
    if !(1..=4096).contains(&bits) {
        return Err(Failure::text(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a \
             positive number up to 4096",
        ));
    }

    // Tokens are hexadecimal digits behind a prefix, and random.
    let mut digits = String::new();
    while digits.len() * 4 < bits as usize {
        digits.push_str(&raingauge_people::tokens::new_token().1);
    }

    digits.truncate((bits as usize).div_ceil(4));
    replies.bulk(digits.as_bytes());
    Ok(())
}

/// The rights of the caller; those of others are shown in the portal.
fn user(desk: &Desk, arguments: Arguments<'_>, replies: &mut Replies) {
    let rights = desk.login.rights();
    if arguments.at(2) != desk.login.user().as_bytes() {
        return replies.null();
    }

    replies.map(6);
    replies.bulk(b"flags");
    // Where no login is asked for, anybody may come.
    let is_open = desk.login.is_open();
    replies.set(1 + usize::from(is_open));
    replies.bulk(b"on");
    if is_open {
        replies.bulk(b"nopass");
    }
    replies.bulk(b"passwords");
    replies.array(0);

    let texts = [("commands", rules(rights)), ("keys", "~*".into()), ("channels", "&*".into())];
    for (name, text) in texts {
        replies.bulk(name.as_bytes());
        replies.bulk(text.as_bytes());
    }
    replies.bulk(b"selectors");
    replies.array(0);
}

/// Whether the caller may run a command.
fn dry_run(desk: &Desk, arguments: Arguments<'_>, replies: &mut Replies) -> Result<(), Failure> {
    let name = String::from_utf8_lossy(arguments.at(2));
    if name != desk.login.user() {
        return Err(Failure::owned(format!("ERR User '{name}' not found")));
    }

    let command = Command::of(arguments.from(3));
    let Some(spec) = command.spec() else {
        let name = String::from_utf8_lossy(arguments.at(3));
        return Err(Failure::owned(format!("ERR Command '{name}' not found")));
    };

    if desk.login.rights().has(spec.scope()) {
        replies.ok();
    } else {
        let name = spec.name;
        let line = format!("This user has no permissions to run the '{name}' command");
        replies.bulk(line.as_bytes());
    }
    Ok(())
}

/// `ACL LOG [count | RESET]`.
fn log(desk: &Desk, arguments: Arguments<'_>, replies: &mut Replies) -> Result<(), Failure> {
    if arguments.is(2, "RESET") {
        desk.server.refusals.reset();
        replies.ok();
        return Ok(());
    }

    let len_max = match arguments.len() {
        2 => LOG_DEFAULT,
        _ => usize::try_from(arguments.integer(2)?).map_err(|_| Failure::NotPositive)?,
    };
    desk.server.refusals.reply(len_max, desk.now_ms(), replies);
    Ok(())
}

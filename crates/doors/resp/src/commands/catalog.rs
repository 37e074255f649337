//! `COMMAND`: what the table has for commands.

use raingauge_resp::{
    Access, Arguments, Categories, Command, Failure, Find, Id, KeySpec, Replies, Spec, commands,
    find, find_sub, glob, subcommands,
};

use super::help;

pub(super) fn run(id: Id, arguments: Arguments<'_>, replies: &mut Replies) -> Result<(), Failure> {
    match id {
        Id::CommandCount => replies.integer(commands().count() as i64),
        Id::CommandDocs => docs(arguments, replies),
        Id::CommandGetkeys => return keys(arguments, false, replies),
        Id::CommandGetkeysandflags => return keys(arguments, true, replies),
        Id::CommandHelp => help::reply("command", replies),
        Id::CommandList => return list(arguments, replies),

        Id::CommandInfo if arguments.len() > 2 => {
            replies.array(arguments.len() - 2);
            for name in arguments.iter().skip(2) {
                match named(name) {
                    Some(spec) => describe(spec, replies),
                    None => replies.null(),
                }
            }
        }
        _ => all(replies),
    }

    Ok(())
}

/// Every command, as `COMMAND` answers.
pub(super) fn all(replies: &mut Replies) {
    replies.array(commands().count());
    commands().for_each(|spec| describe(spec, replies));
}

/// A command, or a subcommand with the name of its container before it.
pub(super) fn named(name: &[u8]) -> Option<&'static Spec> {
    match name.iter().position(|byte| *byte == b'|') {
        None => find(name),
        Some(at) => find_sub(find(&name[..at])?.name, &name[at + 1..]),
    }
}

fn describe(spec: &'static Spec, replies: &mut Replies) {
    let (first, last, step) = spec.legacy_keys();

    replies.array(10);
    replies.bulk(spec.name.as_bytes());
    replies.integer(spec.arity.into());
    statuses(spec.flags.names().map(str::to_owned).collect(), replies);
    for number in [first, last, step] {
        replies.integer(number);
    }
    statuses(spec.categories.names().map(|name| format!("@{name}")).collect(), replies);

    replies.set(spec.tips().len());
    spec.tips().iter().for_each(|tip| replies.bulk(tip.as_bytes()));
    replies.set(spec.keys.len());
    spec.keys.iter().for_each(|keys| describe_keys(keys, replies));

    replies.set(subcommands(spec).count());
    subcommands(spec).for_each(|sub| describe(sub, replies));
}

fn statuses(names: Vec<String>, replies: &mut Replies) {
    replies.set(names.len());
    names.iter().for_each(|name| replies.simple(name));
}

fn describe_keys(keys: &KeySpec, replies: &mut Replies) {
    replies.map(3);
    replies.bulk(b"flags");
    statuses(keys.access.names().map(str::to_owned).collect(), replies);

    replies.bulk(b"begin_search");
    replies.map(2);
    replies.bulk(b"type");
    replies.bulk(b"index");
    replies.bulk(b"spec");
    numbers(&[("index", keys.at.into())], replies);

    replies.bulk(b"find_keys");
    replies.map(2);
    replies.bulk(b"type");
    match keys.find {
        Find::Range { last, step } => {
            replies.bulk(b"range");
            replies.bulk(b"spec");
            let range = [("lastkey", last.into()), ("keystep", step.into()), ("limit", 0)];
            numbers(&range, replies);
        }
        Find::Counted => {
            replies.bulk(b"keynum");
            replies.bulk(b"spec");
            numbers(&[("keynumidx", 0), ("firstkey", 1), ("keystep", 1)], replies);
        }
    }
}

fn numbers(pairs: &[(&str, i64)], replies: &mut Replies) {
    replies.map(pairs.len());
    for (name, number) in pairs {
        replies.bulk(name.as_bytes());
        replies.integer(*number);
    }
}

fn docs(arguments: Arguments<'_>, replies: &mut Replies) {
    let asked: Vec<&'static Spec> = match arguments.len() {
        2 => commands().collect(),
        _ => arguments.iter().skip(2).filter_map(named).collect(),
    };

    replies.map(asked.len());
    for spec in asked {
        document(spec, replies);
    }
}

fn document(spec: &'static Spec, replies: &mut Replies) {
    let subs: Vec<_> = subcommands(spec).collect();
    let has_subs = !subs.is_empty();

    replies.bulk(spec.name.as_bytes());
    replies.map(3 + usize::from(has_subs));
    let texts = [("summary", spec.summary), ("since", spec.since), ("group", spec.group)];
    for (name, text) in texts {
        replies.bulk(name.as_bytes());
        replies.bulk(text.as_bytes());
    }

    if has_subs {
        replies.bulk(b"subcommands");
        replies.map(subs.len());
        subs.into_iter().for_each(|sub| document(sub, replies));
    }
}

/// The keys of the command that stands behind the subcommand.
fn keys(arguments: Arguments<'_>, with_flags: bool, replies: &mut Replies) -> Result<(), Failure> {
    let command = Command::of(arguments.from(2));
    let Some(spec) = command.spec() else {
        return Err(Failure::text("ERR Invalid command specified"));
    };
    let is_name = |keys: &KeySpec| with_flags && keys.access.has(Access::NOT_KEY);
    if spec.keys.iter().all(is_name) {
        return Err(Failure::text("ERR The command has no key arguments"));
    }
    if !spec.accepts(command.arguments.len()) {
        return Err(Failure::text("ERR Invalid number of arguments specified for command"));
    }

    let mut found: Vec<(usize, Access)> = Vec::new();
    spec.key_positions(command.arguments, |at, access| found.push((at, access)));
    let has_counted = spec.keys.iter().any(|keys| matches!(keys.find, Find::Counted));
    if found.is_empty() || has_counted && found.len() < spec.keys.len() {
        return Err(Failure::text("ERR Invalid arguments specified for command"));
    }

    replies.array(found.len());
    for (at, access) in found {
        if with_flags {
            replies.array(2);
        }
        replies.bulk(command.arguments.at(at));
        if with_flags {
            let access = exact_access(spec, command.arguments, access);
            statuses(access.names().map(str::to_owned).collect(), replies);
        }
    }
    Ok(())
}

/// How a command uses its key, where that follows from its options.
fn exact_access(spec: &Spec, arguments: Arguments<'_>, access: Access) -> Access {
    let read = Access::RO.and(Access::ACCESS);
    let change = Access::RW.and(Access::ACCESS).and(Access::UPDATE);
    let has = |word: &str| (3..arguments.len()).any(|index| arguments.is(index, word));

    match spec.id {
        Id::Set if has("GET") => change,
        Id::Set => Access::OW.and(Access::UPDATE),
        Id::Bitfield if !(2..arguments.len()).any(|index| is_change(arguments, index)) => read,
        Id::Bitfield => change,
        _ => access,
    }
}

fn is_change(arguments: Arguments<'_>, index: usize) -> bool {
    arguments.is(index, "SET") || arguments.is(index, "INCRBY")
}

/// `COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN glob]`.
fn list(arguments: Arguments<'_>, replies: &mut Replies) -> Result<(), Failure> {
    let names: Vec<&str> = if arguments.len() == 2 {
        raingauge_resp::all().map(|spec| spec.name).collect()
    } else if arguments.len() == 5 && arguments.is(2, "FILTERBY") {
        filtered(arguments)?
    } else {
        return Err(Failure::Syntax);
    };

    replies.array(names.len());
    names.iter().for_each(|name| replies.bulk(name.as_bytes()));
    Ok(())
}

fn filtered(arguments: Arguments<'_>) -> Result<Vec<&'static str>, Failure> {
    let wanted = arguments.at(4);
    let all = raingauge_resp::all().map(|spec| (spec, spec.name));

    if arguments.is(3, "PATTERN") {
        let fits = |name: &str| glob::matches(wanted, name.as_bytes(), true);
        return Ok(all.filter(|(_, name)| fits(name)).map(|(_, name)| name).collect());
    }
    if arguments.is(3, "ACLCAT") {
        let category = Categories::named(&String::from_utf8_lossy(wanted).to_ascii_lowercase());
        let fits = |spec: &Spec| category.is_some_and(|wanted| spec.categories.has(wanted));
        return Ok(all.filter(|(spec, _)| fits(spec)).map(|(_, name)| name).collect());
    }
    // There are no modules, so that none of them has a command.
    if arguments.is(3, "MODULE") {
        return Ok(Vec::new());
    }

    Err(Failure::Syntax)
}

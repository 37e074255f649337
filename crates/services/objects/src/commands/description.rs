//! What objects are like: OBJECT and MEMORY USAGE.

use crate::turn::{Handler, Outcome, Turn};
use raingauge_resp::{Arguments, Failure, Id, Replies};

pub(super) const COMMANDS: &[(Id, Handler)] = &[
    (Id::ObjectEncoding, encoding),
    (Id::ObjectRefcount, references),
    (Id::ObjectIdletime, idle),
    (Id::ObjectFreq, frequency),
    (Id::ObjectHelp, help),
    (Id::MemoryUsage, memory),
];

const HELP: &[&str] = &[
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Return the kind of internal representation used in order to store the value",
    "    associated with a <key>.",
    "FREQ <key>",
    "    Return the access frequency index of the <key>. The returned integer is",
    "    proportional to the logarithm of the recent access frequency of the key.",
    "IDLETIME <key>",
    "    Return the idle time of the <key>, that is the approximated number of",
    "    seconds elapsed since the last access to the key.",
    "REFCOUNT <key>",
    "    Return the number of references of the value associated with the specified",
    "    <key>.",
    "HELP",
    "    Prints this help.",
];

fn encoding(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    match turn.get(arguments.at(2)) {
        Some(object) => replies.bulk(object.value.encoding().as_bytes()),
        None => replies.null(),
    }
    Ok(())
}

fn references(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    match turn.get(arguments.at(2)) {
        Some(_) => replies.integer(1),
        None => replies.null(),
    }
    Ok(())
}

fn idle(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    match turn.idle_ms(arguments.at(2)) {
        Some(idle_ms) => replies.integer(idle_ms / 1_000),
        None => replies.null(),
    }
    Ok(())
}

fn frequency(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    if turn.exists(arguments.at(2)) {
        return Err(Failure::text(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please \
             note that when switching between policies at runtime LRU and LFU data will take some \
             time to adjust.",
        ));
    }
    replies.null();
    Ok(())
}

fn help(_: &mut Turn<'_>, _: Arguments<'_>, replies: &mut Replies) -> Outcome {
    replies.array(HELP.len());
    HELP.iter().for_each(|line| replies.simple(line));
    Ok(())
}

fn memory(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let has_samples = match arguments.len() {
        3 => true,
        5 if arguments.is(3, "samples") => arguments.integer(4)? >= 0,
        _ => false,
    };
    if !has_samples {
        return Err(Failure::Syntax);
    }

    match turn.weight(arguments.at(2)) {
        Some(bytes) => replies.integer(bytes as i64),
        None => replies.null(),
    }
    Ok(())
}

//! Publishing, and questions about channels.

use crate::pubsub::Space;
use crate::turn::{Handler, Outcome, Turn};
use raingauge_resp::{Arguments, Failure, Id, Replies};

pub(super) const COMMANDS: &[(Id, Handler)] = &[
    (Id::Publish, |turn, arguments, replies| publish(turn, arguments, replies, Space::Channel)),
    (Id::Spublish, |turn, arguments, replies| publish(turn, arguments, replies, Space::Shard)),
    (Id::PubsubChannels, |turn, arguments, replies| {
        names(turn, arguments, replies, Space::Channel)
    }),
    (Id::PubsubShardchannels, |turn, arguments, replies| {
        names(turn, arguments, replies, Space::Shard)
    }),
    (Id::PubsubNumsub, |turn, arguments, replies| counts(turn, arguments, replies, Space::Channel)),
    (Id::PubsubShardnumsub, |turn, arguments, replies| {
        counts(turn, arguments, replies, Space::Shard)
    }),
    (Id::PubsubNumpat, patterns),
    (Id::PubsubHelp, help),
];

const HELP: &[&str] = &[
    "PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CHANNELS [<pattern>]",
    "    Return the currently active channels matching a <pattern> (default: '*').",
    "NUMPAT",
    "    Return number of subscriptions to patterns.",
    "NUMSUB [<channel> ...]",
    "    Return the number of subscribers for the specified channels, excluding",
    "    pattern subscriptions(default: no channels).",
    "SHARDCHANNELS [<pattern>]",
    "    Return the currently active shard level channels matching a <pattern> (default: '*').",
    "SHARDNUMSUB [<shardchannel> ...]",
    "    Return the number of subscribers for the specified shard level channel(s)",
    "HELP",
    "    Prints this help.",
];

fn publish(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
    space: Space,
) -> Outcome {
    let receivers = turn.publish(space, arguments.bytes(1), arguments.bytes(2));
    replies.integer(receivers as i64);
    Ok(())
}

fn names(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
    space: Space,
) -> Outcome {
    if arguments.len() > 3 {
        return Err(unknown(arguments));
    }

    let names = turn.pubsub().names(space, arguments.get(2));
    replies.array(names.len());
    names.iter().for_each(|name| replies.bulk(name));
    Ok(())
}

fn counts(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
    space: Space,
) -> Outcome {
    let channels = arguments.from(2);
    replies.array(channels.len() * 2);
    for channel in channels.iter() {
        replies.bulk(channel);
        replies.integer(turn.pubsub().subscribers(space, channel) as i64);
    }
    Ok(())
}

fn patterns(turn: &mut Turn<'_>, _: Arguments<'_>, replies: &mut Replies) -> Outcome {
    replies.integer(turn.pubsub().names_len(Space::Pattern) as i64);
    Ok(())
}

fn help(_: &mut Turn<'_>, _: Arguments<'_>, replies: &mut Replies) -> Outcome {
    replies.array(HELP.len());
    HELP.iter().for_each(|line| replies.simple(line));
    Ok(())
}

fn unknown(arguments: Arguments<'_>) -> Failure {
    let name = String::from_utf8_lossy(arguments.at(1));
    Failure::owned(format!(
        "ERR unknown subcommand or wrong number of arguments for '{name}'. Try PUBSUB HELP."
    ))
}

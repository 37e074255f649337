//! Channels: subscribing, and messages on the wire.

use raingauge_objects::{Message, Space, Subscriber};
use raingauge_resp::{Arguments, Failure, Id, Replies, Spec};

use crate::desk::Desk;
use crate::limits::RESP_SUBSCRIPTIONS_MAX;

/// Whether a command may run between messages in RESP2.
pub(crate) fn is_allowed(spec: &Spec) -> bool {
    confirms_names(spec) || matches!(spec.id, Id::Ping | Id::Quit | Id::Reset)
}

/// Whether a command begins or ends subscriptions, each of which is confirmed by itself.
pub(super) fn confirms_names(spec: &Spec) -> bool {
    matches!(
        spec.id,
        Id::Subscribe
            | Id::Psubscribe
            | Id::Ssubscribe
            | Id::Unsubscribe
            | Id::Punsubscribe
            | Id::Sunsubscribe
    )
}

pub(super) fn run(
    desk: &mut Desk,
    id: Id,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    match id {
        Id::Subscribe => subscribe(desk, Space::Channel, "subscribe", arguments, replies)?,
        Id::Psubscribe => subscribe(desk, Space::Pattern, "psubscribe", arguments, replies)?,
        Id::Ssubscribe => subscribe(desk, Space::Shard, "ssubscribe", arguments, replies)?,
        Id::Unsubscribe => unsubscribe(desk, Space::Channel, "unsubscribe", arguments, replies),
        Id::Punsubscribe => unsubscribe(desk, Space::Pattern, "punsubscribe", arguments, replies),
        _ => unsubscribe(desk, Space::Shard, "sunsubscribe", arguments, replies),
    }

    desk.publish_subscriptions();
    Ok(())
}

fn subscribe(
    desk: &mut Desk,
    space: Space,
    kind: &str,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    let held = desk.channels_and_patterns() + desk.subscriptions(Space::Shard);
    let added = arguments.len() - 1;
    if held + added > RESP_SUBSCRIPTIONS_MAX {
        return Err(Failure::owned(format!(
            "ERR a connection listens to {RESP_SUBSCRIPTIONS_MAX} channels and patterns at most"
        )));
    }

    if desk.subscriber.is_none() {
        let bytes_max = desk.server.settings.output_bytes_max;
        let subscriber = desk.server.objects.pubsub().subscriber(bytes_max);
        *desk.client.closer.lock() = Some(subscriber.closer());
        desk.subscriber = Some(subscriber);
    }

    for index in 1..arguments.len() {
        if let Some(subscriber) = &mut desk.subscriber {
            subscriber.subscribe(space, arguments.bytes(index));
        }
        confirm(desk, space, kind, Some(arguments.at(index)), replies);
    }
    Ok(())
}

/// Without names, all subscriptions of the kind end.
fn unsubscribe(
    desk: &mut Desk,
    space: Space,
    kind: &str,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) {
    let names: Vec<Vec<u8>> = if arguments.len() > 1 {
        arguments.iter().skip(1).map(<[u8]>::to_vec).collect()
    } else {
        let names = desk.subscriber.as_ref().map_or_else(Vec::new, |all| names(all, space));
        if names.is_empty() {
            confirm(desk, space, kind, None, replies);
        }
        names
    };

    for name in names {
        if let Some(subscriber) = &mut desk.subscriber {
            subscriber.unsubscribe(space, &name);
        }
        confirm(desk, space, kind, Some(&name), replies);
    }
}

fn names(subscriber: &Subscriber, space: Space) -> Vec<Vec<u8>> {
    subscriber.names(space).iter().map(|name| name.to_vec()).collect()
}

/// Says what was subscribed to or not any more, and how much is left.
fn confirm(desk: &Desk, space: Space, kind: &str, name: Option<&[u8]>, replies: &mut Replies) {
    let left = match space {
        Space::Channel | Space::Pattern => desk.channels_and_patterns(),
        Space::Shard => desk.subscriptions(Space::Shard),
    };

    replies.push(3);
    replies.bulk(kind.as_bytes());
    match name {
        Some(name) => replies.bulk(name),
        None => replies.null(),
    }
    replies.integer(left as i64);
}

/// Writes a message as its subscriber reads it.
pub(crate) fn write_message(message: &Message, replies: &mut Replies) {
    match (&message.pattern, message.space) {
        (Some(pattern), _) => {
            replies.push(4);
            replies.bulk(b"pmessage");
            replies.bulk(pattern);
        }
        (None, Space::Shard) => {
            replies.push(3);
            replies.bulk(b"smessage");
        }
        (None, _) => {
            replies.push(3);
            replies.bulk(b"message");
        }
    }

    replies.bulk(&message.channel);
    replies.shared(message.payload.clone());
}

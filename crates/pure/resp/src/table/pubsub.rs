//! Commands about channels.

use super::*;

rows! {
    "pubsub"

    Subscribe "subscribe" -2 [PUBSUB NOSCRIPT LOADING STALE] [] Door
        [] "2.0.0" "Listens to channels.";
    Unsubscribe "unsubscribe" -1 [PUBSUB NOSCRIPT LOADING STALE] [] Door
        [] "2.0.0" "Stops listening to channels.";
    Psubscribe "psubscribe" -2 [PUBSUB NOSCRIPT LOADING STALE] [] Door
        [] "2.0.0" "Listens to channels that match patterns.";
    Punsubscribe "punsubscribe" -1 [PUBSUB NOSCRIPT LOADING STALE] [] Door
        [] "2.0.0" "Stops listening to patterns.";
    Ssubscribe "ssubscribe" -2 [PUBSUB NOSCRIPT LOADING STALE] [] Door
        [range(NOT_KEY, 1, -1, 1)] "7.0.0" "Listens to shard channels.";
    Sunsubscribe "sunsubscribe" -1 [PUBSUB NOSCRIPT LOADING STALE] [] Door
        [range(NOT_KEY, 1, -1, 1)] "7.0.0" "Stops listening to shard channels.";
    Publish "publish" 3 [PUBSUB LOADING STALE FAST] [] Objects
        [] "2.0.0" "Posts a message to a channel.";
    Spublish "spublish" 3 [PUBSUB LOADING STALE FAST] [] Objects
        [one(NOT_KEY, 1)] "7.0.0" "Posts a message to a shard channel.";
    Pubsub "pubsub" -2 [] [] Objects
        [] "2.8.0" "Commands about channels.";
    PubsubChannels "pubsub|channels" -2 [PUBSUB LOADING STALE] [] Objects
        [] "2.8.0" "Lists channels that have subscribers.";
    PubsubNumpat "pubsub|numpat" 2 [PUBSUB LOADING STALE] [] Objects
        [] "2.8.0" "Counts the patterns that are subscribed to.";
    PubsubNumsub "pubsub|numsub" -2 [PUBSUB LOADING STALE] [] Objects
        [] "2.8.0" "Counts the subscribers of channels.";
    PubsubShardchannels "pubsub|shardchannels" -2 [PUBSUB LOADING STALE] [] Objects
        [] "7.0.0" "Lists shard channels that have subscribers.";
    PubsubShardnumsub "pubsub|shardnumsub" -2 [PUBSUB LOADING STALE] [] Objects
        [] "7.0.0" "Counts the subscribers of shard channels.";
    PubsubHelp "pubsub|help" 2 [LOADING STALE] [] Objects
        [] "6.2.0" "Lists the subcommands.";
}

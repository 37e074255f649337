//! Commands about sorted sets.

mod add;
mod blocking;
mod combine;
mod pop;
mod range;
mod read;

use raingauge_resp::{Id, Protocol, Replies};

use crate::turn::Handler;

pub(super) const COMMANDS: &[(Id, Handler)] = &[
    (Id::Zadd, add::zadd),
    (Id::Zincrby, add::zincrby),
    (Id::Zrem, add::zrem),
    (Id::Zscore, read::zscore),
    (Id::Zmscore, read::zmscore),
    (Id::Zcard, read::zcard),
    (Id::Zrank, read::zrank),
    (Id::Zrevrank, read::zrevrank),
    (Id::Zrandmember, read::zrandmember),
    (Id::Zscan, read::zscan),
    (Id::Zcount, range::zcount),
    (Id::Zlexcount, range::zlexcount),
    (Id::Zrange, range::zrange),
    (Id::Zrangestore, range::zrangestore),
    (Id::Zrangebyscore, range::zrangebyscore),
    (Id::Zrevrangebyscore, range::zrevrangebyscore),
    (Id::Zrangebylex, range::zrangebylex),
    (Id::Zrevrangebylex, range::zrevrangebylex),
    (Id::Zrevrange, range::zrevrange),
    (Id::Zremrangebyrank, range::zremrangebyrank),
    (Id::Zremrangebyscore, range::zremrangebyscore),
    (Id::Zremrangebylex, range::zremrangebylex),
    (Id::Zpopmin, pop::zpopmin),
    (Id::Zpopmax, pop::zpopmax),
    (Id::Zmpop, pop::zmpop),
    (Id::Bzpopmin, blocking::bzpopmin),
    (Id::Bzpopmax, blocking::bzpopmax),
    (Id::Bzmpop, blocking::bzmpop),
    (Id::Zunion, combine::zunion),
    (Id::Zinter, combine::zinter),
    (Id::Zdiff, combine::zdiff),
    (Id::Zunionstore, combine::zunionstore),
    (Id::Zinterstore, combine::zinterstore),
    (Id::Zdiffstore, combine::zdiffstore),
    (Id::Zintercard, combine::zintercard),
];

/// Replies members in their order; with scores as pairs in the newer protocol, one after the other
/// in the older.
fn reply_members<'a>(
    replies: &mut Replies,
    members: impl ExactSizeIterator<Item = (&'a [u8], f64)>,
    with_scores: bool,
) {
    let nested = with_scores && replies.protocol() == Protocol::Three;
    replies.array(if with_scores && !nested { 2 * members.len() } else { members.len() });

    for (name, score) in members {
        if nested {
            replies.array(2);
        }
        replies.bulk(name);
        if with_scores {
            replies.double(score);
        }
    }
}

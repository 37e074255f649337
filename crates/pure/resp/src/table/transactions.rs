//! Commands about transactions.

use super::*;

rows! {
    "transactions"

    Multi "multi" 1 [NOSCRIPT LOADING STALE FAST ALLOW_BUSY] [TRANSACTION] Objects
        [] "1.2.0" "Begins a transaction.";
    Exec "exec" 1 [NOSCRIPT LOADING STALE SKIP_SLOWLOG] [TRANSACTION] Objects
        [] "1.2.0" "Runs the queued commands of a transaction.";
    Discard "discard" 1 [NOSCRIPT LOADING STALE FAST ALLOW_BUSY] [TRANSACTION] Objects
        [] "2.0.0" "Drops the queued commands of a transaction.";
    Watch "watch" -2 [NOSCRIPT LOADING STALE FAST ALLOW_BUSY] [TRANSACTION] Objects
        [range(LOOK, 1, -1, 1)] "2.2.0" "Lets the next transaction run only if keys do not change.";
    Unwatch "unwatch" 1 [NOSCRIPT LOADING STALE FAST ALLOW_BUSY] [TRANSACTION] Objects
        [] "2.2.0" "Forgets the watched keys.";
}

//! How long the store keeps what is written, as CQL's time to live.

use raingauge_core::bucket::{DAY_S, Granularity};

/// The longest time to live that CQL accepts: 20 years.
const TTL_MAX_S: i64 = 630_720_000;

/// Cells that would expire later are kept forever: Cassandra stores the end of a cell's life in 31
/// bits (2038-01-19) unless its `storage_compatibility_mode` is `NONE`, and refuses later ones. A
/// day is left for servers whose clocks are ahead.
const EXPIRY_MAX_S: i64 = i32::MAX as i64 - DAY_S;

/// How much longer a bucket lives than it is answered. When a counter's retention is raised, its
/// stored tiles have at least this much time left to be written again.
const MARGIN_S: i64 = DAY_S;

/// The moment of a write.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// By the log: the stamp of the written entry, in seconds.
    pub stamp_s: i64,
    /// By this machine's clock.
    pub wall_s: i64,
}

/// The time to live of a record whose newest bucket begins at `newest_s`, where buckets before
/// `horizon_s` had expired when it last changed. 0 means forever.
pub fn ttl_s(newest_s: i64, horizon_s: i64, now: Now) -> i32 {
    // A horizon in 1970 means that the bucket is kept forever, or longer than any table exists.
    if horizon_s <= 0 {
        return 0;
    }

    let midnight_s = Granularity::Day.floor(now.stamp_s);
    let days = (Granularity::Day.floor(newest_s) - horizon_s) / DAY_S + 1;
    let expires_s =
        midnight_s.saturating_add(days.max(1).saturating_mul(DAY_S)).saturating_add(MARGIN_S);
    let ttl_s = expires_s - now.stamp_s;

    let is_too_late = now.stamp_s.max(now.wall_s).saturating_add(ttl_s) > EXPIRY_MAX_S;
    if ttl_s > TTL_MAX_S || is_too_late { 0 } else { ttl_s as i32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY_S: i64 = 19_700 * DAY_S;
    const NOW: Now = Now { stamp_s: TODAY_S + 3_600, wall_s: TODAY_S + 3_600 };

    #[test]
    fn a_bucket_lives_to_the_end_of_its_retention_and_a_day() {
        let horizon_s = TODAY_S - 30 * DAY_S;
        assert_eq!(i64::from(ttl_s(TODAY_S, horizon_s, NOW)), 32 * DAY_S - 3_600);
        assert_eq!(i64::from(ttl_s(TODAY_S - 30 * DAY_S + 5, horizon_s, NOW)), 2 * DAY_S - 3_600);
        assert_eq!(i64::from(ttl_s(TODAY_S - 90 * DAY_S, horizon_s, NOW)), 2 * DAY_S - 3_600);
        assert_eq!(ttl_s(TODAY_S, 0, NOW), 0);
    }

    #[test]
    fn what_would_expire_after_2038_is_kept_for_ever() {
        let days_left = (EXPIRY_MAX_S - TODAY_S) / DAY_S;
        let ttl_after = |days: i64, now| ttl_s(TODAY_S, TODAY_S - days * DAY_S, now);
        assert!(ttl_after(days_left - 3, NOW) > 0);
        assert_eq!(ttl_after(days_left + 1, NOW), 0);
        let late = Now { wall_s: NOW.wall_s + 10 * DAY_S, ..NOW };
        assert_eq!(
            ttl_after(days_left - 3, late),
            0,
            "the servers go by their own clocks, the log is behind them"
        );
        assert_eq!(ttl_after(i64::from(u32::MAX), NOW), 0);
    }
}

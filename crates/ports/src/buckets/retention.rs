//! Retention of counts.

use super::{Error, Generation};
use raingauge_core::retention::Horizons;

/// Called by the thread of the writer, which it may block; [`BucketRetention::remove`] by another.
pub trait BucketRetention: Send + Sync {
    /// Prolongs the life of a generation's stored buckets to these horizons, which a longer
    /// retention moved back at `now_s`. For a store whose buckets expire on their own. All changes
    /// are committed when it is called. Fills the cursor while there is more to do, and empties it
    /// at the end.
    fn prolong(
        &self,
        _generation: Generation,
        _horizons: &Horizons,
        cursor: &mut Option<Vec<u8>>,
    ) -> Result<(), Error> {
        *cursor = None;
        Ok(())
    }

    /// Examines up to `scan_max` tiles, or rows, of a generation behind `cursor`, and removes the
    /// buckets before the horizons. Advances the cursor, or empties it at the end; an unchanged
    /// cursor means that a server is still at work. Returns the number of removed buckets or tiles.
    fn expire(
        &self,
        generation: Generation,
        horizons: &Horizons,
        cursor: &mut Option<Vec<u8>>,
        scan_max: usize,
    ) -> Result<u64, Error>;

    /// Removes up to `scan_max` tiles or keys of a generation behind `cursor`. The generation is no
    /// longer written or read, and a commit has followed its last change. May be called by any
    /// thread, also while another one counts. Advances the cursor, or empties it at the end. The
    /// removal is durable with the next commit.
    fn remove(
        &self,
        generation: Generation,
        cursor: &mut Option<Vec<u8>>,
        scan_max: usize,
    ) -> Result<u64, Error> {
        let nothing = Horizons { quarter_s: i64::MAX, hour_s: i64::MAX, day_s: i64::MAX };
        self.expire(generation, &nothing, cursor, scan_max)
    }
}

//! How long counts are kept.

use super::{Error, Generation};
use raingauge_core::retention::Horizons;

/// Called by the thread of the writer, which it may block; [`BucketRetention::remove`] by another.
pub trait BucketRetention: Send + Sync {
    /// Lets what is stored of a generation live as long as these horizons say, which were moved
    /// back at `now_s` by a longer retention: for a store whose buckets go by themselves. All
    /// changes are committed when it is called. Fills the cursor while there is more to do, and
    /// empties it at the end.
    fn prolong(
        &self,
        _generation: Generation,
        _horizons: &Horizons,
        cursor: &mut Option<Vec<u8>>,
    ) -> Result<(), Error> {
        *cursor = None;
        Ok(())
    }

    /// Looks at up to `scan_max` tiles, or rows, of a generation behind `cursor`, and removes the
    /// buckets that lie before the horizons. Moves the cursor on, or empties it at the end; a
    /// cursor that stays as it was says that a server is at work. Answers how many buckets or tiles
    /// went.
    fn expire(
        &self,
        generation: Generation,
        horizons: &Horizons,
        cursor: &mut Option<Vec<u8>>,
        scan_max: usize,
    ) -> Result<u64, Error>;

    /// Removes up to `scan_max` tiles or keys of a generation behind `cursor`. Nothing adds to the
    /// generation or reads it any more, and a commit has followed the last change of it. May be
    /// called by any thread, also while another one counts. Moves the cursor on, or empties it at
    /// the end. What was removed is durable with the next commit.
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

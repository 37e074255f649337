//! Who looked at events: one audit entry per person, event type and quarter of an hour.

use lru::LruCache;
use parking_lot::Mutex;
use std::num::NonZeroUsize;

/// How long further views of the same person belong to the first one.
pub const VIEW_S: i64 = 900;
/// Views in memory; one that was evicted is recorded again.
const REMEMBERED_MAX: NonZeroUsize = NonZeroUsize::new(2_000).expect("it is not zero");

/// Recent views, by person and event type, with the time at which each began.
#[derive(Debug)]
pub struct Views(Mutex<LruCache<(String, String), i64>>);

impl Default for Views {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(REMEMBERED_MAX)))
    }
}

impl Views {
    /// Whether this is a new view, to be recorded.
    pub fn begins(&self, person: &str, of: &str, now_s: i64) -> bool {
        let mut views = self.0.lock();
        let key = (person.to_owned(), of.to_owned());
        let is_known =
            views.get(&key).is_some_and(|began_s| (*began_s..began_s + VIEW_S).contains(&now_s));
        if !is_known {
            views.put(key, now_s);
        }
        !is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_goes_on_for_a_while() {
        let views = Views::default();
        assert!(views.begins("zoe", "signup", 100));
        assert!(!views.begins("zoe", "signup", 100 + VIEW_S - 1));
        assert!(views.begins("zoe", "order", 101) && views.begins("max", "signup", 101));
        assert!(views.begins("zoe", "signup", 100 + VIEW_S));
    }
}

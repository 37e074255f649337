//! The requests of one lookup to its service or database that may be under way at a time.
//!
//! ```text
//!   acquire ──▶ Place ──▶ begin ──▶ end(Speed) ──▶ given back, or given up if there are too many
//!               waits for the rate   │
//!                                    └──▶ Limit: one more, or half as many
//! ```

use metrics::{Gauge, gauge};
use parking_lot::Mutex;
use raingauge_policy::concurrency::Limit;
use std::ops::RangeInclusive;
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

/// What the end of a request says about how many at a time are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// More would be answered in time as well.
    Fast,
    /// As many as there are.
    Slow,
    /// There was no answer in time, or it has too much to do.
    TooMuch,
}

pub struct Places {
    /// Places that are free, for those who wait in the order of their coming.
    free: Semaphore,
    state: Mutex<State>,
    shown_limit: Gauge,
    /// Versions of a lookup share it, so that each adds its own.
    shown_in_flight: Gauge,
}

struct State {
    limit: Limit,
    /// Places that are free or taken. They are more than the limit for a while after it fell.
    there: usize,
    /// Requests under way. Who waits for the rate has a place and no request.
    in_flight: usize,
}

impl Places {
    /// Begins with the fewest. Metrics show it under the name of the lookup.
    pub fn new(lookup: &str, bounds: RangeInclusive<u16>) -> Self {
        let limit = Limit::new(bounds);
        let there = usize::from(limit.number());
        let name = || lookup.to_owned();
        let shown_limit = gauge!("raingauge_campaign_lookup_limit", "lookup" => name());
        shown_limit.set(there as f64);

        Self {
            free: Semaphore::new(there),
            state: Mutex::new(State { limit, there, in_flight: 0 }),
            shown_limit,
            shown_in_flight: gauge!("raingauge_campaign_lookup_in_flight", "lookup" => name()),
        }
    }

    pub async fn acquire(&self) -> Result<Place<'_>, AcquireError> {
        let permit = self.free.acquire().await?;
        Ok(Place { places: self, permit: Some(permit), began: None })
    }
}

/// A place for one request, which is free again when this is dropped.
pub struct Place<'p> {
    places: &'p Places,
    /// There until it is dropped.
    permit: Option<SemaphorePermit<'p>>,
    /// When the request set out.
    began: Option<i64>,
}

impl Place<'_> {
    /// Notes that the request sets out.
    pub fn begin(&mut self, now: i64) {
        self.began = Some(now);
        self.places.state.lock().in_flight += 1;
        self.places.shown_in_flight.increment(1.0);
    }

    /// Notes how the request ended, at a time of the clock that it began by.
    pub fn end(mut self, now: i64, speed: Speed) {
        let Some(began) = self.began.take() else { return };
        let State { limit, in_flight, .. } = &mut *self.places.state.lock();
        *in_flight -= 1;
        self.places.shown_in_flight.decrement(1.0);
        match speed {
            Speed::Fast => limit.raise(*in_flight),
            Speed::Slow => {}
            Speed::TooMuch => limit.lower(began, now),
        }
        self.places.shown_limit.set(f64::from(limit.number()));
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let state = &mut *self.places.state.lock();
        // A request that was given up says nothing.
        if self.began.is_some() {
            state.in_flight -= 1;
            self.places.shown_in_flight.decrement(1.0);
        }

        let number = usize::from(state.limit.number());
        if state.there > number {
            state.there -= self.permit.take().map_or(0, |permit| {
                permit.forget();
                1
            });
            state.there -= self.places.free.forget_permits(state.there - number);
        } else {
            self.places.free.add_permits(number - state.there);
            state.there = number;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use metrics_exporter_prometheus::PrometheusBuilder;

    fn taken(places: &Places, len: usize, now: i64) -> Vec<Place<'_>> {
        let begun = |_| {
            let place = places.acquire().now_or_never()?.ok();
            place.map(|mut place| {
                place.begin(now);
                place
            })
        };
        (0..len).map_while(begun).collect()
    }

    #[test]
    fn places_that_are_too_many_are_given_up() {
        let places = Places::new("risk", 1..=8);
        for now in 0..8 {
            taken(&places, 9, now).into_iter().for_each(|place| place.end(now, Speed::Fast));
        }
        let mut all = taken(&places, 9, 8);
        assert_eq!(all.len(), 8);

        all.remove(0).end(9, Speed::TooMuch);
        all.drain(..3).for_each(|place| place.end(10, Speed::TooMuch));
        assert!(taken(&places, 9, 11).is_empty(), "4 of 4 are taken");
        all.drain(..2).for_each(|place| place.end(12, Speed::Slow));
        assert_eq!(taken(&places, 9, 13).len(), 2);
        drop(all);
        assert_eq!(taken(&places, 9, 14).len(), 4);

        // Free places are given up as well.
        let first = taken(&places, 1, 15).remove(0);
        first.end(16, Speed::TooMuch);
        assert_eq!(taken(&places, 9, 17).len(), 2);
    }

    #[test]
    fn metrics_show_the_limit_and_what_is_under_way() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let metrics = recorder.handle();
        let shown = |limit: u16, in_flight: usize| {
            let page = metrics.render();
            for (name, value) in [("limit", usize::from(limit)), ("in_flight", in_flight)] {
                let line = format!("raingauge_campaign_lookup_{name}{{lookup=\"risk\"}} {value}\n");
                assert!(page.contains(&line), "{line} is not in\n{page}");
            }
        };

        metrics::with_local_recorder(&recorder, || {
            let places = Places::new("risk", 1..=8);
            let mut all = taken(&places, 9, 0);
            shown(1, 1);
            all.remove(0).end(1, Speed::Fast);
            shown(2, 0);

            // Another version of the lookup begins with the fewest, beside what is under way.
            let before = taken(&places, 9, 2);
            let next = Places::new("risk", 3..=8);
            let all = taken(&next, 9, 3);
            shown(3, 5);
            drop((before, all));
            shown(3, 0);
        });
    }

    #[test]
    fn a_request_that_is_given_up_says_nothing() {
        let places = Places::new("risk", 1..=8);
        for now in 0..3 {
            drop(taken(&places, 1, now));
            drop(places.acquire().now_or_never());
        }
        assert_eq!(places.state.lock().in_flight, 0);
        assert_eq!(taken(&places, 9, 4).len(), 1);
    }
}

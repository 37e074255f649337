//! Hands the events of one reader to several threads, a batch at a time: each thread sees all of
//! them, in their order.

use crate::limits::{FORECAST_BATCH_BYTES, FORECAST_BATCHES_MAX};
use raingauge_core::event::Event;
use raingauge_ports::record::{Entry, parse, push_event, split_entry};
use raingauge_replay::Error;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// The end that takes events. The threads end when it is dropped.
#[derive(Default)]
pub struct Feed {
    /// Entries as those of a log.
    batch: Vec<u8>,
    threads: Vec<SyncSender<Arc<Vec<u8>>>>,
}

/// What a thread gets.
pub struct Batches(Receiver<Arc<Vec<u8>>>);

impl Feed {
    /// The batches for one more thread.
    pub fn batches(&mut self) -> Batches {
        let (sender, receiver) = sync_channel(FORECAST_BATCHES_MAX);
        self.threads.push(sender);
        Batches(receiver)
    }

    /// Takes an event, and waits where a thread is behind. Fails once a thread has ended, whose own
    /// error says why.
    pub fn push(&mut self, event: &Event<'_>) -> Result<(), Error> {
        push_event(event, &mut self.batch);
        if self.batch.len() < FORECAST_BATCH_BYTES { Ok(()) } else { self.flush() }
    }

    /// Hands over what was taken so far.
    pub fn flush(&mut self) -> Result<(), Error> {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(FORECAST_BATCH_BYTES));
        let batch = Arc::new(batch);
        let is_sent = |thread: &SyncSender<_>| thread.send(Arc::clone(&batch)).is_ok();
        if self.threads.iter().all(is_sent) { Ok(()) } else { Err(Error::Cancelled) }
    }
}

impl Batches {
    /// Visits all events until the feed ends. Blocks the thread.
    pub fn each(self, mut visit: impl FnMut(&Event<'_>) -> Result<(), Error>) -> Result<(), Error> {
        for batch in self.0 {
            let mut rest = &batch[..];
            while let Some(entry) = split_entry(&mut rest) {
                let Some(Entry::Event(event)) = parse(entry) else {
                    unreachable!("the feed has written an event")
                };
                visit(&event)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: usize) -> Event<'static> {
        Event { id: number.to_string().into(), ..Event::of_data("sold", number as i64, "{}") }
    }

    #[test]
    fn every_thread_sees_every_event_in_order() {
        let mut feed = Feed::default();
        let counts: Vec<usize> = std::thread::scope(|scope| {
            let read = |batches: Batches| {
                let mut next = 0;
                let seen = batches.each(|event| {
                    assert_eq!((&*event.id, event.time_ms), (&*next.to_string(), next as i64));
                    next += 1;
                    Ok(())
                });
                seen.map(|()| next).unwrap()
            };
            let threads =
                [feed.batches(), feed.batches()].map(|batches| scope.spawn(move || read(batches)));
            for number in 0..30_000 {
                feed.push(&event(number)).unwrap();
            }
            feed.flush().unwrap();
            drop(feed);
            threads.map(|thread| thread.join().unwrap()).to_vec()
        });
        assert_eq!(counts, [30_000, 30_000]);
    }

    #[test]
    fn a_thread_that_fails_ends_the_feed() {
        let mut feed = Feed::default();
        let batches = feed.batches();
        std::thread::scope(|scope| {
            let failing = scope.spawn(|| batches.each(|_| Err(Error::TooLarge("full".to_owned()))));
            feed.push(&event(1)).unwrap();
            while feed.flush().is_ok() {}
            assert!(matches!(failing.join().unwrap(), Err(Error::TooLarge(_))));
        });
    }
}

//! The right of one process to hand entries on and to begin sweeps, where several share the books.

use crate::shared::Shared;
use parking_lot::Mutex;
use raingauge_ports::maintenance::{LEASE_TTL, Lease};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long an answer of the lease is believed. A process that stood still for longer asks again
/// before it goes on.
const BELIEVED: Duration = Duration::from_secs(LEASE_TTL.as_secs() / 3);

/// Holds a lease as long as it is asked for, and asks the lease's store seldom. A process whose
/// clock is not to be believed gives it up, so that another one goes on.
pub struct Right {
    lease: Arc<dyn Lease>,
    shared: Arc<Shared>,
    /// The last answer, and when it was asked for.
    answer: Mutex<Option<(Instant, bool)>>,
}

impl Right {
    pub fn new(lease: &Arc<dyn Lease>, shared: &Arc<Shared>) -> Self {
        Self { lease: Arc::clone(lease), shared: Arc::clone(shared), answer: Mutex::default() }
    }

    /// Whether this process may go on. While the store does not answer, none may.
    pub async fn is_held(&self) -> bool {
        if self.shared.check_clock().is_err() {
            self.give_up().await;
            return false;
        }

        let asked = Instant::now();
        if let Some((before, is_held)) = *self.answer.lock()
            && asked.duration_since(before) < BELIEVED
        {
            return is_held;
        }

        let is_held = self.lease.hold().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "which process announces points is not known");
            false
        });
        *self.answer.lock() = Some((asked, is_held));
        is_held
    }

    async fn give_up(&self) {
        let was_held = self.answer.lock().take().is_some_and(|(_, is_held)| is_held);
        if was_held && let Err(error) = self.lease.release().await {
            tracing::warn!(%error, "another process announces points when the lease has ended");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_ports::BoxFuture;
    use raingauge_ports::maintenance::Error;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Answers by turns: yes, no, yes …
    #[derive(Default)]
    struct Fickle(AtomicU32);

    impl Lease for Fickle {
        fn hold(&self) -> BoxFuture<'_, Result<bool, Error>> {
            let asked = self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async move { Ok(asked.is_multiple_of(2)) })
        }

        fn release(&self) -> BoxFuture<'_, Result<(), Error>> {
            Box::pin(async { Ok(()) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_believed_for_a_third_of_the_lease() {
        let lease: Arc<dyn Lease> = Arc::new(Fickle::default());
        let right = Right::new(&lease, &Arc::new(Shared::new(1)));
        assert!(right.is_held().await && right.is_held().await);
        tokio::time::advance(BELIEVED - Duration::from_millis(1)).await;
        assert!(right.is_held().await);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!right.is_held().await, "another process has it now");
        tokio::time::advance(BELIEVED).await;
        assert!(right.is_held().await);
    }

    /// Is always held by the caller, and counts how often it is released.
    #[derive(Default)]
    struct Counted(AtomicU32);

    impl Lease for Counted {
        fn hold(&self) -> BoxFuture<'_, Result<bool, Error>> {
            Box::pin(async { Ok(true) })
        }

        fn release(&self) -> BoxFuture<'_, Result<(), Error>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { Ok(()) })
        }
    }

    #[tokio::test]
    async fn a_process_whose_clock_is_wrong_gives_it_up() {
        let counted = Arc::new(Counted::default());
        let lease: Arc<dyn Lease> = counted.clone();
        let shared = Arc::new(Shared::new(1));
        let right = Right::new(&lease, &shared);
        assert!(right.is_held().await);
        shared.note_clock(Some(90_000));
        assert!(!right.is_held().await && !right.is_held().await);
        assert_eq!(counted.0.load(Ordering::Relaxed), 1, "released once");
        shared.note_clock(None);
        assert!(right.is_held().await);
    }
}

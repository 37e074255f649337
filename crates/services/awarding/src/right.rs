//! The right of one process to hand entries on and to begin sweeps, where several share the books.

use parking_lot::Mutex;
use raingauge_ports::maintenance::{LEASE_TTL, Lease};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long an answer of the lease is believed. A process that stood still for longer asks again
/// before it goes on.
const BELIEVED: Duration = Duration::from_secs(LEASE_TTL.as_secs() / 3);

/// Holds a lease as long as it is asked for, and asks the lease's store seldom.
pub struct Right {
    lease: Arc<dyn Lease>,
    /// The last answer, and when it was asked for.
    answer: Mutex<Option<(Instant, bool)>>,
}

impl Right {
    pub fn new(lease: &Arc<dyn Lease>) -> Self {
        Self { lease: Arc::clone(lease), answer: Mutex::default() }
    }

    /// Whether this process may go on. While the store does not answer, none may.
    pub async fn is_held(&self) -> bool {
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
        let right = Right::new(&lease);
        assert!(right.is_held().await && right.is_held().await);
        tokio::time::advance(BELIEVED - Duration::from_millis(1)).await;
        assert!(right.is_held().await);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!right.is_held().await, "another process has it now");
        tokio::time::advance(BELIEVED).await;
        assert!(right.is_held().await);
    }
}

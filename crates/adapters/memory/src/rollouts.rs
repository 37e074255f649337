//! Rollouts in memory.

use parking_lot::Mutex;
use raingauge_ports::BoxFuture;
use raingauge_ports::rollouts::{self, Error, Run};

#[derive(Debug, Default)]
pub struct Rollouts {
    /// The run with id n is at index n - 1.
    runs: Mutex<Vec<Run>>,
}

impl Rollouts {
    fn begin_now(&self, mut run: Run) -> Result<Run, Error> {
        let mut runs = self.runs.lock();
        if let Some(running) = runs.iter().find(|kept| kept.ended_at.is_none()) {
            return Err(Error::Running(running.id));
        }
        (run.id, run.revision) = (runs.len() as u64 + 1, 1);
        runs.push(run.clone());
        Ok(run)
    }

    fn replace_now(&self, mut run: Run) -> Result<Run, Error> {
        let mut runs = self.runs.lock();
        let id = run.id;
        let kept = runs.iter_mut().find(|kept| kept.id == id).ok_or(Error::NotFound(id))?;
        if kept.revision != run.revision {
            return Err(Error::RevisionMismatch { id, current: kept.revision });
        }
        run.revision += 1;
        kept.clone_from(&run);
        Ok(run)
    }
}

impl rollouts::Rollouts for Rollouts {
    fn begin(&self, run: Run) -> BoxFuture<'_, Result<Run, Error>> {
        let begun = self.begin_now(run);
        Box::pin(async move { begun })
    }

    fn replace(&self, run: Run) -> BoxFuture<'_, Result<Run, Error>> {
        let replaced = self.replace_now(run);
        Box::pin(async move { replaced })
    }

    fn get(&self, id: u64) -> BoxFuture<'_, Result<Run, Error>> {
        let found =
            self.runs.lock().iter().find(|run| run.id == id).cloned().ok_or(Error::NotFound(id));
        Box::pin(async move { found })
    }

    fn list(&self, len_max: usize) -> BoxFuture<'_, Result<Vec<Run>, Error>> {
        let newest = self.runs.lock().iter().rev().take(len_max).cloned().collect();
        Box::pin(async move { Ok(newest) })
    }

    fn running(&self) -> BoxFuture<'_, Result<Option<Run>, Error>> {
        let running = self.runs.lock().iter().find(|run| run.ended_at.is_none()).cloned();
        Box::pin(async move { Ok(running) })
    }
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn the_contract_is_kept() {
        raingauge_ports::contract::rollouts::suite(async || super::Rollouts::default()).await;
    }
}

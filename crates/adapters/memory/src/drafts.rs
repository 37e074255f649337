//! Drafts in memory.

use parking_lot::Mutex;
use raingauge_ports::BoxFuture;
use raingauge_ports::drafts::{self, Draft, Error};

#[derive(Debug, Default)]
pub struct Drafts {
    /// The draft with id n is at index n - 1.
    drafts: Mutex<Vec<Draft>>,
}

impl Drafts {
    fn replace_now(&self, mut draft: Draft) -> Result<Draft, Error> {
        let mut drafts = self.drafts.lock();
        let id = draft.id;
        let kept = drafts.iter_mut().find(|kept| kept.id == id).ok_or(Error::NotFound(id))?;
        if kept.revision != draft.revision {
            return Err(Error::RevisionMismatch { id, current: kept.revision });
        }
        draft.revision += 1;
        kept.clone_from(&draft);
        Ok(draft)
    }
}

impl drafts::Drafts for Drafts {
    fn list(&self, is_open: bool, limit: u32) -> BoxFuture<'_, Result<Vec<Draft>, Error>> {
        let drafts = self.drafts.lock();
        let mut found: Vec<Draft> =
            drafts.iter().filter(|draft| draft.state.is_open() == is_open).cloned().collect();
        found.sort_by_key(|draft| std::cmp::Reverse((draft.changed_at, draft.id)));
        found.truncate(limit as usize);
        Box::pin(async move { Ok(found) })
    }

    fn get(&self, id: u64) -> BoxFuture<'_, Result<Draft, Error>> {
        let found = self
            .drafts
            .lock()
            .iter()
            .find(|draft| draft.id == id)
            .cloned()
            .ok_or(Error::NotFound(id));
        Box::pin(async move { found })
    }

    fn create(&self, mut draft: Draft) -> BoxFuture<'_, Result<Draft, Error>> {
        let mut drafts = self.drafts.lock();
        (draft.id, draft.revision) = (drafts.len() as u64 + 1, 1);
        drafts.push(draft.clone());
        Box::pin(async move { Ok(draft) })
    }

    fn replace(&self, draft: Draft) -> BoxFuture<'_, Result<Draft, Error>> {
        let replaced = self.replace_now(draft);
        Box::pin(async move { replaced })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_contract_is_kept() {
        raingauge_ports::contract::drafts::suite(async || Drafts::default()).await;
    }
}

//! Documents of products in memory.

use parking_lot::Mutex;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::documents::Error;
use raingauge_ports::campaigns::{ChangedDocuments, DocumentStore, Put, StoredDocument};
use std::collections::BTreeMap;
use std::future::ready;

#[derive(Debug, Default)]
pub struct Documents {
    content: Mutex<Content>,
}

#[derive(Debug, Default)]
struct Content {
    revision: i64,
    /// The versions of each document by kind and id, oldest first, with their revisions.
    versions: BTreeMap<(String, String), Vec<(i64, StoredDocument)>>,
}

impl Content {
    fn newest(&self) -> impl Iterator<Item = &(i64, StoredDocument)> {
        self.versions.values().filter_map(|versions| versions.last())
    }

    fn versions(&self, kind: &str, id: &str) -> Vec<StoredDocument> {
        let versions = self.versions.get(&(kind.to_owned(), id.to_owned()));
        let newest_first = versions.into_iter().flatten().rev();
        newest_first.map(|(_, document)| document.clone()).collect()
    }

    fn next_number(&self, kind: &str) -> u64 {
        let number = |(_, id): &(String, String)| {
            let number: u32 = id.parse().unwrap_or_default();
            if number.to_string() == *id { u64::from(number) } else { 0 }
        };
        let own = self.versions.keys().filter(|(own, _)| own == kind);
        own.map(number).max().unwrap_or_default() + 1
    }

    fn put(&mut self, document: StoredDocument, base: u32) -> Put {
        let key = (document.kind.clone(), document.id.clone());
        let newest = self.versions.get(&key).and_then(|versions| versions.last());
        let standing = newest.map(|(_, newest)| (newest.version, newest.is_deleted));
        let next_number = self.next_number(&document.kind);

        let put = document.next(standing, base, next_number);
        if let Put::Stored(stored) = &put {
            self.revision += 1;
            let key = (stored.kind.clone(), stored.id.clone());
            self.versions.entry(key).or_default().push((self.revision, stored.clone()));
        }
        put
    }
}

impl DocumentStore for Documents {
    fn newest(&self) -> BoxFuture<'_, Result<Vec<StoredDocument>, Error>> {
        let content = self.content.lock();
        let newest = content.newest().map(|(_, document)| document);
        let newest = newest.filter(|document| !document.is_deleted).cloned().collect();
        Box::pin(ready(Ok(newest)))
    }

    fn changed_since(&self, revision: i64) -> BoxFuture<'_, Result<ChangedDocuments, Error>> {
        let content = self.content.lock();
        let changed = content.newest().filter(|(changed, _)| *changed > revision);
        let documents = changed.map(|(_, document)| document.clone()).collect();
        Box::pin(ready(Ok(ChangedDocuments { revision: content.revision, documents })))
    }

    fn get<'a>(
        &'a self,
        kind: &'a str,
        id: &'a str,
        version: Option<u32>,
    ) -> BoxFuture<'a, Result<Option<StoredDocument>, Error>> {
        let versions = self.content.lock().versions(kind, id);
        let is_wanted =
            |found: &StoredDocument| version.is_none_or(|version| version == found.version);
        Box::pin(ready(Ok(versions.into_iter().find(is_wanted))))
    }

    fn versions<'a>(
        &'a self,
        kind: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Vec<StoredDocument>, Error>> {
        Box::pin(ready(Ok(self.content.lock().versions(kind, id))))
    }

    fn put(&self, document: StoredDocument, base: u32) -> BoxFuture<'_, Result<Put, Error>> {
        Box::pin(ready(Ok(self.content.lock().put(document, base))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_contract_is_kept() {
        let suite = raingauge_ports::contract::campaigns::documents::suite;
        suite(async || Documents::default()).await;
    }
}

//! The versions of programmes: which was in force at a place of the log, and what each says.

use hashbrown::HashMap;
use raingauge_consumers::control::document_order;
use raingauge_points::document::{CONSUMER, PROGRAMME};
use raingauge_points::{Programme, ProgrammeDocument, Programmes};
use raingauge_ports::campaigns::{DocumentStore, StoredDocument};
use raingauge_ports::consumers::Name;
use raingauge_replay::Error;
use std::sync::Arc;
use tokio::runtime::Handle;

pub struct Versions {
    documents: Arc<dyn DocumentStore>,
    handle: Handle,
    consumer: Name,
    known: HashMap<(String, u32), Option<Arc<Programme>>>,
    in_force: Programmes,
}

impl Versions {
    /// Begins with what was in force at a time: the newest version of each programme until then.
    pub fn at(
        documents: Arc<dyn DocumentStore>,
        handle: Handle,
        at_ms: i64,
    ) -> Result<Self, Error> {
        let mut versions = Self {
            documents: Arc::clone(&documents),
            handle: handle.clone(),
            consumer: Name::new(CONSUMER).expect("it is a name"),
            known: HashMap::new(),
            in_force: Programmes::new(),
        };
        let changed = handle.block_on(documents.changed_since(0))?.documents;
        for StoredDocument { id, .. } in changed.iter().filter(|stored| stored.kind == PROGRAMME) {
            let history = handle.block_on(documents.versions(PROGRAMME, id))?;
            let first = history.into_iter().find(|stored| stored.changed_ms <= at_ms);
            if let Some(stored) = first {
                versions.put(&stored.id, stored.version)?;
            }
        }
        Ok(versions)
    }

    pub fn in_force(&self) -> &Programmes {
        &self.in_force
    }

    /// Obeys a control entry, if it is about a programme.
    pub fn obey(&mut self, payload: &[u8]) -> Result<(), Error> {
        match document_order(payload, &self.consumer) {
            Ok(Some(order)) if order.kind == PROGRAMME => self.put(&order.id, order.version),
            // What the teller could not obey either did not come into force.
            _ => Ok(()),
        }
    }

    fn put(&mut self, name: &str, version: u32) -> Result<(), Error> {
        match self.version(name, version)? {
            Some(programme) => self.in_force.insert(programme),
            None => self.in_force.remove(name),
        }
        Ok(())
    }

    /// A version of a programme; `None` where it says that the programme is deleted, or is lost.
    pub fn version(&mut self, name: &str, version: u32) -> Result<Option<Arc<Programme>>, Error> {
        let key = (name.to_owned(), version);
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }

        let stored = self.handle.block_on(self.documents.get(PROGRAMME, name, Some(version)))?;
        let compiled = stored.filter(|stored| !stored.is_deleted).and_then(|stored| {
            let document = ProgrammeDocument::read(&stored.configuration).ok()?;
            Programme::compile(&document, version).ok().map(Arc::new)
        });
        self.known.insert(key, compiled.clone());
        Ok(compiled)
    }
}

//! What is in force, and how far the log is awarded.

use crate::error::Error;
pub use raingauge_points::document::PROGRAMME;
use raingauge_points::{Programme, ProgrammeDocument, Programmes};
use raingauge_ports::campaigns::StoredDocument;
use raingauge_ports::log::Offset;
use raingauge_ports::points::Head;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The programmes in force, as of one position of the log.
#[derive(Clone, Default)]
pub struct Snapshot {
    programmes: Arc<Programmes>,
    documents: Arc<BTreeMap<String, Arc<StoredDocument>>>,
    /// The log is awarded up to here.
    pub position: Offset,
}

impl Snapshot {
    /// Nothing is in force yet, at this position of the log.
    pub(crate) fn at(position: Offset) -> Self {
        Self { position, ..Self::default() }
    }

    /// The programmes in force, compiled.
    pub fn programmes(&self) -> &Arc<Programmes> {
        &self.programmes
    }

    pub fn programme(&self, name: &str) -> Option<&Arc<Programme>> {
        self.programmes.get(name)
    }

    /// The document of a programme in force.
    pub fn document(&self, name: &str) -> Option<&StoredDocument> {
        self.documents.get(name).map(|document| &**document)
    }

    /// The documents in force, by name.
    pub fn documents(&self) -> impl Iterator<Item = &StoredDocument> {
        self.documents.values().map(|document| &**document)
    }

    /// The version of a document that is in force.
    pub fn version_of(&self, kind: &str, id: &str) -> Option<u32> {
        let document = self.documents.get(id).filter(|_| kind == PROGRAMME)?;
        Some(document.version)
    }

    /// The same programmes with others at new versions.
    pub fn with(&self, changed: Vec<StoredDocument>) -> Result<Self, Error> {
        let mut documents = (*self.documents).clone();
        let mut programmes = Programmes::new();
        for document in changed {
            documents.insert(document.id.clone(), Arc::new(document));
        }

        for document in documents.values() {
            let known = self.programmes.get(&document.id);
            let programme = match known.filter(|known| known.version == document.version) {
                Some(known) => Arc::clone(known),
                None => Arc::new(compiled(document)?),
            };
            programmes.insert(programme);
        }
        programmes.keep_all_of(&self.programmes);
        programmes.forget_others(&BTreeSet::new());
        Ok(Self {
            programmes: Arc::new(programmes),
            documents: Arc::new(documents),
            position: self.position,
        })
    }

    /// The same programmes, beside versions that are needed and were not known.
    pub(crate) fn knowing(
        &self,
        versions: Vec<Programme>,
        needed: &BTreeSet<(Arc<str>, u32)>,
    ) -> Self {
        let mut programmes = (*self.programmes).clone();
        versions.into_iter().for_each(|version| programmes.keep(Arc::new(version)));
        programmes.forget_others(needed);
        Self { programmes: Arc::new(programmes), ..self.clone() }
    }

    /// The versions that are in force in books and not here.
    pub fn missing(&self, heads: &[Head]) -> Vec<(Arc<str>, u32)> {
        let versions = heads.iter().flat_map(|head| &head.versions);
        let newer = versions.filter(|(name, version)| {
            self.version_of(PROGRAMME, name).is_none_or(|known| known < *version)
        });
        let mut missing = BTreeMap::new();
        for (name, version) in newer {
            let newest = missing.entry(Arc::clone(name)).or_insert(*version);
            *newest = (*newest).max(*version);
        }
        missing.into_iter().collect()
    }
}

pub(crate) fn compiled(document: &StoredDocument) -> Result<Programme, Error> {
    let StoredDocument { id, version, configuration, .. } = document;
    let read = ProgrammeDocument::read(configuration);
    let compiled = read.and_then(|read| Programme::compile(&read, *version));
    compiled.map_err(|problems| {
        let why = problems.first().map(|problem| problem.detail.clone()).unwrap_or_default();
        Error::Unreadable { id: id.clone(), version: *version, why }
    })
}

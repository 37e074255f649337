//! The engine of the documents in effect, made when it is needed first: many documents may take
//! effect one behind the other, and no event between them.

use crate::documents::Documents;
use raingauge_campaigns::campaign::CampaignId;
use raingauge_campaigns::engine::Engine;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// What decides by documents.
#[derive(Debug)]
pub struct Compiled {
    documents: Arc<Documents>,
    /// Campaigns that count, and do not decide yet.
    warming: BTreeSet<CampaignId>,
    late_after_ms: i64,
    engine: OnceLock<Arc<Engine>>,
}

impl Compiled {
    pub(crate) fn new(
        documents: Arc<Documents>,
        warming: BTreeSet<CampaignId>,
        late_after_ms: i64,
    ) -> Self {
        Self { documents, warming, late_after_ms, engine: OnceLock::new() }
    }

    pub fn documents(&self) -> &Arc<Documents> {
        &self.documents
    }

    pub fn engine(&self) -> &Arc<Engine> {
        self.engine.get_or_init(|| {
            let documents = self.documents.engine_documents(&self.warming, self.late_after_ms);
            Arc::new(Engine::new(documents))
        })
    }
}

//! What can be proposed as a draft. Drafts are closed to partners, as the routes are.

use crate::{AdjustmentKind, Points};
use raingauge_counters::documents::DocumentKind;
use raingauge_documents::ProductKind;
use std::sync::Arc;

impl Points {
    /// The kinds of documents that drafts propose.
    pub fn kinds(&self) -> Vec<Arc<dyn DocumentKind>> {
        vec![Arc::new(self.programme_kind()), Arc::new(AdjustmentKind::new(self.clone()))]
    }

    pub(crate) fn programme_kind(&self) -> ProductKind {
        let points = self.clone();
        let check_token = move |name: &str| points.source_of_token(name).check_operator();
        ProductKind::programmes(Arc::clone(&self.documents), check_token)
    }
}

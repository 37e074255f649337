//! Lookups, over the engines of this process.

use crate::products::Foundation;
use crate::services::CampaignEngines;
use parking_lot::Mutex;
use raingauge_campaigns::documents::{Assembly, Lookup, Stored, assemble};
use raingauge_lookups::{Answers, CounterRange, Counts, Deps, Options};
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::Lookups;
use raingauge_ports::log::Offset;
use raingauge_ports::published::Published;
use raingauge_reader::{Range, Reader};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The lookups in effect, by name. Clones share them.
#[derive(Clone, Default)]
pub struct Definitions(Arc<Mutex<Arc<BTreeMap<String, Lookup>>>>);

impl Definitions {
    pub fn update(&self, documents: &Assembly) {
        *self.0.lock() = Arc::new(documents.lookups.clone());
    }

    fn get(&self, name: &str) -> Option<Lookup> {
        let lookups = Arc::clone(&self.0.lock());
        lookups.get(name).cloned()
    }
}

/// Opens the service. Until the worker tells what is in effect, the newest lookups are.
pub async fn open(
    foundation: &Foundation,
    engines: &CampaignEngines,
) -> anyhow::Result<(Arc<dyn Lookups>, Definitions)> {
    let definitions = Definitions::default();
    let newest = foundation.documents.newest().await?;
    let stored = newest.iter().map(|document| Stored {
        kind: &document.kind,
        id: &document.id,
        version: document.version,
        configuration: &document.configuration,
    });
    definitions.update(&assemble(stored, 0));

    let own = definitions.clone();
    let counts = CounterLookup {
        reader: Arc::clone(&foundation.counts),
        published: Arc::clone(&foundation.published),
    };
    let deps = Deps {
        definitions: Arc::new(move |name| own.get(name)),
        tables: Arc::clone(&engines.tables),
        counts: Arc::new(counts),
        sender: Arc::clone(&engines.sender),
        databases: Arc::clone(&engines.databases),
        clock: Arc::clone(&foundation.wall_clock),
    };
    Ok((Arc::new(Answers::new(deps, &Options::default())), definitions))
}

/// Counters as lookups read them: with the event that is decided.
struct CounterLookup {
    reader: Arc<Reader>,
    published: Arc<Published>,
}

impl Counts for CounterLookup {
    fn counts<'a>(
        &'a self,
        ranges: &'a [CounterRange],
        after: Offset,
    ) -> BoxFuture<'a, Vec<Result<i64, String>>> {
        Box::pin(async move {
            // The log of the embedded engines has one partition.
            if let Err(reason) = self.published.wait_applied(&[(0, after)]).await {
                return vec![Err(format!("counting has stopped: {reason}")); ranges.len()];
            }
            let ranges: Vec<Range<'_>> = ranges
                .iter()
                .map(|CounterRange { key, range_s: (from_s, to_s) }| Range {
                    key,
                    from_s: *from_s,
                    to_s: *to_s,
                    fresh: true,
                })
                .collect();
            let counts = self.reader.counts(&ranges).await;
            let text = |count: Result<raingauge_reader::Answer, raingauge_core::code::Refusal>| {
                count.map(|answer| answer.count).map_err(|refusal| refusal.detail)
            };
            counts.into_iter().map(text).collect()
        })
    }
}

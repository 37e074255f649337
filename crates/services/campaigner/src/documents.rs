//! The documents in effect, and what the engine makes of them.

use raingauge_campaigns::calendar::Period;
use raingauge_campaigns::campaign::{Action, Campaign, CampaignId, Count, CountWindow, History};
use raingauge_campaigns::documents::{Assembly, Document, Kind, Stored, assemble};
use raingauge_campaigns::engine::{self, LookupRule, Release};
use raingauge_campaigns::message::Messages;
use raingauge_ports::campaigns::StoredDocument;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

const DAY_MS: i64 = 86_400_000;

/// Kind and id of a document.
pub type Name = (String, String);

/// Documents, each at one version.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    all: BTreeMap<Name, Arc<StoredDocument>>,
    campaigns: BTreeMap<CampaignId, Arc<Released>>,
    /// All documents but the campaigns.
    shared: Arc<Assembly>,
}

/// A version of a campaign that is in effect.
#[derive(Debug)]
pub(crate) struct Released {
    pub version: u32,
    pub campaign: Campaign,
    messages: OnceLock<Option<Messages>>,
}

impl Released {
    /// The texts of the campaign, which are compiled when the first one is needed. `None` if they
    /// do not compile, which is seen to when the campaign is saved.
    pub fn messages(&self) -> Option<&Messages> {
        self.messages.get_or_init(|| Messages::compile(&self.campaign).ok()).as_ref()
    }

    pub fn action(&self, step: &str, name: &str) -> Option<&Action> {
        let step = self.campaign.steps.iter().find(|known| known.name == step)?;
        step.actions.iter().find(|known| known.name == name)
    }
}

impl Documents {
    /// Documents at their versions. Deleted ones are left out.
    pub fn of(stored: impl IntoIterator<Item = StoredDocument>) -> Self {
        let mut documents = Self::default();
        documents.insert_all(stored);
        documents
    }

    /// The same documents with others at new versions.
    #[must_use]
    pub fn with(&self, stored: impl IntoIterator<Item = StoredDocument>) -> Self {
        let mut documents = self.clone();
        documents.insert_all(stored);
        documents
    }

    pub fn get(&self, kind: &str, id: &str) -> Option<&StoredDocument> {
        self.all.get(&(kind.to_owned(), id.to_owned())).map(|document| &**document)
    }

    /// All documents, by kind and id.
    pub fn iter(&self) -> impl Iterator<Item = &StoredDocument> {
        self.all.values().map(|document| &**document)
    }

    pub fn campaign(&self, id: CampaignId) -> Option<&Campaign> {
        self.released(id).map(|released| &released.campaign)
    }

    pub fn campaigns(&self) -> impl Iterator<Item = &Campaign> {
        self.campaigns.values().map(|released| &released.campaign)
    }

    /// Destinations, lookups, tables and the other documents that campaigns name.
    pub fn shared(&self) -> &Assembly {
        &self.shared
    }

    /// How lookups are treated that differ from what their class does.
    pub fn rules(&self) -> &BTreeMap<String, LookupRule> {
        &self.shared.documents.lookups
    }

    pub(crate) fn released(&self, id: CampaignId) -> Option<&Released> {
        self.campaigns.get(&id).map(|released| &**released)
    }

    /// What the engine is made of. Campaigns that are warming count, and do not decide.
    pub fn engine_documents(
        &self,
        warming: &BTreeSet<CampaignId>,
        late_after_ms: i64,
    ) -> engine::Documents {
        let release = |released: &Arc<Released>| Release {
            version: released.version,
            campaign: released.campaign.clone(),
            is_warming: warming.contains(&released.campaign.id),
        };
        engine::Documents {
            campaigns: self.campaigns.values().map(release).collect(),
            late_after_ms,
            ..self.shared.documents.clone()
        }
    }

    fn insert_all(&mut self, stored: impl IntoIterator<Item = StoredDocument>) {
        let mut is_shared = false;
        for document in stored {
            is_shared |= document.kind != Kind::Campaign.name();
            self.insert(document);
        }
        if is_shared {
            self.assemble();
        }
    }

    fn insert(&mut self, document: StoredDocument) {
        let name = (document.kind.clone(), document.id.clone());
        if document.kind == Kind::Campaign.name()
            && let Ok(id) = document.id.parse::<CampaignId>()
        {
            match released(id, &document) {
                Some(released) => self.campaigns.insert(id, Arc::new(released)),
                None => self.campaigns.remove(&id),
            };
        }

        if document.is_deleted {
            self.all.remove(&name);
        } else {
            self.all.insert(name, Arc::new(document));
        }
    }

    fn assemble(&mut self) {
        let shared = self.all.values().filter(|document| document.kind != Kind::Campaign.name());
        let stored = shared.map(|document| Stored {
            kind: &document.kind,
            id: &document.id,
            version: document.version,
            configuration: &document.configuration,
        });
        let assembly = assemble(stored, 0);
        for unreadable in &assembly.unreadable {
            tracing::error!(?unreadable, "a document in effect cannot be read: upgrade raingauge");
        }
        self.shared = Arc::new(assembly);
    }
}

fn released(id: CampaignId, document: &StoredDocument) -> Option<Released> {
    let StoredDocument { version, is_deleted, configuration, .. } = document;
    if *is_deleted {
        return None;
    }
    match Document::read(Kind::Campaign, configuration) {
        Ok(Document::Campaign(campaign)) => {
            let campaign = Campaign { id, ..*campaign };
            Some(Released { version: *version, campaign, messages: OnceLock::new() })
        }
        Ok(_) => None,
        Err(problems) => {
            tracing::error!(
                campaign = id,
                version,
                ?problems,
                "a campaign in effect cannot be read, and does nothing: upgrade raingauge"
            );
            None
        }
    }
}

/// Whether a count begins with the events of the log: where it says so, or where the campaign is
/// active before it takes effect.
pub(crate) fn begins_in_log(campaign: &Campaign, count: &Count, log_ms: i64) -> bool {
    match count.history {
        Some(History::Log) => true,
        Some(History::None) => false,
        None => campaign.active_from.is_some_and(|from_s| from_s.saturating_mul(1_000) < log_ms),
    }
}

/// Events that happened before this do not matter to a count that begins in the log now.
pub(crate) fn counted_since_ms(campaign: &Campaign, count: &Count, log_ms: i64) -> i64 {
    match &count.window {
        CountWindow::Campaign => campaign.activity_ms().0,
        CountWindow::Calendar(Period::Day) => log_ms.saturating_sub(3 * DAY_MS),
        CountWindow::Calendar(Period::Week) => log_ms.saturating_sub(15 * DAY_MS),
        CountWindow::Calendar(Period::Month) => log_ms.saturating_sub(63 * DAY_MS),
        CountWindow::Last(length) => log_ms.saturating_sub(length.ms()),
        CountWindow::Counter { .. } => i64::MAX,
    }
}

//! `POST /v1/campaigns/{id}/…`: starts and stops campaigns.

use crate::Campaigns;
use crate::Table;
use crate::contract::documents as doc;
use crate::refused::Answer;
use axum::extract::{Extension, Path};
use axum::http::HeaderMap;
use raingauge_campaigns::documents::Kind;
use raingauge_core::access::Scope;
use raingauge_documents::Provenance;
use raingauge_http::change::{expected_version, reason};
use raingauge_people::Principal;
use std::sync::Arc;

pub fn add(table: Table) -> Table {
    const OPERATE: Scope = Scope::CampaignsOperate;
    table
        .post("/v1/campaigns/{id}/pause", (OPERATE, "campaign.pause"), pause, doc::pause)
        .post("/v1/campaigns/{id}/resume", (OPERATE, "campaign.resume"), resume, doc::resume)
        .post("/v1/campaigns/{id}/shadow", (OPERATE, "campaign.shadow"), shadow, doc::shadow)
        .post(
            "/v1/campaigns/{id}/activate",
            (OPERATE, "campaign.activate"),
            activate,
            doc::activate,
        )
        .post("/v1/campaigns/{id}/archive", (OPERATE, "campaign.archive"), archive, doc::archive)
}

/// A handler that gives a campaign a state.
macro_rules! sets {
    ($name:ident, $state:literal) => {
        #[doc = concat!("`POST /v1/campaigns/{id}/", stringify!($name), "`")]
        async fn $name(
            Extension(campaigns): Extension<Arc<Campaigns>>,
            Extension(who): Extension<Principal>,
            Path(id): Path<u32>,
            headers: HeaderMap,
        ) -> Answer {
            campaigns.set_state(id, $state, &who, &headers).await
        }
    };
}

sets!(pause, "paused");
sets!(resume, "active");
sets!(shadow, "shadow");
sets!(activate, "active");
sets!(archive, "archived");

impl Campaigns {
    async fn set_state(
        &self,
        id: u32,
        state: &str,
        who: &Principal,
        headers: &HeaderMap,
    ) -> Answer {
        let expected = expected_version(headers)?;
        let name = who.recorded_name();
        let provenance = Provenance { by: &name, reason: reason(headers) };
        let kind = Kind::Campaign;
        let id = id.to_string();
        let stored = self.documents.set_state(kind, &id, state, expected, provenance).await?;
        self.answer(kind, stored).await
    }
}

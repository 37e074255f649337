//! `DELETE /v1/subjects/{subject}`: erases what campaigns remember of a subject.

use crate::contract::subjects as doc;
use crate::refused::{Answer, Refused};
use crate::{Campaigns, Table};
use axum::Json;
use axum::extract::{Extension, Path};
use raingauge_campaigner::OperatorError;
use raingauge_campaigns::limits::SUBJECT_LEN_MAX;
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use serde_json::{Value, json};
use std::sync::Arc;

pub fn add(table: Table) -> Table {
    let operate = (Scope::CampaignsOperate, "subject.erase");
    table.delete("/v1/subjects/{subject}", operate, erase, doc::erase)
}

/// `DELETE /v1/subjects/{subject}`
async fn erase(
    Extension(campaigns): Extension<Arc<Campaigns>>,
    Path(subject): Path<String>,
) -> Answer<Json<Value>> {
    campaigns.erase(&subject).await?;
    Ok(Json(json!({ "subject": subject, "erased": true })))
}

impl Campaigns {
    /// Erases a subject, whose name may be that of any.
    pub(crate) async fn erase(&self, subject: &str) -> Answer<()> {
        if subject.is_empty() || subject.len() > SUBJECT_LEN_MAX {
            let detail = format!("a subject has between 1 and {SUBJECT_LEN_MAX} bytes");
            return Err(Refused::new(Code::RequestMalformed, detail));
        }
        self.operator.erase(subject).await?;
        Ok(self.history.erase(subject).await?)
    }
}

impl From<OperatorError> for Refused {
    fn from(error: OperatorError) -> Self {
        let detail = error.to_string();
        match error {
            OperatorError::Ledger(error) => error.into(),
            OperatorError::Log(error) => Self(raingauge_app::Problem::from(error).into()),
            OperatorError::NotInEffect { .. } => Self::new(Code::Unavailable, detail),
        }
    }
}

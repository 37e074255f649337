//! Adjustments as drafts: one person proposes them, and a second one approves.

use crate::commands::{Adjustment, needs_second};
use crate::source::Source;
use crate::{Points, answers};
use raingauge_awarding as awarding;
use raingauge_core::access::{Role, Scope};
use raingauge_core::code::Refusal;
use raingauge_core::counter::Problem;
use raingauge_counters::difference::FieldChange;
use raingauge_counters::documents::{Document, DocumentKind, Error, KindScopes, Provenance};
use raingauge_documents::between;
use raingauge_points::{Answer, Day, Number};
use raingauge_ports::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// Adjustments, as the workflow of drafts makes them. One has a single version: the entry that it
/// became.
pub struct AdjustmentKind(Points);

/// The configuration of a draft.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Configuration {
    programme: Arc<str>,
    member: Arc<str>,
    /// What makes it happen once, however often the draft is applied.
    key: Arc<str>,
    points: Number,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_on: Option<Day>,
    reason: Arc<str>,
}

impl AdjustmentKind {
    pub const NAME: &'static str = "adjustment";

    pub fn new(points: Points) -> Self {
        Self(points)
    }

    fn read_configuration(&self, configuration: &Value) -> Result<Configuration, Error> {
        let mut members = configuration.clone();
        if let Some(members) = members.as_object_mut() {
            // An adjustment has no number of its own.
            members.remove("id");
        }
        serde_json::from_value(members)
            .map_err(|error| Error::Invalid(vec![Problem::new("", error.to_string())]))
    }

    async fn apply(
        &self,
        configuration: &Value,
        provenance: Provenance<'_>,
    ) -> Result<Document, Error> {
        let Configuration { programme, member, key, points, expires_on, reason } =
            self.read_configuration(configuration)?;
        let adjustment = Adjustment { programme, member, key, points, expires_on, reason };
        let conversion = self.0.conversion(Source::Operator);
        let command = conversion.approved(adjustment).map_err(refused)?;

        // A refusal would be the answer to its key for ever, and the draft could not be applied
        // once the member has the points.
        let tried = self.0.teller.try_out(vec![command.clone()]).await.pop();
        if let Some(Ok(Answer::Refused { refusal, .. } | Answer::Invalid(refusal))) = tried {
            return Err(refused(refusal));
        }
        let mut answers = self.0.teller.submit(vec![command]).await;
        let entry = match answers.pop() {
            Some(Ok(Answer::Done(entries))) => entries.into_iter().next(),
            Some(Ok(Answer::Replayed(entry))) => Some(entry),
            Some(Ok(Answer::Refused { refusal, .. } | Answer::Invalid(refusal))) => {
                return Err(refused(refusal));
            }
            Some(Err(error)) => return Err(unavailable(&error)),
            None => None,
        };
        let mut configuration = configuration.clone();
        let sequence = entry.as_ref().map_or(0, |entry| entry.sequence);
        configuration["entry"] = entry.map_or(Value::Null, |entry| answers::place(&entry));
        Ok(Document {
            id: sequence,
            version: 1,
            configuration,
            changed_by: provenance.by.to_owned(),
            reason: provenance.reason.to_owned(),
        })
    }
}

impl DocumentKind for AdjustmentKind {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn scopes(&self) -> KindScopes {
        KindScopes {
            read: Scope::PointsRead,
            propose: Scope::PointsCorrect,
            apply: Scope::PointsCorrect,
        }
    }

    /// As the page of the member.
    fn reader(&self) -> Role {
        Role::Editor
    }

    fn check_token(&self, name: &str) -> Result<(), Refusal> {
        self.0.source_of_token(name).check_operator()
    }

    fn check(&self, configuration: &Value) -> Result<Value, Error> {
        let read = self.read_configuration(configuration)?;
        let stored = json!(read);
        let Configuration { programme, member, key, points, expires_on, reason } = read;
        let adjustment = Adjustment { programme, member, key, points, expires_on, reason };
        self.0.conversion(Source::Operator).approved(adjustment).map_err(refused)?;
        Ok(stored)
    }

    fn read(&self, id: u64, _version: Option<u32>) -> BoxFuture<'_, Result<Document, Error>> {
        let detail =
            format!("adjustment {id} is an entry by now: read the statement of the member");
        Box::pin(std::future::ready(Err(Error::NotFound(detail))))
    }

    fn create<'a>(
        &'a self,
        configuration: &'a Value,
        provenance: Provenance<'a>,
    ) -> BoxFuture<'a, Result<Document, Error>> {
        Box::pin(self.apply(configuration, provenance))
    }

    fn replace<'a>(
        &'a self,
        _configuration: &'a Value,
        _base: u32,
        _provenance: Provenance<'a>,
    ) -> BoxFuture<'a, Result<Document, Error>> {
        let detail = "an adjustment is final: propose another one with a key of its own";
        Box::pin(std::future::ready(Err(Error::Refused(detail.to_owned()))))
    }

    fn needs_second<'a>(&'a self, configuration: &'a Value) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            let read = self.read_configuration(configuration)?;
            let programme = self.0.programme(&read.programme).map_err(refused)?;
            let points = programme.points_of(&read.points).map_err(refused)?;
            Ok(needs_second(points, &programme, self.0.adjust_review))
        })
    }

    fn differences(&self, before: &Value, after: &Value) -> Vec<FieldChange> {
        between(before, after)
    }
}

fn refused(refusal: Refusal) -> Error {
    let Refusal { code, detail } = refusal;
    Error::Invalid(vec![Problem::new("", format!("{detail} ({})", code.as_str()))])
}

fn unavailable(error: &awarding::Error) -> Error {
    Error::Unavailable(error.to_string())
}

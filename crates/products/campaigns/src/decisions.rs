//! `GET /v1/decisions`: what was granted and refused, newest first, in pages or as lines.

use crate::Campaigns;
use crate::Table;
use crate::contract::usage as doc;
use crate::refused::{Answer, Refused};
use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Query};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream;
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_http::queries::{Parameters, time};
use raingauge_ports::campaigns::limits::LEDGER_PAGE_LEN_MAX;
use raingauge_ports::campaigns::{Decision, DecisionPlace, DecisionQuery, Decisions, Error};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// The media type of an answer with one decision a line.
const LINES: &str = "application/x-ndjson";

pub fn add(table: Table) -> Table {
    table.get("/v1/decisions", Scope::CampaignsRead, list, doc::decisions)
}

/// `GET /v1/decisions`
async fn list(
    Extension(campaigns): Extension<Arc<Campaigns>>,
    Query(given): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Answer {
    let parameters = Parameters::of(given);
    let now_ms = campaigns.clock.now_ms();
    let after = parameters.text("after").map(|text| place_of(&text)).transpose()?;
    let query = DecisionQuery {
        campaign: parameters.value("campaign")?,
        subject: parameters.text("subject"),
        outcome: parameters.text("outcome"),
        from_ms: parameters.time_ms("from", now_ms)?.unwrap_or(i64::MIN),
        to_ms: parameters.time_ms("to", now_ms)?,
        after,
        len_max: parameters.limit(LEDGER_PAGE_LEN_MAX)?,
    };

    if accepts_lines(&headers) {
        return Ok(lines(campaigns, query));
    }
    let Decisions { decisions, next } = campaigns.page(query).await?;
    let decisions: Vec<Value> = decisions.iter().map(shown).collect();
    let next = next.map(|place| format!("{}_{}", place.decided_ms, place.action));
    Ok(Json(json!({ "decisions": decisions, "next": next })).into_response())
}

impl Campaigns {
    /// Reads pages until one has a decision: the ledger examines a bounded number for each.
    async fn page(&self, mut query: DecisionQuery) -> Result<Decisions, Error> {
        loop {
            let page = self.ledger.decisions(query.clone()).await?;
            if !page.decisions.is_empty() || page.next.is_none() {
                return Ok(page);
            }
            query.after = page.next;
        }
    }
}

fn accepts_lines(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("ndjson"))
}

/// Answers all decisions of a query, one a line, as the reader takes them. An error breaks the
/// answer off.
fn lines(campaigns: Arc<Campaigns>, query: DecisionQuery) -> Response {
    let query = DecisionQuery { len_max: LEDGER_PAGE_LEN_MAX, ..query };
    let pages = stream::try_unfold(Some(query), move |query| {
        let campaigns = Arc::clone(&campaigns);
        async move {
            let Some(query) = query else { return Ok::<_, Error>(None) };
            let page = campaigns.ledger.decisions(query.clone()).await?;
            let text: String =
                page.decisions.iter().map(|decision| format!("{}\n", shown(decision))).collect();
            let next = page.next.map(|after| DecisionQuery { after: Some(after), ..query });
            Ok(Some((Bytes::from(text), next)))
        }
    });
    ([(header::CONTENT_TYPE, LINES)], Body::from_stream(pages)).into_response()
}

/// A decision, as it is answered.
pub fn shown(decision: &Decision) -> Value {
    let cost = decision.cost.as_ref();
    let evidence: Value = serde_json::from_str(&decision.evidence).unwrap_or_default();
    let mut shown = json!({
        "campaign": decision.campaign,
        "version": decision.version,
        "step": decision.step,
        "name": decision.name,
        "subject": decision.subject,
        "source": decision.source,
        "event": decision.event,
        "eventTime": time(decision.event_ms),
        "decidedAt": time(decision.decided_ms),
        "outcome": decision.outcome,
        "variant": decision.variant,
        "cost": cost.map(|cost| json!({ "budget": cost.budget.name, "amount": cost.amount })),
        "evidence": evidence,
    });
    if decision.is_granted {
        shown["action"] = json!(decision.action);
    }
    shown
}

/// Reads the place that a page named as its `next`.
fn place_of(text: &str) -> Result<DecisionPlace, Refused> {
    let place = text.split_once('_').and_then(|(decided_ms, action)| {
        Some(DecisionPlace { decided_ms: decided_ms.parse().ok()?, action: action.parse().ok()? })
    });
    place.ok_or_else(|| {
        Refused::new(Code::RequestMalformed, "after must be the `next` of the page before")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_ports::campaigns::ActionId;

    #[test]
    fn a_page_is_continued_where_it_ended() {
        let action = ActionId([7; 16]);
        let place = DecisionPlace { decided_ms: -5, action };
        assert_eq!(place_of(&format!("-5_{action}")).unwrap(), place);
        for wrong in ["", "5", "5_7", "x_act_1"] {
            assert!(place_of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_was_not_granted_has_no_action() {
        let decision = Decision {
            action: ActionId([7; 16]),
            is_granted: false,
            campaign: 7,
            version: 1,
            step: "s".to_owned(),
            name: "n".to_owned(),
            subject: "u".to_owned(),
            source: "m".to_owned(),
            event: "o".to_owned(),
            event_ms: 1_727_136_000_999,
            decided_ms: 0,
            outcome: "limit_reached".to_owned(),
            variant: None,
            cost: None,
            evidence: "{\"a\":1}".to_owned(),
        };
        let refused = shown(&decision);
        assert!(refused.get("action").is_none());
        assert_eq!(refused["eventTime"], "2024-09-24T00:00:00Z");
        assert_eq!(refused["evidence"]["a"], 1);
        let granted = shown(&Decision { is_granted: true, ..decision });
        assert_eq!(granted["action"], ActionId([7; 16]).to_string());
    }

    #[test]
    fn lines_are_asked_for_by_their_media_type() {
        let accepts = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, header::HeaderValue::from_static(text));
            accepts_lines(&headers)
        };
        assert!(accepts("application/x-ndjson") && accepts("application/ndjson, */*"));
        assert!(!accepts("application/json") && !accepts_lines(&HeaderMap::new()));
    }
}

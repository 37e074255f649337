//! `POST /v1/points/transactions` and `/v1/points/corrections`.

use crate::answers::Results;
use crate::awards::Manner;
use crate::contract::ledger as doc;
use crate::refused::{Answer, Refused};
use crate::requests::{Batch, TransactionRequest};
use crate::source::Source;
use crate::transaction_kind::{Family, TransactionKind};
use crate::{Points, Table};
use axum::Json;
use axum::extract::Extension;
use raingauge_core::access::Scope;
use raingauge_core::code::{Code, Refusal};
use raingauge_http::{Body, Trial};
use raingauge_people::Principal;
use raingauge_points::Command;
use raingauge_points::limits::TOGETHER_MAX;
use std::sync::Arc;

pub fn add(table: Table) -> Table {
    let corrected = (Scope::PointsCorrect, "points.correct");
    table.ask("/v1/points/transactions", Scope::PointsSpend, transact, doc::transactions).post(
        "/v1/points/corrections",
        corrected,
        correct,
        doc::corrections,
    )
}

/// `POST /v1/points/transactions`
async fn transact(
    Extension(points): Extension<Arc<Points>>,
    Extension(who): Extension<Principal>,
    body: Body<Trial>,
) -> Answer<Json<Results>> {
    let batch = Batch::read(&body.bytes, "transactions")?;
    points.decide(&who, batch, Family::Transactions).await
}

/// `POST /v1/points/corrections`
async fn correct(
    Extension(points): Extension<Arc<Points>>,
    Extension(who): Extension<Principal>,
    body: Body<Trial>,
) -> Answer<Json<Results>> {
    let batch = Batch::read(&body.bytes, "corrections")?;
    points.decide(&who, batch, Family::Corrections).await
}

impl Points {
    async fn decide(
        &self,
        who: &Principal,
        batch: Batch<TransactionRequest>,
        family: Family,
    ) -> Answer<Json<Results>> {
        let Batch { items, is_atomic } = batch;
        if is_atomic && items.len() > TOGETHER_MAX {
            let detail = format!("at most {TOGETHER_MAX} transactions happen together");
            return Err(Refused::new(Code::TooManyAwards, detail));
        }

        let source = self.source(who);
        let conversion = self.conversion(source.clone());
        let mut commands: Vec<Result<Command, Refusal>> = Vec::with_capacity(items.len());
        for request in items {
            let request = request.map(|request| by_key(request, &source));
            let request = request.and_then(|request| own_correction(request, family, &source));
            commands.push(request.and_then(|request| conversion.transaction(request, family)));
        }
        let manner = if is_atomic { Manner::Together } else { Manner::Each };
        Ok(Json(self.results(commands, manner).await?))
    }
}

/// Partners take back by keys alone, and so does who says whose key it is: their reference is one.
/// The ledger knows which reference of an operator is a key.
fn by_key(mut request: TransactionRequest, source: &Source) -> TransactionRequest {
    let is_named = request.kind != TransactionKind::Reverse || request.award.is_some();
    if !is_named && (*source != Source::Operator || request.source.is_some()) {
        request.award = request.reference.take();
    }
    request
}

/// Refuses corrections by partners, except for reversals of their own awards, named by key.
fn own_correction(
    request: TransactionRequest,
    family: Family,
    source: &Source,
) -> Result<TransactionRequest, Refusal> {
    let is_own = request.kind == TransactionKind::Reverse && request.award.is_some();
    if matches!(family, Family::Corrections) && !is_own {
        source.check_operator()?;
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::item_of;
    use serde_json::{Value, json};

    #[test]
    fn a_partner_takes_back_its_own_awards_alone() {
        let partner = Source::Partner("skyair".into());
        let allowed = |item: Value, source: &Source| {
            own_correction(item_of(item).expect("a request"), Family::Corrections, source).is_ok()
        };
        let own =
            json!({"kind": "reverse", "programme": "p", "member": "m", "key": "r", "award": "a"});
        let any = json!({"kind": "reverse", "programme": "p", "member": "m", "key": "r", "reference": "o"});
        let adjust =
            json!({"kind": "adjust", "programme": "p", "member": "m", "key": "j", "points": 5});
        assert!(allowed(own.clone(), &partner));
        assert!(!allowed(any.clone(), &partner));
        let by_key = by_key(item_of(any.clone()).expect("a request"), &partner);
        assert_eq!(by_key.award.as_deref(), Some("o"));
        assert!(!allowed(adjust.clone(), &partner));
        for item in [own, any, adjust] {
            assert!(allowed(item, &Source::Operator));
        }
    }
}

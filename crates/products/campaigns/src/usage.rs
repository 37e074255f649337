//! What campaigns used: grants and refusals by local day, budgets, and who saw which variant.

use crate::Campaigns;
use crate::Table;
use crate::contract::usage as doc;
use crate::refused::{Answer, Refused};
use axum::Json;
use axum::extract::{Extension, Path, Query};
use raingauge_campaigns::budget::{Budget, BudgetPeriod};
use raingauge_campaigns::calendar::{Period, Zone};
use raingauge_campaigns::campaign::{Campaign, ZoneSource};
use raingauge_campaigns::documents::Kind;
use raingauge_campaigns::states::exposure_owner;
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_http::queries::Parameters;
use raingauge_ports::campaigns::limits::LEDGER_PAGE_LEN_MAX;
use raingauge_ports::campaigns::{Decision, DecisionQuery, StateKey, StateKind};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Most decisions that one answer adds up.
const DECISIONS_MAX: usize = 200_000;
/// Most units that one answer counts.
const UNITS_MAX: usize = 1_000_000;
const DAY_MS: i64 = 86_400_000;

type Services = Extension<Arc<Campaigns>>;

pub fn add(table: Table) -> Table {
    const READ: Scope = Scope::CampaignsRead;
    table
        .get("/v1/campaigns/{id}/usage", READ, usage, doc::usage)
        .get("/v1/campaigns/{id}/budgets", READ, budgets, doc::budgets)
        .get("/v1/campaigns/{id}/exposures", READ, exposures, doc::exposures)
}

/// `GET /v1/campaigns/{id}/usage`: by default, the last 30 days.
async fn usage(
    Extension(campaigns): Services,
    Path(id): Path<u32>,
    Query(given): Query<HashMap<String, String>>,
) -> Answer<Json<Value>> {
    let parameters = Parameters::of(given);
    let now_ms = campaigns.clock.now_ms();
    let campaign = campaigns.campaign(id).await?;
    let mut query = DecisionQuery {
        campaign: Some(id),
        from_ms: parameters.time_ms("from", now_ms)?.unwrap_or(now_ms - 30 * DAY_MS),
        to_ms: parameters.time_ms("to", now_ms)?,
        len_max: LEDGER_PAGE_LEN_MAX,
        ..DecisionQuery::default()
    };

    let mut days = Days::new(zone_of(&campaign));
    let mut read = 0;
    let is_complete = loop {
        let page = campaigns.ledger.decisions(query.clone()).await?;
        page.decisions.iter().for_each(|decision| days.add(decision));
        read += page.decisions.len();
        match page.next {
            None => break true,
            Some(_) if read >= DECISIONS_MAX => break false,
            next => query.after = next,
        }
    };
    Ok(Json(json!({ "days": days.shown(), "complete": is_complete })))
}

/// The zone of local days: that of the campaign, and UTC where it differs by subject.
fn zone_of(campaign: &Campaign) -> Zone {
    match ZoneSource::parse(&campaign.zone) {
        Some(ZoneSource::Fixed(zone)) => zone,
        _ => Zone::utc(),
    }
}

/// Decisions, added up by local day and step.
struct Days {
    zone: Zone,
    found: BTreeMap<(i32, String), Day>,
}

#[derive(Default)]
struct Day {
    /// Events on which the step was granted.
    granted: HashSet<(String, String, String)>,
    subjects: HashSet<String>,
    spent: BTreeMap<String, i64>,
    /// Refused actions by reason.
    refused: BTreeMap<String, u64>,
}

impl Days {
    fn new(zone: Zone) -> Self {
        Self { zone, found: BTreeMap::new() }
    }

    /// Adds a decision to the day of its event.
    fn add(&mut self, decision: &Decision) {
        let number = Period::Day.number(&self.zone, decision.event_ms);
        let day = self.found.entry((number, decision.step.clone())).or_default();
        if !decision.is_granted {
            *day.refused.entry(decision.outcome.clone()).or_default() += 1;
            return;
        }

        let Decision { source, event, subject, .. } = decision;
        day.granted.insert((source.clone(), event.clone(), subject.clone()));
        day.subjects.insert(subject.clone());
        if let Some(cost) = &decision.cost {
            *day.spent.entry(cost.budget.name.clone()).or_default() += cost.amount;
        }
    }

    fn shown(&self) -> Vec<Value> {
        let date = |number: i32| Period::Day.first_day(number).map(|date| date.to_string());
        let shown = self.found.iter().map(|((number, step), day)| {
            json!({
                "day": date(*number),
                "step": step,
                "granted": day.granted.len(),
                "subjects": day.subjects.len(),
                "spent": day.spent,
                "refused": day.refused,
            })
        });
        shown.collect()
    }
}

/// `GET /v1/campaigns/{id}/budgets`: its own, and the shared ones that it names.
async fn budgets(Extension(campaigns): Services, Path(id): Path<u32>) -> Answer<Json<Value>> {
    let campaign = campaigns.campaign(id).await?;
    let zone = zone_of(&campaign);
    let now_ms = campaigns.clock.now_ms();
    let mut shown = Vec::new();
    for (owner, definitions) in
        [(id, campaign.budgets.clone()), (0, campaigns.shared(&campaign).await?)]
    {
        let known = campaigns.ledger.budgets_of(owner).await?;
        for (name, definition) in &definitions {
            // Events lie in the past of the clock, so the newest period may be the one before.
            let current = definition.period_number(now_ms, &zone_of_budget(definition, &zone));
            let mut periods: Vec<_> = known.iter().filter(|(key, _)| key.name == *name).collect();
            periods.sort_by_key(|(key, _)| std::cmp::Reverse(key.period));
            if periods.iter().all(|(key, _)| key.period != current) {
                shown.push(budget(name, definition, current, [definition.max, 0, 0]));
            }
            shown.extend(periods.iter().map(|(key, found)| {
                budget(name, definition, key.period, [found.max, found.reserved, found.spent])
            }));
        }
    }
    Ok(Json(json!({ "budgets": shown })))
}

fn zone_of_budget(budget: &Budget, otherwise: &Zone) -> Zone {
    budget.zone.as_deref().and_then(Zone::of_name).unwrap_or_else(|| otherwise.clone())
}

fn budget(name: &str, definition: &Budget, period: i32, [max, reserved, spent]: [i64; 3]) -> Value {
    let period = match definition.period {
        BudgetPeriod::Campaign => json!("campaign"),
        BudgetPeriod::Calendar(length) => {
            json!(length.first_day(period).map(|day| day.to_string()))
        }
    };
    json!({
        "name": name, "unit": definition.unit, "period": period, "max": max, "reserved": reserved,
        "spent": spent,
    })
}

/// `GET /v1/campaigns/{id}/exposures`: the units of each variant that were counted so far.
async fn exposures(Extension(campaigns): Services, Path(id): Path<u32>) -> Answer<Json<Value>> {
    let campaign = campaigns.campaign(id).await?;
    let Some(experiment) = &campaign.experiment else {
        return Ok(Json(json!({ "experiment": null, "variants": [], "complete": true })));
    };

    let mut units: BTreeMap<String, u64> =
        experiment.variants.iter().map(|variant| (variant.name.clone(), 0)).collect();
    let owner = exposure_owner(&experiment.key);
    let mut from = StateKey { kind: StateKind::Exposure, owner, subject: String::new() };
    let mut read = 0;
    let is_complete = loop {
        let page = campaigns.ledger.states(from.clone(), LEDGER_PAGE_LEN_MAX).await?;
        let own = page.iter().take_while(|(key, _)| key.owner == owner);
        let mut len = 0;
        for (_, variant) in own {
            *units.entry(String::from_utf8_lossy(variant).into_owned()).or_default() += 1;
            len += 1;
        }
        read += len;

        match page.last() {
            Some((key, _)) if len == LEDGER_PAGE_LEN_MAX && read < UNITS_MAX => {
                // The least subject behind the last one.
                from.subject = format!("{}\0", key.subject);
            }
            Some(_) if len == LEDGER_PAGE_LEN_MAX => break false,
            _ => break true,
        }
    };

    let variants: Vec<Value> =
        units.iter().map(|(name, units)| json!({ "name": name, "units": units })).collect();
    Ok(Json(json!({
        "experiment": experiment.key, "variants": variants, "complete": is_complete,
    })))
}

impl Campaigns {
    pub(crate) async fn campaign(&self, id: u32) -> Answer<Campaign> {
        let stored = self.documents.get(Kind::Campaign, &id.to_string(), None).await?;
        serde_json::from_value(stored.configuration).map_err(|error| {
            let detail = format!("campaign {id} was saved by another release: {error}");
            Refused::new(Code::Failed, detail)
        })
    }

    /// The shared budgets that a campaign pays from.
    async fn shared(&self, campaign: &Campaign) -> Answer<BTreeMap<String, Budget>> {
        let actions = campaign.steps.iter().flat_map(|step| &step.actions);
        let named: HashSet<&str> = actions
            .filter_map(|action| Some(action.cost.as_ref()?.budget.as_str()))
            .filter(|name| !campaign.budgets.contains_key(*name))
            .collect();

        let mut shared = BTreeMap::new();
        for name in named {
            let Ok(stored) = self.documents.get(Kind::Budget, name, None).await else { continue };
            let mut content = stored.configuration;
            if let Some(members) = content.as_object_mut() {
                members.remove("kind");
                members.remove("name");
            }
            if let Ok(budget) = serde_json::from_value(content) {
                shared.insert(name.to_owned(), budget);
            }
        }
        Ok(shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_ports::campaigns::{ActionId, BudgetKey, Cost};

    fn decision(event: &str, subject: &str, name: &str, outcome: &str) -> Decision {
        let is_granted = outcome == "granted";
        let key = BudgetKey { campaign: 7, name: "vouchers".to_owned(), period: 0 };
        Decision {
            action: ActionId([7; 16]),
            is_granted,
            campaign: 7,
            version: 1,
            step: "reward".to_owned(),
            name: name.to_owned(),
            subject: subject.to_owned(),
            source: "mart".to_owned(),
            event: event.to_owned(),
            // 2024-09-23T23:00:00Z, which is the next day in Singapore.
            event_ms: 1_727_132_400_000,
            decided_ms: 0,
            outcome: outcome.to_owned(),
            variant: None,
            cost: Some(Cost { budget: key, amount: 500, is_refunded: true }),
            evidence: String::new(),
        }
    }

    #[test]
    fn days_are_local_and_steps_count_once_an_event() {
        let mut days = Days::new(Zone::of_name("Asia/Singapore").unwrap());
        days.add(&decision("o-4", "u-7", "voucher", "granted"));
        days.add(&decision("o-4", "u-7", "msg", "granted"));
        days.add(&decision("o-8", "u-7", "voucher", "granted"));
        days.add(&decision("o-11", "u-9", "voucher", "budget_exhausted"));
        let expected = json!([{
            "day": "2024-09-24", "step": "reward", "granted": 2, "subjects": 1,
            "spent": { "vouchers": 1_500 }, "refused": { "budget_exhausted": 1 },
        }]);
        assert_eq!(json!(days.shown()), expected);
    }
}

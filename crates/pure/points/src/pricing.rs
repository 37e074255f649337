//! Pricing: from an event, or from what a caller brings, to a product of factors.
//!
//! ```text
//!   event ──▶ rule ──▶ amount × tables ──▶ Priced ──▶ × tier, rounded once ──▶ points
//! ```
//!
//! Everything but the tier is known before the wallet is; tables that ask for the tier are left
//! open until the award is decided.

mod event;

pub use event::Unpriced;

use crate::entry::{Explain, Factor};
use crate::limits::{AMOUNT_DIGITS_MAX, ENTRY_POINTS_MAX, FACTOR_DIGITS_MAX, FACTORS_MAX};
use crate::number::Number;
use crate::programme::{Programme, Rule, RuleFactor, too_many_points};
use crate::{Points, refused};
use raingauge_core::code::{Code, Refusal};
use raingauge_core::event::Event;
use raingauge_core::field::{self, Scalar};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::sync::Arc;

/// What an award follows from, but for the tier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Priced {
    /// The version of the programme that priced it.
    pub version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_name: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Number>,
    /// A fixed number of points, in place of an amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<Points>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factors: Vec<PricedFactor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_event_max: Option<Points>,
    pub extends: bool,
    pub qualifies: bool,
    pub pending_days: u16,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PricedFactor {
    Known {
        name: Arc<str>,
        row: Arc<str>,
        value: Number,
    },
    /// A table that is looked up by the tier and these values; the tier's own place is absent.
    Open {
        table: Arc<str>,
        values: Vec<Option<Arc<str>>>,
    },
}

/// What a caller says of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub event_type: Option<&'a str>,
    /// An object of JSON.
    pub data: &'a str,
}

impl Facts<'_> {
    fn event(&self) -> Event<'_> {
        Event {
            id: "".into(),
            source: "".into(),
            kind: self.event_type.unwrap_or("").into(),
            subject: None,
            time_ms: 0,
            data: self.data,
            refused_keys: Default::default(),
        }
    }
}

/// An amount that can be multiplied.
fn checked_amount(amount: Number) -> Result<Number, Refusal> {
    if amount.is_negative() {
        return refused(Code::PointsInvalid, format!("the amount {amount} is negative"));
    }
    if amount.digits() > AMOUNT_DIGITS_MAX {
        let detail = format!("the amount {amount} has more than {AMOUNT_DIGITS_MAX} digits");
        return refused(Code::TooPrecise, detail);
    }
    Ok(amount)
}

/// The amount in a field: a number, or a text that is one.
fn amount_in(scalar: Option<&Scalar<'_>>) -> Result<Number, Refusal> {
    let text = match scalar {
        Some(Scalar::Number(text) | Scalar::Text(text)) => text,
        Some(_) => return refused(Code::PointsInvalid, "the amount is no number"),
        None => return refused(Code::PointsInvalid, "the amount is missing"),
    };
    match Number::parse(text) {
        Some(amount) => checked_amount(amount),
        None => refused(Code::PointsInvalid, format!("the amount `{text}` is no number")),
    }
}

impl Programme {
    /// Prices what a caller brings: an amount, facts, or both; factors of the caller's own replace
    /// tables of the same name. Rules that are not active at this time are passed over, also where
    /// the caller names one; without a time, all are active.
    pub fn price_facts(
        &self,
        at_ms: Option<i64>,
        rule: Option<u32>,
        amount: Option<Number>,
        facts: Option<&Facts<'_>>,
        own: &[(Arc<str>, Number)],
    ) -> Result<Priced, Refusal> {
        check_own_factors(own)?;
        let amount = amount.map(checked_amount).transpose()?;
        let event = facts.map(Facts::event);
        if rule.is_none() && facts.is_none() {
            return self.price_without_rule(amount, own);
        }

        // Each group of rules reads fields of its own.
        let mut found = Vec::new();
        let mut found_of = None;
        for (id, place) in &self.order {
            if rule.is_some_and(|rule| rule != *id) {
                continue;
            }
            let group = &self.groups[place.group];
            let kind = facts.and_then(|facts| facts.event_type);
            let is_of_kind = kind.is_none_or(|kind| self.group_of(kind) == Some(place.group));
            if rule.is_none() && !is_of_kind {
                continue;
            }
            if found_of != Some(place.group) {
                found.clear();
                found.resize(group.fields.len(), None);
                if let Some(event) = &event {
                    field::extract(event, &group.fields, &mut found);
                }
                found_of = Some(place.group);
            }

            let compiled = self.rule_at(*place);
            if at_ms.is_some_and(|at_ms| !compiled.is_active(at_ms)) {
                continue;
            }
            let holds = compiled.filter.as_ref().is_none_or(|filter| filter.holds(&found));
            let applies = rule.is_some() || holds;
            if applies && compiled.reverses.is_none() {
                return self.price(compiled, &found, amount, own);
            }
        }

        match rule {
            Some(rule) => {
                let detail =
                    format!("the programme has no rule {rule} that awards points at this time");
                refused(Code::RuleUnknown, detail)
            }
            None => refused(Code::PointsInvalid, "no rule of the programme is for these facts"),
        }
    }

    /// An amount times the caller's own factors.
    fn price_without_rule(
        &self,
        amount: Option<Number>,
        own: &[(Arc<str>, Number)],
    ) -> Result<Priced, Refusal> {
        if own.is_empty() || amount.is_none() {
            let detail = "an award needs points, or an amount with a rule, facts or factors";
            return refused(Code::PointsInvalid, detail);
        }
        Ok(Priced {
            version: self.version,
            rule: None,
            rule_name: None,
            amount,
            points: None,
            factors: own.iter().map(own_factor).collect(),
            budget: None,
            per_event_max: None,
            extends: true,
            qualifies: true,
            pending_days: self.pending_days,
        })
    }

    /// Prices by a rule, whose group's fields were found.
    fn price(
        &self,
        rule: &Rule,
        found: &[Option<Scalar<'_>>],
        amount: Option<Number>,
        own: &[(Arc<str>, Number)],
    ) -> Result<Priced, Refusal> {
        let amount = match (rule.amount, amount) {
            (None, _) => None,
            (Some(_), Some(amount)) => Some(amount),
            (Some(field), None) => Some(amount_in(found[field].as_ref())?),
        };

        let mut factors = Vec::with_capacity(rule.factors.len());
        for factor in &rule.factors {
            let name = &self.tables[factor.table].name;
            match own.iter().find(|(own, _)| own == name) {
                Some(own) => factors.push(own_factor(own)),
                None => factors.push(self.factor(factor, found)?),
            }
        }
        let is_new = |own: &&(Arc<str>, Number)| {
            !rule.factors.iter().any(|factor| self.tables[factor.table].name == own.0)
        };
        factors.extend(own.iter().filter(is_new).map(own_factor));

        Ok(Priced {
            version: self.version,
            rule: Some(rule.id),
            rule_name: Some(rule.name.clone()),
            amount,
            points: rule.points,
            factors,
            budget: Some(rule.budget.clone()),
            per_event_max: rule.per_event_max,
            extends: rule.extends,
            qualifies: rule.qualifies,
            pending_days: rule.pending_days,
        })
    }

    fn factor(
        &self,
        factor: &RuleFactor,
        found: &[Option<Scalar<'_>>],
    ) -> Result<PricedFactor, Refusal> {
        let table = &self.tables[factor.table];
        let values: SmallVec<[Option<&str>; 4]> = factor
            .fields
            .iter()
            .map(|field| field.and_then(|field| found[field].as_ref()).map(Scalar::as_text))
            .collect();
        if factor.fields.contains(&None) {
            let values = values.iter().map(|value| value.map(Arc::from)).collect();
            return Ok(PricedFactor::Open { table: table.name.clone(), values });
        }

        let Some((row, value)) = table.find(&values) else {
            return refused(Code::FactorMissing, table.missing(&values));
        };
        Ok(PricedFactor::Known { name: table.name.clone(), row: row.clone(), value })
    }

    /// The factor of an open table for a tier.
    fn factor_of_tier(
        &self,
        table: &Arc<str>,
        values: &[Option<Arc<str>>],
        tier: Option<&str>,
    ) -> Result<Factor, Refusal> {
        let Some(table) = self.tables.iter().find(|known| known.name == *table) else {
            return refused(Code::FactorMissing, format!("there is no table `{table}`"));
        };

        // Where a value is absent, the table asks for the tier, or the event did not have it.
        let by = table.by.iter().zip(values);
        let values: SmallVec<[Option<&str>; 4]> = by
            .map(|(by, value)| match by {
                crate::table::TableField::Tier => tier,
                crate::table::TableField::Event(_) => value.as_deref(),
            })
            .collect();
        let Some((row, value)) = table.find(&values) else {
            return refused(Code::FactorMissing, table.missing(&values));
        };
        Ok(Factor { name: table.name.clone(), row: row.clone(), value })
    }

    /// The points of a priced award for a member of this tier, with how they came about.
    pub fn product(&self, priced: &Priced, tier: Option<&str>) -> Result<Explain, Refusal> {
        let mut explain = Explain {
            version: priced.version,
            rule: priced.rule,
            rule_name: priced.rule_name.clone(),
            amount: priced.amount,
            factors: Vec::with_capacity(priced.factors.len()),
            exact: None,
            rounding: self.rounding,
            limit: None,
            points: 0,
        };
        let points = match (priced.points, priced.amount) {
            (Some(points), _) => points,
            (None, Some(amount)) => {
                let exact = self.multiplied(amount, priced, tier, &mut explain.factors)?;
                explain.exact = Some(exact);
                exact.round(self.decimals(), self.rounding).ok_or_else(too_many_points)?
            }
            (None, None) => return refused(Code::PointsInvalid, "the amount is missing"),
        };

        explain.limit = priced.per_event_max.filter(|limit| *limit < points);
        explain.points = explain.limit.unwrap_or(points);
        if explain.points > ENTRY_POINTS_MAX {
            return Err(too_many_points());
        }
        Ok(explain)
    }

    /// The exact product. The factors are noted as they are found.
    fn multiplied(
        &self,
        amount: Number,
        priced: &Priced,
        tier: Option<&str>,
        factors: &mut Vec<Factor>,
    ) -> Result<Number, Refusal> {
        let mut exact = amount;
        for factor in &priced.factors {
            let factor = match factor {
                PricedFactor::Known { name, row, value } => {
                    Factor { name: name.clone(), row: row.clone(), value: *value }
                }
                PricedFactor::Open { table, values } => self.factor_of_tier(table, values, tier)?,
            };
            exact = exact.times(factor.value).ok_or_else(|| {
                Refusal::new(Code::TooPrecise, "the product has more digits than are exact")
            })?;
            factors.push(factor);
        }
        Ok(exact)
    }
}

fn own_factor((name, value): &(Arc<str>, Number)) -> PricedFactor {
    PricedFactor::Known { name: name.clone(), row: "own".into(), value: *value }
}

/// Factors of a caller, which fit an exact product together with any amount.
fn check_own_factors(own: &[(Arc<str>, Number)]) -> Result<(), Refusal> {
    if own.len() > FACTORS_MAX {
        let detail = format!("an award has at most {FACTORS_MAX} factors");
        return refused(Code::PointsInvalid, detail);
    }
    if let Some((name, _)) = own.iter().find(|(_, value)| value.is_negative()) {
        return refused(Code::PointsInvalid, format!("the factor `{name}` is negative"));
    }
    let digits: u32 = own.iter().map(|(_, value)| value.digits()).sum();
    if digits > FACTOR_DIGITS_MAX {
        let detail = format!("factors have at most {FACTOR_DIGITS_MAX} digits together");
        return refused(Code::TooPrecise, detail);
    }
    Ok(())
}

#[cfg(test)]
mod tests;

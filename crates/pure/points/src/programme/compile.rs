//! From a document to what prices and decides.

use super::{Partner, Programme, Reward, Rule, RuleFactor, RuleGroup, RulePlace};
use crate::Points;
use crate::calendar::{HOUR_MS, Zone};
use crate::document::{PartnerDocument, ProgrammeDocument, RewardDocument, RuleDocument};
use crate::expiry::ExpiryPolicy;
use crate::number::{Number, Rounding};
use crate::table::{Table, TableField};
use crate::tiers::{Level, Tiers};
use raingauge_core::counter::Problem;
use raingauge_core::field::Field;
use raingauge_core::filter::Filter;
use raingauge_core::time::parse_rfc3339_ms;
use std::collections::HashMap;
use std::sync::Arc;

impl Programme {
    /// Compiles a version of a programme. A document that passed its checks compiles, unless a
    /// filter has problems.
    pub fn compile(document: &ProgrammeDocument, version: u32) -> Result<Self, Vec<Problem>> {
        let zone = Zone::of_name(&document.timezone)
            .ok_or_else(|| vec![Problem::new("timezone", "is no IANA time zone")])?;
        let units = Units { decimals: document.decimals };
        let named = |name: &String| Arc::<str>::from(name.as_str());

        let tables: Vec<Table> =
            document.tables.iter().map(|(name, table)| Table::of(name, table)).collect();
        let mut remind_days = document.remind_days.clone();
        remind_days.sort_unstable_by(|left, right| right.cmp(left));
        remind_days.dedup();

        let partners = document.partners.iter().map(|partner| {
            let partner = units.partner(partner);
            (partner.name.clone(), partner)
        });
        let rewards = document.rewards.iter().map(|reward| {
            let reward = units.reward(reward);
            (reward.name.clone(), reward)
        });
        let budgets = document.budgets.iter();
        let mut programme = Self {
            version,
            name: named(&document.programme),
            unit: named(&document.unit),
            decimals: document.decimals,
            rounding: document.rounding,
            expiry: ExpiryPolicy::of(&document.expiry, zone),
            pending_days: document.pending_days,
            negative: document.negative,
            arrears_floor: document.arrears_floor.map(|floor| units.of(floor)),
            hold_ms: i64::from(document.hold_hours) * HOUR_MS,
            remind_days,
            adjust_review: document.adjust_review.map(|points| units.of(points)),
            unit_cost: document.unit_cost,
            tiers: units.tiers(document),
            tables,
            groups: Vec::new(),
            by_type: HashMap::new(),
            order: Vec::new(),
            partners: partners.collect(),
            partner_names: document.partner_names().map(Arc::from).collect(),
            budgets: budgets.map(|(name, budget)| (named(name), units.of(budget.limit))).collect(),
            rewards: rewards.collect(),
            budget_default: "default".into(),
            budgets_known: document.budgets.keys().map(named).collect(),
        };

        let mut problems = Vec::new();
        for (number, rule) in document.rules.iter().enumerate() {
            if let Err(found) = programme.add_rule(rule, units) {
                let at = |detail| Problem::new(format!("rules[{number}].filter"), detail);
                problems.extend(found.into_iter().map(at));
            }
        }
        if problems.is_empty() { Ok(programme) } else { Err(problems) }
    }

    fn add_rule(&mut self, rule: &RuleDocument, units: Units) -> Result<(), Vec<String>> {
        let kind: Box<str> = rule.event_type.as_deref().unwrap_or("").into();
        let place = *self.by_type.entry(kind).or_insert(self.groups.len());
        if place == self.groups.len() {
            self.groups.push(RuleGroup::default());
        }

        let mut fields = std::mem::take(&mut self.groups[place].fields);
        let compiled = self.rule(rule, units, &mut fields);
        let group = &mut self.groups[place];
        group.fields = fields;
        let compiled = compiled?;
        self.budgets_known.insert(compiled.budget.clone());
        group.rules.push(compiled);
        self.order.push((rule.id, RulePlace { group: place, rule: group.rules.len() - 1 }));
        Ok(())
    }

    fn rule(
        &self,
        rule: &RuleDocument,
        units: Units,
        fields: &mut Vec<Field>,
    ) -> Result<Rule, Vec<String>> {
        let mut number_of = |field: Field| {
            fields.iter().position(|known| *known == field).unwrap_or_else(|| {
                fields.push(field);
                fields.len() - 1
            })
        };
        let filter = rule
            .filter
            .as_ref()
            .map(|condition| Filter::compile(condition, &mut number_of))
            .transpose()?;

        let named = rule
            .factors
            .iter()
            .filter_map(|name| self.tables.iter().position(|table| *table.name == **name));
        let factors = named
            .map(|table| {
                let by = self.tables[table].by.iter().map(|field| match field {
                    TableField::Tier => None,
                    TableField::Event(field) => Some(number_of(field.clone())),
                });
                RuleFactor { table, fields: by.collect() }
            })
            .collect();
        let mut path =
            |path: &Option<String>| path.as_deref().and_then(Field::of_path).map(&mut number_of);
        let time = |time: &Option<String>| {
            time.as_deref().and_then(|time| parse_rfc3339_ms(time.as_bytes()))
        };

        Ok(Rule {
            id: rule.id,
            name: rule.name.as_str().into(),
            filter,
            member: path(&rule.member),
            amount: path(&rule.amount),
            points: rule.points.map(|points| units.of(points)),
            factors,
            reference: path(&rule.reference),
            reverses: path(&rule.reverses),
            budget: match &rule.budget {
                Some(budget) => budget.as_str().into(),
                None => self.budget_default.clone(),
            },
            extends: rule.extends,
            qualifies: rule.qualifies,
            pending_days: rule.pending_days.unwrap_or(self.pending_days),
            per_event_max: rule.per_event_max.map(|points| units.of(points)),
            active_from_ms: time(&rule.active_from).unwrap_or(i64::MIN),
            active_until_ms: time(&rule.active_until).unwrap_or(i64::MAX),
        })
    }
}

/// Numbers of points in the smallest units of a programme.
#[derive(Clone, Copy)]
struct Units {
    decimals: u8,
}

impl Units {
    /// Checks of the document see to it that nothing is rounded or cut off.
    fn of(self, points: Number) -> Points {
        points.round(self.decimals, Rounding::Down).unwrap_or(Points::MAX)
    }

    fn tiers(self, document: &ProgrammeDocument) -> Option<Tiers> {
        let tiers = document.tiers.as_ref().filter(|tiers| !tiers.levels.is_empty())?;
        let levels = tiers.levels.iter();
        Some(Tiers {
            window: tiers.window,
            keep_months: tiers.keep_months,
            levels: levels
                .map(|level| Level { name: level.name.as_str().into(), from: self.of(level.from) })
                .collect(),
        })
    }

    fn partner(self, partner: &PartnerDocument) -> Partner {
        let inverse =
            partner.exchange.map(|rate| crate::document::Rate { give: rate.get, get: rate.give });
        Partner {
            name: partner.name.as_str().into(),
            own_factors: partner.own_factors,
            per_award_max: partner.per_award_max.map(|points| self.of(points)),
            per_day_max: partner.per_day_max.map(|points| self.of(points)),
            exchange: partner.exchange,
            exchange_in: partner.exchange_in.or(inverse),
        }
    }

    fn reward(self, reward: &RewardDocument) -> Reward {
        let time = |time: &Option<String>| {
            time.as_deref().and_then(|time| parse_rfc3339_ms(time.as_bytes()))
        };
        Reward {
            name: reward.name.as_str().into(),
            description: reward.description.as_str().into(),
            points: self.of(reward.points),
            stock: reward.stock,
            per_member: reward.per_member,
            from_ms: time(&reward.from),
            until_ms: time(&reward.until),
        }
    }
}

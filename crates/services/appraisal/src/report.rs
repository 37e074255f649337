//! What a forecast says of one programme.

use crate::limits::FORECAST_VALUES_MAX;
use hashbrown::HashMap;
use raingauge_points::{Answer, Command, Day, Kind, Liability, Month, Points, Programme};
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The sum of the values beyond those that are listed.
const OTHERS: &str = "(other values)";

/// Points of a programme in an answer: a whole number, or a text where the unit has decimals.
pub fn points_json(programme: &Programme, points: i128) -> Json {
    match i64::try_from(points) {
        Ok(points) if programme.decimals() == 0 => Json::from(points),
        Ok(points) => Json::from(programme.text_of(points)),
        // No programme owes as much; the digits are still right, in the smallest unit.
        Err(_) => Json::from(points.to_string()),
    }
}

/// What was awarded, and by what it is divided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    pub awards: u64,
    pub points: i128,
    pub by_rule: BTreeMap<Arc<str>, Share>,
    pub by_tier: BTreeMap<Arc<str>, Share>,
    pub by_month: BTreeMap<Month, Share>,
    pub by_value: BTreeMap<Arc<str>, Share>,
    pub by_day: BTreeMap<Day, i128>,
    pub by_member: HashMap<Arc<str>, i128>,
    /// Commands that the programme refuses, by code.
    pub refused: BTreeMap<String, u64>,
    /// Events that it could not price.
    pub unpriced: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub awards: u64,
    pub points: i128,
}

impl Share {
    fn add(&mut self, points: Points) {
        self.awards += 1;
        self.points += i128::from(points);
    }
}

impl Tally {
    /// Notes what became of a command. `value` is that of the field that divides the points.
    pub fn note(
        &mut self,
        programme: &Programme,
        value: Option<&str>,
        command: &Command,
        answer: &Answer,
    ) {
        let entries = match answer {
            Answer::Done(entries) => entries,
            Answer::Replayed(_) => return,
            Answer::Refused { refusal, .. } | Answer::Invalid(refusal) => {
                *self.refused.entry(refusal.code.as_str().to_owned()).or_default() += 1;
                return;
            }
        };
        let awards = entries
            .iter()
            .filter(|entry| matches!(entry.kind, Kind::Earn | Kind::Bonus | Kind::Reverse));
        for entry in awards {
            let points = entry.points() + pending_of(entry);
            let day = programme.zone().day(entry.occurred_ms);
            let tier = entry.tier_after.as_deref().unwrap_or_default();

            self.awards += 1;
            self.points += i128::from(points);
            share(&mut self.by_rule, command.reason.as_deref().unwrap_or_default()).add(points);
            share(&mut self.by_tier, tier).add(points);
            self.by_month.entry(day.month()).or_default().add(points);
            *self.by_day.entry(day).or_default() += i128::from(points);
            *self.by_member.entry_ref(&command.member).or_default() += i128::from(points);
            if let Some(value) = value {
                self.by_value(value).add(points);
            }
        }
    }

    fn by_value(&mut self, value: &str) -> &mut Share {
        let is_full = self.by_value.len() >= FORECAST_VALUES_MAX;
        let is_known = !is_full || self.by_value.contains_key(value);
        share(&mut self.by_value, if is_known { value } else { OTHERS })
    }

    /// The points of the last days up to the last award.
    pub fn last_days(&self, days: u16) -> i128 {
        let Some((last, _)) = self.by_day.last_key_value() else { return 0 };
        let first = Day(last.0 - i32::from(days) + 1);
        self.by_day.range(first..).map(|(_, points)| points).sum()
    }
}

/// The share under a name, which is copied only where it is new.
fn share<'a>(shares: &'a mut BTreeMap<Arc<str>, Share>, name: &str) -> &'a mut Share {
    if !shares.contains_key(name) {
        shares.insert(name.into(), Share::default());
    }
    shares.get_mut(name).expect("it was added")
}

/// Points that an award adds to what is pending.
fn pending_of(entry: &raingauge_points::Entry) -> Points {
    let postings = entry.postings.iter();
    let pending = postings
        .filter(|posting| matches!(posting.account, raingauge_points::Account::Pending { .. }));
    pending.map(|posting| posting.amount).sum()
}

/// One side of a forecast.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SideReport {
    pub members: usize,
    pub awards: u64,
    /// Awarded, less what was taken back.
    pub points: Json,
    pub by_rule: Vec<ShareReport>,
    /// By the tier that the member had afterwards.
    pub by_tier: Vec<ShareReport>,
    /// By the month of the event, in the zone of the programme.
    pub by_month: Vec<ShareReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_value: Vec<ShareReport>,
    pub refused: BTreeMap<String, u64>,
    pub unpriced: u64,
    /// At the end of the range.
    pub liability: LiabilityReport,
    pub scaled: ScaledReport,
}

#[derive(Clone, Debug, Serialize)]
pub struct ShareReport {
    pub name: String,
    pub awards: u64,
    pub points: Json,
}

/// What the last days amount to in longer ones.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaledReport {
    pub days: u16,
    pub points: Json,
    pub per_month: Json,
    pub per_year: Json,
}

/// What members can claim.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LiabilityReport {
    pub total: Json,
    pub issued: Json,
    pub expired: Json,
    pub pending: Json,
    pub arrears: Json,
    /// By the month in which they expire; `never` comes last.
    pub outstanding: Vec<OutstandingReport>,
}

#[derive(Clone, Debug, Serialize)]
pub struct OutstandingReport {
    pub month: String,
    pub points: Json,
}

impl SideReport {
    pub fn new(
        programme: &Programme,
        tally: &Tally,
        liability: &Liability,
        members: usize,
        days: u16,
    ) -> Self {
        let points = |points: i128| points_json(programme, points);
        let list = |shares: Vec<(String, Share)>| {
            let reports = shares.into_iter().map(|(name, share)| ShareReport {
                name,
                awards: share.awards,
                points: points(share.points),
            });
            reports.collect::<Vec<_>>()
        };
        let named = |shares: &BTreeMap<Arc<str>, Share>| {
            list(shares.iter().map(|(name, share)| (name.to_string(), *share)).collect())
        };
        let months = tally.by_month.iter().map(|(month, share)| (month.to_string(), *share));

        let basis = tally.last_days(days);
        let scaled_to = |length: i128| points(basis * length / i128::from(days));
        Self {
            members,
            awards: tally.awards,
            points: points(tally.points),
            by_rule: named(&tally.by_rule),
            by_tier: named(&tally.by_tier),
            by_month: list(months.collect()),
            by_value: named(&tally.by_value),
            refused: tally.refused.clone(),
            unpriced: tally.unpriced,
            liability: LiabilityReport::new(programme, liability),
            scaled: ScaledReport {
                days,
                points: points(basis),
                per_month: scaled_to(30),
                per_year: scaled_to(365),
            },
        }
    }
}

impl LiabilityReport {
    fn new(programme: &Programme, liability: &Liability) -> Self {
        let points = |points: i128| points_json(programme, points);
        let outstanding = liability.outstanding.iter().map(|(month, sum)| OutstandingReport {
            month: month.map_or_else(|| "never".to_owned(), |month| month.to_string()),
            points: points(*sum),
        });
        Self {
            total: points(liability.total()),
            issued: points(liability.issued),
            expired: points(liability.expired),
            pending: points(liability.pending),
            arrears: points(liability.arrears),
            outstanding: outstanding.collect(),
        }
    }
}

//! What campaigns did, added up from their decisions: by local day, by reason, by variant.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use raingauge_ports::campaigns::limits::LEDGER_PAGE_LEN_MAX;
use raingauge_ports::campaigns::{CampaignId, Decision, DecisionQuery, Error, LedgerReader};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Most decisions that a page adds up. A page says so where there are more.
pub const DECISIONS_MAX: usize = 20_000;
/// Half hours of a day, for sparklines.
pub const HALVES: usize = 48;
const HALF_MS: i64 = 1_800_000;

/// Decisions, newest first.
#[derive(Debug, Default)]
pub struct Gathered {
    pub decisions: Vec<Decision>,
    /// Whether there are older ones that were left out.
    pub is_cut: bool,
}

/// Reads the newest decisions of a query, up to [`DECISIONS_MAX`].
pub async fn gather(reader: &dyn LedgerReader, query: DecisionQuery) -> Result<Gathered, Error> {
    let mut gathered = Gathered::default();
    let mut query = DecisionQuery { len_max: LEDGER_PAGE_LEN_MAX, ..query };

    loop {
        let page = reader.decisions(query.clone()).await?;
        gathered.decisions.extend(page.decisions);
        match page.next {
            None => return Ok(gathered),
            Some(_) if gathered.decisions.len() >= DECISIONS_MAX => {
                gathered.is_cut = true;
                return Ok(gathered);
            }
            next => query.after = next,
        }
    }
}

/// The decisions of one campaign, added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub by_day: BTreeMap<Date, Day>,
    /// Actions by outcome.
    pub by_outcome: BTreeMap<String, u64>,
    /// Granted steps and subjects by step.
    pub by_step: BTreeMap<String, StepUsage>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Day {
    /// Steps that were granted.
    pub triggers: u64,
    /// What was reserved, by budget.
    pub spend: BTreeMap<String, i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepUsage {
    pub triggers: u64,
    pub subjects: u64,
}

impl Usage {
    /// Adds decisions up, by days of a zone. The days are those of the events.
    pub fn of(decisions: &[Decision], zone: &TimeZone) -> Self {
        let mut usage = Self::default();
        let mut triggers = HashSet::new();
        let mut subjects = HashSet::new();

        for decision in decisions {
            *usage.by_outcome.entry(decision.outcome.clone()).or_default() += 1;
            let Some(date) = date_of(decision.event_ms, zone) else { continue };
            if !decision.is_granted {
                continue;
            }

            let day = usage.by_day.entry(date).or_default();
            if let Some(cost) = &decision.cost {
                *day.spend.entry(cost.budget.name.clone()).or_default() += cost.amount;
            }

            let Decision { source, event, subject, step, .. } = decision;
            let of_step = usage.by_step.entry(step.clone()).or_default();
            if triggers.insert((source, event, subject, step)) {
                day.triggers += 1;
                of_step.triggers += 1;
            }
            of_step.subjects += u64::from(subjects.insert((step, subject)));
        }
        usage
    }

    /// What each day spent of a budget, from the first day to `today`, oldest first.
    pub fn spend_of(&self, budget: &str, today: Date) -> Vec<i64> {
        let Some(first) = self.by_day.keys().next() else { return Vec::new() };
        let days = first.series(jiff::Span::new().days(1)).take_while(|date| *date <= today);
        let spent = |date: Date| self.by_day.get(&date)?.spend.get(budget).copied();
        days.map(|date| spent(date).unwrap_or(0)).collect()
    }
}

/// The local date of a moment.
pub fn date_of(at_ms: i64, zone: &TimeZone) -> Option<Date> {
    Some(Timestamp::from_millisecond(at_ms).ok()?.to_zoned(zone.clone()).date())
}

/// The last 24 hours of all campaigns: granted actions by half hours.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    halves: HashMap<CampaignId, [u64; HALVES]>,
    pub is_cut: bool,
}

impl Activity {
    pub fn of(gathered: &Gathered, now_ms: i64) -> Self {
        let mut activity = Self { is_cut: gathered.is_cut, ..Self::default() };
        for decision in gathered.decisions.iter().filter(|decision| decision.is_granted) {
            let ago = usize::try_from((now_ms - decision.decided_ms).max(0) / HALF_MS);
            if let Ok(ago @ 0..HALVES) = ago {
                let halves = activity.halves.entry(decision.campaign).or_insert([0; HALVES]);
                halves[HALVES - 1 - ago] += 1;
            }
        }
        activity
    }

    /// Granted actions of a campaign by half hours, oldest first.
    pub fn of_campaign(&self, campaign: CampaignId) -> [u64; HALVES] {
        self.halves.get(&campaign).copied().unwrap_or([0; HALVES])
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use raingauge_ports::campaigns::{ActionId, BudgetKey, Cost};

    /// A decision on an event at an hour of 1970, named by its event and action.
    pub fn decision(event: &str, name: &str, outcome: &str, hour: i64) -> Decision {
        let mut id = [0; 16];
        for (place, byte) in format!("{event}{name}").bytes().enumerate() {
            id[place % 16] ^= byte.rotate_left(place as u32 / 16);
        }
        let budget = BudgetKey { campaign: 7, name: "vouchers".to_owned(), period: 0 };
        Decision {
            action: ActionId(id),
            is_granted: matches!(outcome, "granted" | "delayed"),
            campaign: 7,
            version: 1,
            step: "reward".to_owned(),
            name: name.to_owned(),
            subject: "u-7".to_owned(),
            source: "mart".to_owned(),
            event: event.to_owned(),
            event_ms: hour * 3_600_000,
            decided_ms: hour * 3_600_000 + 5,
            outcome: outcome.to_owned(),
            variant: None,
            cost: (name == "voucher").then_some(Cost { budget, amount: 500, is_refunded: true }),
            evidence: "{}".to_owned(),
        }
    }

    #[test]
    fn a_trigger_is_a_step_and_its_actions_cost() {
        let decisions = [
            decision("o-1", "voucher", "granted", 1),
            decision("o-1", "msg", "granted", 1),
            decision("o-2", "voucher", "delayed", 17),
            decision("o-3", "voucher", "budget_exhausted", 18),
        ];
        let usage = Usage::of(&decisions, &TimeZone::get("Asia/Singapore").unwrap());

        let day = |day| jiff::civil::date(1970, 1, day);
        let of = |day: Date| &usage.by_day[&day];
        assert_eq!((of(day(1)).triggers, of(day(1)).spend["vouchers"]), (1, 500));
        assert_eq!((of(day(2)).triggers, of(day(2)).spend["vouchers"]), (1, 500));
        assert_eq!(usage.by_outcome["granted"], 2);
        assert_eq!(usage.by_outcome["budget_exhausted"], 1);
        assert_eq!(usage.by_step["reward"], StepUsage { triggers: 2, subjects: 1 });
        assert_eq!(usage.spend_of("vouchers", day(4)), [500, 500, 0, 0]);
        assert_eq!(usage.spend_of("others", day(2)), [0, 0]);
    }

    #[test]
    fn the_last_day_is_cut_into_half_hours() {
        let gathered = Gathered {
            decisions: vec![
                decision("o-1", "msg", "granted", 47),
                decision("o-2", "msg", "granted", 1),
                decision("o-3", "msg", "control", 47),
            ],
            is_cut: false,
        };
        let activity = Activity::of(&gathered, 48 * 3_600_000);
        let halves = activity.of_campaign(7);
        assert_eq!((halves[HALVES - 2], halves.iter().sum::<u64>()), (1, 1));
        assert_eq!(activity.of_campaign(8), [0; HALVES]);
    }
}

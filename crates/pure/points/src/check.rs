//! Checks of programmes: what a document must be to be saved.

mod example;

use crate::calendar::Zone;
use crate::document::{ExpiryKind, ProgrammeDocument, RuleDocument, TierWindow};
use crate::expiry::day_of_year;
use crate::limits::{
    ENTRY_POINTS_MAX, EXAMPLES_MAX, EXPIRY_MONTHS_MAX, FACTOR_DIGITS_MAX, FACTORS_MAX,
    FORMER_PARTNERS_MAX, GRACE_HOURS_MAX, HOLD_HOURS_MAX, PARTNERS_MAX, PENDING_DAYS_MAX,
    POINTS_DECIMALS_MAX, POINTS_NAME_LEN_MAX, PROGRAMME_BUDGETS_MAX, PROGRAMME_DOCUMENT_LEN_MAX,
    PROGRAMME_LEN_MAX, PROGRAMME_RULES_MAX, PROGRAMME_TABLES_MAX, REINSTATE_DAYS_MAX,
    REMIND_DAYS_MAX, REMINDERS_MAX, REWARDS_MAX, TABLE_FIELDS_MAX, TABLE_ROWS_MAX, TIERS_MAX,
};
use crate::number::{Number, Rounding};
use crate::programme::{OWN_EVENTS, OWN_SOURCES, Programme};
use crate::tiers::months_of_window;
use raingauge_core::counter::Problem;
use raingauge_core::field::Field;
use raingauge_core::time::parse_rfc3339_ms;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashSet};

/// Names that addresses have where others have the programme's: `/points/queues`. They would hide
/// its pages, or routes to its members.
const NAMES_TAKEN: &[&str] = &[
    "checks",
    "entries",
    "forecast",
    "form",
    "jobs",
    "new",
    "programmes",
    "propose",
    "queues",
    "save",
    "try",
];

impl ProgrammeDocument {
    /// Reads and checks a programme, whose examples must come out. A member of a wrong kind is
    /// reported by itself; otherwise all problems are reported together.
    pub fn parse(json: &Json) -> Result<Self, Vec<Problem>> {
        if json.to_string().len() > PROGRAMME_DOCUMENT_LEN_MAX {
            let detail =
                format!("a programme has at most {PROGRAMME_DOCUMENT_LEN_MAX} bytes of JSON");
            return Err(vec![Problem::new("", detail)]);
        }
        let document = Self::read(json)?;
        let problems = document.problems();
        if problems.is_empty() { Ok(document) } else { Err(problems) }
    }

    /// Reads a programme that was checked before.
    pub fn read(json: &Json) -> Result<Self, Vec<Problem>> {
        serde_path_to_error::deserialize(json).map_err(|error| {
            let path = error.path().to_string();
            vec![Problem::new(path.trim_matches('.'), error.inner().to_string())]
        })
    }

    /// The stored form, which leads back to the document.
    pub fn to_json(&self) -> Json {
        json!(self)
    }

    /// Everything that keeps the programme from being used.
    pub fn problems(&self) -> Vec<Problem> {
        let problems = own_problems(self);
        if !problems.is_empty() {
            return problems;
        }
        match Programme::compile(self, 1) {
            Ok(programme) => example::problems(self, &programme),
            Err(problems) => problems,
        }
    }
}

fn own_problems(document: &ProgrammeDocument) -> Vec<Problem> {
    let mut check = Check { document, problems: Vec::new() };
    check.head();
    check.expiry();
    check.tiers();
    check.tables();
    check.rules();
    check.partners();
    check.budgets_and_rewards();
    check.len("examples", document.examples.len(), EXAMPLES_MAX);
    check.problems
}

/// Whether a name can stand in a document: letters, digits, and signs between them.
pub(crate) fn is_name(name: &str, len_max: usize) -> bool {
    let is_sign = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | ' ');
    !name.is_empty() && name.len() <= len_max && name.chars().all(is_sign) && name.trim() == name
}

struct Check<'a> {
    document: &'a ProgrammeDocument,
    problems: Vec<Problem>,
}

impl Check<'_> {
    fn add(&mut self, field: impl Into<String>, detail: impl Into<String>) {
        self.problems.push(Problem::new(field, detail));
    }

    fn demand(&mut self, holds: bool, field: impl Into<String>, detail: impl Into<String>) {
        if !holds {
            self.add(field, detail);
        }
    }

    fn len(&mut self, field: &str, len: usize, len_max: usize) {
        self.demand(len <= len_max, field, format!("has at most {len_max} items"));
    }

    fn name(&mut self, field: impl Into<String>, name: &str) {
        let detail = format!(
            "must have 1 to {POINTS_NAME_LEN_MAX} letters, digits, blanks, `_`, `-` and `.`"
        );
        self.demand(is_name(name, POINTS_NAME_LEN_MAX), field, detail);
    }

    /// A number of points with the programme's decimals, from `least` on.
    fn points(&mut self, field: impl Into<String>, number: Number, least: Number) {
        let decimals = self.document.decimals.min(POINTS_DECIMALS_MAX);
        let is_whole = i64::from(number.scale()) <= i64::from(decimals);
        let units = number.round(decimals, Rounding::Down);
        let fits = units.is_some_and(|units| units.unsigned_abs() <= ENTRY_POINTS_MAX as u64);
        let detail =
            format!("must be a number of points from {least} on with at most {decimals} decimals");
        self.demand(is_whole && fits && number >= least, field, detail);
    }

    fn head(&mut self) {
        let document = self.document;
        let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
        let name = &document.programme;
        let is_named = (1..=PROGRAMME_LEN_MAX).contains(&name.len()) && name.chars().all(is_plain);
        let detail = format!("must have 1 to {PROGRAMME_LEN_MAX} letters, digits, `_` and `-`");
        self.demand(is_named, "programme", detail);
        let is_free = !NAMES_TAKEN.contains(&name.as_str());
        self.demand(is_free, "programme", "is taken: pages and routes have this name");

        self.name("unit", &document.unit);
        let has_zone = Zone::of_name(&document.timezone).is_some();
        self.demand(has_zone, "timezone", "is no IANA time zone, such as Asia/Singapore");
        let detail = format!("must be 0 to {POINTS_DECIMALS_MAX}");
        self.demand(document.decimals <= POINTS_DECIMALS_MAX, "decimals", detail);

        let detail = format!("must be 0 to {PENDING_DAYS_MAX}");
        self.demand(document.pending_days <= PENDING_DAYS_MAX, "pendingDays", detail);
        let detail = format!("must be 1 to {HOLD_HOURS_MAX}");
        self.demand((1..=HOLD_HOURS_MAX).contains(&document.hold_hours), "holdHours", detail);
        if let Some(floor) = document.arrears_floor {
            let detail = "must be 0 or a negative number of points";
            self.demand(floor <= Number::ZERO, "arrearsFloor", detail);
            let magnitude = Number::ZERO.minus(floor).unwrap_or(floor);
            self.points("arrearsFloor", magnitude, Number::ZERO);
        }

        self.len("remindDays", document.remind_days.len(), REMINDERS_MAX);
        let is_day = |days: &u16| (1..=REMIND_DAYS_MAX).contains(days);
        let detail = format!("must be 1 to {REMIND_DAYS_MAX} days");
        self.demand(document.remind_days.iter().all(is_day), "remindDays", detail);
        if let Some(points) = document.adjust_review {
            self.points("adjustReview", points, Number::ZERO);
        }
        if let Some(cost) = document.unit_cost {
            self.demand(!cost.is_negative(), "unitCost", "must not be negative");
        }
    }

    fn expiry(&mut self) {
        let expiry = &self.document.expiry;
        let has_months =
            matches!(expiry.kind, ExpiryKind::Activity | ExpiryKind::Fixed | ExpiryKind::Yearly);
        let least = u16::from(expiry.kind != ExpiryKind::Yearly);
        let months = if has_months { expiry.months.or((least == 0).then_some(0)) } else { Some(1) };
        let fits = months.is_some_and(|months| (least..=EXPIRY_MONTHS_MAX).contains(&months));
        let detail = format!("must be {least} to {EXPIRY_MONTHS_MAX}");
        self.demand(fits, "expiry.months", detail);
        if !has_months {
            self.demand(expiry.months.is_none(), "expiry.months", "points never expire");
        }

        let is_yearly = expiry.kind == ExpiryKind::Yearly;
        let has_date = expiry.date.as_deref().is_some_and(|date| day_of_year(date).is_some());
        if is_yearly {
            self.demand(has_date, "expiry.date", "must be a month and day such as 12-31");
        } else {
            self.demand(expiry.date.is_none(), "expiry.date", "belongs to a yearly expiry");
        }
        let is_fixed = expiry.kind == ExpiryKind::Fixed;
        let detail = "belongs to a fixed expiry";
        self.demand(is_fixed || expiry.until.is_none(), "expiry.until", detail);

        // A month has 28 days at least.
        let lived_days = u32::from(expiry.months.unwrap_or(0)) * 28;
        let rules = self.document.rules.iter().filter_map(|rule| rule.pending_days);
        let pending_days = rules.fold(self.document.pending_days, u16::max);
        let lives_for_months = is_fixed || is_yearly && lived_days > 0;
        let matures = !lives_for_months || u32::from(pending_days) <= lived_days;
        let detail = format!("points that are pending for {pending_days} days would expire before");
        self.demand(matures, "expiry.months", detail);

        let detail = format!("must be 0 to {GRACE_HOURS_MAX}");
        self.demand(expiry.grace_hours <= GRACE_HOURS_MAX, "expiry.graceHours", detail);
        let detail = format!("must be 0 to {REINSTATE_DAYS_MAX}");
        self.demand(expiry.reinstate_days <= REINSTATE_DAYS_MAX, "expiry.reinstateDays", detail);
    }

    fn tiers(&mut self) {
        let Some(tiers) = &self.document.tiers else { return };
        self.len("tiers.levels", tiers.levels.len(), TIERS_MAX);
        let begins_at_zero = tiers.levels.first().is_some_and(|level| level.from.is_zero());
        self.demand(begins_at_zero, "tiers.levels", "must begin with a tier from 0");
        let rises = tiers.levels.is_sorted_by(|lower, higher| lower.from < higher.from);
        self.demand(rises, "tiers.levels", "each tier must begin above the one before");
        let names: HashSet<_> = tiers.levels.iter().map(|level| &level.name).collect();
        let unique = names.len() == tiers.levels.len();
        self.demand(unique, "tiers.levels", "names must differ");

        for (number, level) in tiers.levels.iter().enumerate() {
            self.name(format!("tiers.levels[{number}].name"), &level.name);
            self.points(format!("tiers.levels[{number}].from"), level.from, Number::ZERO);
        }
        // A wallet remembers the points of two periods, which decide about a tier that ends.
        let keep_max = months_of_window(tiers.window).unwrap_or(0);
        let detail = format!("must be 0 to {keep_max}, the months of its window");
        self.demand(tiers.keep_months <= keep_max, "tiers.keepMonths", detail);
        let is_kept = tiers.window == TierWindow::Lifetime && tiers.keep_months > 0;
        self.demand(!is_kept, "tiers.keepMonths", "a tier for a lifetime has no end");
    }

    fn tables(&mut self) {
        self.len("tables", self.document.tables.len(), PROGRAMME_TABLES_MAX);
        for (name, table) in &self.document.tables {
            let at = format!("tables.{name}");
            self.name(&at, name);
            let fields = (1..=TABLE_FIELDS_MAX).contains(&table.by.len());
            let detail = format!("must name 1 to {TABLE_FIELDS_MAX} fields");
            self.demand(fields, format!("{at}.by"), detail);
            for (number, path) in table.by.iter().enumerate() {
                let is_field = path == "tier" || Field::of_path(path).is_some();
                let detail = "must be a field such as data.country, or `tier`";
                self.demand(is_field, format!("{at}.by[{number}]"), detail);
            }

            self.len(&format!("{at}.rows"), table.rows.len(), TABLE_ROWS_MAX);
            let is_empty = table.rows.is_empty() && table.default.is_none();
            self.demand(!is_empty, format!("{at}.rows"), "has neither rows nor a default");
            for (row, value) in &table.rows {
                let parts = if table.by.len() == 1 { 1 } else { row.split('.').count() };
                let fits = parts == table.by.len() || row == "*";
                let detail = format!("must have {} parts joined by points", table.by.len());
                self.demand(fits, format!("{at}.rows.{row}"), detail);
                let detail = "must not be negative";
                self.demand(!value.is_negative(), format!("{at}.rows.{row}"), detail);
            }
            let is_negative = table.default.is_some_and(Number::is_negative);
            self.demand(!is_negative, format!("{at}.default"), "must not be negative");
        }
    }

    fn rules(&mut self) {
        self.len("rules", self.document.rules.len(), PROGRAMME_RULES_MAX);
        let ids: HashSet<_> = self.document.rules.iter().map(|rule| rule.id).collect();
        self.demand(ids.len() == self.document.rules.len(), "rules", "ids must differ");
        for (number, rule) in self.document.rules.iter().enumerate() {
            self.rule(rule, &format!("rules[{number}]"));
        }
    }

    fn rule(&mut self, rule: &RuleDocument, at: &str) {
        self.demand(rule.id > 0, format!("{at}.id"), "must be 1 or more");
        self.name(format!("{at}.name"), &rule.name);
        let is_type = rule.event_type.as_deref();
        let is_own = is_type.is_some_and(|kind| kind.starts_with(OWN_EVENTS));
        let detail = "awards for what awards publish would never end";
        self.demand(!is_own, format!("{at}.eventType"), detail);
        self.demand(is_type != Some(""), format!("{at}.eventType"), "must not be empty");

        let paths = [
            ("member", &rule.member),
            ("amount", &rule.amount),
            ("reference", &rule.reference),
            ("reverses", &rule.reverses),
        ];
        for (name, path) in paths {
            let is_field = path.as_deref().is_none_or(|path| Field::of_path(path).is_some());
            let detail = "must be a field such as data.amount";
            self.demand(is_field, format!("{at}.{name}"), detail);
        }
        let needs_member = rule.event_type.is_some() && rule.member.is_none();
        self.demand(!needs_member, format!("{at}.member"), "says who gets the points");

        if rule.reverses.is_some() {
            let earns = rule.points.is_some() || !rule.factors.is_empty();
            let detail = "a rule that takes points back has an amount at most";
            self.demand(!earns, format!("{at}.reverses"), detail);
        } else {
            let one = rule.amount.is_some() != rule.points.is_some();
            let detail = "a rule has either an amount or points";
            self.demand(one, format!("{at}.amount"), detail);
        }
        if let Some(points) = rule.points {
            self.points(format!("{at}.points"), points, Number::ZERO);
            let detail = "points that are fixed have no factors";
            self.demand(rule.factors.is_empty(), format!("{at}.factors"), detail);
        }

        self.factors(rule, at);
        if let Some(budget) = &rule.budget {
            self.name(format!("{at}.budget"), budget);
        }
        let fits = rule.pending_days.is_none_or(|days| days <= PENDING_DAYS_MAX);
        let detail = format!("must be 0 to {PENDING_DAYS_MAX}");
        self.demand(fits, format!("{at}.pendingDays"), detail);
        if let Some(points) = rule.per_event_max {
            self.points(format!("{at}.perEventMax"), points, Number::ZERO);
        }
        for (name, time) in [("activeFrom", &rule.active_from), ("activeUntil", &rule.active_until)]
        {
            self.time(format!("{at}.{name}"), time.as_deref());
        }
        for detail in rule.filter.iter().flat_map(|filter| filter.inexact_numbers()) {
            self.add(format!("{at}.filter"), detail);
        }
    }

    /// Factors exist, and their product with any amount fits 128 bits, whichever rows meet.
    fn factors(&mut self, rule: &RuleDocument, at: &str) {
        let at = format!("{at}.factors");
        self.len(&at, rule.factors.len(), FACTORS_MAX);
        let unique: HashSet<_> = rule.factors.iter().collect();
        self.demand(unique.len() == rule.factors.len(), at.as_str(), "names must differ");

        let mut digits = 0;
        for name in &rule.factors {
            let Some(table) = self.document.tables.get(name) else {
                self.add(at.as_str(), format!("there is no table `{name}`"));
                continue;
            };
            let values = table.rows.values().chain(&table.default);
            digits += values.map(|value| value.digits()).max().unwrap_or(0);
        }
        let detail = format!(
            "have {digits} significant digits together, more than {FACTOR_DIGITS_MAX}: an exact \
             product would not fit"
        );
        self.demand(digits <= FACTOR_DIGITS_MAX, at, detail);
    }

    fn time(&mut self, field: String, time: Option<&str>) {
        let is_time = time.is_none_or(|time| parse_rfc3339_ms(time.as_bytes()).is_some());
        self.demand(is_time, field, "must be a time such as 2026-01-01T00:00:00+08:00");
    }

    fn partners(&mut self) {
        self.len("partners", self.document.partners.len(), PARTNERS_MAX);
        let names: HashSet<_> =
            self.document.partners.iter().map(|partner| &partner.name).collect();
        let unique = names.len() == self.document.partners.len();
        self.demand(unique, "partners", "names must differ");

        for (number, partner) in self.document.partners.iter().enumerate() {
            let at = format!("partners[{number}]");
            self.partner_name(format!("{at}.name"), &partner.name);
            let limits =
                [("perAwardMax", partner.per_award_max), ("perDayMax", partner.per_day_max)];
            for (name, points) in limits {
                if let Some(points) = points {
                    self.points(format!("{at}.{name}"), points, Number::ZERO);
                }
            }

            let is_positive = partner.own_factors.is_none_or(|own| own.max > Number::ZERO);
            self.demand(is_positive, format!("{at}.ownFactors.max"), "must be positive");
            for (name, rate) in
                [("exchange", partner.exchange), ("exchangeIn", partner.exchange_in)]
            {
                let fits = rate.is_none_or(|rate| rate.give > 0 && rate.get > 0);
                self.demand(fits, format!("{at}.{name}"), "must be positive whole numbers");
            }
        }

        self.len("formerPartners", self.document.former_partners.len(), FORMER_PARTNERS_MAX);
        for (number, name) in self.document.former_partners.iter().enumerate() {
            self.partner_name(format!("formerPartners[{number}]"), name);
        }
    }

    fn partner_name(&mut self, field: String, name: &str) {
        self.name(field.as_str(), name);
        let is_free = !OWN_SOURCES.contains(&name);
        self.demand(is_free, field, "is taken: raingauge awards points of its own under this name");
    }

    fn budgets_and_rewards(&mut self) {
        let document = self.document;
        self.len("budgets", document.budgets.len(), PROGRAMME_BUDGETS_MAX);
        for (name, budget) in &document.budgets {
            self.name(format!("budgets.{name}"), name);
            self.points(format!("budgets.{name}.limit"), budget.limit, Number::ZERO);
        }

        self.len("rewards", document.rewards.len(), REWARDS_MAX);
        let by_name: BTreeMap<_, _> =
            document.rewards.iter().map(|reward| (&reward.name, ())).collect();
        self.demand(by_name.len() == document.rewards.len(), "rewards", "names must differ");
        for (number, reward) in document.rewards.iter().enumerate() {
            let at = format!("rewards[{number}]");
            self.name(format!("{at}.name"), &reward.name);
            self.points(format!("{at}.points"), reward.points, Number::ZERO);
            self.demand(!reward.points.is_zero(), format!("{at}.points"), "must not be 0");
            self.time(format!("{at}.from"), reward.from.as_deref());
            self.time(format!("{at}.until"), reward.until.as_deref());
        }
    }
}

#[cfg(test)]
mod tests;

//! The budgets of a campaign: what is used, and when they will be exhausted.

use crate::pages::faults;
use crate::pages::list::{bar, current_key};
use crate::pages::summary;
use crate::pages::usage::{Usage, date_of};
use crate::pages::visit::Visit;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_campaigns::budget::{Budget as Rule, BudgetPeriod};
use raingauge_campaigns::campaign::Campaign;
use raingauge_campaigns::forecast::{Forecast, forecast};
use raingauge_portal::Fault;
use raingauge_portal::html::words;
use raingauge_ports::campaigns::{Budget, BudgetKey};
use std::collections::BTreeMap;

pub async fn card(
    visit: &Visit,
    campaign: &Campaign,
    usage: &Usage,
    zone: &TimeZone,
) -> Result<Markup, Fault> {
    if campaign.budgets.is_empty() {
        return Ok(html! {});
    }
    let accounts = visit.desk.reader().budgets_of(campaign.id).await.map_err(faults::ledger)?;
    let accounts: BTreeMap<BudgetKey, Budget> = accounts.into_iter().collect();
    let now_ms = visit.now_ms();
    let today = date_of(now_ms, zone);

    Ok(html! {
        section.card aria-labelledby="budgets-title" {
            h2 #budgets-title { "Budgets" }
            @for (name, rule) in &campaign.budgets {
                @let key = current_key(campaign, name, rule, now_ms);
                @let account = accounts.get(&key).copied().unwrap_or_default();
                h3 { (name) ": " (summary::budget(rule)) }
                (bar(name, account.reserved, rule))
                dl.facts {
                    dt { "Reserved" }
                    dd {
                        (words::number(account.reserved.into()))
                        " "
                        (rule.unit)
                        ", of which delivered "
                        (words::number(account.spent.into()))
                    }
                    dt { "Left" }
                    dd { (words::number((rule.max - account.reserved).max(0).into())) " " (rule.unit) }
                    dt { "Will last" } dd { (outlook(rule, &account, usage, name, today)) }
                }
            }
        }
    })
}

/// When a budget will be exhausted, by what past days spent.
fn outlook(
    rule: &Rule,
    account: &Budget,
    usage: &Usage,
    name: &str,
    today: Option<Date>,
) -> Markup {
    let free = (rule.max - account.reserved).max(0);
    if free == 0 {
        return html! { strong { "It is used up." } @if rule.period != BudgetPeriod::Campaign { " It starts again with the next period." } };
    }
    if rule.period != BudgetPeriod::Campaign {
        return html! { "It starts again " (summary::budget_period(rule.period)) "." };
    }

    let Some(today) = today else { return html! {} };
    // Today is not over: it says nothing yet about a day's spend.
    let mut spend = usage.spend_of(name, today);
    spend.pop();
    match forecast(&spend, free, u64::from(rule.max.unsigned_abs() as u32)) {
        None => html! { "A forecast needs two weeks of decisions." },
        Some(found) => forecast_words(found, today),
    }
}

fn forecast_words(found: Forecast, today: Date) -> Markup {
    let day = |days: u32| {
        // The first day of the future is today, whose spend is not over.
        let date = today.checked_add(jiff::Span::new().days(i64::from(days) - 1));
        date.map_or_else(|_| "–".to_owned(), |date| date.strftime("%-d %b %Y").to_string())
    };
    match (found.p10, found.p50, found.p90) {
        (_, None, _) => html! { "more than a year, as it looks" },
        (early, Some(median), late) => html! {
            "until " strong { (day(median)) } ", as it looks"
            @if let Some(early) = early { "; " (day(early)) " at the earliest" }
            @if let Some(late) = late { ", " (day(late)) " at the latest" }
            span.quiet { " (8 in 10 cases)" }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    #[test]
    fn a_forecast_names_days() {
        let today = date(2026, 11, 23);
        let found = Forecast { p10: Some(1), p50: Some(3), p90: None };
        let words = forecast_words(found, today).into_string();
        assert!(words.contains("<strong>25 Nov 2026</strong>"), "{words}");
        assert!(
            words.contains("23 Nov 2026 at the earliest") && !words.contains("latest"),
            "{words}"
        );
        let never = Forecast { p10: None, p50: None, p90: None };
        assert!(forecast_words(never, today).into_string().contains("more than a year"));
    }

    #[test]
    fn a_budget_of_a_period_starts_again() {
        let rule: Rule =
            serde_json::from_str(r#"{"unit": "points", "max": 10, "period": "day"}"#).unwrap();
        let words = |reserved| {
            let account = Budget { max: 10, reserved, spent: 0 };
            outlook(&rule, &account, &Usage::default(), "b", None).into_string()
        };
        assert!(words(10).contains("used up") && words(10).contains("next period"));
        assert!(words(3).contains("starts again each day"));
    }
}

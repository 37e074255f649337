//! A recount on request: the form, its progress, and its result bucket by bucket.

use super::listing::buckets;
use crate::Answer;
use crate::Portal;
use crate::caller::{Caller, Page, Submitted};
use crate::fault::Fault;
use crate::fields::{Fields, Query};
use crate::html::{layout, parts, words};
use crate::times::{self, EnteredTime, FORMS};
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::limits::KEY_LEN_MAX;
use raingauge_core::plan::Plan;
use raingauge_counters::recount::{KeyRange, Recount};
use raingauge_operations::self_audit::{Job, left_out};
use raingauge_people::Principal;
use raingauge_ports::checks::Difference;

/// Longest range of one recount, in days.
const DAYS_MAX: i64 = 400;
/// Largest number of buckets shown.
const BUCKETS_SHOWN: usize = 400;
/// The page starts with the finest granularity that gives at most this many rows.
const ROWS_LIKED: usize = 100;

/// The submitted form, and its problems.
#[derive(Clone, Debug, Default)]
pub struct RecountForm {
    key: String,
    from: String,
    to: String,
    problems: Vec<(&'static str, String)>,
}

impl RecountForm {
    /// Fills the form from the address, `?key=…&from=…&to=…`; without a range, with yesterday and
    /// today so far.
    pub fn of(portal: &Portal, fields: &Fields, zone: &TimeZone) -> Self {
        let now_s = portal.clock.now_s();
        let field = |name: &str, otherwise: &str| {
            let time = EnteredTime::parse(fields.text(name), zone, now_s);
            time.map_or_else(|| otherwise.to_owned(), |time| time.in_field(zone))
        };
        Self {
            key: fields.exact("key").to_owned(),
            from: field("from", "yesterday"),
            to: field("to", "now"),
            problems: Vec::new(),
        }
    }

    /// The form of a recount that was made.
    fn of_job(job: &Job, zone: &TimeZone) -> Self {
        let field = |at_s: i64| EnteredTime::fixed(at_s).in_field(zone);
        let KeyRange { key, range } = &job.asked;
        Self {
            key: key.clone(),
            from: field(range.from_s),
            to: field(range.to_s),
            problems: Vec::new(),
        }
    }

    fn sent(fields: &Fields) -> Self {
        let text = |name: &str| fields.text(name).to_owned();
        Self {
            key: fields.exact("key").to_owned(),
            from: text("from"),
            to: text("to"),
            problems: Vec::new(),
        }
    }

    /// Returns the recount that the form requests. On error, `problems` says what is wrong.
    fn asked(&mut self, zone: &TimeZone, now_s: i64) -> Option<KeyRange> {
        if self.key.is_empty() || self.key.len() > KEY_LEN_MAX {
            self.problems.push(("key", format!("A key has 1 to {KEY_LEN_MAX} bytes.")));
        }
        let moments = [("from", &self.from), ("to", &self.to)].map(|(name, text)| {
            let moment = times::moment_of(text, zone, now_s);
            if moment.is_none() {
                self.problems.push((name, format!("Write a time: {FORMS}.")));
            }
            moment
        });

        let [Some(from_s), Some(to_s)] = moments else {
            return None;
        };
        let range = match Plan::new(from_s, to_s) {
            Ok(range) if range.from_s >= range.to_s => {
                Err("The range is empty: it has no whole quarter hour.".to_owned())
            }
            Ok(range) if range.to_s - range.from_s > DAYS_MAX * DAY_S => {
                Err(format!("A recount covers at most {DAYS_MAX} days: choose a shorter range."))
            }
            Ok(range) => Ok(range),
            Err(error) => Err(format!("{error}.")),
        };

        match range {
            Ok(range) if self.problems.is_empty() => {
                Some(KeyRange { key: self.key.clone(), range })
            }
            Ok(_) => None,
            Err(problem) => {
                self.problems.push(("to", problem));
                None
            }
        }
    }

    fn problem(&self, field: &str) -> Option<&str> {
        self.problems.iter().find(|(known, _)| *known == field).map(|(_, problem)| problem.as_str())
    }
}

/// Renders the recount form.
pub fn form(person: &Principal, typed: &RecountForm, zone: &TimeZone) -> Markup {
    let zone_name = words::zone(zone);
    let key = parts::Field { name: "key", label: "Key", hint: "", problem: typed.problem("key") };
    let time = |name, label: &str, value| {
        let label = format!("{label}, {zone_name}");
        let problem = typed.problem(name);
        let input = parts::time_input(name, value, problem);
        parts::Field { name, label: &label, hint: "", problem }.around(&input)
    };

    html! {
        section.card #recount aria-labelledby="recount-title" {
            h2 #recount-title { "Recount" }
            form.form method="post" action="/checks/recount" {
                (parts::csrf(person))
                input type="hidden" name="zone" value=(zone_name);
                div.row.fields-row {
                    (key.text(&typed.key))
                    (time("from", "From", &typed.from))
                    (time("to", "To", &typed.to))
                    button.button.primary { "Recount" }
                }
                p.quiet {
                    "Reads the log from the start of the range. With many events, this takes a \
                     while."
                }
            }
        }
    }
}

/// `POST /checks/recount`
pub async fn begin(caller: Caller, Submitted(fields): Submitted) -> Answer {
    let zone = fields.zone();
    let mut typed = RecountForm::sent(&fields);
    let Some(asked) = typed.asked(&zone, caller.portal.clock.now_s()) else {
        let body =
            html! { div.page-head { h1 { "Checks" } } (form(&caller.person, &typed, &zone)) };
        let page = caller.page(layout::Place::Checks, "Checks", &body);
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response());
    };
    let id = caller.portal.operations.self_audit.recount(asked, &caller.person.name)?;
    let zone =
        if zone == TimeZone::UTC { String::new() } else { format!("?zone={}", words::zone(&zone)) };
    Ok(Redirect::to(&format!("/checks/recount/{id}{zone}")).into_response())
}

/// `GET /checks/recount/{id}`
pub async fn page(caller: Caller, Path(id): Path<String>, Query(fields): Query) -> Page {
    let zone = fields.zone();
    let Some(job) = caller.portal.operations.self_audit.job(&id) else {
        return Err(Fault::new(
            StatusCode::NOT_FOUND,
            "This recount is not known here",
            "It is old, or another portal made it, or the server has restarted since. Its result \
             is in the list of checks.",
        ));
    };

    let is_running = job.found.is_none();
    let address = format!("/checks/recount/{id}");
    let state = state(&job, &fields, &zone);
    let body = html! {
        div.page-head {
            h1 { "Recount of " code { (job.asked.key) } }
            p.quiet { a href="/checks" { "Checks" } }
        }
        // Without scripts, the browser reloads the page.
        @if is_running { noscript { meta http-equiv="refresh" content="2"; } }
        (parts::live("job", is_running.then_some((address.as_str(), "every 1s")), &state))
        (form(&caller.person, &RecountForm::of_job(&job, &zone), &zone))
    };
    Ok(caller.page(layout::Place::Checks, "Recount", &body))
}

fn state(job: &Job, fields: &Fields, zone: &TimeZone) -> Markup {
    match &job.found {
        None => {
            let (entries, of) = job.progress.entries();
            html! {
                div.card {
                    label.field {
                        span {
                            (words::number(entries.into())) " of " (words::number(of.into()))
                            " entries of the log"
                        }
                        progress max=(of.max(1)) value=(entries) {}
                    }
                }
            }
        }
        Some(Err(reason)) => {
            html! { div.notice.bad { "The recount failed: " (reason) "." } }
        }
        Some(Ok(None)) => html! {
            div.notice.wait {
                "No active or paused counter has a template that renders this key. Check the "
                a href="/" { "templates" } "."
            }
        },
        Some(Ok(Some(recount))) => result(job, recount, fields, zone),
    }
}

fn result(job: &Job, recount: &Recount, fields: &Fields, zone: &TimeZone) -> Markup {
    let detail = left_out(recount);
    let is_uncovered = recount.compared_from >= recount.to_time;
    let (choice, table) = side_by_side(job, recount, fields, zone);

    html! {
        @if is_uncovered {
            div.notice.wait { (detail) }
        } @else {
            (verdict(recount))
            @if !detail.is_empty() { div.notice.wait { (detail) } }
            @if recount.set_buckets > 0 {
                div.notice.wait {
                    (words::count_of(recount.set_buckets as i128, "bucket", "buckets"))
                    " of the range were set by requests, not counted from events, so the log \
                     cannot confirm them."
                }
            }
            section.card aria-labelledby="buckets-title" {
                div.card-head {
                    h2 #buckets-title {
                        (words::range(recount.compared_from, recount.to_time, zone))
                    }
                    (choice)
                }
                (table)
            }
        }
    }
}

fn verdict(recount: &Recount) -> Markup {
    let both = html! {
        b { (words::number(recount.stored)) } " stored, and "
        b { (words::number(recount.recounted)) } " recounted from the log"
    };
    let buckets = words::count_of(recount.differences.len() as i128, "bucket", "buckets");
    html! {
        @if recount.equal {
            div.notice.good { "Equal: " (both) "." }
        } @else {
            div.notice.bad { "Different: " (both) ". They differ in " (buckets) "." }
        }
    }
}

/// The choice of granularity, and the buckets.
fn side_by_side(
    job: &Job,
    recount: &Recount,
    fields: &Fields,
    zone: &TimeZone,
) -> (Markup, Markup) {
    let of = |granularity: Granularity| -> Vec<Difference> {
        let mut own: Vec<Difference> = recount
            .buckets
            .iter()
            .filter(|bucket| bucket.granularity == granularity)
            .copied()
            .collect();

        own.sort_by_key(|bucket| bucket.time);
        own
    };

    let asked = Granularity::from_name(fields.text("granularity"));
    let fits = |granularity: &Granularity| (1..=ROWS_LIKED).contains(&of(*granularity).len());
    let chosen =
        asked.or_else(|| Granularity::ALL.into_iter().find(fits)).unwrap_or(Granularity::Day);
    let mut rows = of(chosen);
    let all = rows.len();

    // Buckets that differ are never left out.
    if all > BUCKETS_SHOWN {
        rows.sort_by_key(|bucket| bucket.stored.unwrap_or(0) == bucket.recounted.unwrap_or(0));
        rows.truncate(BUCKETS_SHOWN);
        rows.sort_by_key(|bucket| bucket.time);
    }

    let address = |granularity: Granularity| {
        let zone = words::zone(zone);
        format!("/checks/recount/{}?granularity={}&zone={zone}", job.id, granularity.name())
    };
    let choice = html! {
        div.segments.actions role="group" aria-label="Buckets" {
            @for granularity in Granularity::ALL {
                @let mark = (granularity == chosen).then_some("true");
                a href=(address(granularity)) aria-current=[mark] { (words::plural(granularity)) }
            }
        }
    };

    let table = html! {
        @if rows.is_empty() {
            p.quiet { "Neither side has such a bucket: both count 0." }
        } @else {
            (buckets(&rows, zone, "Stored and recounted"))
            @if all > rows.len() {
                p.quiet {
                    (words::number(rows.len() as i128)) " of " (words::number(all as i128))
                    " buckets: all that differ, and the first of the others."
                }
            }
        }
    };
    (choice, table)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2024-09-25T00:00:00Z.
    const NOW_S: i64 = 1_727_222_400;

    fn typed(key: &str, from: &str, to: &str) -> RecountForm {
        RecountForm {
            key: key.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            problems: Vec::new(),
        }
    }

    #[test]
    fn a_range_is_read_in_its_zone_and_bounded() {
        let berlin = TimeZone::get("Europe/Berlin").expect("a zone");
        let read =
            |from, to, zone: &TimeZone| typed("k", from, to).asked(zone, NOW_S).expect("a range");
        let asked = read("2024-09-24T22:10", "2024-09-25 01:00", &berlin);
        assert_eq!(asked, read("2024-09-24T20:00", "2024-09-24T23:00", &TimeZone::UTC));
        assert_eq!(asked, read("-4h", "-1h", &TimeZone::UTC));

        for (key, from, to, field) in [
            ("", "2024-09-24T20:00", "2024-09-24T23:00", "key"),
            ("k", "soon", "2024-09-24T23:00", "from"),
            ("k", "2024-09-24T20:00", "", "to"),
            ("k", "2024-09-24T20:00", "2024-09-24T20:10", "to"),
            ("k", "2024-09-24T20:00", "2024-09-24T19:00", "to"),
            ("k", "2022-09-24T20:00", "2024-09-24T19:00", "to"),
        ] {
            let mut typed = typed(key, from, to);
            assert_eq!(typed.asked(&TimeZone::UTC, NOW_S), None, "{from} {to}");
            assert!(typed.problem(field).is_some(), "{from} {to}: {:?}", typed.problems);
        }
    }
}

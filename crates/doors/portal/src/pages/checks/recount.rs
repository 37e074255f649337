//! A recount on request: the form, its progress, and its result bucket by bucket.

use super::listing::{buckets, granularity_words};
use crate::Portal;
use crate::fault::Fault;
use crate::fields::{Fields, Query};
use crate::html::{layout, parts, words};
use crate::times;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
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
        let today_s = times::bucket_start(now_s, Granularity::Day, zone);
        let moment = |name: &str, otherwise: i64| {
            times::field_of(times::moment_of(fields.text(name), zone).unwrap_or(otherwise), zone)
        };
        Self {
            key: fields.exact("key").to_owned(),
            from: moment("from", today_s - DAY_S),
            to: moment("to", Granularity::Quarter.floor(now_s)),
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
    fn asked(&mut self, zone: &TimeZone) -> Option<KeyRange> {
        if self.key.is_empty() || self.key.len() > KEY_LEN_MAX {
            self.problems.push(("key", format!("A key has 1 to {KEY_LEN_MAX} bytes.")));
        }
        let moments = [("from", &self.from), ("to", &self.to)].map(|(name, text)| {
            let moment = times::moment_of(text, zone);
            if moment.is_none() {
                self.problems.push((name, "Write a time such as 2024-09-24T22:00.".to_owned()));
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
                Err(format!("A recount covers {DAYS_MAX} days at most: ask for less at once."))
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
pub fn form(_portal: &Portal, person: &Principal, typed: &RecountForm, zone: &TimeZone) -> Markup {
    let field =
        |name, label, hint| parts::Field { name, label, hint, problem: typed.problem(name) };
    let moment = |name: &'static str, label: &'static str, value: &str| {
        field(name, label, "").around(&html! {
            input type="datetime-local" step="900" id=(name) name=(name) value=(value) aria-invalid=[typed.problem(name).map(|_| "true")] aria-describedby={ (name) "-words" };
        })
    };

    html! {
        section.card #recount aria-labelledby="recount-title" {
            h2 #recount-title { "Recount" }
            form.form method="post" action="/checks/recount" {
                (parts::csrf(person))
                input type="hidden" name="zone" value=(words::zone(zone));
                div.row {
                    (field("key", "Key", "").text(&typed.key))
                    (moment("from", "From", &typed.from))
                    (moment("to", "To", &typed.to))
                    button.button.primary { "Recount" }
                }
                p.quiet { "Times are those of " (words::zone(zone)) ". The log is read from the beginning of the range on, which takes a while when there are many events." }
            }
        }
    }
}

/// `POST /checks/recount`
pub async fn begin(
    State(portal): State<Portal>,
    Extension(person): Extension<Principal>,
    Extension(fields): Extension<Fields>,
) -> Result<Response, Fault> {
    let zone = fields.zone();
    let mut typed = RecountForm::sent(&fields);
    let Some(asked) = typed.asked(&zone) else {
        let body =
            html! { div.page-head { h1 { "Checks" } } (form(&portal, &person, &typed, &zone)) };
        let page = portal.page(Some(&person), layout::Place::Checks, "Checks", &body);
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response());
    };
    let id = portal.operations.self_audit.recount(asked, &person.name)?;
    let zone =
        if zone == TimeZone::UTC { String::new() } else { format!("?zone={}", words::zone(&zone)) };
    Ok(Redirect::to(&format!("/checks/recount/{id}{zone}")).into_response())
}

/// `GET /checks/recount/{id}`
pub async fn page(
    State(portal): State<Portal>,
    Extension(person): Extension<Principal>,
    Path(id): Path<String>,
    Query(fields): Query,
) -> Result<Html<String>, Fault> {
    let zone = fields.zone();
    let Some(job) = portal.operations.self_audit.job(&id) else {
        return Err(Fault::new(
            StatusCode::NOT_FOUND,
            "This recount is not known here",
            "It was made long ago, or by another portal, or before a restart. Its result stands among the checks.",
        ));
    };

    let is_running = job.found.is_none();
    let body = html! {
        div.page-head { h1 { "Recount of " code { (job.asked.key) } } p.quiet { a href="/checks" { "Checks" } } }
        // Without scripts, the browser reloads the page.
        @if is_running { noscript { meta http-equiv="refresh" content="2"; } }
        div #job.stack aria-live="polite" hx-get=[is_running.then(|| format!("/checks/recount/{id}"))] hx-trigger=[is_running.then_some("every 1s")]
            hx-select=[is_running.then_some("#job")] hx-target=[is_running.then_some("#job")] hx-swap=[is_running.then_some("outerHTML")] {
            (state(&job, &fields, &zone))
        }
        (form(&portal, &person, &RecountForm {
            key: job.asked.key.clone(),
            from: times::field_of(job.asked.range.from_s, &zone),
            to: times::field_of(job.asked.range.to_s, &zone),
            problems: Vec::new(),
        }, &zone))
    };
    Ok(portal.page(Some(&person), layout::Place::Checks, "Recount", &body))
}

fn state(job: &Job, fields: &Fields, zone: &TimeZone) -> Markup {
    match &job.found {
        None => {
            let (entries, of) = job.progress.entries();
            html! {
                div.card {
                    label.field {
                        span { (words::number(entries.into())) " of " (words::number(of.into())) " entries of the log" }
                        progress max=(of.max(1)) value=(entries) {}
                    }
                }
            }
        }
        Some(Err(reason)) => {
            html! { div.notice.bad { "It could not be recounted: " (reason) "." } }
        }
        Some(Ok(None)) => html! {
            div.notice.wait { "No counter that answers has a template that renders this key. See its " a href="/" { "template" } ", and whether it is active." }
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
            @if recount.equal {
                div.notice.good { "Equal: " b { (words::number(recount.stored)) } " stored, and " b { (words::number(recount.recounted)) } " by the log." }
            } @else {
                div.notice.bad { "Different: " b { (words::number(recount.stored)) } " stored, and " b { (words::number(recount.recounted)) } " by the log, in " (words::count_of(recount.differences.len() as i128, "bucket", "buckets")) "." }
            }
            @if !detail.is_empty() { div.notice.wait { (detail) } }
            @if recount.set_buckets > 0 {
                div.notice.wait {
                    (words::count_of(recount.set_buckets as i128, "bucket", "buckets"))
                    " of the range did not come of events: requests set them, and the log says no more about them."
                }
            }
            section.card aria-labelledby="buckets-title" {
                div.card-head {
                    h2 #buckets-title { (words::range(recount.compared_from, recount.to_time, zone)) }
                    (choice)
                }
                (table)
            }
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

    let name = |granularity: Granularity| match granularity {
        Granularity::Quarter => "quarter",
        Granularity::Hour => "hour",
        Granularity::Day => "day",
    };

    let asked = Granularity::ALL
        .into_iter()
        .find(|granularity| name(*granularity) == fields.text("granularity"));
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

    let choice = html! {
        div.segments.actions role="group" aria-label="Buckets" {
            @for granularity in Granularity::ALL {
                a href={ "/checks/recount/" (job.id) "?granularity=" (name(granularity)) "&zone=" (words::zone(zone)) } aria-current=[(granularity == chosen).then_some("true")] {
                    (granularity_words(granularity)) "s"
                }
            }
        }
    };

    let table = html! {
        @if rows.is_empty() {
            p.quiet { "Neither side has a bucket of this kind: the count is 0 on both." }
        } @else {
            (buckets(&rows, zone, "Stored and recounted"))
            @if all > rows.len() { p.quiet { (rows.len()) " of " (words::number(all as i128)) " buckets: those that differ, and the first others." } }
        }
    };
    (choice, table)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let asked =
            typed("k", "2024-09-24T22:10", "2024-09-25T01:00").asked(&berlin).expect("a range");
        let utc = typed("k", "2024-09-24T20:00", "2024-09-24T23:00")
            .asked(&TimeZone::UTC)
            .expect("a range");
        assert_eq!(asked, utc);

        for (key, from, to, field) in [
            ("", "2024-09-24T20:00", "2024-09-24T23:00", "key"),
            ("k", "yesterday", "2024-09-24T23:00", "from"),
            ("k", "2024-09-24T20:00", "", "to"),
            ("k", "2024-09-24T20:00", "2024-09-24T20:10", "to"),
            ("k", "2024-09-24T20:00", "2024-09-24T19:00", "to"),
            ("k", "2022-09-24T20:00", "2024-09-24T19:00", "to"),
        ] {
            let mut typed = typed(key, from, to);
            assert_eq!(typed.asked(&TimeZone::UTC), None, "{from} {to}");
            assert!(typed.problem(field).is_some(), "{from} {to}: {:?}", typed.problems);
        }
    }
}

//! `/objects`: how Redis clients use this process.

use crate::parts as own;
use crate::{Board, HOME, Open};
use axum::response::IntoResponse as _;
use maud::{Markup, html};
use raingauge_portal::html::chart::{Chart, Kind, Line, Points, Scale, Unit};
use raingauge_portal::html::parts::{self, Mood};
use raingauge_portal::{Answer, Place, Section, Visit};

/// The pages of the section: one, so that there are no links among them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Tab;

impl Section for Board {
    type Tab = Tab;

    const HOME: &'static str = HOME;
    const NAME: &'static str = "Objects";
    const TABS: &'static [(Tab, &'static str, &'static str)] = &[];

    fn note(_: &str) -> Option<(Mood, &'static str)> {
        None
    }
}

/// `GET /objects`
pub async fn page(visit: Visit<Board>) -> Answer {
    let body = match &visit.desk.0 {
        Some(open) => html! {
            div.page-head {
                h1 { "Objects" }
                p.quiet { "Refreshes every 5 seconds while it is visible." }
            }
            (parts::live("objects-live", Some((HOME, "every 5s")), &live(open, &visit)))
        },
        None => html! {
            div.page-head { h1 { "Objects" } }
            (parts::empty("The door for Redis clients is closed", &html! {
                "Set " code { "resp.listen" } ", such as " code { "127.0.0.1:6380" }
                ", to keep objects here and to read counts with a Redis client."
            }))
        },
    };
    let place = Place::Product(HOME);
    Ok(visit.portal.page(Some(&visit.person), place, "Objects", &body).into_response())
}

/// What refreshes.
fn live(open: &Open, visit: &Visit<Board>) -> Markup {
    let (stats, status) = open.look();
    let present = open.history.lock().present();
    let observed = &open.services.observed;
    html! {
        @if let Some(why) = open.services.objects.trouble() {
            (parts::notice(Mood::Bad, &html! { "Nothing is written any more: " (why) ". Start this process again; it will find out what is on the disk." }))
        }
        (own::figures(present.as_ref(), &stats))
        (commands(open, visit))
        (own::places(&stats, &status, open.services.memory_bytes, visit.now_s()))
        (own::doctor(&observed.cases()))
        (own::hot_keys(&observed.hot(own::KEYS_SHOWN), visit.may_edit()))
        (own::sizes(&observed.sizes()))
        (own::slots(&open.services.settings))
    }
}

/// Commands per second over the last hour.
fn commands(open: &Open, visit: &Visit<Board>) -> Markup {
    let points = open.history.lock().commands();
    let (Some((from_s, _)), Some((to_s, _))) = (points.first(), points.last()) else {
        return html! {};
    };
    if from_s == to_s {
        return html! {};
    }

    let zone = visit.zone();
    let chart = Chart {
        title: "Commands per second".to_owned(),
        words: "Commands over objects, in the last hour at most.".to_owned(),
        times: points.iter().map(|(at_s, _)| *at_s).collect(),
        lines: vec![Line {
            name: "Commands".to_owned(),
            values: points.iter().map(|(_, commands)| Some(*commands)).collect(),
            kind: Kind::Line,
        }],
        from_s: *from_s,
        to_s: *to_s,
        points: Points::Moments,
        unit: Unit::PerSecond,
        scale: Scale::Linear,
        zone: &zone,
        now_s: None,
        marks: Vec::new(),
    };
    html! {
        section.card aria-labelledby="commands-title" {
            h2 #commands-title { "Commands per second" }
            (chart.figure())
        }
    }
}

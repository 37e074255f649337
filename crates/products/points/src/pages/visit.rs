//! A request to a page of points, in the frame that the portal gives every product.

use super::desk::Desk;
use super::view::ProgrammeView;
use maud::{Markup, html};
use raingauge_portal::html::parts::Mood;
use raingauge_portal::{Fault, Section};

pub use raingauge_portal::{Answer, done, page};

/// The first page, and the link of the navigation.
pub const HOME: &str = "/points";

/// A request to a page of points.
pub type Visit = raingauge_portal::Visit<Desk>;

/// The pages of the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tab {
    Programmes,
    Queues,
    Checks,
}

impl Section for Desk {
    type Tab = Tab;

    const HOME: &'static str = HOME;
    const NAME: &'static str = "Points";
    const TABS: &'static [(Tab, &'static str, &'static str)] = &[
        (Tab::Programmes, HOME, "Programmes"),
        (Tab::Queues, "/points/queues", "Queues"),
        (Tab::Checks, "/points/checks", "Checks"),
    ];

    fn note(code: &str) -> Option<(Mood, &'static str)> {
        let sentence = match code {
            "saved" => (Mood::Good, "Saved, and in effect."),
            "adjusted" => (Mood::Good, "The balance is adjusted."),
            "redriven" => (Mood::Good, "They are on their way again, under the same keys."),
            "discarded" => (Mood::Good, "Discarded. They will not be tried again."),
            "nothing" => (Mood::Wait, "Nothing was there to change any more."),
            "sweeping" => (Mood::Good, "The sweep has begun."),
            "job-ended" => (Mood::Good, "The job was cancelled."),
            _ => return None,
        };
        Some(sentence)
    }
}

/// The pages of one programme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Overview,
    Members,
    Liability,
    Partners,
    Rewards,
}

impl Part {
    const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Overview, "", "Rules"),
        (Self::Members, "members", "Members"),
        (Self::Liability, "liability", "Liability"),
        (Self::Partners, "partners", "Partners"),
        (Self::Rewards, "rewards", "Rewards"),
    ];
}

/// The programme that the path names.
pub async fn programme(visit: &Visit) -> Result<ProgrammeView, Fault> {
    visit.desk.programme(visit.at("programme")).await
}

/// The head of a page of a programme, with links to its other pages.
pub fn programme_head(
    programme: &ProgrammeView,
    part: Part,
    title: &str,
    actions: &Markup,
) -> Markup {
    html! {
        div.page-head {
            h1 { (title) }
            @if part != Part::Overview {
                span.quiet { "in " a href=(programme.address("")) { (programme.name) } }
            }
            (actions)
        }
        nav.segments aria-label={ "Programme " (programme.name) } {
            @for (one, rest, label) in Part::ALL {
                a href=(programme.address(rest)) aria-current=[(one == part).then_some("page")] {
                    (label)
                }
            }
        }
    }
}

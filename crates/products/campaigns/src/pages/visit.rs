//! A request to a page of campaigns, in the frame that the portal gives every product.

use super::desk::Desk;
use raingauge_campaigns::campaign::CampaignId;
use raingauge_portal::html::parts::Mood;
use raingauge_portal::{Fault, Section};

pub use raingauge_portal::{Answer, done, encoded, page, reason_field};

/// The first page, and the link of the navigation.
pub const HOME: &str = "/campaigns";

/// A request to a page of campaigns.
pub type Visit = raingauge_portal::Visit<Desk>;

/// The pages of the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tab {
    Campaigns,
    WhyNot,
    Decisions,
    Actions,
    Destinations,
    Tables,
    Experiments,
    Shared,
}

impl Section for Desk {
    type Tab = Tab;

    const HOME: &'static str = HOME;
    const NAME: &'static str = "Campaigns";
    const TABS: &'static [(Tab, &'static str, &'static str)] = &[
        (Tab::Campaigns, HOME, "Campaigns"),
        (Tab::WhyNot, "/campaigns/why", "Why not"),
        (Tab::Decisions, "/campaigns/decisions", "Decisions"),
        (Tab::Actions, "/campaigns/actions", "Actions"),
        (Tab::Destinations, "/campaigns/destinations", "Destinations"),
        (Tab::Tables, "/campaigns/tables", "Tables"),
        (Tab::Experiments, "/campaigns/experiments", "Experiments"),
        (Tab::Shared, "/campaigns/shared", "Budgets, caps, lookups"),
    ];

    fn note(code: &str) -> Option<(Mood, &'static str)> {
        let sentence = match code {
            "saved" => (Mood::Good, "Saved, and in effect."),
            "saved-later" => {
                (Mood::Wait, "Saved. It takes effect when campaigns reach it in the log.")
            }
            "state" => (Mood::Good, "The state has changed, and is in effect."),
            "redriven" => (Mood::Good, "They are sent again, under the same ids."),
            "cancelled" => (Mood::Good, "Cancelled. What it reserved is back in its budget."),
            "nothing" => (Mood::Wait, "Nothing was there to change any more."),
            "loaded" => (Mood::Good, "The new version of the table is in use."),
            "granted" => (Mood::Good, "Decided again: what the budgets cover is granted."),
            "still-refused" => (Mood::Wait, "Decided again: the budgets cover none of it."),
            "erased" => (Mood::Good, "Erased. Campaigns remember nothing of the subject."),
            "removed" => (Mood::Good, "Removed. Its versions stay in the history."),
            "job-ended" => (Mood::Good, "The job was cancelled."),
            _ => return None,
        };
        Some(sentence)
    }
}

/// The campaign that the path names.
pub fn campaign_id(visit: &Visit) -> Result<CampaignId, Fault> {
    visit.at("id").parse().map_err(|_| Fault::not_found("such campaign"))
}

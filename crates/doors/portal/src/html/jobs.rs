//! Work in the background that reads the log: how far it is, and its result.

use super::parts::{self, Mood};
use maud::{Markup, html};
use raingauge_people::Principal;
use serde_json::Value as Json;

/// A job, as the API answers it, and its page.
pub struct JobPanel<'j> {
    /// The page of the job; `?part=1` is the panel alone, and `/end` cancels it.
    pub address: &'j str,
    pub job: &'j Json,
}

impl JobPanel<'_> {
    /// Renders the state of the job, or its result. While it is not over, the browser asks again
    /// every second, if it runs scripts.
    pub fn markup(&self, person: &Principal, result: impl FnOnce(&Json) -> Markup) -> Markup {
        let status = self.job["status"].as_str().unwrap_or_default();
        let is_open = matches!(status, "waiting" | "running");
        let again = format!("{}?part=1", self.address);
        html! {
            div.stack hx-get=[is_open.then_some(&again)] hx-trigger="load delay:1s"
                hx-swap="outerHTML" aria-live="polite" {
                @match status {
                    "waiting" | "running" => { (self.under_way(person)) }
                    "failed" => { (parts::notice(Mood::Bad, &html! { "It failed: " (self.failure()) })) }
                    "cancelled" => { (parts::notice(Mood::Wait, &html! { "It was cancelled." })) }
                    _ => { (result(&self.job["result"])) }
                }
            }
        }
    }

    fn failure(&self) -> &str {
        self.job["error"].as_str().unwrap_or("the log of raingauge says more")
    }

    fn under_way(&self, person: &Principal) -> Markup {
        let share = self.job["progress"].as_f64().unwrap_or(0.0).clamp(0.0, 1.0);
        html! {
            p { @if self.job["status"] == "waiting" { "It waits for another one to end." } @else { "It reads the log: " (format!("{:.0} %", share * 100.0)) } }
            progress value=(format!("{share:.3}")) max="1" aria-label="Progress" {}
            form.row method="post" action={ (self.address) "/end" } {
                (parts::csrf(person))
                button.button type="submit" { "Cancel" }
                a href=(self.address) { "Load again" }
            }
        }
    }
}

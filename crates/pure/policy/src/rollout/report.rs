//! What was done, and what was seen of it, as a text.

use super::{End, Phase, Rollout, Window};

impl Rollout {
    /// A table of the stages that are over, and how it ended.
    pub fn markdown(&self) -> String {
        let mut text = String::from(
            "| | counts/s | failed | p99 ms | mean ms | requests to the store/s | breakers |\n|---|--:|--:|--:|--:|--:|--:|\n",
        );
        for watched in &self.watched {
            text += &row(&watched.stage.words(), &watched.window);
        }
        text += &match &self.phase {
            Phase::Ended { end: End::Finished, .. } => {
                format!("\n`{}` is in force.\n", self.plan.to.name())
            }
            Phase::Ended { end: End::Overruled, why } => format!("\nEnded: {why}, which stays.\n"),
            Phase::Ended { why, .. } => format!("\nRolled back: {why}.\n"),
            _ => "\nIt is under way.\n".to_owned(),
        };

        text
    }
}

fn row(what: &str, window: &Window) -> String {
    format!(
        "| {what} | {:.0} | {:.3} % | {:.1} | {:.2} | {:.0} | {:.0} |\n",
        window.counts_per_s,
        100.0 * window.failed_share,
        window.p99_ms,
        window.mean_ms,
        window.store_requests_per_s,
        window.breakers_opened
    )
}

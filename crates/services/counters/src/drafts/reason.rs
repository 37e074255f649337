//! The reason that the version of a document keeps: why it was proposed, who edited the proposal,
//! and who approved it.

use raingauge_core::limits::REASON_LEN_MAX;
use raingauge_ports::drafts::Draft;

/// The reason of a version that a reviewer approved.
pub fn of_approval(draft: &Draft, reviewer: &str, comment: &str) -> String {
    let comment = if comment.is_empty() { String::new() } else { format!(": {comment}") };
    with_notes(draft, Some(format!("approved by {reviewer}{comment}")))
}

/// The reason of a version that took effect without a review.
pub fn of_author(draft: &Draft) -> String {
    with_notes(draft, None)
}

fn with_notes(draft: &Draft, approved: Option<String>) -> String {
    let editors = draft.writers().get(1..).unwrap_or_default().join(", ");
    let edited = (!editors.is_empty()).then(|| format!("edited by {editors}"));
    let notes: Vec<String> = edited.into_iter().chain(approved).collect();
    if notes.is_empty() {
        return draft.reason.clone();
    }

    let notes = cut(&notes.join("; "), REASON_LEN_MAX / 2);
    let reason = cut(&draft.reason, REASON_LEN_MAX - notes.len() - " ()".len());
    format!("{reason} ({notes})")
}

/// Cuts a text to at most this many bytes.
fn cut(text: &str, len_max: usize) -> String {
    if text.len() <= len_max {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(len_max - '…'.len_utf8())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reason_names_editors_and_the_reviewer_and_fits() {
        let draft = Draft::new("counter", json!({}), 0, "ada", 0);
        let draft = Draft { reason: "it rains".to_owned(), ..draft };
        assert_eq!(of_author(&draft), "it rains");
        assert_eq!(of_approval(&draft, "zoe", ""), "it rains (approved by zoe)");

        let edited = draft.clone().edited_by("max");
        assert_eq!(
            of_approval(&edited, "zoe", "fine"),
            "it rains (edited by max; approved by zoe: fine)"
        );

        let long = Draft { reason: "☔".repeat(REASON_LEN_MAX), ..edited };
        let reason = of_approval(&long, "zoe", &"☔".repeat(REASON_LEN_MAX));
        assert!(reason.len() <= REASON_LEN_MAX && reason.ends_with("…)"), "{reason}");
    }
}

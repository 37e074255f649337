//! Notes: a sentence on what was just done, on top of the page that follows.

use super::parts::{self, Mood};
use crate::fields::Fields;
use maud::{Markup, html};

/// The sentence for a code in `?note=CODE`. The address carries a code and no text, so that a link
/// cannot make the portal show an arbitrary sentence.
fn sentence(code: &str) -> Option<(Mood, &'static str)> {
    Some(match code {
        "paused" => (Mood::Good, "The counter is paused: it answers, but counts nothing more."),
        "resumed" => (Mood::Good, "The counter counts again."),
        "archived" => {
            (Mood::Good, "The counter is archived: it neither counts nor answers any more.")
        }
        "erased" => (
            Mood::Good,
            "All counts are erased, and the counter starts from zero. The space is freed in the \
             background.",
        ),
        "key-erased" => {
            (Mood::Good, "The counts of the key are erased. Later events are counted again.")
        }
        "purged" => (Mood::Good, "All counts are erased. The space is freed in the background."),
        "backfill" => (
            Mood::Good,
            "The log is being counted again. Queries return the previous counts until it is done.",
        ),
        "rolled-back" => {
            (Mood::Good, "The earlier configuration is in force again, as a new version.")
        }
        "saved" => (Mood::Good, "The change is saved and in force."),
        "policy-set" => {
            (Mood::Good, "The policy is set. Every instance follows it within seconds.")
        }
        "policy-back" => (Mood::Good, "The earlier policy is in force again, as a new version."),
        "rollout-begun" => {
            (Mood::Good, "The rollout has started. It first observes the service as it is.")
        }
        "rollout-stopped" => {
            (Mood::Good, "The rollout is stopped, and the previous policy is in force.")
        }
        "rollout-goes-on" => (Mood::Good, "The rollout continues with its next step."),
        "compaction-begun" => (Mood::Good, "The compaction has started."),
        "compaction-stopping" => (
            Mood::Wait,
            "The compaction is stopping. A node that is being compacted stops if its engine can.",
        ),
        "audit-begun" => (Mood::Good, "The audit has started. Its results appear here."),
        "welcome" => (Mood::Good, "You are signed in. Welcome."),
        "password" => (Mood::Good, "The password is changed, and your other sessions have ended."),
        "session-ended" => (Mood::Good, "The session has ended."),
        "withdrawn" => (Mood::Good, "The link is no longer valid."),
        "role" => (Mood::Good, "The role is changed, starting with the person's next page."),
        "disabled" => (Mood::Good, "The person is signed out and may not sign in any more."),
        "disabled-tokens" => (
            Mood::Wait,
            "The person is signed out and may not sign in any more. Tokens that they made are \
             still valid: see Tokens.",
        ),
        "removed" => (Mood::Good, "The person is removed. A number replaces their name."),
        "enabled" => (Mood::Good, "The person may sign in again."),
        "signed-out" => (Mood::Good, "The person is signed out everywhere."),
        "revoked" => {
            (Mood::Good, "The token is revoked. Every instance refuses it within two seconds.")
        }
        "draft-saved" => (Mood::Good, "The draft is saved. Nothing has changed yet."),
        "draft-sent" => (Mood::Good, "The draft waits for a review."),
        "draft-rejected" => (Mood::Wait, "The draft was sent back to its author."),
        "draft-withdrawn" => (Mood::Good, "The draft was withdrawn."),
        "draft-changed" => (
            Mood::Bad,
            "Someone changed this draft after you opened it, so nothing was done. This is its \
             current content.",
        ),
        "draft-conflict" => (
            Mood::Bad,
            "The counter has changed since this draft was started, so it was not applied.",
        ),
        "reason-missing" => (Mood::Bad, "Say why, in a few words: it is kept with the change."),
        "reason-long" => (Mood::Bad, "The text is too long: it may have at most 2,000 bytes."),
        _ => return None,
    })
}

/// The note for the code in the address, if that code exists.
pub fn shown(fields: &Fields) -> Markup {
    let note = fields.given("note").and_then(sentence);
    html! { @if let Some((mood, sentence)) = note { (parts::notice(mood, &html! { (sentence) })) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_codes_say_anything() {
        let note = |query: &str| shown(&Fields::parse(query.as_bytes())).into_string();
        assert!(note("note=paused").contains("The counter is paused"));
        assert_eq!((note("note=<b>hacked</b>"), note("")), (String::new(), String::new()));
    }
}

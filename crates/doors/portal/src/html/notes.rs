//! Notes: a sentence on what was just done, on top of the page that follows.

use super::parts::{self, Mood};
use crate::fields::Fields;
use maud::{Markup, html};

/// The sentence for a code in `?note=CODE`. The address carries a code and no text, so that a link
/// cannot make the portal show an arbitrary sentence.
fn sentence(code: &str) -> Option<(Mood, &'static str)> {
    Some(match code {
        "paused" => (Mood::Good, "The counter is paused: it answers, and counts nothing more."),
        "resumed" => (Mood::Good, "The counter counts again."),
        "archived" => {
            (Mood::Good, "The counter is archived: it neither counts nor answers any more.")
        }
        "erased" => (
            Mood::Good,
            "Every count is erased; the counter counts from nothing. The space is freed in the background.",
        ),
        "key-erased" => {
            (Mood::Good, "The counts of the key are erased. Events that arrive later count again.")
        }
        "purged" => {
            (Mood::Good, "What the counter kept is erased; the space is freed in the background.")
        }
        "backfill" => (
            Mood::Good,
            "The counts are being made again from the log. The old ones answer until that is done.",
        ),
        "rolled-back" => {
            (Mood::Good, "The earlier configuration is in force again, as a new version.")
        }
        "saved" => (Mood::Good, "The change is saved, and counts."),
        "policy-set" => (Mood::Good, "The policy holds; every instance follows within seconds."),
        "policy-back" => (Mood::Good, "The earlier policy holds again, as a new version."),
        "rollout-begun" => {
            (Mood::Good, "The rollout has begun: first the service is watched as it is.")
        }
        "rollout-stopped" => {
            (Mood::Good, "The rollout is stopped, and the previous policy is in force.")
        }
        "rollout-goes-on" => (Mood::Good, "The rollout goes on with its next step."),
        "compaction-begun" => (Mood::Good, "The compaction has begun."),
        "compaction-stopping" => (
            Mood::Wait,
            "The compaction ends; a node that is being compacted is stopped where the engine can.",
        ),
        "audit-begun" => (Mood::Good, "The audit has begun; its results appear here."),
        "welcome" => (Mood::Good, "You are signed in. Welcome."),
        "password" => {
            (Mood::Good, "The password is changed. You are signed out everywhere but here.")
        }
        "session-ended" => (Mood::Good, "The session has ended."),
        "withdrawn" => (Mood::Good, "The link opens nothing any more."),
        "role" => (Mood::Good, "The role is changed, and holds from the next page on."),
        "disabled" => (Mood::Good, "The person may not sign in any more, and is signed out."),
        "disabled-tokens" => (
            Mood::Wait,
            "The person may not sign in any more, and is signed out. Tokens that they made are still good: look at Tokens.",
        ),
        "removed" => {
            (Mood::Good, "The person is removed. Where their name stood, a number stands now.")
        }
        "enabled" => (Mood::Good, "The person may sign in again."),
        "signed-out" => (Mood::Good, "The person is signed out everywhere."),
        "revoked" => {
            (Mood::Good, "The token is revoked; every instance refuses it within two seconds.")
        }
        "draft-saved" => (Mood::Good, "The draft is saved. Nothing counts differently yet."),
        "draft-sent" => (Mood::Good, "The draft waits for a review."),
        "draft-rejected" => (Mood::Wait, "The draft was sent back to its author."),
        "draft-withdrawn" => (Mood::Good, "The draft was withdrawn."),
        "draft-changed" => (
            Mood::Bad,
            "Someone changed this draft after you opened it, so nothing was done. This is how it is now.",
        ),
        "draft-conflict" => {
            (Mood::Bad, "The counter was changed since this draft began, so it was not applied.")
        }
        "reason-missing" => {
            (Mood::Bad, "Say why, in a few words: it stands in the history of the counter.")
        }
        "reason-long" => (Mood::Bad, "The text is too long: 2,000 bytes are the most."),
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

//! What a form did, by the address it was sent to: for handlers that do not say it themselves.

use crate::people::audit::Deed;
use serde_json::json;
use std::borrow::Cow;

/// Routes whose address says less than `/v1` says of the same.
const NAMED: [(&str, &str, &str); 8] = [
    ("/drafts", "draft.save", "draft"),
    ("/system/cache", "cache_policy.replace", "cache policy"),
    ("/system/cache/back", "cache_policy.replace", "cache policy"),
    ("/system/cache/rollouts", "rollout.begin", "rollout"),
    ("/system/cache/rollouts/{id}/stop", "rollout.stop", "rollout"),
    ("/system/cache/rollouts/{id}/go-on", "rollout.go_on", "rollout"),
    ("/system/compaction", "compaction.begin", "compaction"),
    ("/system/compaction/stop", "compaction.stop", "compaction"),
];

/// `POST /counters/34/pause` is `counter.pause` of `counter 34`.
pub fn of_route(pattern: &str, path: &str) -> Deed {
    if let Some((_, verb, object)) = NAMED.iter().find(|(named, ..)| *named == pattern) {
        return Deed::new(verb, (*object).to_owned(), json!({}));
    }
    let parts: Vec<(&str, &str)> = pattern.split('/').zip(path.split('/')).skip(1).collect();
    let is_named = |part: &str| part.starts_with('{');
    let what = match parts.first().map_or("", |(part, _)| *part) {
        "people" => "person",
        part => part.strip_suffix('s').unwrap_or(part),
    };
    let did = parts
        .iter()
        .skip(1)
        .rev()
        .map(|(part, _)| *part)
        .find(|part| !is_named(part))
        .unwrap_or("change");
    let which = parts.iter().find(|(part, _)| is_named(part)).map(|(_, value)| *value);
    let object = which.map_or_else(|| what.to_owned(), |which| format!("{what} {which}"));
    Deed { verb: Cow::Owned(format!("{what}.{did}")), object, details: json!({}) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_what_was_done() {
        let said = |pattern, path| {
            let Deed { verb, object, .. } = of_route(pattern, path);
            (verb.into_owned(), object)
        };
        let pair = |verb: &str, object: &str| (verb.to_owned(), object.to_owned());
        assert_eq!(
            said("/counters/{id}/pause", "/counters/34/pause"),
            pair("counter.pause", "counter 34")
        );
        assert_eq!(said("/counters/new", "/counters/new"), pair("counter.new", "counter"));
        assert_eq!(
            said("/system/cache/back", "/system/cache/back"),
            pair("cache_policy.replace", "cache policy")
        );
        assert_eq!(said("/drafts/{id}", "/drafts/7"), pair("draft.change", "draft 7"));
    }
}

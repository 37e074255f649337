//! What `HELP` of each container answers.

use raingauge_resp::{Replies, find, subcommands};

/// Replies with the subcommands of a container, each with what it does.
pub(super) fn reply(container: &str, replies: &mut Replies) {
    let title = container.to_ascii_uppercase();
    let mut lines =
        vec![format!("{title} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];

    for spec in find(container.as_bytes()).into_iter().flat_map(subcommands) {
        let name = spec.name.rsplit('|').next().unwrap_or_default().to_ascii_uppercase();
        lines.push(name);
        lines.push(format!("    {}", spec.summary));
    }

    replies.array(lines.len());
    for line in &lines {
        replies.simple(line);
    }
}

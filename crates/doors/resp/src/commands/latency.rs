//! `LATENCY`: durations of commands. Events of latency are not recorded: metrics have them.

use raingauge_resp::{Arguments, Failure, Id, Replies};

use super::{catalog, help};
use crate::desk::Desk;

pub(super) fn run(
    desk: &Desk,
    id: Id,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    match id {
        Id::LatencyHelp => help::reply("latency", replies),
        Id::LatencyHistogram => histogram(desk, arguments, replies),
        Id::LatencyReset => replies.integer(0),
        Id::LatencyDoctor => {
            replies.verbatim("RAIN.DOCTOR tells which clients would gain from pipelines.\n");
        }
        Id::LatencyGraph => return Err(no_samples(arguments)),
        // No events, of any name.
        _ => replies.array(0),
    }

    Ok(())
}

fn no_samples(arguments: Arguments<'_>) -> Failure {
    let event = String::from_utf8_lossy(arguments.at(2));

    Failure::owned(format!("ERR No samples available for event '{event}'"))
}

/// The durations of all commands that ran, or of those that are named.
fn histogram(desk: &Desk, arguments: Arguments<'_>, replies: &mut Replies) {
    let names: Vec<_> = arguments.iter().skip(2).filter_map(catalog::named).collect();
    let is_asked = |name: &str| {
        arguments.len() == 2
            || names.iter().any(|spec| {
                spec.name == name
                    || name.split_once('|').is_some_and(|(first, _)| first == spec.name)
            })
    };
    let mut commands = desk.server.usage.commands();
    commands.retain(|usage| usage.calls > 0 && is_asked(usage.spec.name));

    replies.map(commands.len());
    for usage in commands {
        replies.bulk(usage.spec.name.as_bytes());
        replies.map(2);
        replies.bulk(b"calls");
        replies.integer(usage.calls as i64);

        replies.bulk(b"histogram_usec");
        replies.map(usage.durations.len());
        for (bound_us, sum) in usage.durations {
            replies.integer(bound_us as i64);
            replies.integer(sum as i64);
        }
    }
}

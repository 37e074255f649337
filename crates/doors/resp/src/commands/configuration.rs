//! `CONFIG`: parameters, as clients and tools read and set them.

use raingauge_ports::objects::SyncMode;
use raingauge_resp::{Arguments, Failure, Id, Replies, glob};

use super::help;
use crate::desk::Desk;
use crate::parameters::{PARAMETERS, Parameter};
use crate::server::Server;

pub(super) fn run(
    desk: &Desk,
    id: Id,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    match id {
        Id::ConfigGet => get(&desk.server, arguments, replies),
        Id::ConfigHelp => help::reply("config", replies),

        Id::ConfigSet => {
            set(&desk.server, arguments)?;
            replies.ok();
        }
        Id::ConfigResetstat => {
            desk.server.reset_stats();
            replies.ok();
        }
        _ => {
            return Err(Failure::text(
                "ERR The server is running without a config file that it may write: settings are \
                 given to raingauge (docs/configuration.md)",
            ));
        }
    }

    Ok(())
}

fn get(server: &Server, arguments: Arguments<'_>, replies: &mut Replies) {
    let is_asked = |known: &&Parameter| {
        arguments.iter().skip(2).any(|pattern| glob::matches(pattern, known.name.as_bytes(), true))
    };
    let found: Vec<&Parameter> = PARAMETERS.iter().filter(is_asked).collect();

    replies.map(found.len());
    for known in found {
        replies.bulk(known.name.as_bytes());
        replies.bulk(value(server, known.name).as_bytes());
    }
}

/// The present value of a parameter, from the part of the process that acts on it.
pub(super) fn value(server: &Server, name: &str) -> String {
    match name {
        "appendfsync" => server.objects.sync_mode().name().into(),
        "notify-keyspace-events" => server.objects.notify_flags(),
        _ => server.parameters.get(name),
    }
}

/// Sets all parameters or none.
fn set(server: &Server, arguments: Arguments<'_>) -> Result<(), Failure> {
    if !arguments.len().is_multiple_of(2) {
        return Err(Failure::Syntax);
    }

    let mut checked: Vec<(&'static str, String)> = Vec::new();
    for index in (2..arguments.len()).step_by(2) {
        let name = arguments.at(index);
        let Some(known) = Parameter::find(name) else {
            let name = String::from_utf8_lossy(name);
            return Err(Failure::owned(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
            )));
        };

        if checked.iter().any(|(name, _)| *name == known.name) {
            return Err(refused(known.name, "duplicate parameter"));
        }
        // Tools write back what they read, also of parameters that cannot be changed.
        if value(server, known.name).as_bytes() == arguments.at(index + 1) {
            continue;
        }

        let value = known.check(arguments.at(index + 1));
        checked.push((known.name, value.map_err(|reason| refused(known.name, &reason))?));
    }

    // The only one that can still be refused comes first.
    checked.sort_by_key(|(name, _)| *name != "notify-keyspace-events");
    for (name, value) in checked {
        apply(server, name, value)?;
    }
    Ok(())
}

fn apply(server: &Server, name: &'static str, value: String) -> Result<(), Failure> {
    match name {
        "notify-keyspace-events" => {
            let set = server.objects.set_notify_flags(&value);
            return set.map_err(|reason| refused(name, reason));
        }
        "appendfsync" => {
            let mode = SyncMode::from_name(&value).unwrap_or_default();
            server.objects.set_sync_mode(mode);
        }
        "slowlog-log-slower-than" => server.slowlog.set_threshold_us(value.parse().unwrap_or(-1)),
        "slowlog-max-len" => server.slowlog.set_len_max(value.parse().unwrap_or(0)),
        _ => {}
    }

    server.parameters.set(name, value);
    Ok(())
}

fn refused(name: &str, reason: &str) -> Failure {
    Failure::owned(format!(
        "ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}"
    ))
}

//! Requests of browsers: a page of a stranger could else send commands to a door of this machine
//! that asks for no login.

use raingauge_resp::{Command, Drain};

/// Removes what a request of HTTP begins with, and all behind it. Returns whether there was one.
///
/// The first line of some methods is read as a command, such as `GET`; the line of the host, which
/// every request has, never is.
pub(crate) fn cut(drain: &mut Drain) -> bool {
    let at = drain.commands().position(is_web_request);
    if let Some(at) = at {
        drain.truncate(at);
    }

    at.is_some()
}

fn is_web_request(command: Command<'_>) -> bool {
    let is_named = |name: &[u8]| command.arguments.at(0).eq_ignore_ascii_case(name);

    command.spec().is_none() && (is_named(b"post") || is_named(b"host:"))
}

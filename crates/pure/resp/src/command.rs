//! One command of a drain, and what is wrong with it before it runs.

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::spec::Spec;
use crate::table;

/// Bytes of a name that an error repeats.
const SHOWN_NAME_BYTES: usize = 128;
/// Bytes of arguments that an error repeats.
const SHOWN_ARGUMENT_BYTES: usize = 128;

/// One command.
#[derive(Clone, Copy)]
pub struct Command<'a> {
    pub lookup: Lookup,
    pub arguments: Arguments<'a>,
}

/// What the table has for a command.
#[derive(Clone, Copy, Debug)]
pub enum Lookup {
    Known(&'static Spec),
    Unknown,
    /// A subcommand that this container does not have.
    UnknownSubcommand(&'static Spec),
}

impl Lookup {
    pub(crate) fn of(arguments: Arguments<'_>) -> Lookup {
        let Some(spec) = arguments.get(0).and_then(table::find) else {
            return Lookup::Unknown;
        };

        match arguments.get(1) {
            Some(name) if spec.is_container() => match table::find_sub(spec.name, name) {
                Some(found) => Lookup::Known(found),
                None => Lookup::UnknownSubcommand(spec),
            },
            _ => Lookup::Known(spec),
        }
    }
}

impl<'a> Command<'a> {
    /// The command that these arguments are.
    pub fn of(arguments: Arguments<'a>) -> Command<'a> {
        Command { lookup: Lookup::of(arguments), arguments }
    }

    /// The row of the command, if there is one.
    pub fn spec(&self) -> Option<&'static Spec> {
        match self.lookup {
            Lookup::Known(spec) => Some(spec),
            Lookup::Unknown | Lookup::UnknownSubcommand(_) => None,
        }
    }

    /// The row of the command if it is there and has the right number of arguments.
    pub fn check(&self) -> Result<&'static Spec, Failure> {
        match self.lookup {
            Lookup::Known(spec) if spec.accepts(self.arguments.len()) => Ok(spec),
            Lookup::Known(spec) => Err(Failure::Arity(spec.name)),
            Lookup::Unknown => Err(self.unknown()),

            Lookup::UnknownSubcommand(container) => {
                let name = shown(self.arguments.get(1).unwrap_or_default(), SHOWN_NAME_BYTES);
                let container_name = container.name.to_ascii_uppercase();
                let reason = absent_subcommand(container.name, &name);

                Err(Failure::owned(format!(
                    "ERR unknown subcommand '{name}'. Try {container_name} HELP.{reason}"
                )))
            }
        }
    }

    /// The refusal of a command that does not exist, or not here: first the text that clients look
    /// for, then the reason.
    pub fn unknown(&self) -> Failure {
        let name = shown(self.arguments.get(0).unwrap_or_default(), SHOWN_NAME_BYTES);
        let reason = absent(&name);
        let mut line = format!("ERR unknown command '{name}', with args beginning with: ");
        let mut left = SHOWN_ARGUMENT_BYTES;

        for argument in self.arguments.iter().skip(1) {
            if left == 0 {
                break;
            }

            let text = shown(argument, left);
            left = left.saturating_sub(text.len() + 3);
            line.push('\'');
            line.push_str(&text);
            line.push_str("' ");
        }

        line.push_str(&reason);
        Failure::owned(line)
    }
}

/// The first bytes of an argument as text.
fn shown(argument: &[u8], len_max: usize) -> String {
    String::from_utf8_lossy(&argument[..argument.len().min(len_max)]).into_owned()
}

/// Why a command of Redis is not here; nothing for a name that Redis does not have either.
fn absent(name: &str) -> String {
    let name = name.to_ascii_lowercase();

    let what = match name.as_str() {
        "sort" | "sort_ro" => "SORT",
        "dump" | "restore" | "restore-asking" | "migrate" => "DUMP, RESTORE or MIGRATE",
        "eval" | "eval_ro" | "evalsha" | "evalsha_ro" | "fcall" | "fcall_ro" => "scripts",
        "monitor" => "MONITOR",
        "debug" => "DEBUG",
        "module" => "modules",
        "sync" | "psync" | "replicaof" | "slaveof" | "replconf" | "failover" => {
            "replication of this kind"
        }
        "shutdown" => "SHUTDOWN",
        _ if name.starts_with("geo") => "GEO",
        _ if name.starts_with("pf") => "HyperLogLog",
        _ if name.starts_with("xa") || name.starts_with("xr") || is_stream(&name) => "streams",
        _ if name.starts_with("hexpire") || name.starts_with("hpexpire") => "expiry of fields",
        _ if name.starts_with("ts.") => "TS commands: counts are read by RAIN.SERIES",
        _ => return String::new(),
    };

    format!(": raingauge has no {what}")
}

fn is_stream(name: &str) -> bool {
    matches!(
        name,
        "xclaim" | "xdel" | "xgroup" | "xinfo" | "xlen" | "xpending" | "xsetid" | "xtrim"
    )
}

fn absent_subcommand(container: &str, name: &str) -> String {
    let name = name.to_ascii_lowercase();

    let what = match (container, name.as_str()) {
        ("client", "tracking" | "caching") => "client tracking",
        ("script", "load" | "exists" | "kill" | "debug") | ("function", _) => "scripts",
        _ => return String::new(),
    };

    format!(" raingauge has no {what}")
}

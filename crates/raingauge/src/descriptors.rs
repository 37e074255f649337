//! File descriptors: as many as the system allows, and connections only as far as they leave room for files.
//!
//! A client costs a descriptor, and so does a segment of the log. A process that has run out of them cannot begin the
//! next segment or write a table, so connections are kept below what files need.

use crate::connections::RESERVE_MAX;
use crate::settings::Settings;
use anyhow::bail;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for everything but connections, segments and tables: the standard streams, listeners, the runtime,
/// catalogs, journals, runs of identities, files that are written just now.
const BASE: usize = 64;
/// Most tables that the embedded store keeps open, when there are descriptors for them.
const TABLES_MAX: usize = 900;
/// Fewest connections that are worth a start.
const CONNECTIONS_MIN: usize = 8;

/// What a number of descriptors is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shares {
    connections: usize,
    tables: usize,
}

/// Raises the limit of open files as far as the system lets it, and lowers the settings to what fits.
pub fn fit(settings: &mut Settings) -> anyhow::Result<()> {
    let limit = raise();
    let doors = 1 + usize::from(settings.server.grpc_listen.is_some());
    let Some(shares) = shares(limit, doors, settings.server.connections_max) else {
        bail!(
            "the limit of open files is {limit}, too low for any work: raise it, with `ulimit -n 65536` or LimitNOFILE"
        );
    };
    if shares.connections < settings.server.connections_max {
        tracing::warn!(
            limit,
            connections_max = shares.connections,
            wanted = settings.server.connections_max,
            "fewer connections are taken than server.connections_max, since files need some of the limit of open files: \
             raise it, with `ulimit -n` or LimitNOFILE"
        );
    }
    settings.server.connections_max = shares.connections;
    settings.storage.open_files_max = shares.tables;
    Ok(())
}

/// The limit after it was raised to the highest that is allowed. One that cannot be asked for is taken to be high.
fn raise() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    let current = if setrlimit(Resource::Nofile, raised).is_ok() { maximum } else { current };
    current.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Of what is left beside the base, a quarter is for tables and a quarter for segments, up to what they ever need; the
/// rest is for connections, of each door as many, and its reserve.
fn shares(limit: usize, doors: usize, connections_max: usize) -> Option<Shares> {
    let left = limit.checked_sub(BASE)?;
    let tables = (left / 4).min(TABLES_MAX);
    let segments = (left / 4).min(TABLES_MAX);
    let connections = ((left - tables - segments) / doors).saturating_sub(RESERVE_MAX).min(connections_max);
    (connections >= CONNECTIONS_MIN.min(connections_max)).then_some(Shares { connections, tables })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_files() {
        assert_eq!(shares(65_536, 2, 10_000), Some(Shares { connections: 10_000, tables: TABLES_MAX }));
        assert_eq!(shares(1_024, 1, 10_000), Some(Shares { connections: 448, tables: 240 }));
        assert_eq!(shares(1_024, 2, 10_000), Some(Shares { connections: 208, tables: 240 }));
        assert_eq!(shares(256, 1, 10_000), Some(Shares { connections: 64, tables: 48 }));
        assert_eq!(shares(256, 1, 50), Some(Shares { connections: 50, tables: 48 }));
        assert_eq!(shares(256, 2, 1), Some(Shares { connections: 1, tables: 48 }));
        assert_eq!((shares(64, 1, 10_000), shares(10, 1, 10_000)), (None, None));
        assert_eq!(shares(usize::MAX, 2, 1_000_000).map(|shares| shares.connections), Some(1_000_000));
    }
}

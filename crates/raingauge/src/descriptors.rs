//! File descriptors: as many as the system allows, with connections limited to what leaves room for
//! files.
//!
//! A client costs a descriptor, and so does a segment of the log. A process without free
//! descriptors cannot begin the next segment or write a table, so connections are limited in favour
//! of files.

use crate::settings::Settings;
use anyhow::bail;
use raingauge_http::connections::RESERVE_MAX;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for everything but connections, segments and tables: the standard streams,
/// listeners, the runtime, catalogs, journals, runs of identities, and files that are being
/// written.
const BASE: usize = 64;
/// Most tables that the embedded store keeps open, when there are descriptors for them.
const TABLES_MAX: usize = 900;
/// Fewest connections with which a server starts.
const CONNECTIONS_MIN: usize = 8;

/// The descriptors that a process wants.
#[derive(Clone, Copy, Debug)]
struct Demand {
    doors: usize,
    /// For each door, besides its reserve.
    connections: usize,
    /// For the door for Redis clients, which is one of the doors; 0 without it.
    resp_connections: usize,
    /// Segments of the log, and tables of the store, at most.
    segments: usize,
    tables: usize,
}

/// How a number of descriptors is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shares {
    connections: usize,
    resp_connections: usize,
    segments: usize,
    tables: usize,
}

/// Raises the limit of open files as far as the system allows, and lowers the settings to fit it.
pub fn fit(settings: &mut Settings) -> anyhow::Result<()> {
    let limit = raise();
    let wanted = wanted(settings);
    let Some(shares) = shares(limit, wanted) else {
        bail!(
            "the limit of open files is {limit}, too low for any work: raise it, with `ulimit -n 65536` or LimitNOFILE"
        );
    };

    if shares.connections < wanted.connections {
        tracing::warn!(
            limit,
            connections_max = shares.connections,
            wanted = wanted.connections,
            "fewer connections are taken than server.connections_max, since files need some of the limit of open files: \
             raise it, with `ulimit -n` or LimitNOFILE"
        );
    }

    if shares.segments < wanted.segments {
        tracing::warn!(
            limit,
            segments = shares.segments,
            wanted = wanted.segments,
            "the event log may come to have more segments than the limit of open files has room for: raise it, with \
             `ulimit -n` or LimitNOFILE, or raise log.segment_bytes"
        );
    }

    if shares.resp_connections < wanted.resp_connections {
        tracing::warn!(
            limit,
            connections_max = shares.resp_connections,
            wanted = wanted.resp_connections,
            "fewer Redis clients are taken than resp.connections_max, since files need some of the limit of open files: \
             raise it, with `ulimit -n` or LimitNOFILE"
        );
        settings.resp.connections_max = shares.resp_connections;
    }

    settings.server.connections_max = shares.connections;
    settings.tiles.open_files_max = shares.tables;
    Ok(())
}

fn wanted(settings: &Settings) -> Demand {
    let has_resp = settings.resp.listen.is_some();
    let doors = 1 + usize::from(settings.server.grpc_listen.is_some()) + usize::from(has_resp);
    let connections = settings.server.connections_max;
    let resp_connections = if has_resp { settings.resp.connections_max } else { 0 };
    if settings.cluster.is_cluster() {
        let tables = if has_resp { TABLES_MAX } else { 0 };
        return Demand { doors, connections, resp_connections, segments: 0, tables };
    }

    // One more segment is written to, and one is about to be removed.
    let log_bytes = settings.log.retention_bytes.max(settings.log.consumer_lag_bytes_max);
    let segments = log_bytes / settings.log.segment_bytes + 2;
    Demand {
        doors,
        connections,
        resp_connections,
        segments: usize::try_from(segments).unwrap_or(usize::MAX),
        tables: TABLES_MAX,
    }
}

/// Returns the limit after raising it to the highest that is allowed. An unknown limit is assumed
/// to be high.
fn raise() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    let current = if setrlimit(Resource::Nofile, raised).is_ok() { maximum } else { current };
    current.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Up to a quarter of what remains besides the base is for tables and up to a quarter for segments;
/// the rest is for connections, divided equally among the doors, and for their reserves.
fn shares(limit: usize, wanted: Demand) -> Option<Shares> {
    let left = limit.checked_sub(BASE)?;
    let tables = (left / 4).min(wanted.tables);
    let segments = (left / 4).min(wanted.segments);
    let each_door = (left - tables - segments) / wanted.doors;
    let each_door = each_door.saturating_sub(RESERVE_MAX);
    let connections = each_door.min(wanted.connections);
    let resp_connections = each_door.min(wanted.resp_connections);
    let suffices = connections >= CONNECTIONS_MIN.min(wanted.connections);
    suffices.then_some(Shares { connections, resp_connections, segments, tables })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_files() {
        let shares = |limit, doors, connections| {
            let demand = Demand {
                doors,
                connections,
                resp_connections: 50_000,
                segments: 514,
                tables: TABLES_MAX,
            };
            let found = shares(limit, demand)?;
            assert!(found.resp_connections >= found.connections.min(50_000));
            Some((found.connections, found.segments, found.tables))
        };
        assert_eq!(shares(65_536, 2, 10_000), Some((10_000, 514, TABLES_MAX)));
        assert_eq!(shares(1_024, 1, 10_000), Some((448, 240, 240)));
        assert_eq!(shares(1_024, 2, 10_000), Some((208, 240, 240)));
        assert_eq!(shares(256, 1, 10_000), Some((64, 48, 48)));
        assert_eq!(shares(256, 1, 1), Some((1, 48, 48)));
        assert_eq!((shares(64, 1, 10_000), shares(10, 1, 10_000)), (None, None));
        assert_eq!(shares(usize::MAX, 2, 1_000_000), Some((1_000_000, 514, TABLES_MAX)));
    }
}

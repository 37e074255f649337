//! Major compaction of the cluster's nodes: Cassandra by `nodetool`, Scylla by its REST interface.

mod nodetool;
mod rest;

use crate::schema::{self, Server};
use crate::{Cluster, error};
use nodetool::Nodetool;
use raingauge_ports::BoxFuture;
use raingauge_ports::maintenance::{Compactor, Error, Node, Progress};
use raingauge_settings::{FromText, Reader, Wrong, settings};
use rest::Rest;
use std::collections::HashMap;
use tokio::sync::OnceCell;

/// Stands for the node's address in the command and in the REST interface's URL.
const HOST: &str = "{host}";

settings! {
    /// How nodes are asked to compact.
    pub struct CompactionOptions in "maintenance" checked by CompactionOptions::check {
        /// How nodes are made to compact: nodetool for Cassandra, the REST interface for Scylla, or
        /// what suits the server.
        way as "compaction_way": CompactionWay = one_of(&["auto", "nodetool", "rest"]);
        /// Command that reaches a node of Cassandra, words with spaces; {host} is the node's
        /// address, and what to do is appended.
        command_line as "compaction_command": String = text("nodetool -h {host} -p 7199");
        /// REST interface of a node of Scylla; {host} is the node's address.
        url as "compaction_url": String = text("http://{host}:10000");
        /// Tables that are compacted; auto leaves those with time windows to Cassandra, which would
        /// mix their windows.
        tables as "compaction_tables": CompactionTables = one_of(&["auto", "all"]);
    } with {
        /// The words of the command line. What it must do is appended: `compact KEYSPACE TABLE`,
        /// `compactionstats`, `stop -id ID`.
        command: Vec<String> = Vec::new();
    }
}

impl CompactionOptions {
    fn check(&mut self, _: &mut Reader) {
        self.command = self.command_line.split_whitespace().map(str::to_owned).collect();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionWay {
    /// Depends on the server.
    Auto,
    Nodetool,
    Rest,
}

/// Which tables of the keyspace are compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionTables {
    /// All tables on Scylla. On Cassandra those without time windows: a major compaction would
    /// merge all windows into one file, which could then not be dropped when its time is over.
    Auto,
    All,
}

impl FromText for CompactionWay {
    fn from_text(word: &str) -> Result<Self, Wrong> {
        Ok(match word {
            "nodetool" => Self::Nodetool,
            "rest" => Self::Rest,
            _ => Self::Auto,
        })
    }
}

impl FromText for CompactionTables {
    fn from_text(word: &str) -> Result<Self, Wrong> {
        Ok(if word == "all" { Self::All } else { Self::Auto })
    }
}

/// Compacts the keyspace on the cluster's nodes.
pub struct NodeCompactor {
    cql: Cluster,
    options: CompactionOptions,
    engine: OnceCell<Engine>,
}

/// The interface that this cluster's nodes offer.
enum Engine {
    Nodetool(Nodetool),
    Rest(Rest),
}

impl NodeCompactor {
    pub fn new(cql: Cluster, options: CompactionOptions) -> Self {
        Self { cql, options, engine: OnceCell::new() }
    }

    async fn engine(&self) -> Result<&Engine, Error> {
        self.engine.get_or_try_init(|| self.choose()).await
    }

    async fn choose(&self) -> Result<Engine, Error> {
        let is_scylla = match self.options.way {
            CompactionWay::Auto => schema::server(&self.cql.session).await? == Server::Scylla,
            CompactionWay::Nodetool => false,
            CompactionWay::Rest => true,
        };
        let keyspace = self.keyspace();
        Ok(if is_scylla {
            Engine::Rest(Rest::new(&self.options.url, keyspace)?)
        } else {
            Engine::Nodetool(Nodetool::new(&self.options.command, keyspace)?)
        })
    }

    /// The keyspace's name as the server spells it.
    fn keyspace(&self) -> String {
        self.cql.options.keyspace.to_lowercase()
    }

    fn list_nodes(&self) -> Vec<Node> {
        let known = |name: &Option<String>| name.clone().unwrap_or_else(|| "unknown".to_owned());
        let node = |node: &scylla::cluster::Node| Node {
            rack: format!("{}/{}", known(&node.datacenter), known(&node.rack)),
            name: node.address.ip().to_string(),
        };
        self.cql
            .session
            .get_cluster_state()
            .get_nodes_info()
            .iter()
            .map(|found| node(found))
            .collect()
    }

    /// The tables that `nodetool` compacts, one after the other.
    async fn tables(&self) -> Result<Vec<String>, crate::Error> {
        let statement =
            "SELECT table_name, compaction FROM system_schema.tables WHERE keyspace_name = ?";
        let found = self
            .cql
            .session
            .query_unpaged(statement, (self.keyspace(),))
            .await
            .map_err(error::request)?;

        let rows = found.into_rows_result().map_err(error::request)?;
        let mut tables = Vec::new();
        for row in rows.rows::<(String, HashMap<String, String>)>().map_err(error::request)? {
            let (table, compaction) = row.map_err(error::request)?;
            let has_windows =
                compaction.get("class").is_some_and(|class| class.contains("TimeWindow"));
            if self.options.tables == CompactionTables::All || !has_windows {
                tables.push(table);
            }
        }

        Ok(tables)
    }

    async fn compact_node(&self, node: &Node) -> Result<(), Error> {
        match self.engine().await? {
            Engine::Rest(rest) => rest.compact(&node.name).await,
            Engine::Nodetool(nodetool) => {
                for table in self.tables().await? {
                    nodetool.compact(&node.name, &table).await?;
                }
                Ok(())
            }
        }
    }
}

impl Compactor for NodeCompactor {
    fn nodes(&self) -> BoxFuture<'_, Result<Vec<Node>, Error>> {
        Box::pin(async {
            // Reports an unusable setting before the first node is compacted.
            self.engine().await?;
            Ok(self.list_nodes())
        })
    }

    fn compact<'a>(&'a self, node: &'a Node) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.compact_node(node))
    }

    fn can_stop(&self) -> bool {
        true
    }

    fn stop<'a>(&'a self, node: &'a Node) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            match self.engine().await? {
                Engine::Rest(rest) => rest.stop(&node.name).await,
                Engine::Nodetool(nodetool) => nodetool.stop(&node.name).await,
            }
        })
    }

    fn progress<'a>(&'a self, node: &'a Node) -> BoxFuture<'a, Result<Option<Progress>, Error>> {
        Box::pin(async move {
            match self.engine().await? {
                Engine::Rest(rest) => rest.progress(&node.name).await,
                Engine::Nodetool(nodetool) => nodetool.progress(&node.name).await,
            }
        })
    }
}

/// The total progress of compactions that run at once. Only those in the unit of the first are
/// added.
fn together(running: impl IntoIterator<Item = Progress>) -> Option<Progress> {
    running.into_iter().reduce(|sum, one| {
        if one.unit == sum.unit {
            Progress { done: sum.done + one.done, total: sum.total + one.total, unit: sum.unit }
        } else {
            sum
        }
    })
}

//! Major compaction of the cluster's nodes: Cassandra by `nodetool`, Scylla by its REST interface.

mod nodetool;
mod options;
mod progress;
mod rest;

pub use options::{CompactionOptions, CompactionTables, CompactionWay};

use crate::schema::{self, Server};
use crate::{Cluster, error};
use nodetool::Nodetool;
use raingauge_ports::BoxFuture;
use raingauge_ports::maintenance::{Compactor, Error, Node, Progress};
use rest::Rest;
use std::collections::HashMap;
use tokio::sync::OnceCell;

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

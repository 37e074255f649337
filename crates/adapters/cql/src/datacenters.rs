//! The datacenters of a keyspace. A local quorum is local to the node that coordinates a request:
//! with several datacenters, a write through one may not be visible through another.

use crate::{Error, Options, error};
use scylla::client::session::Session;
use std::collections::BTreeMap;

/// Refuses a keyspace in several datacenters unless the settings name the one to use.
pub async fn check(session: &Session, options: &Options) -> Result<(), Error> {
    let select = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?";
    let found = session
        .query_unpaged(select, (options.keyspace.to_lowercase(),))
        .await
        .map_err(error::execution)?;
    let rows = found.into_rows_result().map_err(error::request)?;
    let row = rows.maybe_first_row::<(BTreeMap<String, String>,)>().map_err(error::request)?;
    let Some((replication,)) = row else {
        return Ok(());
    };
    check_replication(&replication, options)
}

fn check_replication(
    replication: &BTreeMap<String, String>,
    options: &Options,
) -> Result<(), Error> {
    let has_datacenters =
        replication.get("class").is_some_and(|class| class.ends_with("NetworkTopologyStrategy"));
    if !has_datacenters {
        return Ok(());
    }

    let names =
        replication.keys().filter(|name| !["class", "replication_factor"].contains(&name.as_str()));
    let names: Vec<&str> = names.map(String::as_str).collect();
    let is_named = |name: &String| names.contains(&name.as_str());
    let is_good = match &options.datacenter {
        Some(name) => is_named(name),
        None => names.len() < 2,
    };
    if is_good {
        Ok(())
    } else {
        Err(Error::Datacenter { place: options.place(), names: names.join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_of(class: &str, names: &[&str], datacenter: Option<&str>) -> Result<(), Error> {
        let class = ("class".to_owned(), format!("org.apache.cassandra.locator.{class}"));
        let names = names.iter().map(|name| ((*name).to_owned(), "3".to_owned()));
        let options = Options { datacenter: datacenter.map(str::to_owned), ..Options::default() };
        check_replication(&names.chain([class]).collect(), &options)
    }

    #[test]
    fn several_datacenters_need_one_that_is_named() {
        let topology = "NetworkTopologyStrategy";
        check_of(topology, &["dc1"], None).expect("one datacenter");
        check_of(topology, &["dc1", "dc2"], Some("dc2")).expect("the one that is named");
        check_of("SimpleStrategy", &["replication_factor"], Some("anything"))
            .expect("it knows no datacenters");
        for datacenter in [None, Some("dc3")] {
            let error =
                check_of(topology, &["dc1", "dc2"], datacenter).expect_err("refused").to_string();
            assert!(error.contains("dc1, dc2") && error.contains("cql.datacenter"), "{error}");
        }
        assert!(check_of(topology, &["dc1"], Some("elsewhere")).is_err());
    }
}

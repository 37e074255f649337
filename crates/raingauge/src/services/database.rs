//! The catalog and the other data in its database: in MySQL, or in an SQLite file.

use super::files;
use crate::settings::Settings;
use raingauge_memory as memory;
use raingauge_ports::campaigns::DocumentStore;
use raingauge_ports::catalog::Catalog;
use raingauge_ports::checks::Checks;
use raingauge_ports::drafts::Drafts;
use raingauge_ports::instances::Instances;
use raingauge_ports::people::People;
use raingauge_ports::rollouts::Rollouts;
use raingauge_sql::{self as sql, SqliteCatalog};
use std::sync::Arc;

/// Every port whose adapter uses the database.
pub struct Database {
    pub catalog: Arc<dyn Catalog>,
    pub people: Arc<dyn People>,
    pub drafts: Arc<dyn Drafts>,
    pub instances: Arc<dyn Instances>,
    pub checks: Arc<dyn Checks>,
    pub rollouts: Arc<dyn Rollouts>,
    pub documents: Arc<dyn DocumentStore>,
}

impl Database {
    fn of<D: raingauge_sql::Database>(
        catalog: sql::Catalog<D>,
        instances: Arc<dyn Instances>,
    ) -> Self {
        Self {
            people: Arc::new(catalog.people()),
            drafts: Arc::new(catalog.drafts()),
            checks: Arc::new(catalog.checks()),
            rollouts: Arc::new(catalog.rollouts()),
            documents: Arc::new(catalog.documents()),
            catalog: Arc::new(catalog),
            instances,
        }
    }
}

/// Opens the configured database.
pub async fn open(settings: &Settings) -> anyhow::Result<Database> {
    #[cfg(feature = "cluster")]
    if settings.cluster.catalog_is_mysql() {
        let catalog = raingauge_sql::MySqlCatalog::lazy(&mysql_options(settings))?;
        let instances = Arc::new(catalog.instances());
        return Ok(Database::of(catalog, instances));
    }

    in_data_folder(settings).await
}

/// Opens the SQLite file in the data folder.
pub async fn in_data_folder(settings: &Settings) -> anyhow::Result<Database> {
    let folder = &settings.storage.data_dir;
    files::make_folder(folder)?;

    let catalog = SqliteCatalog::open(&folder.join("catalog.sqlite")).await?;
    let instances: Arc<dyn Instances> = if settings.cluster.is_cluster() {
        Arc::new(catalog.instances())
    } else {
        // The only process of a data folder need not announce itself on disk.
        Arc::<memory::Instances>::default()
    };
    Ok(Database::of(catalog, instances))
}

/// Opens the people alone, for a command beside a running server.
pub async fn open_people(settings: &Settings) -> anyhow::Result<Arc<dyn People>> {
    Ok(open(settings).await?.people)
}

#[cfg(feature = "cluster")]
pub fn mysql_options(settings: &Settings) -> raingauge_sql::MySqlOptions {
    raingauge_sql::MySqlOptions::new(settings.mysql.url.clone())
}

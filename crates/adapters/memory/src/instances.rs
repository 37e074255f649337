//! The instances in memory. Also used in production: a process that has its data folder to itself
//! is the only instance.

use parking_lot::Mutex;
use raingauge_ports::BoxFuture;
use raingauge_ports::catalog::Error;
use raingauge_ports::instances::{self, INSTANCES_MAX, Instance};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub struct Instances(Mutex<BTreeMap<String, Instance>>);

impl instances::Instances for Instances {
    fn announce(&self, instance: Instance) -> BoxFuture<'_, Result<(), Error>> {
        self.0.lock().insert(instance.id.clone(), instance);
        Box::pin(async { Ok(()) })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, Error>> {
        let mut found: Vec<Instance> = self.0.lock().values().cloned().collect();
        found.sort_by_key(|instance| std::cmp::Reverse(instance.seen_s));
        found.truncate(INSTANCES_MAX);
        found.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
        Box::pin(async move { Ok(found) })
    }

    fn leave<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.0.lock().remove(id);
        Box::pin(async { Ok(()) })
    }

    fn forget(&self, seen_before_s: i64) -> BoxFuture<'_, Result<(), Error>> {
        self.0.lock().retain(|_, instance| instance.seen_s >= seen_before_s);
        Box::pin(async { Ok(()) })
    }
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn it_keeps_the_contract() {
        raingauge_ports::contract::instances::suite(async || super::Instances::default()).await;
    }
}

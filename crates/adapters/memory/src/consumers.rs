//! Records of consumers in memory.

use parking_lot::Mutex;
use raingauge_ports::consumers::{Change, ConsumerStore, Error, Name, Record};
use raingauge_ports::log::Offset;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub struct Consumers {
    consumers: Mutex<BTreeMap<Name, Consumer>>,
}

#[derive(Debug, Default)]
struct Consumer {
    position: Offset,
    records: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl ConsumerStore for Consumers {
    fn positions(&self) -> Result<Vec<(Name, Offset)>, Error> {
        let consumers = self.consumers.lock();
        Ok(consumers.iter().map(|(name, consumer)| (name.clone(), consumer.position)).collect())
    }

    fn get(&self, consumer: &Name, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let consumers = self.consumers.lock();
        Ok(consumers.get(consumer).and_then(|consumer| consumer.records.get(key).cloned()))
    }

    fn scan(
        &self,
        consumer: &Name,
        prefix: &[u8],
        after: Option<&[u8]>,
        len_max: usize,
    ) -> Result<Vec<Record>, Error> {
        let consumers = self.consumers.lock();
        let records = consumers.get(consumer).into_iter().flat_map(|consumer| &consumer.records);
        let wanted = records.filter(|(key, _)| {
            key.starts_with(prefix) && after.is_none_or(|after| key.as_slice() > after)
        });
        Ok(wanted.take(len_max).map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn commit(&self, consumer: &Name, position: Offset, changes: Vec<Change>) -> Result<(), Error> {
        let mut consumers = self.consumers.lock();
        let consumer = consumers.entry(consumer.clone()).or_default();
        consumer.position = position;
        for (key, value) in changes {
            match value {
                Some(value) => consumer.records.insert(key, value),
                None => consumer.records.remove(&key),
            };
        }
        Ok(())
    }

    fn remove(&self, consumer: &Name) -> Result<(), Error> {
        self.consumers.lock().remove(consumer);
        Ok(())
    }
}

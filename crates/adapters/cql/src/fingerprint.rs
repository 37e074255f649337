//! The settings that decide what is counted, stored in the keyspace: processes that differ in them
//! would count the same log differently.

use crate::{Cluster, Error, error};
use scylla::statement::Statement;
use std::collections::BTreeMap;

/// Settings by name, as text.
pub type Fingerprint = BTreeMap<String, String>;

impl Cluster {
    /// Compares this process's settings with those that the log is counted by, and stores them if
    /// they are the first.
    pub async fn check_settings(&self, log: &str, own: &Fingerprint) -> Result<(), Error> {
        let mut insert = Statement::new(
            "INSERT INTO settings_table (log, settings) VALUES (?, ?) IF NOT EXISTS",
        );
        insert.set_is_idempotent(true);
        self.session.query_unpaged(insert, (log, own)).await.map_err(error::execution)?;

        let select = "SELECT settings FROM settings_table WHERE log = ?";
        let found = self.session.query_unpaged(select, (log,)).await.map_err(error::execution)?;
        let rows = found.into_rows_result().map_err(error::request)?;
        let kept = rows.maybe_first_row::<(Fingerprint,)>().map_err(error::request)?;
        let (kept,) =
            kept.ok_or_else(|| error::request("the stored settings are not visible yet"))?;
        match difference(&kept, own) {
            Some(reason) => Err(Error::SettingsDiffer { place: self.options.place(), reason }),
            None => Ok(()),
        }
    }

    /// Compares the topic id of an epoch with the one that was counted first, and stores it if it
    /// is the first. Returns whether they are equal.
    pub async fn is_same_topic(&self, log: &str, epoch: u16, id: u128) -> Result<bool, Error> {
        // A row beside the settings' row, which no migration replaces. No topic has such a name.
        let row = format!("{log}#ids");
        let epoch = epoch.to_string();
        let id = format!("{id:032x}");
        let mut insert = Statement::new(
            "UPDATE settings_table SET settings[?] = ? WHERE log = ? IF settings[?] = NULL",
        );

        insert.set_is_idempotent(true);
        let values = (&epoch, &id, &row, &epoch);
        self.session.query_unpaged(insert, values).await.map_err(error::execution)?;

        let select = "SELECT settings FROM settings_table WHERE log = ?";
        let found = self.session.query_unpaged(select, (&row,)).await.map_err(error::execution)?;
        let rows = found.into_rows_result().map_err(error::request)?;
        let kept = rows.maybe_first_row::<(Fingerprint,)>().map_err(error::request)?;
        let kept = kept.and_then(|(kept,)| kept.get(&epoch).cloned());

        kept.map(|kept| kept == id)
            .ok_or_else(|| error::request("the stored id of the topic is not visible yet"))
    }

    /// Stores this process's settings in place of the earlier ones.
    pub async fn put_settings(&self, log: &str, own: &Fingerprint) -> Result<(), Error> {
        let insert = "INSERT INTO settings_table (log, settings) VALUES (?, ?)";
        self.session.query_unpaged(insert, (log, own)).await.map(drop).map_err(error::execution)
    }
}

/// The first setting with another value. A setting that only one side has is no difference: it
/// belongs to another version.
fn difference(kept: &Fingerprint, own: &Fingerprint) -> Option<String> {
    let differs = |(name, own): (&String, &String)| {
        let kept = kept.get(name).filter(|kept| *kept != own)?;
        Some(format!("{name} is {own} here, and {kept} elsewhere"))
    };
    own.iter().find_map(differs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(settings: &[(&str, &str)]) -> Fingerprint {
        settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_setting_that_differs_is_named() {
        let kept = fingerprint(&[("dedupe.window_hours", "24"), ("kafka.partitions", "4")]);
        assert_eq!(difference(&kept, &kept), None);
        let own = fingerprint(&[("dedupe.window_hours", "48"), ("kafka.partitions", "4")]);
        let reason = difference(&kept, &own).expect("a difference");
        assert_eq!(reason, "dedupe.window_hours is 48 here, and 24 elsewhere");
        assert_eq!(difference(&kept, &fingerprint(&[("kafka.epoch", "0")])), None);
    }
}

//! Commands about all keys, which the store answers: they run before the lock is taken.

use crate::answer::{Answer, Budget};
use crate::failures;
use crate::objects::Objects;
use crate::scan;
use bytes::Bytes;
use raingauge_resp::{Command, Failure, Id};

/// Whether a command is answered ahead.
pub(crate) fn is_ahead(id: Id) -> bool {
    matches!(id, Id::Dbsize | Id::Keys | Id::Scan | Id::Randomkey)
}

impl Objects {
    /// Visits the names of all keys of a database, in their order. A failure of the store ends the
    /// walk.
    pub async fn visit_names(
        &self,
        database: u8,
        visit: impl FnMut(&Bytes),
    ) -> Result<(), Failure> {
        scan::visit(self.store(), database, self.expired_ms(), visit).await
    }

    /// Answers a command about all keys of a database, within a budget.
    pub(crate) async fn answer_ahead(
        &self,
        command: Command<'_>,
        database: u8,
        budget: &mut Budget,
    ) -> Result<Answer, Failure> {
        let before = budget.bytes;
        let answer = self.find_answer(command, database, budget).await;
        if answer.is_err() {
            budget.bytes = before;
        }
        answer
    }

    async fn find_answer(
        &self,
        command: Command<'_>,
        database: u8,
        budget: &mut Budget,
    ) -> Result<Answer, Failure> {
        let spec = command.check()?;
        let arguments = command.arguments;
        let store = self.store();
        let expired_ms = self.expired_ms();
        match spec.id {
            Id::Dbsize => {
                let count = store.count(database).await;
                let count = count.map_err(|error| failures::of_store(&error))?;
                Ok(Answer::Count(count.keys))
            }
            Id::Keys => scan::keys(store, database, expired_ms, arguments.at(1), budget).await,
            Id::Scan => {
                let places = self.places();
                scan::scan(store, places, database, expired_ms, arguments, budget).await
            }
            _ => {
                let resident = self.resident_name(database);
                scan::random(store, database, expired_ms, resident, budget).await
            }
        }
    }
}

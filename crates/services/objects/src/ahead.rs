//! Commands about all keys, which the store answers: they run before the lock is taken.

use crate::failures;
use crate::objects::Objects;
use crate::scan;
use bytes::Bytes;
use raingauge_resp::{Command, Failure, Id, Replies};

/// What such a command answers.
#[derive(Debug)]
pub(crate) enum Answer {
    Count(u64),
    Name(Option<Bytes>),
    Names(Vec<Bytes>),
    Page { cursor: u64, names: Vec<Bytes> },
}

impl Answer {
    pub(crate) fn write(self, out: &mut Replies) {
        match self {
            Answer::Count(count) => out.integer(count as i64),
            Answer::Name(None) => out.null(),
            Answer::Name(Some(name)) => out.bulk(&name),
            Answer::Names(names) => write_names(&names, out),
            Answer::Page { cursor, names } => {
                out.array(2);
                out.bulk(itoa::Buffer::new().format(cursor).as_bytes());
                write_names(&names, out);
            }
        }
    }
}

fn write_names(names: &[Bytes], out: &mut Replies) {
    out.array(names.len());
    names.iter().for_each(|name| out.bulk(name));
}

/// Whether a command is answered ahead.
pub(crate) fn is_ahead(id: Id) -> bool {
    matches!(id, Id::Dbsize | Id::Keys | Id::Scan | Id::Randomkey)
}

impl Objects {
    /// Answers a command about all keys of a database.
    pub(crate) async fn answer_ahead(
        &self,
        command: Command<'_>,
        database: u8,
    ) -> Result<Answer, Failure> {
        let spec = command.check()?;
        let arguments = command.arguments;
        let store = self.store();
        let expired_ms = self.expired_ms();
        match spec.id {
            Id::Dbsize => {
                let count = store.count(database).await;
                count.map(Answer::Count).map_err(|error| failures::of_store(&error))
            }
            Id::Keys => scan::keys(store, database, expired_ms, arguments.at(1)).await,
            Id::Scan => scan::scan(store, self.places(), database, expired_ms, arguments).await,
            _ => scan::random(store, database, expired_ms, self.resident_name(database)).await,
        }
    }
}

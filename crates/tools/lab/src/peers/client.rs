//! The interface of a system under test: load the history, answer questions, accept events, report
//! the total.

use super::Writes;
use super::drive::Worker;
use super::question::Question;
use crate::workload::Workload;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::rc::Rc;
use std::time::Duration;

/// One connection.
pub trait Client: 'static {
    /// A question in the system's own form, prepared once.
    type Asking: 'static;

    fn prepare(question: &Question) -> Self::Asking;

    /// Returns a count for each range or each day of the question.
    fn ask(&mut self, asking: &Self::Asking) -> impl Future<Output = Result<Vec<i64>>>;

    /// Writes the batch of this turn, and returns the number of events accepted.
    fn write(&mut self, writes: &Writes, turn: u64) -> impl Future<Output = Result<u64>>;
}

pub trait Peer {
    type Client: Client;

    /// How the system answers, for the report.
    fn how(&self) -> &'static str;

    /// The supported ways of writing events.
    fn modes(&self) -> Vec<Mode>;

    /// Maximum number of connections, for systems that gain nothing from more.
    fn connections_max(&self) -> usize {
        usize::MAX
    }

    /// Length of the warm-up before the measurement.
    fn warm_up(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn connect(&self) -> impl Future<Output = Result<Self::Client>>;

    /// Creates the schema, and loads the history.
    fn load(&self, workload: &Workload) -> impl Future<Output = Result<()>>;

    /// Flushes and merges data, as would happen over time anyway, before its size is measured.
    fn settle(&self) -> impl Future<Output = Result<()>> {
        async { Ok(()) }
    }

    /// Prepares for the writes of a mode.
    fn enter(&self, _mode: &Mode) -> impl Future<Output = Result<()>> {
        async { Ok(()) }
    }

    /// Returns the number of events counted, on the last days or overall: a total that grows with
    /// every write.
    fn total(&self) -> impl Future<Output = Result<i64>>;
}

/// A way of writing events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mode {
    pub how: String,
    /// Whether an acknowledged event survives a power failure.
    pub durable: bool,
    /// Whether an event that is sent twice is counted once.
    pub exactly_once: bool,
    pub batch_events: usize,
    pub connections: usize,
}

impl Mode {
    /// A way that is neither durable nor exactly once.
    pub fn new(how: &str, batch_events: usize, connections: usize) -> Self {
        let how = how.to_owned();
        Self { how, durable: false, exactly_once: false, batch_events, connections }
    }

    pub fn durable(self) -> Self {
        Self { durable: true, ..self }
    }

    pub fn exactly_once(self) -> Self {
        Self { exactly_once: true, ..self }
    }
}

/// Sends one question after another, and compares every answer with the correct one.
pub struct Asker<C: Client> {
    client: C,
    askings: Rc<Askings<C>>,
}

pub struct Askings<C: Client> {
    system: String,
    askings: Vec<(C::Asking, Vec<i64>, u64)>,
}

impl<C: Client> Askings<C> {
    pub fn new(system: &str, questions: &[Question]) -> Rc<Self> {
        let asking = |question| (C::prepare(question), question.expected(), question.units());
        Rc::new(Self { system: system.to_owned(), askings: questions.iter().map(asking).collect() })
    }
}

impl<C: Client> Asker<C> {
    pub fn new(client: C, askings: &Rc<Askings<C>>) -> Self {
        Self { client, askings: askings.clone() }
    }

    pub fn into_client(self) -> C {
        self.client
    }
}

impl<C: Client> Worker for Asker<C> {
    async fn take(&mut self, turn: u64) -> Result<u64> {
        let all = self.askings.clone();
        let place = (turn % all.askings.len() as u64) as usize;
        let (asking, expected, units) = &all.askings[place];
        let answer = self
            .client
            .ask(asking)
            .await
            .with_context(|| format!("{}, question {place}", all.system))?;

        ensure!(
            answer == *expected,
            "WRONG ANSWER of {}: {answer:?}, expected {expected:?}",
            all.system
        );
        Ok(*units)
    }
}

pub struct Writer<C: Client> {
    client: C,
    writes: Rc<Writes>,
}

impl<C: Client> Writer<C> {
    pub fn new(client: C, writes: &Rc<Writes>) -> Self {
        Self { client, writes: writes.clone() }
    }
}

impl<C: Client> Worker for Writer<C> {
    async fn take(&mut self, turn: u64) -> Result<u64> {
        let taken = self.client.write(&self.writes, turn).await?;
        self.writes.count(taken);
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::question::{Kind, questions};
    use crate::workload::Settings;

    /// Returns every count with this offset.
    struct Off(i64);

    impl Client for Off {
        type Asking = Vec<i64>;

        fn prepare(question: &Question) -> Vec<i64> {
            question.expected()
        }

        async fn ask(&mut self, asking: &Vec<i64>) -> Result<Vec<i64>> {
            Ok(asking.iter().map(|count| count + self.0).collect())
        }

        async fn write(&mut self, _writes: &Writes, _turn: u64) -> Result<u64> {
            Ok(0)
        }
    }

    #[test]
    fn a_wrong_answer_ends_the_measurement() {
        let workload = Workload::new(Settings { keys: 20, history: 500, seed: 1 }, 1_795_000_000);
        let askings = Askings::<Off>::new("Off", &questions(&workload, Kind::Batch));
        let runtime = super::super::drive::runtime().unwrap();
        assert_eq!(runtime.block_on(Asker::new(Off(0), &askings).take(3)).unwrap(), 10);
        let said = runtime.block_on(Asker::new(Off(1), &askings).take(3)).unwrap_err();
        assert!(said.to_string().starts_with("WRONG ANSWER of Off"), "{said}");
    }
}

//! Rollouts on any database.

use crate::database::{Change, Database, Lock, Statement, lock};
use raingauge_ports::BoxFuture;
use raingauge_ports::rollouts::{self, Error, Run};

/// Every change of a rollout begins by taking this lock.
const LOCK: Lock = lock!("rollouts_revision");

macro_rules! rollouts {
    ($rest:literal) => {
        concat!(
            "SELECT rollout_id, revision, started_at, started_by, reason, ended_at, conductor, rollout FROM rollouts ",
            $rest
        )
    };
}
const GET: &str = rollouts!("WHERE rollout_id = ?");
const LIST: &str = rollouts!("ORDER BY rollout_id DESC LIMIT ?");
/// A running rollout is the newest.
const NEWEST: &str = rollouts!("ORDER BY rollout_id DESC LIMIT 1");
const INSERT: &str =
    "INSERT INTO rollouts (revision, started_at, started_by, reason, ended_at, conductor, rollout,
    rollout_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
const UPDATE: &str =
    "UPDATE rollouts SET revision = ?, started_at = ?, started_by = ?, reason = ?, ended_at = ?,
    conductor = ?, rollout = ? WHERE rollout_id = ?";

/// One rollout, in the order of [`GET`].
type Row = (i64, i64, i64, String, String, Option<i64>, String, String);

/// The rollouts in a database that also holds the catalog.
#[derive(Clone, Debug)]
pub struct Rollouts<D>(pub(crate) D);

impl<D: Database> Rollouts<D> {
    async fn rows(&self, statement: Statement) -> Result<Vec<Run>, Error> {
        let rows: Vec<Row> = self.0.rows(statement).await?;
        rows.into_iter().map(run_of).collect()
    }

    async fn begin_now(&self, mut run: Run) -> Result<Run, Error> {
        let mut change = self.0.begin(Some(&LOCK)).await?;
        let newest: Vec<Row> = change.rows(Statement::new(NEWEST)).await?;
        let (mut change, id) = change.decided(next_id(newest.into_iter().next())).await?;
        (run.id, run.revision) = (id, 1);
        change.run(written(INSERT, &run)).await?;
        change.commit().await?;
        Ok(run)
    }

    async fn replace_now(&self, mut run: Run) -> Result<Run, Error> {
        let mut change = self.0.begin(Some(&LOCK)).await?;
        let rows: Vec<Row> = change.rows(Statement::new(GET).with(key(run.id))).await?;
        let (mut change, revision) =
            change.decided(next_revision(rows.into_iter().next(), &run)).await?;
        run.revision = revision;
        change.run(written(UPDATE, &run)).await?;
        change.commit().await?;
        Ok(run)
    }

    async fn get_now(&self, id: u64) -> Result<Run, Error> {
        self.rows(Statement::new(GET).with(key(id))).await?.pop().ok_or(Error::NotFound(id))
    }

    async fn running_now(&self) -> Result<Option<Run>, Error> {
        Ok(self.rows(Statement::new(NEWEST)).await?.pop().filter(|run| run.ended_at.is_none()))
    }
}

impl<D: Database> rollouts::Rollouts for Rollouts<D> {
    fn begin(&self, run: Run) -> BoxFuture<'_, Result<Run, Error>> {
        Box::pin(self.begin_now(run))
    }

    fn replace(&self, run: Run) -> BoxFuture<'_, Result<Run, Error>> {
        Box::pin(self.replace_now(run))
    }

    fn get(&self, id: u64) -> BoxFuture<'_, Result<Run, Error>> {
        Box::pin(self.get_now(id))
    }

    fn list(&self, len_max: usize) -> BoxFuture<'_, Result<Vec<Run>, Error>> {
        Box::pin(self.rows(Statement::new(LIST).with(len_max as i64)))
    }

    fn running(&self) -> BoxFuture<'_, Result<Option<Run>, Error>> {
        Box::pin(self.running_now())
    }
}

/// An id beyond the database's range belongs to no rollout.
fn key(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}

fn next_id(newest: Option<Row>) -> Result<u64, Error> {
    match newest.map(run_of).transpose()? {
        None => Ok(1),
        Some(newest) if newest.ended_at.is_none() => Err(Error::Running(newest.id)),
        Some(newest) => Ok(newest.id + 1),
    }
}

fn next_revision(kept: Option<Row>, run: &Run) -> Result<u32, Error> {
    let kept = kept.map_or(Err(Error::NotFound(run.id)), run_of)?;
    if kept.revision == run.revision {
        Ok(run.revision + 1)
    } else {
        Err(Error::RevisionMismatch { id: run.id, current: kept.revision })
    }
}

/// A row that was altered by hand is an error that names it.
fn run_of(
    (id, revision, started_at, started_by, reason, ended_at, conductor, rollout): Row,
) -> Result<Run, Error> {
    let unreadable = |why: &str| {
        Error::Unavailable(format!(
            "rollout {id} cannot be read ({why}): delete its row from the table rollouts"
        ))
    };
    Ok(Run {
        id: u64::try_from(id).map_err(|_| unreadable("its id is negative"))?,
        revision: u32::try_from(revision)
            .map_err(|_| unreadable("its revision is no small number"))?,
        started_at,
        started_by,
        reason,
        ended_at,
        conductor,
        rollout: serde_json::from_str(&rollout).map_err(|error| unreadable(&error.to_string()))?,
    })
}

fn written(text: &'static str, run: &Run) -> Statement {
    let rollout = serde_json::to_string(&run.rollout).expect("a rollout has a form in JSON");
    Statement::new(text)
        .with(i64::from(run.revision))
        .with(run.started_at)
        .with(run.started_by.as_str())
        .with(run.reason.as_str())
        .with(run.ended_at)
        .with(run.conductor.as_str())
        .with(rollout)
        .with(key(run.id))
}

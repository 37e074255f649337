//! Instances and checks on any database: what the portal shows of the processes and of the
//! self-audit.

use crate::database::{Database, Statement};
use raingauge_ports::BoxFuture;
use raingauge_ports::catalog::Error;
use raingauge_ports::checks::{self, Check, Outcome, Selection};
use raingauge_ports::instances::{self, INSTANCES_MAX, Instance};

const ANNOUNCE: &str = "REPLACE INTO instances
    (instance_id, name, roles, version, address, started_at, seen_at, measures) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
const LIST: &str =
    "SELECT instance_id, name, roles, version, address, started_at, seen_at, measures
    FROM instances ORDER BY seen_at DESC LIMIT ?";
const LEAVE: &str = "DELETE FROM instances WHERE instance_id = ?";
const FORGET: &str = "DELETE FROM instances WHERE seen_at < ?";

const ADD: &str =
    "INSERT INTO checks (checked_at, checked_by, counter_id, checked_key, from_time, to_time, compared_from,
    outcome, `stored`, recounted, detail, differences) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
/// The derived table lets MySQL read the table that it deletes from.
const TRIM: &str = "DELETE FROM checks WHERE check_id < (SELECT MIN(check_id) FROM
    (SELECT check_id FROM checks ORDER BY check_id DESC LIMIT ?) kept)";
const NEWEST: &str =
    "SELECT check_id, checked_at, checked_by, counter_id, checked_key, from_time, to_time, compared_from,
    outcome, `stored`, recounted, detail, differences
    FROM checks WHERE check_id < ? ORDER BY check_id DESC LIMIT ?";
const NEWEST_OF_OUTCOME: &str =
    "SELECT check_id, checked_at, checked_by, counter_id, checked_key, from_time, to_time,
    compared_from, outcome, `stored`, recounted, detail, differences
    FROM checks WHERE outcome = ? AND check_id < ? ORDER BY check_id DESC LIMIT ?";
const DIFFERING: &str =
    "SELECT check_id, checked_at, checked_by, counter_id, checked_key, from_time, to_time, compared_from,
    outcome, `stored`, recounted, detail, differences
    FROM checks WHERE outcome = 'differs' AND NOT EXISTS (SELECT 1 FROM checks newer
        WHERE newer.checked_key = checks.checked_key AND newer.check_id > checks.check_id
        AND newer.outcome IN ('equal', 'differs'))
    ORDER BY check_id DESC LIMIT ?";

type InstanceRow = (String, String, String, String, String, i64, i64, String);
type CheckRow =
    (i64, i64, String, i64, String, i64, i64, i64, String, String, String, String, String);

/// The instances in a database that also holds the catalog.
#[derive(Clone, Debug)]
pub struct Instances<D>(pub(crate) D);

/// The checks in a database that also holds the catalog.
#[derive(Clone, Debug)]
pub struct Checks<D>(pub(crate) D);

impl<D: Database> instances::Instances for Instances<D> {
    fn announce(&self, instance: Instance) -> BoxFuture<'_, Result<(), Error>> {
        let roles = instance.roles.join(",");
        let statement = Statement::new(ANNOUNCE).with(instance.id).with(instance.name).with(roles);
        let statement = statement.with(instance.version).with(instance.address);
        let statement =
            statement.with(instance.started_s).with(instance.seen_s).with(instance.measures);
        Box::pin(async move { Ok(self.0.run(statement).await?) })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, Error>> {
        Box::pin(async {
            let statement = Statement::new(LIST).with(INSTANCES_MAX as i64);
            let rows: Vec<InstanceRow> = self.0.rows(statement).await?;
            let mut found: Vec<Instance> = rows.into_iter().map(instance).collect();
            found.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
            Ok(found)
        })
    }

    fn leave<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { Ok(self.0.run(Statement::new(LEAVE).with(id)).await?) })
    }

    fn forget(&self, seen_before_s: i64) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { Ok(self.0.run(Statement::new(FORGET).with(seen_before_s)).await?) })
    }
}

fn instance(
    (id, name, roles, version, address, started_s, seen_s, measures): InstanceRow,
) -> Instance {
    let roles = roles.split(',').filter(|role| !role.is_empty()).map(str::to_owned).collect();
    Instance { id, name, roles, version, address, started_s, seen_s, measures }
}

impl<D: Database> checks::Checks for Checks<D> {
    fn add(&self, checks: Vec<Check>, kept_max: usize) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            for check in &checks {
                self.0.run(insert(check)).await?;
            }
            let trim = Statement::new(TRIM).with(kept_max as i64);
            if !checks.is_empty() {
                self.0.run(trim).await?;
            }
            Ok(())
        })
    }

    fn list(&self, selection: Selection) -> BoxFuture<'_, Result<Vec<Check>, Error>> {
        let before = selection.before.unwrap_or(i64::MAX);
        let len_max = selection.len_max as i64;
        let statement = match selection.outcome {
            Some(outcome) => Statement::new(NEWEST_OF_OUTCOME).with(outcome.name()),
            None => Statement::new(NEWEST),
        };
        Box::pin(self.found(statement.with(before).with(len_max)))
    }

    fn differing(&self, len_max: usize) -> BoxFuture<'_, Result<Vec<Check>, Error>> {
        Box::pin(self.found(Statement::new(DIFFERING).with(len_max as i64)))
    }
}

impl<D: Database> Checks<D> {
    async fn found(&self, statement: Statement) -> Result<Vec<Check>, Error> {
        let rows: Vec<CheckRow> = self.0.rows(statement).await?;
        rows.into_iter().map(check).collect()
    }
}

fn insert(check: &Check) -> Statement {
    let differences =
        serde_json::to_string(&check.differences).expect("differences have a form in JSON");
    let statement =
        Statement::new(ADD).with(check.at_s).with(check.by.as_str()).with(i64::from(check.counter));
    let statement = statement
        .with(check.key.as_str())
        .with(check.from_s)
        .with(check.to_s)
        .with(check.compared_from_s);

    let statement = statement
        .with(check.outcome.name())
        .with(check.stored.to_string())
        .with(check.recounted.to_string());
    statement.with(check.detail.as_str()).with(differences)
}

/// A row that was altered by hand is an error that names it.
fn check(row: CheckRow) -> Result<Check, Error> {
    let (
        id,
        at_s,
        by,
        counter,
        key,
        from_s,
        to_s,
        compared_from_s,
        outcome,
        stored,
        recounted,
        detail,
        differences,
    ) = row;

    let unreadable = |what: &str| {
        Error::Unavailable(format!(
            "check {id} cannot be read ({what}): delete its row from the table checks"
        ))
    };

    Ok(Check {
        id,
        at_s,
        by,
        counter: u32::try_from(counter).map_err(|_| unreadable("its counter is no id"))?,
        key,
        from_s,
        to_s,
        compared_from_s,
        outcome: Outcome::from_name(&outcome).ok_or_else(|| unreadable("its outcome is none"))?,
        stored: stored.parse().map_err(|_| unreadable("its count is no number"))?,
        recounted: recounted.parse().map_err(|_| unreadable("its count is no number"))?,
        detail,
        differences: serde_json::from_str(&differences)
            .map_err(|error| unreadable(&error.to_string()))?,
    })
}

//! Statements and rows of the catalog that all databases understand.

use crate::database::Statement;
use raingauge_core::counter::Counter;
use raingauge_ports::catalog::{Error, Versioned, VersionedPolicy};

macro_rules! versions {
    ($rest:literal) => {
        concat!(
            "SELECT counter_id, version, configuration, changed_by, reason, changed_at FROM ",
            $rest
        )
    };
}
pub const LIST: &str = versions!("counters ORDER BY counter_id");
pub const GET: &str =
    versions!("counter_versions WHERE counter_id = ? ORDER BY version DESC LIMIT 1");
pub const VERSIONS: &str = versions!("counter_versions WHERE counter_id = ? ORDER BY version DESC");

pub const POLICIES: &str =
    "SELECT version, policy, changed_by, reason, changed_at FROM cache_policies
    ORDER BY version DESC LIMIT ?";
const ADD_POLICY: &str = "INSERT INTO cache_policies
    (version, policy, changed_by, reason, changed_at) VALUES (?, ?, ?, ?, ?)";

/// One version of the cache policy: version, policy as JSON, author, reason, time.
pub type PolicyRow = (i64, String, String, String, i64);

/// One version of a counter: counter, version, configuration as JSON, author, reason, time. The
/// numbers are as wide as the widest that a database may return.
pub type Row = (i64, i64, String, String, String, i64);

/// A row that was altered by hand is an error that names it; the counter is never left out.
fn from_row(
    (id, version, configuration, changed_by, reason, changed_at): Row,
) -> Result<Versioned, Error> {
    let unreadable = |why: &str| {
        Error::Unavailable(format!(
            "version {version} of counter {id} cannot be read ({why}): restore the catalog from a backup"
        ))
    };

    let counter: Counter =
        serde_json::from_str(&configuration).map_err(|error| unreadable(&error.to_string()))?;
    if i64::from(counter.id) != id {
        return Err(unreadable("its configuration is that of another counter"));
    }

    let version =
        u32::try_from(version).map_err(|_| unreadable("its version is no small number"))?;
    Ok(Versioned { counter, version, changed_by, reason, changed_at })
}

pub fn from_rows(rows: Vec<Row>) -> Result<Vec<Versioned>, Error> {
    rows.into_iter().map(from_row).collect()
}

pub fn policy_of(
    (version, policy, changed_by, reason, changed_at): PolicyRow,
) -> Result<VersionedPolicy, Error> {
    let unreadable = |why: &str| {
        Error::Unavailable(format!(
            "version {version} of the cache policy cannot be read ({why}): set it again, or restore the catalog"
        ))
    };
    let policy = serde_json::from_str(&policy).map_err(|error| unreadable(&error.to_string()))?;
    let version =
        u32::try_from(version).map_err(|_| unreadable("its version is no small number"))?;
    Ok(VersionedPolicy { policy, version, changed_by, reason, changed_at })
}

/// The statement `text` with the values of a [`Row`].
pub fn written(text: &'static str, versioned: &Versioned) -> Statement {
    let configuration =
        serde_json::to_string(&versioned.counter).expect("a counter has a form in JSON");
    Statement::new(text)
        .with(i64::from(versioned.counter.id))
        .with(i64::from(versioned.version))
        .with(configuration)
        .with(versioned.changed_by.as_str())
        .with(versioned.reason.as_str())
        .with(versioned.changed_at)
}

pub fn written_policy(policy: &VersionedPolicy) -> Statement {
    let json = serde_json::to_string(&policy.policy).expect("a policy has a form in JSON");
    Statement::new(ADD_POLICY)
        .with(i64::from(policy.version))
        .with(json)
        .with(policy.changed_by.as_str())
        .with(policy.reason.as_str())
        .with(policy.changed_at)
}

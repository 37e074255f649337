//! Statements and rows that all databases understand.

use raingauge_core::counter::Counter;
use raingauge_ports::catalog::{Error, Versioned, VersionedPolicy};

pub const LIST: &str = "SELECT counter_id, version, configuration, changed_by, reason, changed_at FROM counters ORDER BY counter_id";
pub const GET: &str = "SELECT counter_id, version, configuration, changed_by, reason, changed_at
    FROM counter_versions WHERE counter_id = ? ORDER BY version DESC LIMIT 1";
/// The newest versions of the counters whose newest one has a revision above this.
pub const CHANGED: &str = "SELECT counter_id, version, configuration, changed_by, reason, changed_at
    FROM counter_versions changed WHERE revision > ? AND NOT EXISTS (SELECT 1 FROM counter_versions newer
        WHERE newer.counter_id = changed.counter_id AND newer.version > changed.version) ORDER BY counter_id";
pub const VERSIONS: &str =
    "SELECT counter_id, version, configuration, changed_by, reason, changed_at
    FROM counter_versions WHERE counter_id = ? ORDER BY version DESC";

pub const POLICY: &str = "SELECT version, policy, changed_by, reason, changed_at FROM cache_policies ORDER BY version DESC LIMIT 1";
pub const POLICIES: &str = "SELECT version, policy, changed_by, reason, changed_at FROM cache_policies ORDER BY version DESC LIMIT ?";
pub const ADD_POLICY: &str = "INSERT INTO cache_policies (version, policy, changed_by, reason, changed_at) VALUES (?, ?, ?, ?, ?)";

/// One version of the cache policy: version, policy in JSON, by whom, why, when.
pub type PolicyRow = (i64, String, String, String, i64);

/// One version: counter, version, configuration in JSON, by whom, why, when.
/// The numbers are as wide as the widest that a database may answer.
pub type Row = (i64, i64, String, String, String, i64);

/// A row that somebody altered by hand is an error that names it, never a counter that is left out.
pub fn from_row(
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

/// The policy of the newest row; the default one when there is none.
pub fn policy_of(row: Option<PolicyRow>) -> Result<VersionedPolicy, Error> {
    let Some((version, policy, changed_by, reason, changed_at)) = row else {
        return Ok(VersionedPolicy::default());
    };
    let unreadable = |why: &str| {
        Error::Unavailable(format!(
            "version {version} of the cache policy cannot be read ({why}): set it anew, or restore the catalog"
        ))
    };
    let policy = serde_json::from_str(&policy).map_err(|error| unreadable(&error.to_string()))?;
    let version =
        u32::try_from(version).map_err(|_| unreadable("its version is no small number"))?;
    Ok(VersionedPolicy { policy, version, changed_by, reason, changed_at })
}

pub fn policies_of(rows: Vec<PolicyRow>) -> Result<Vec<VersionedPolicy>, Error> {
    rows.into_iter().map(|row| policy_of(Some(row))).collect()
}

pub fn policy_row(policy: &VersionedPolicy) -> PolicyRow {
    let json = serde_json::to_string(&policy.policy).expect("a policy has a form in JSON");
    (
        policy.version.into(),
        json,
        policy.changed_by.clone(),
        policy.reason.clone(),
        policy.changed_at,
    )
}

pub fn from_rows(rows: Vec<Row>) -> Result<Vec<Versioned>, Error> {
    rows.into_iter().map(from_row).collect()
}

pub fn to_row(versioned: &Versioned) -> Row {
    let configuration =
        serde_json::to_string(&versioned.counter).expect("a counter has a form in JSON");
    (
        versioned.counter.id.into(),
        versioned.version.into(),
        configuration,
        versioned.changed_by.clone(),
        versioned.reason.clone(),
        versioned.changed_at,
    )
}

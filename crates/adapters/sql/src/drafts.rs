//! Drafts on any database.

use crate::database::{Change, Database, Lock, Statement, lock};
use raingauge_ports::BoxFuture;
use raingauge_ports::drafts::{self, Draft, Error, State};

/// Every change of a draft begins by taking this lock.
const LOCK: Lock = lock!("drafts_revision");

macro_rules! drafts {
    ($rest:literal) => {
        concat!(
            "SELECT drafts.draft_id, revision, state, configuration, base_version, applied_version, author, reason,
            reviewer, comment, created_at, changed_at, changed_by, COALESCE(contributors, '[]'), COALESCE(kind, 'counter')
            FROM drafts
            LEFT JOIN draft_contributors ON draft_contributors.draft_id = drafts.draft_id
            LEFT JOIN draft_kinds ON draft_kinds.draft_id = drafts.draft_id ",
            $rest
        )
    };
}
const GET: &str = drafts!("WHERE drafts.draft_id = ?");
const LIST: &str =
    drafts!("WHERE is_open = ? ORDER BY changed_at DESC, drafts.draft_id DESC LIMIT ?");
const NEXT: &str = "SELECT COALESCE(MAX(draft_id), 0) + 1 FROM drafts";
const INSERT: &str =
    "INSERT INTO drafts (revision, state, is_open, configuration, base_version, applied_version, author,
    reason, reviewer, comment, created_at, changed_at, changed_by, draft_id)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
const UPDATE: &str = "UPDATE drafts SET revision = ?, state = ?, is_open = ?, configuration = ?, base_version = ?,
    applied_version = ?, author = ?, reason = ?, reviewer = ?, comment = ?, created_at = ?, changed_at = ?, changed_by = ?
    WHERE draft_id = ?";

const SET_CONTRIBUTORS: &str =
    "REPLACE INTO draft_contributors (draft_id, contributors) VALUES (?, ?)";

/// A draft without a row in `draft_kinds` was written by an earlier release, which knew only
/// counters.
const INSERT_KIND: &str = "INSERT INTO draft_kinds (draft_id, kind) VALUES (?, ?)";

/// One draft, in the order of [`GET`]. The numbers are as wide as the widest that a database may
/// return.
type Row = (
    i64,
    i64,
    String,
    String,
    i64,
    i64,
    String,
    String,
    String,
    String,
    i64,
    i64,
    String,
    String,
    String,
);

/// The drafts in a database that also holds the catalog.
#[derive(Clone, Debug)]
pub struct Drafts<D>(pub(crate) D);

impl<D: Database> Drafts<D> {
    async fn list_now(&self, is_open: bool, limit: u32) -> Result<Vec<Draft>, Error> {
        let statement = Statement::new(LIST).with(i64::from(is_open)).with(i64::from(limit));
        let rows: Vec<Row> = self.0.rows(statement).await?;
        rows.into_iter().map(draft_of).collect()
    }

    async fn get_now(&self, id: u64) -> Result<Draft, Error> {
        let rows: Vec<Row> = self.0.rows(Statement::new(GET).with(key(id))).await?;
        rows.into_iter().next().map_or(Err(Error::NotFound(id)), draft_of)
    }

    async fn create_now(&self, mut draft: Draft) -> Result<Draft, Error> {
        let mut change = self.0.begin(Some(&LOCK)).await?;
        let next: Vec<(i64,)> = change.rows(Statement::new(NEXT)).await?;
        draft.id = next.first().map_or(1, |(id,)| *id as u64);
        draft.revision = 1;
        change.run(written(INSERT, &draft)).await?;
        change.run(contributors(&draft)).await?;
        change.run(kind(&draft)).await?;
        change.commit().await?;
        Ok(draft)
    }

    async fn replace_now(&self, mut draft: Draft) -> Result<Draft, Error> {
        let mut change = self.0.begin(Some(&LOCK)).await?;
        let rows: Vec<Row> = change.rows(Statement::new(GET).with(key(draft.id))).await?;
        let (mut change, revision) =
            change.decided(next_revision(rows.into_iter().next(), &draft)).await?;
        draft.revision = revision;
        change.run(written(UPDATE, &draft)).await?;
        change.run(contributors(&draft)).await?;
        change.commit().await?;
        Ok(draft)
    }
}

impl<D: Database> drafts::Drafts for Drafts<D> {
    fn list(&self, is_open: bool, limit: u32) -> BoxFuture<'_, Result<Vec<Draft>, Error>> {
        Box::pin(self.list_now(is_open, limit))
    }

    fn get(&self, id: u64) -> BoxFuture<'_, Result<Draft, Error>> {
        Box::pin(self.get_now(id))
    }

    fn create(&self, draft: Draft) -> BoxFuture<'_, Result<Draft, Error>> {
        Box::pin(self.create_now(draft))
    }

    fn replace(&self, draft: Draft) -> BoxFuture<'_, Result<Draft, Error>> {
        Box::pin(self.replace_now(draft))
    }
}

/// An id beyond the database's range belongs to no draft.
fn key(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}

fn next_revision(kept: Option<Row>, draft: &Draft) -> Result<u32, Error> {
    let kept = kept.map_or(Err(Error::NotFound(draft.id)), draft_of)?;
    if kept.revision == draft.revision {
        Ok(draft.revision + 1)
    } else {
        Err(Error::RevisionMismatch { id: draft.id, current: kept.revision })
    }
}

/// A row that was altered by hand is an error that names it; the draft is never left out.
fn draft_of(row: Row) -> Result<Draft, Error> {
    let (id, revision, state, configuration, base_version, applied_version, ..) = row;
    let unreadable = |why: &str| {
        Error::Unavailable(format!(
            "draft {id} cannot be read ({why}): restore the catalog from a backup"
        ))
    };

    let small =
        |number: i64| u32::try_from(number).map_err(|_| unreadable("a version is no small number"));
    let contributors =
        serde_json::from_str(&row.13).map_err(|error| unreadable(&error.to_string()))?;
    let configuration =
        serde_json::from_str(&configuration).map_err(|error| unreadable(&error.to_string()))?;

    Ok(Draft {
        id: u64::try_from(id).map_err(|_| unreadable("its id is negative"))?,
        revision: small(revision)?,
        state: State::from_name(&state).ok_or_else(|| unreadable("its state is unknown"))?,
        kind: row.14,
        configuration,
        base_version: small(base_version)?,
        applied_version: small(applied_version)?,
        author: row.6,
        reason: row.7,
        reviewer: row.8,
        comment: row.9,
        created_at: row.10,
        changed_at: row.11,
        changed_by: row.12,
        contributors,
    })
}

fn contributors(draft: &Draft) -> Statement {
    let names = serde_json::to_string(&draft.contributors).expect("names have a form in JSON");
    Statement::new(SET_CONTRIBUTORS).with(key(draft.id)).with(names)
}

/// The row of a draft's kind, which never changes.
fn kind(draft: &Draft) -> Statement {
    Statement::new(INSERT_KIND).with(key(draft.id)).with(draft.kind.as_str())
}

fn written(text: &'static str, draft: &Draft) -> Statement {
    Statement::new(text)
        .with(i64::from(draft.revision))
        .with(draft.state.name())
        .with(i64::from(draft.state.is_open()))
        .with(draft.configuration.to_string())
        .with(i64::from(draft.base_version))
        .with(i64::from(draft.applied_version))
        .with(draft.author.as_str())
        .with(draft.reason.as_str())
        .with(draft.reviewer.as_str())
        .with(draft.comment.as_str())
        .with(draft.created_at)
        .with(draft.changed_at)
        .with(draft.changed_by.as_str())
        .with(key(draft.id))
}

//! Documents of products on any database.

use crate::database::{Change, Database, Lock, Statement, lock};
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::documents::Error;
use raingauge_ports::campaigns::{ChangedDocuments, DocumentStore, Put, StoredDocument};

/// Every change of a document begins by taking this lock.
const LOCK: Lock = lock!("product_documents_revision");

macro_rules! documents {
    ($rest:literal) => {
        concat!(
            "SELECT kind, id, version, configuration, is_deleted, changed_by, reason, changed_ms
            FROM product_documents found ",
            $rest
        )
    };
}
const NEWEST: &str = documents!(
    "WHERE is_deleted = 0 AND NOT EXISTS (SELECT 1 FROM product_documents newer
        WHERE newer.kind = found.kind AND newer.id = found.id AND newer.version > found.version)
    ORDER BY kind, id"
);
const CHANGED: &str = documents!(
    "WHERE revision > ? AND NOT EXISTS (SELECT 1 FROM product_documents newer
        WHERE newer.kind = found.kind AND newer.id = found.id AND newer.version > found.version)
    ORDER BY kind, id"
);
const GET: &str = documents!("WHERE kind = ? AND id = ? ORDER BY version DESC LIMIT 1");
const GET_VERSION: &str = documents!("WHERE kind = ? AND id = ? AND version = ?");
const VERSIONS: &str = documents!("WHERE kind = ? AND id = ? ORDER BY version DESC");

const REVISION: &str = "SELECT revision FROM product_documents_revision";
const STANDING: &str = "SELECT version, is_deleted FROM product_documents
    WHERE kind = ? AND id = ? ORDER BY version DESC LIMIT 1";
const NEXT: &str = "SELECT COALESCE(MAX(number), 0) + 1 FROM product_documents WHERE kind = ?";
const INSERT: &str =
    "INSERT INTO product_documents (kind, id, version, number, configuration, is_deleted,
    changed_by, reason, changed_ms, revision)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT revision FROM product_documents_revision))";

/// One version, in the order of [`GET`]. The numbers are as wide as the widest that a database may
/// return.
type Row = (String, String, i64, String, i64, String, String, i64);

/// The documents of products in a database that also holds the catalog.
#[derive(Clone, Debug)]
pub struct Documents<D>(pub(crate) D);

impl<D: Database> Documents<D> {
    async fn read(&self, statement: Statement) -> Result<Vec<StoredDocument>, Error> {
        let rows: Vec<Row> = self.0.rows(statement).await?;
        rows.into_iter().map(document_of).collect()
    }

    /// The revision is read first: documents that change in between are returned again later.
    async fn changed_now(&self, revision: i64) -> Result<ChangedDocuments, Error> {
        let rows: Vec<(i64,)> = self.0.rows(Statement::new(REVISION)).await?;
        let Some((newest,)) = rows.first() else {
            return Err(self.0.refuse(LOCK.missing).into());
        };
        let documents = self.read(Statement::new(CHANGED).with(revision)).await?;
        Ok(ChangedDocuments { revision: *newest, documents })
    }

    async fn put_now(&self, document: StoredDocument, base: u32) -> Result<Put, Error> {
        let mut change = self.0.begin(Some(&LOCK)).await?;
        let StoredDocument { kind, id, .. } = &document;
        let standing = Statement::new(STANDING).with(kind.as_str()).with(id.as_str());
        let standing: Vec<(i64, i64)> = change.rows(standing).await?;
        let next = Statement::new(NEXT).with(kind.as_str());
        let next: Vec<(i64,)> = change.rows(next).await?;

        let standing = standing.first().map(|(version, is_deleted)| {
            (u32::try_from(*version).unwrap_or(u32::MAX), *is_deleted != 0)
        });
        let number = next.first().map_or(1, |(number,)| *number as u64);
        let put = document.next(standing, base, number);

        let Put::Stored(stored) = &put else {
            change.give_up().await;
            return Ok(put);
        };
        change.run(written(stored)).await?;
        change.commit().await?;
        Ok(put)
    }
}

impl<D: Database> DocumentStore for Documents<D> {
    fn newest(&self) -> BoxFuture<'_, Result<Vec<StoredDocument>, Error>> {
        Box::pin(self.read(Statement::new(NEWEST)))
    }

    fn changed_since(&self, revision: i64) -> BoxFuture<'_, Result<ChangedDocuments, Error>> {
        Box::pin(self.changed_now(revision))
    }

    fn get<'a>(
        &'a self,
        kind: &'a str,
        id: &'a str,
        version: Option<u32>,
    ) -> BoxFuture<'a, Result<Option<StoredDocument>, Error>> {
        let text = if version.is_some() { GET_VERSION } else { GET };
        let mut statement = Statement::new(text).with(kind).with(id);
        if let Some(version) = version {
            statement = statement.with(i64::from(version));
        }
        Box::pin(async move { Ok(self.read(statement).await?.pop()) })
    }

    fn versions<'a>(
        &'a self,
        kind: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Vec<StoredDocument>, Error>> {
        Box::pin(self.read(Statement::new(VERSIONS).with(kind).with(id)))
    }

    fn put(&self, document: StoredDocument, base: u32) -> BoxFuture<'_, Result<Put, Error>> {
        Box::pin(self.put_now(document, base))
    }
}

/// A row that was altered by hand is an error that names it; the document is never left out.
fn document_of(row: Row) -> Result<StoredDocument, Error> {
    let (kind, id, version, configuration, is_deleted, changed_by, reason, changed_ms) = row;
    let unreadable = |why: &str| {
        Error::Unavailable(format!(
            "version {version} of {kind} {id} cannot be read ({why}): restore the catalog from a backup"
        ))
    };
    let configuration =
        serde_json::from_str(&configuration).map_err(|error| unreadable(&error.to_string()))?;
    let version =
        u32::try_from(version).map_err(|_| unreadable("its version is no small number"))?;

    Ok(StoredDocument {
        kind,
        id,
        version,
        configuration,
        is_deleted: is_deleted != 0,
        changed_by,
        reason,
        changed_ms,
    })
}

fn written(document: &StoredDocument) -> Statement {
    Statement::new(INSERT)
        .with(document.kind.as_str())
        .with(document.id.as_str())
        .with(i64::from(document.version))
        .with(number_of(&document.id))
        .with(document.configuration.to_string())
        .with(i64::from(document.is_deleted))
        .with(document.changed_by.as_str())
        .with(document.reason.as_str())
        .with(document.changed_ms)
}

/// The number that an id is in decimal; 0 for a name.
fn number_of(id: &str) -> i64 {
    let number: u32 = id.parse().unwrap_or_default();
    if number.to_string() == id { i64::from(number) } else { 0 }
}

//! The services of points, as pages use them.

use super::faults;
use super::today::{Activity, Today};
use super::view::ProgrammeView;
use crate::Points as Services;
use crate::queues::Change;
use raingauge_appraisal::{AuditRequest, ForecastRequest};
use raingauge_awarding::{Allowances, Balance, Explanation, Handle, Members, StatementRow};
use raingauge_counters::difference::FieldChange;
use raingauge_counters::documents::DocumentKind as _;
use raingauge_documents::Provenance;
use raingauge_people::Principal;
use raingauge_points::{Entry, Liability, Programme, WalletId};
use raingauge_portal::Fault;
use raingauge_portal::document::SaveError;
use raingauge_ports::campaigns::StoredDocument;
use raingauge_ports::points::{Depth, Head, LetterSelection, PeekedLetter, QueueName, Shelf};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// The kind of documents that programmes are.
pub const PROGRAMME: &str = "programme";

#[derive(Clone)]
pub struct Desk {
    services: Arc<Services>,
    today: Today,
}

impl Desk {
    pub fn new(services: &Services) -> Self {
        Self { services: Arc::new(services.clone()), today: Today::default() }
    }

    pub fn services(&self) -> &Services {
        &self.services
    }

    fn teller(&self) -> &Handle {
        &self.services.teller
    }

    pub fn members(&self) -> &Members {
        self.teller().members()
    }

    /// Why nothing is awarded.
    pub fn trouble(&self) -> Option<String> {
        self.teller().trouble()
    }

    /// The programmes, by name.
    pub async fn programmes(&self) -> Result<Vec<ProgrammeView>, Fault> {
        let all = self.services.documents.list(PROGRAMME).await?;
        Ok(all.into_iter().map(ProgrammeView::new).collect())
    }

    pub async fn programme(&self, name: &str) -> Result<ProgrammeView, Fault> {
        let found = self.services.documents.get(PROGRAMME, name, None).await?;
        Ok(ProgrammeView::new(found))
    }

    /// The programme as it prices now; `None` until its first version has taken effect.
    pub fn in_force(&self, name: &str) -> Option<Arc<Programme>> {
        self.teller().snapshot().programme(name).cloned()
    }

    /// All versions of a programme, newest first.
    pub async fn versions(&self, name: &str) -> Result<Vec<StoredDocument>, Fault> {
        Ok(self.services.documents.versions(PROGRAMME, name).await?)
    }

    /// The members in which two versions of a programme differ.
    pub fn differences(&self, before: &StoredDocument, after: &StoredDocument) -> Vec<FieldChange> {
        let kind = self.services.programme_kind();
        kind.differences(&before.configuration, &after.configuration)
    }

    /// What a programme owes its members, and what became of what it gave.
    pub async fn liability(&self, programme: &str) -> Result<Liability, Fault> {
        let found = self.members().liability(programme).await.map_err(faults::ledger)?;
        // A programme that has not taken effect yet owes nothing.
        Ok(found.unwrap_or_default())
    }

    /// What the budgets of a programme and the stocks of its rewards have left; nothing of one
    /// that has not taken effect yet.
    pub async fn allowances(&self, programme: &str) -> Result<Allowances, Fault> {
        let found = self.members().allowances(programme).await.map_err(faults::ledger)?;
        Ok(found.unwrap_or_default())
    }

    /// Adds up what happened today. Answers `false` while that is under way.
    pub async fn refresh_today(&self) -> bool {
        let programmes = Arc::clone(self.teller().snapshot().programmes());
        let now_ms = self.services.clock.now_ms();
        self.today.refresh(&self.services.books, programmes, now_ms).await
    }

    /// What a programme did since midnight in its zone; `None` until it has taken effect.
    pub fn today(&self, programme: &str) -> Option<Activity> {
        let in_force = self.in_force(programme)?;
        let day = in_force.zone().day(self.services.clock.now_ms());
        Some(self.today.of(programme, day))
    }

    /// Points that members moved to a partner, less those that came from there.
    pub async fn settlement(&self, programme: &str, partner: &str) -> Result<i128, Fault> {
        let found = self.members().settlement(programme, partner).await.map_err(faults::ledger)?;
        Ok(found.balance)
    }

    /// Checks a programme among the others.
    pub async fn check(&self, document: &Json) -> Result<Json, SaveError> {
        Ok(self.services.documents.check(PROGRAMME, document).await?)
    }

    /// Saves a programme, and returns it once it is in effect. Version 0 is that of a new one.
    pub async fn save(
        &self,
        document: Json,
        version: u32,
        person: &Principal,
        reason: &str,
    ) -> Result<StoredDocument, SaveError> {
        let provenance = Provenance { by: &person.name, reason };
        let documents = &self.services.documents;
        if version == 0 {
            return Ok(documents.create(PROGRAMME, &document, provenance).await?);
        }

        let name = document["programme"].as_str().unwrap_or_default();
        Ok(documents.replace(PROGRAMME, name, &document, Some(version), provenance).await?)
    }

    /// The balance of a member as of now. One that was never seen has zeros.
    pub async fn balance(&self, programme: &str, member: &str) -> Result<Balance, Fault> {
        let id = WalletId::new(programme, member);
        let found = self.members().balances(vec![id], None).await.map_err(faults::ledger)?;
        let found = found.into_iter().next();
        let found = found.ok_or_else(|| Fault::not_found("such member"))?;
        found.map_err(faults::refused)
    }

    /// What happened to a wallet before an entry of it, newest first.
    pub async fn statement(
        &self,
        programme: &str,
        member: &str,
        before: Option<u64>,
        len_max: usize,
    ) -> Result<Vec<StatementRow>, Fault> {
        let id = WalletId::new(programme, member);
        self.members().statement(&id, before, len_max).await.map_err(faults::ledger)
    }

    /// What the points of a member come from; `None` until the programme has taken effect.
    pub async fn explain(
        &self,
        programme: &str,
        member: &str,
    ) -> Result<Option<Explanation>, Fault> {
        let id = WalletId::new(programme, member);
        let found = self.members().explain(&id).await.map_err(faults::ledger)?;
        Ok(found.ok())
    }

    pub async fn entry(
        &self,
        programme: &str,
        book: u16,
        sequence: u64,
    ) -> Result<Option<Arc<Entry>>, Fault> {
        self.members().entry(programme, book, sequence).await.map_err(faults::ledger)
    }

    /// Begins a forecast. Returns its job as the API answers it.
    pub fn forecast(&self, request: &Json, person: &Principal) -> Result<Json, Fault> {
        let request = ForecastRequest::parse(request.to_string().as_bytes())?;
        let job = self.services.appraisal.forecast(&caller(person), request, None)?;
        Ok(json!(job))
    }

    /// Begins an audit of all programmes. Returns its job as the API answers it.
    pub fn audit(&self, is_resent: bool, person: &Principal) -> Result<Json, Fault> {
        let request = json!({ "resend": is_resent });
        let request = AuditRequest::parse(request.to_string().as_bytes())?;
        let job = self.services.appraisal.audit(&caller(person), request)?;
        Ok(json!(job))
    }

    /// The result of the last audit of this process, as the API answers it.
    pub fn last_audit(&self) -> Option<Json> {
        self.services.appraisal.last_audit().map(|audit| json!(*audit))
    }

    /// A job as the API answers it.
    pub fn job(&self, id: &str) -> Result<Json, Fault> {
        Ok(json!(self.services.appraisal.jobs().get(id)?))
    }

    pub fn end_job(&self, id: &str) -> Result<(), Fault> {
        self.services.appraisal.jobs().cancel(id)?;
        Ok(())
    }

    /// Where each book stands: its last entry, and the hash over all of them.
    pub async fn heads(&self) -> Result<Vec<Head>, Fault> {
        let books = Arc::clone(&self.services.books);
        let read = move || (0..books.books()).map(|book| books.head(book)).collect();
        let heads: Result<Vec<Head>, _> =
            tokio::task::spawn_blocking(read).await.map_err(faults::books)?;
        heads.map_err(faults::books)
    }

    /// Why an entry has its points, in a line.
    pub fn explain_entry(&self, entry: &Entry) -> Option<String> {
        self.members().explain_entry(entry)
    }

    pub async fn depth(&self, queue: QueueName) -> Result<Depth, Fault> {
        self.services.queues.depth(queue).await.map_err(faults::queue)
    }

    /// The first letters of a shelf.
    pub async fn letters(
        &self,
        queue: QueueName,
        shelf: Shelf,
        len_max: usize,
    ) -> Result<Vec<PeekedLetter>, Fault> {
        self.services.queues.peek(queue, shelf, len_max).await.map_err(faults::queue)
    }

    /// Sends dead letters to their queue again, or forgets them. Returns how many.
    pub async fn change_letters(
        &self,
        queue: QueueName,
        selection: &LetterSelection,
        change: Change,
    ) -> Result<usize, Fault> {
        self.services.change_letters(queue, selection, change).await.map_err(faults::queue)
    }
}

/// The name under which a person's jobs take their turns.
fn caller(person: &Principal) -> String {
    format!("the portal: {}", person.name)
}

//! Queues of points on any database, for any number of processes.
//!
//! A change of a queue begins by locking the queue's row, so changes follow each other. A receive
//! gives each letter a new ticket, which is its receipt: an older one finds nothing any more.

mod control;

use crate::books::many::Many;
use crate::books::rows::bytes;
use crate::database::{Change, Database, Statement, Unavailable, Value};
use raingauge_ports::BoxFuture;
use raingauge_ports::clock::Clock;
use raingauge_ports::points::{
    self, Burial, Letter, QueueError, QueueName, Receipt, Receive, ReceivedLetter, check_len,
    check_send, shortened,
};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a waiting receive looks for letters of other processes.
const LOOK: Duration = Duration::from_millis(200);

const LOCK: &str = "UPDATE points_queues SET newest = newest + ? WHERE queue = ?";
const NEWEST: &str = "SELECT newest FROM points_queues WHERE queue = ?";
const SEND: Many = Many {
    before: "INSERT INTO points_letters
        (queue, number, id, body, first_error, sent_ms, visible_ms, receives) VALUES ",
    row: "(?,?,?,?,?,?,?,0)",
    after: "",
};
const IS_VISIBLE: &str = "SELECT number FROM points_letters
    WHERE queue = ? AND visible_ms <= ? LIMIT 1";
const VISIBLE: &str = "SELECT number, id, body, first_error, sent_ms, receives FROM points_letters
    WHERE queue = ? AND visible_ms <= ? ORDER BY visible_ms, number LIMIT ?";
/// A letter is received less than 2^20 times, so that no two tickets are the same.
const RECEIVE: Many = Many {
    before: "UPDATE points_letters
        SET ticket = number * 1048576 + receives + 1, receives = receives + 1, visible_ms = ?
        WHERE queue = ? AND number IN (",
    row: "?",
    after: ")",
};
const RECEIVES_MAX: i64 = 1 << 20;
const DELETE: Many = Many {
    before: "DELETE FROM points_letters WHERE queue = ? AND ticket IN (",
    row: "?",
    after: ")",
};
const CHANGE_VISIBILITY: &str = "UPDATE points_letters SET visible_ms = ?
    WHERE queue = ? AND ticket = ?";
const BURY: &str = "UPDATE points_letters
    SET died_ms = ?, reason = ?, last_error = ?, visible_ms = NULL, ticket = NULL
    WHERE queue = ? AND ticket = ?";

/// Number, id, body, first error, sent, receives.
type LetterRow = (i64, Vec<u8>, Vec<u8>, Option<Vec<u8>>, i64, i64);

/// The queues of points in a database that also holds the books.
#[derive(Clone)]
pub struct Queues<D> {
    database: D,
    clock: Arc<dyn Clock>,
}

impl<D> fmt::Debug for Queues<D> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Queues").finish_non_exhaustive()
    }
}

impl From<Unavailable> for QueueError {
    fn from(Unavailable(sentence): Unavailable) -> Self {
        Self::Unavailable(sentence)
    }
}

fn queue(name: QueueName) -> Value {
    Value::from(name as i64)
}

fn text_of(bytes: Vec<u8>) -> Result<String, QueueError> {
    String::from_utf8(bytes).map_err(|error| QueueError::Corrupt(error.to_string()))
}

fn letter_of(
    id: Vec<u8>,
    body: Vec<u8>,
    first_error: Option<Vec<u8>>,
) -> Result<Letter, QueueError> {
    let first_error = first_error.map(text_of).transpose()?;
    Ok(Letter { id: text_of(id)?, body: text_of(body)?, first_error })
}

fn text_or_null(text: Option<&str>) -> Value {
    text.map_or(Value::Whole(None), bytes)
}

/// The ticket of a receipt. One that is none finds no letter.
fn ticket(receipt: &Receipt) -> Value {
    Value::Whole(receipt.0.parse().ok())
}

fn millis(duration: Duration) -> i64 {
    duration.as_millis() as i64
}

impl<D: Database> Queues<D> {
    pub(crate) fn over(database: D, clock: Arc<dyn Clock>) -> Self {
        Self { database, clock }
    }

    fn now_ms(&self) -> i64 {
        self.clock.machine_ms()
    }

    /// Begins a change of a queue that adds a number of letters, and returns the number of the
    /// letter before the first of them.
    async fn change(
        &self,
        name: QueueName,
        adds: usize,
    ) -> Result<(D::Change<'_>, i64), QueueError> {
        let mut change = self.database.begin(None).await?;
        let lock =
            Statement { values: vec![(adds as i64).into(), queue(name)], ..Statement::new(LOCK) };
        change.run(lock).await?;

        let newest = Statement { values: vec![queue(name)], ..Statement::new(NEWEST) };
        let newest: Vec<(i64,)> = change.rows(newest).await?;
        match newest.first() {
            Some((newest,)) => Ok((change, newest - adds as i64)),
            None => {
                Err(self.database.refuse("a row of points_queues is missing: restore it").into())
            }
        }
    }

    async fn send_now(
        &self,
        name: QueueName,
        letters: &[Letter],
        delay: Duration,
    ) -> Result<(), QueueError> {
        check_send(letters, delay)?;
        if letters.is_empty() {
            return Ok(());
        }
        let (mut change, before) = self.change(name, letters.len()).await?;
        let now_ms = self.now_ms();
        let row = |(number, letter): (i64, &Letter)| {
            vec![
                queue(name),
                number.into(),
                bytes(&letter.id),
                bytes(&letter.body),
                text_or_null(letter.first_error.as_deref()),
                now_ms.into(),
                (now_ms + millis(delay)).into(),
            ]
        };
        for statement in SEND.writing((before + 1..).zip(letters).map(row).collect()) {
            change.run(statement).await?;
        }
        Ok(change.commit().await?)
    }

    async fn receive_now(
        &self,
        name: QueueName,
        receive: Receive,
    ) -> Result<Vec<ReceivedLetter>, QueueError> {
        let receive = receive.bounded();
        let deadline = Instant::now() + receive.wait;
        loop {
            let received = self.try_receive(name, receive).await?;
            let left = deadline.saturating_duration_since(Instant::now());
            if !received.is_empty() || receive.len_max == 0 || left.is_zero() {
                return Ok(received);
            }
            tokio::time::sleep(LOOK.min(left)).await;
        }
    }

    async fn try_receive(
        &self,
        name: QueueName,
        receive: Receive,
    ) -> Result<Vec<ReceivedLetter>, QueueError> {
        // An empty queue is not locked.
        let is_visible = Statement::new(IS_VISIBLE);
        let is_visible =
            Statement { values: vec![queue(name), self.now_ms().into()], ..is_visible };
        if self.database.rows::<(i64,)>(is_visible).await?.is_empty() || receive.len_max == 0 {
            return Ok(Vec::new());
        }

        let (mut change, _) = self.change(name, 0).await?;
        let now_ms = self.now_ms();
        let values = vec![queue(name), now_ms.into(), (receive.len_max as i64).into()];
        let visible = Statement { values, ..Statement::new(VISIBLE) };
        let rows: Vec<LetterRow> = change.rows(visible).await?;
        if rows.is_empty() {
            change.give_up().await;
            return Ok(Vec::new());
        }

        let first = [(now_ms + millis(receive.visibility)).into(), queue(name)];
        let numbers: Vec<_> = rows.iter().map(|row| vec![row.0.into()]).collect();
        for statement in RECEIVE.finding(&first, &numbers) {
            change.run(statement).await?;
        }
        change.commit().await?;
        rows.into_iter().map(received_of).collect()
    }

    /// Runs statements about letters of a queue in one change.
    async fn alter(&self, name: QueueName, statements: Vec<Statement>) -> Result<(), QueueError> {
        if statements.is_empty() {
            return Ok(());
        }
        let (mut change, _) = self.change(name, 0).await?;
        for statement in statements {
            change.run(statement).await?;
        }
        Ok(change.commit().await?)
    }

    fn burials(&self, name: QueueName, burials: &[Burial]) -> Vec<Statement> {
        let died_ms = self.now_ms();
        let bury = |burial: &Burial| {
            let values = vec![
                died_ms.into(),
                bytes(&shortened(burial.reason.clone())),
                bytes(&shortened(burial.last_error.clone())),
                queue(name),
                ticket(&burial.received.receipt),
            ];
            Statement { values, ..Statement::new(BURY) }
        };
        burials.iter().map(bury).collect()
    }
}

fn received_of(row: LetterRow) -> Result<ReceivedLetter, QueueError> {
    let (number, id, body, first_error, sent_ms, before) = row;
    let receives = before + 1;
    Ok(ReceivedLetter {
        letter: letter_of(id, body, first_error)?,
        receipt: Receipt((number * RECEIVES_MAX + receives).to_string()),
        receives: u32::try_from(receives).unwrap_or(u32::MAX),
        sent_ms,
    })
}

impl<D: Database> points::Queues for Queues<D> {
    fn send(
        &self,
        queue: QueueName,
        letters: Vec<Letter>,
        delay: Duration,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(async move { self.send_now(queue, &letters, delay).await })
    }

    fn receive(
        &self,
        queue: QueueName,
        receive: Receive,
    ) -> BoxFuture<'_, Result<Vec<ReceivedLetter>, QueueError>> {
        Box::pin(self.receive_now(queue, receive))
    }

    fn delete(
        &self,
        name: QueueName,
        receipts: Vec<Receipt>,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(async move {
            check_len(receipts.len())?;
            let tickets: Vec<_> = receipts.iter().map(|receipt| vec![ticket(receipt)]).collect();
            self.alter(name, DELETE.finding(&[queue(name)], &tickets)).await
        })
    }

    fn change_visibility(
        &self,
        name: QueueName,
        changes: Vec<(Receipt, Duration)>,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(async move {
            check_len(changes.len())?;
            let now_ms = self.now_ms();
            let change = |(receipt, visibility): &(Receipt, Duration)| {
                let values =
                    vec![(now_ms + millis(*visibility)).into(), queue(name), ticket(receipt)];
                Statement { values, ..Statement::new(CHANGE_VISIBILITY) }
            };
            self.alter(name, changes.iter().map(change).collect()).await
        })
    }

    fn bury(&self, name: QueueName, burials: Vec<Burial>) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(async move {
            check_len(burials.len())?;
            self.alter(name, self.burials(name, &burials)).await
        })
    }
}

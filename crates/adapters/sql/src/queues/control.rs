//! Queues as operators see them.

use super::{Queues, letter_of, queue, text_of};
use crate::books::many::Many;
use crate::books::rows::bytes;
use crate::database::{Change, Database, Statement, Value};
use raingauge_ports::BoxFuture;
use raingauge_ports::points::{
    Death, Depth, LetterSelection, PeekedLetter, QUEUE_CALL_LEN_MAX, QueueControl, QueueError,
    QueueName, Shelf,
};

const DEPTH: &str = "SELECT
    (SELECT COUNT(*) FROM points_letters WHERE queue = ? AND visible_ms IS NOT NULL),
    (SELECT COUNT(*) FROM points_letters WHERE queue = ? AND visible_ms > ? AND receives > 0),
    (SELECT COUNT(*) FROM points_letters WHERE queue = ? AND died_ms IS NOT NULL),
    (SELECT MIN(sent_ms) FROM points_letters WHERE queue = ? AND visible_ms IS NOT NULL)";
const PEEK_WAITING: &str = "SELECT id, body, first_error, receives, sent_ms, visible_ms, died_ms,
    reason, last_error FROM points_letters
    WHERE queue = ? AND visible_ms IS NOT NULL ORDER BY visible_ms, number LIMIT ?";
const PEEK_DEAD: &str = "SELECT id, body, first_error, receives, sent_ms, visible_ms, died_ms,
    reason, last_error FROM points_letters
    WHERE queue = ? AND died_ms IS NOT NULL ORDER BY died_ms, number LIMIT ?";
const DEAD: &str = "SELECT number FROM points_letters
    WHERE queue = ? AND died_ms IS NOT NULL ORDER BY died_ms, number LIMIT ?";
const DEAD_OF_IDS: Many = Many {
    before: "SELECT number FROM points_letters
        WHERE queue = ? AND died_ms IS NOT NULL AND id IN (",
    row: "?",
    after: ")",
};
/// With a new number, so that no old receipt is for it.
const REDRIVE: &str = "UPDATE points_letters
    SET number = ?, sent_ms = ?, visible_ms = ?, receives = 0, died_ms = NULL, reason = NULL,
    last_error = NULL WHERE queue = ? AND number = ?";
const DISCARD: Many = Many {
    before: "DELETE FROM points_letters WHERE queue = ? AND number IN (",
    row: "?",
    after: ")",
};

/// Id, body, first error, receives, sent, visible, died, reason, last error.
type PeekRow = (
    Vec<u8>,
    Vec<u8>,
    Option<Vec<u8>>,
    i64,
    i64,
    Option<i64>,
    Option<i64>,
    Option<Vec<u8>>,
    Option<Vec<u8>>,
);

impl<D: Database> Queues<D> {
    async fn depth_now(&self, name: QueueName) -> Result<Depth, QueueError> {
        let own = || queue(name);
        let values = vec![own(), own(), self.now_ms().into(), own(), own()];
        let depth = Statement { values, ..Statement::new(DEPTH) };
        let rows: Vec<(i64, i64, i64, Option<i64>)> = self.database.rows(depth).await?;
        let (all, in_flight, dead, oldest_ms) = rows.first().copied().unwrap_or_default();
        Ok(Depth {
            waiting: (all - in_flight) as u64,
            in_flight: in_flight as u64,
            dead: dead as u64,
            oldest_ms,
        })
    }

    async fn peek_now(
        &self,
        name: QueueName,
        shelf: Shelf,
        len_max: usize,
    ) -> Result<Vec<PeekedLetter>, QueueError> {
        let text = match shelf {
            Shelf::Waiting => PEEK_WAITING,
            Shelf::Dead => PEEK_DEAD,
        };
        let values = vec![queue(name), (len_max.min(QUEUE_CALL_LEN_MAX) as i64).into()];
        let rows: Vec<PeekRow> =
            self.database.rows(Statement { values, ..Statement::new(text) }).await?;
        rows.into_iter().map(peeked_of).collect()
    }

    /// Returns the numbers of selected dead letters, at most those of one call.
    async fn selected(
        &self,
        change: &mut D::Change<'_>,
        name: QueueName,
        selection: &LetterSelection,
    ) -> Result<Vec<i64>, QueueError> {
        let statements = match selection {
            LetterSelection::All => {
                let values = vec![queue(name), (QUEUE_CALL_LEN_MAX as i64).into()];
                vec![Statement { values, ..Statement::new(DEAD) }]
            }
            LetterSelection::Ids(ids) => {
                let ids: Vec<Vec<Value>> = ids.iter().map(|id| vec![bytes(id)]).collect();
                DEAD_OF_IDS.finding(&[queue(name)], &ids)
            }
        };
        let mut numbers = Vec::new();
        for statement in statements {
            let rows: Vec<(i64,)> = change.rows(statement).await?;
            numbers.extend(rows.into_iter().map(|(number,)| number));
        }
        numbers.truncate(QUEUE_CALL_LEN_MAX);
        Ok(numbers)
    }

    async fn redrive_now(
        &self,
        name: QueueName,
        selection: &LetterSelection,
    ) -> Result<usize, QueueError> {
        let (mut change, before) = self.change(name, QUEUE_CALL_LEN_MAX).await?;
        let numbers = self.selected(&mut change, name, selection).await?;
        let now_ms = self.now_ms();
        for (new, number) in (before + 1..).zip(&numbers) {
            let values =
                vec![new.into(), now_ms.into(), now_ms.into(), queue(name), (*number).into()];
            change.run(Statement { values, ..Statement::new(REDRIVE) }).await?;
        }
        change.commit().await?;
        Ok(numbers.len())
    }

    async fn discard_now(
        &self,
        name: QueueName,
        selection: &LetterSelection,
    ) -> Result<usize, QueueError> {
        let (mut change, _) = self.change(name, 0).await?;
        let numbers = self.selected(&mut change, name, selection).await?;
        let wanted: Vec<_> = numbers.iter().map(|number| vec![(*number).into()]).collect();
        for statement in DISCARD.finding(&[queue(name)], &wanted) {
            change.run(statement).await?;
        }
        change.commit().await?;
        Ok(numbers.len())
    }
}

fn peeked_of(row: PeekRow) -> Result<PeekedLetter, QueueError> {
    let (id, body, first_error, receives, sent_ms, visible_ms, died_ms, reason, last_error) = row;
    let attempts = u32::try_from(receives).unwrap_or(u32::MAX);
    let death = match died_ms {
        Some(died_ms) => Some(Death {
            reason: text_of(reason.unwrap_or_default())?,
            last_error: text_of(last_error.unwrap_or_default())?,
            attempts,
            died_ms,
        }),
        None => None,
    };
    let letter = letter_of(id, body, first_error)?;
    Ok(PeekedLetter { letter, receives: attempts, sent_ms, visible_ms, death })
}

impl<D: Database> QueueControl for Queues<D> {
    fn depth(&self, queue: QueueName) -> BoxFuture<'_, Result<Depth, QueueError>> {
        Box::pin(self.depth_now(queue))
    }

    fn shows_hidden(&self) -> bool {
        true
    }

    fn peek(
        &self,
        queue: QueueName,
        shelf: Shelf,
        len_max: usize,
    ) -> BoxFuture<'_, Result<Vec<PeekedLetter>, QueueError>> {
        Box::pin(self.peek_now(queue, shelf, len_max))
    }

    fn redrive(
        &self,
        queue: QueueName,
        selection: LetterSelection,
    ) -> BoxFuture<'_, Result<usize, QueueError>> {
        Box::pin(async move { self.redrive_now(queue, &selection).await })
    }

    fn discard(
        &self,
        queue: QueueName,
        selection: LetterSelection,
    ) -> BoxFuture<'_, Result<usize, QueueError>> {
        Box::pin(async move { self.discard_now(queue, &selection).await })
    }
}

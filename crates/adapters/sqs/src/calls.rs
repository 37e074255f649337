//! Calls to SQS, and what becomes of their partial failures.

use crate::batches::{BATCH_LEN_MAX, batches};
use crate::envelope::MESSAGE_LEN_MAX;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{
    BatchResultErrorEntry, ChangeMessageVisibilityBatchRequestEntry,
    DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName,
    SendMessageBatchRequestEntry,
};
use raingauge_ports::points::{QueueError, Receipt};
use std::fmt::Debug;
use std::time::Duration;

/// How often messages are sent that SQS did not take for a reason of its own.
const SENDS_MAX: usize = 4;

/// The error of a call that was not answered, or refused as a whole.
pub fn unavailable<E, R>(error: SdkError<E, R>) -> QueueError
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: Debug,
    SdkError<E, R>: std::error::Error,
{
    let answered = error.as_service_error().map(|answer| {
        let code = answer.code().unwrap_or("an error without a code");
        format!("SQS answers {code}: {}", answer.message().unwrap_or_default())
    });
    // An error that is no answer says why in the errors behind it.
    let text = answered.unwrap_or_else(|| DisplayErrorContext(&error).to_string());
    QueueError::Unavailable(text)
}

/// Whether SQS answered with this code. Servers that speak its protocol give the code alone,
/// without what the client wants to see before it takes the answer for one that it knows.
pub fn is_code<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>, code: &str) -> bool {
    let found = error.as_service_error().and_then(ProvideErrorMetadata::code);
    found.is_some_and(|found| found.rsplit('.').next() == Some(code))
}

/// The error of an entry that cannot be built: a field is missing.
fn incomplete(error: impl std::error::Error) -> QueueError {
    QueueError::Io(format!("a request to SQS is incomplete: {error}"))
}

/// Whole seconds, rounded up.
pub fn seconds(time: Duration) -> i32 {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

/// Sends texts, each until SQS has taken it.
pub async fn send(
    client: &Client,
    url: &str,
    texts: Vec<String>,
    delay: Duration,
) -> Result<(), QueueError> {
    for mut batch in batches(texts, MESSAGE_LEN_MAX, String::len) {
        let mut sends = 0;
        while !batch.is_empty() {
            let failed = send_batch(client, url, &batch, delay).await?;
            sends += 1;
            // One that SQS blames on the caller is refused each time.
            let worst = failed.iter().find(|entry| entry.sender_fault).or(failed.first());
            if let Some(entry) = worst
                && (entry.sender_fault || sends == SENDS_MAX)
            {
                return Err(QueueError::Unavailable(format!(
                    "SQS did not take a letter: {} {}",
                    entry.code,
                    entry.message().unwrap_or_default()
                )));
            }
            batch = failed_of(batch, &failed);
        }
    }
    Ok(())
}

async fn send_batch(
    client: &Client,
    url: &str,
    texts: &[String],
    delay: Duration,
) -> Result<Vec<BatchResultErrorEntry>, QueueError> {
    let entries = texts.iter().enumerate().map(|(index, text)| {
        let entry = SendMessageBatchRequestEntry::builder().id(index.to_string());
        entry.message_body(text).delay_seconds(seconds(delay)).build().map_err(incomplete)
    });
    let entries = entries.collect::<Result<Vec<_>, _>>()?;
    let call = client.send_message_batch().queue_url(url).set_entries(Some(entries));
    Ok(call.send().await.map_err(unavailable)?.failed)
}

/// The items of a batch that failed. An entry's id is its index, not the id of a message.
fn failed_of<T>(batch: Vec<T>, failed: &[BatchResultErrorEntry]) -> Vec<T> {
    let indexes: Vec<usize> = failed.iter().filter_map(|entry| entry.id.parse().ok()).collect();
    let kept = batch.into_iter().enumerate().filter(|(index, _)| indexes.contains(index));
    kept.map(|(_, item)| item).collect()
}

/// Deletes messages. What SQS does not delete comes back, which every receiver expects.
pub async fn delete(client: &Client, url: &str, receipts: Vec<Receipt>) -> Result<(), QueueError> {
    for batch in receipts.chunks(BATCH_LEN_MAX) {
        let entries = batch.iter().enumerate().map(|(index, receipt)| {
            let entry = DeleteMessageBatchRequestEntry::builder().id(index.to_string());
            entry.receipt_handle(&receipt.0).build().map_err(incomplete)
        });
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        let call = client.delete_message_batch().queue_url(url).set_entries(Some(entries));
        note_failures("deleted", call.send().await.map_err(unavailable)?.failed());
    }
    Ok(())
}

/// Changes when messages become visible. A void receipt is passed over.
pub async fn change_visibility(
    client: &Client,
    url: &str,
    changes: Vec<(Receipt, Duration)>,
) -> Result<(), QueueError> {
    for batch in changes.chunks(BATCH_LEN_MAX) {
        let entries = batch.iter().enumerate().map(|(index, (receipt, visibility))| {
            let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(index.to_string());
            let entry = entry.receipt_handle(&receipt.0).visibility_timeout(seconds(*visibility));
            entry.build().map_err(incomplete)
        });
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        let call =
            client.change_message_visibility_batch().queue_url(url).set_entries(Some(entries));
        note_failures("changed", call.send().await.map_err(unavailable)?.failed());
    }
    Ok(())
}

fn note_failures(what: &str, failed: &[BatchResultErrorEntry]) {
    if let Some(first) = failed.first() {
        tracing::debug!(
            letters = failed.len(),
            code = first.code,
            "letters of SQS were not {what}, and will be received again"
        );
    }
}

/// Receives at most ten messages.
pub async fn receive(
    client: &Client,
    url: &str,
    len_max: usize,
    visibility: Duration,
    wait: Duration,
) -> Result<Vec<Message>, QueueError> {
    let call = client
        .receive_message()
        .queue_url(url)
        .max_number_of_messages(len_max.min(BATCH_LEN_MAX) as i32)
        .visibility_timeout(seconds(visibility))
        .wait_time_seconds(seconds(wait))
        .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount)
        .message_system_attribute_names(MessageSystemAttributeName::SentTimestamp);
    match call.send().await {
        Ok(received) => Ok(received.messages.unwrap_or_default()),
        // As many are in flight as SQS allows: there are letters again when some are settled.
        Err(error) if is_code(&error, "OverLimit") => Ok(Vec::new()),
        Err(error) => Err(unavailable(error)),
    }
}

//! The id that brokers give a topic when it is created. A recreated topic has another id, which
//! tells it from its predecessor whatever its offsets and times are.

#![allow(unsafe_code, reason = "rdkafka has no safe call for a topic's id")]

use crate::context::Context;
use rdkafka::bindings as native;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use std::ffi::{CString, c_int};
use std::time::Duration;

/// A librdkafka object that is freed when this is dropped.
struct Owned<T>(*mut T, unsafe extern "C" fn(*mut T));

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the pointer came from the constructor that belongs to this destructor, and is
            // freed only here.
            unsafe { (self.1)(self.0) }
        }
    }
}

/// The id of a topic; `None` if the brokers know no ids. Blocks the thread.
pub fn ask(
    client: &BaseConsumer<Context>,
    topic: &str,
    timeout: Duration,
) -> Result<Option<u128>, KafkaError> {
    let name = CString::new(topic)?;
    let timeout_ms = timeout.as_millis().min(c_int::MAX as u128) as c_int;

    // SAFETY: the client outlives this call and everything created in it. Pointers are checked
    // before use, and point into the event, which is dropped last, before the queue that it came
    // from.
    unsafe {
        let client = client.client().native_ptr();
        let mut names = [name.as_ptr()];
        let topics = Owned(
            native::rd_kafka_TopicCollection_of_topic_names(names.as_mut_ptr(), names.len()),
            native::rd_kafka_TopicCollection_destroy,
        );
        let describes = native::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS;
        let options = Owned(
            native::rd_kafka_AdminOptions_new(client, describes),
            native::rd_kafka_AdminOptions_destroy,
        );

        let mut reason = [0; 256];
        native::rd_kafka_AdminOptions_set_request_timeout(
            options.0,
            timeout_ms,
            reason.as_mut_ptr(),
            reason.len(),
        );

        let queue = Owned(native::rd_kafka_queue_new(client), native::rd_kafka_queue_destroy);
        native::rd_kafka_DescribeTopics(client, topics.0, options.0, queue.0);

        let event =
            Owned(native::rd_kafka_queue_poll(queue.0, timeout_ms), native::rd_kafka_event_destroy);
        if event.0.is_null() {
            return Err(KafkaError::AdminOp(RDKafkaErrorCode::OperationTimedOut));
        }
        told(native::rd_kafka_event_error(event.0))?;

        let described = native::rd_kafka_event_DescribeTopics_result(event.0);
        let mut len = 0;
        let topics = if described.is_null() {
            return Ok(None);
        } else {
            native::rd_kafka_DescribeTopics_result_topics(described, &raw mut len)
        };

        if len == 0 || topics.is_null() {
            return Ok(None);
        }
        let topic = *topics;
        told(native::rd_kafka_error_code(native::rd_kafka_TopicDescription_error(topic)))?;

        let id = native::rd_kafka_TopicDescription_topic_id(topic);
        if id.is_null() {
            return Ok(None);
        }

        let high = native::rd_kafka_Uuid_most_significant_bits(id) as u64;
        let low = native::rd_kafka_Uuid_least_significant_bits(id) as u64;
        Ok(Some(u128::from(high) << 64 | u128::from(low)).filter(|id| *id != 0))
    }
}

/// A librdkafka error code as a result.
fn told(code: native::rd_kafka_resp_err_t) -> Result<(), KafkaError> {
    match RDKafkaErrorCode::from(code) {
        RDKafkaErrorCode::NoError => Ok(()),
        code => Err(KafkaError::AdminOp(code)),
    }
}

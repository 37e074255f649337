//! Replies on their way to a client.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Buf, Bytes};
use raingauge_objects::Objects;
use raingauge_resp::Failure;
use tokio::net::tcp::OwnedWriteHalf;

use crate::ending::Ending;
use crate::limits::RESP_WRITE_BUFFERS_MAX;

/// Replies in the order in which they are sent: first those that wait for the socket, then those
/// that wait until what they tell of is durable.
pub(crate) struct Outgoing {
    objects: Arc<Objects>,
    ready: VecDeque<Bytes>,
    waiting: VecDeque<Segment>,
    /// Bytes of both.
    len: usize,
    /// Bytes of all connections.
    total: Arc<AtomicUsize>,
    sent: u64,
    /// Ends when the first waiting segment is durable.
    durable: Option<Durable>,
}

type Durable = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

struct Segment {
    stamp: u64,
    buffers: Vec<Bytes>,
}

impl Outgoing {
    /// An empty queue, whose bytes are counted in `total` too.
    pub(crate) fn new(objects: Arc<Objects>, total: Arc<AtomicUsize>) -> Outgoing {
        Outgoing {
            objects,
            ready: VecDeque::new(),
            waiting: VecDeque::new(),
            len: 0,
            total,
            sent: 0,
            durable: None,
        }
    }

    /// Bytes that were not sent yet.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing waits, not even for the store. What is not answered at all waits too, since
    /// waiting may do a part of the store's work.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0 && self.waiting.is_empty()
    }

    /// Bytes that were sent since they were last taken.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Bytes that were sent since the last call.
    pub(crate) fn take_sent(&mut self) -> u64 {
        std::mem::take(&mut self.sent)
    }

    /// Appends replies, which are sent once the group of the stamp is durable; 0 waits for none.
    pub(crate) fn push(&mut self, buffers: Vec<Bytes>, stamp: u64) {
        let len = buffers.iter().map(Bytes::len).sum::<usize>();
        self.len += len;
        self.total.fetch_add(len, Ordering::Relaxed);

        if self.waiting.is_empty() && (stamp == 0 || self.objects.is_durable(stamp)) {
            self.ready.extend(buffers);
        } else {
            self.waiting.push_back(Segment { stamp, buffers });
        }
    }

    /// Sends until nothing is left. Can be dropped and called again at any time.
    pub(crate) async fn pump(&mut self, writer: &OwnedWriteHalf) -> Result<(), Ending> {
        self.pump_below(writer, 0).await
    }

    /// As [`Outgoing::pump`], until at most `len_max` bytes are left.
    pub(crate) async fn pump_below(
        &mut self,
        writer: &OwnedWriteHalf,
        len_max: usize,
    ) -> Result<(), Ending> {
        loop {
            self.release();
            let is_blocked = !self.send(writer)?;
            let has_room = len_max > 0 && self.len <= len_max;
            if has_room || self.is_empty() {
                return Ok(());
            }

            match (self.waiting.is_empty(), is_blocked) {
                (true, false) => return Ok(()),
                (true, true) => writer.writable().await.map_err(|_| Ending::Network)?,
                (false, false) => self.wait_for_store().await?,

                (false, true) => tokio::select! {
                    biased;
                    result = self.wait_for_store() => result?,
                    result = writer.writable() => result.map_err(|_| Ending::Network)?,
                },
            }
        }
    }

    /// Moves what became durable to what is sent.
    fn release(&mut self) {
        while let Some(first) = self.waiting.front() {
            if first.stamp != 0 && !self.objects.is_durable(first.stamp) {
                return;
            }

            let first = self.waiting.pop_front().expect("it was seen");
            self.ready.extend(first.buffers);
        }
    }

    /// Waits until the first waiting segment is durable. The future is kept, since it may do a
    /// part of the work that makes it so.
    async fn wait_for_store(&mut self) -> Result<(), Ending> {
        let Some(first) = self.waiting.front() else {
            return Ok(());
        };
        let objects = &self.objects;
        let stamp = first.stamp;

        let durable = self.durable.get_or_insert_with(|| {
            let objects = Arc::clone(objects);
            Box::pin(async move { objects.durable(stamp).await })
        });
        let result = durable.await;
        self.durable = None;

        result.map_err(|failure| {
            tracing::warn!(%failure, "a client was disconnected, since the store failed");
            Ending::Store
        })
    }

    /// Writes what may be sent; false if the socket takes no more at present.
    fn send(&mut self, writer: &OwnedWriteHalf) -> Result<bool, Ending> {
        while let Some(first) = self.ready.front() {
            let written = match self.ready.len() {
                1 => writer.try_write(first),
                _ => self.write_several(writer),
            };

            match written {
                Ok(written) => self.advance(written),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(_) => return Err(Ending::Network),
            }
        }

        Ok(true)
    }

    fn write_several(&self, writer: &OwnedWriteHalf) -> std::io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); RESP_WRITE_BUFFERS_MAX];
        let mut used = 0;
        for (slice, buffer) in slices.iter_mut().zip(&self.ready) {
            *slice = IoSlice::new(buffer);
            used += 1;
        }

        writer.try_write_vectored(&slices[..used])
    }

    fn advance(&mut self, mut written: usize) {
        self.len -= written;
        self.total.fetch_sub(written, Ordering::Relaxed);
        self.sent += written as u64;

        while let Some(first) = self.ready.front_mut() {
            if first.len() > written {
                first.advance(written);
                return;
            }

            written -= first.len();
            self.ready.pop_front();
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.total.fetch_sub(self.len, Ordering::Relaxed);
    }
}

//! Reading on after the last response, so that the peer gets it.
//!
//! A connection that is closed with unread bytes is reset (RFC 9112, 9.6). Many clients read the
//! response only after they have sent everything, and see the reset instead.

use super::activity::Activity;
use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Sleep;

/// Longest wait for the peer to close a connection whose last request was refused.
pub const LINGER_MAX: Duration = Duration::from_secs(1);
/// Most bytes that are read in that time.
const LINGER_BYTES_MAX: usize = 64 << 20;
/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// The last reads of a connection, until its peer closes it or a limit is reached.
pub struct Linger {
    timeout: Pin<Box<Sleep>>,
    bytes_left: usize,
}

impl Default for Linger {
    fn default() -> Self {
        Self { timeout: Box::pin(tokio::time::sleep(LINGER_MAX)), bytes_left: LINGER_BYTES_MAX }
    }
}

impl Linger {
    /// Reads and drops what the peer sends.
    pub fn poll(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let mut bytes = [0; READ_BYTES];
        while self.bytes_left > 0 && self.timeout.as_mut().poll(context).is_pending() {
            let mut read = ReadBuf::new(&mut bytes);
            let result = ready!(Pin::new(&mut *stream).poll_read(context, &mut read));
            if result.is_err() || read.filled().is_empty() {
                break;
            }
            self.bytes_left = self.bytes_left.saturating_sub(read.filled().len());
        }
        Poll::Ready(())
    }
}

/// The body of a request. Dropped before its end, it lets the connection linger.
pub struct RequestBody {
    body: Incoming,
    activity: Arc<Activity>,
    is_over: bool,
}

impl RequestBody {
    pub fn new(body: Incoming, activity: Arc<Activity>) -> Self {
        Self { body, activity, is_over: false }
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if !self.is_over && !self.body.is_end_stream() {
            self.activity.leave_unread();
        }
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.is_over = !matches!(frame, Some(Ok(_)));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

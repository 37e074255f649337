//! The body of a response on its way to the peer: its request is in flight until the body has been
//! handed over. Over HTTP/2 a large body goes in pieces, so that a peer that takes none of them is
//! noticed.
//!
//! HTTP/2 takes a body when the peer gives room for a first byte, whatever the length: without
//! pieces, the whole response to a peer that reads nothing would wait in memory, unnoticed by the
//! write limit.

use super::activity::{Handling, PROGRESS_BYTES_MIN, Pace};
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

pub struct Answer {
    body: Body,
    handling: Handling,
    is_http2: bool,
    /// The rest of a part that was too large to hand over at once.
    rest: Bytes,
    /// Bytes that were handed over.
    handed_over: usize,
    /// Set for an HTTP/2 response that is larger than one piece.
    pace: Option<Pace>,
}

impl Answer {
    pub fn new(body: Body, handling: Handling, is_http2: bool) -> Self {
        Self { body, handling, is_http2, rest: Bytes::new(), handed_over: 0, pace: None }
    }

    /// Returns a piece of some bytes, and keeps the rest for the next call.
    fn piece(&mut self, mut bytes: Bytes) -> Frame<Bytes> {
        if bytes.len() > PROGRESS_BYTES_MIN {
            self.rest = bytes.split_off(PROGRESS_BYTES_MIN);
        }
        self.handed_over += bytes.len();
        match &self.pace {
            Some(pace) => pace.handed_over(),
            None if self.handed_over >= PROGRESS_BYTES_MIN => {
                self.pace = Some(self.handling.pace())
            }
            None => {}
        }
        Frame::data(bytes)
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.is_http2 {
            return Pin::new(&mut self.body).poll_frame(context);
        }

        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            return Poll::Ready(Some(Ok(self.piece(rest))));
        }

        if let Some(pace) = &self.pace {
            pace.awaits_server();
        }
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            end => return Poll::Ready(end),
        };
        Poll::Ready(Some(Ok(match frame.into_data() {
            Ok(bytes) => self.piece(bytes),
            Err(trailers) => trailers,
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let of_body = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(of_body.lower() + rest);
        if let Some(upper) = of_body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

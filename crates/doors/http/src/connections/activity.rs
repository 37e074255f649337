//! What a connection is doing, for its time limits: it waits for a request, sends a response, or
//! works.
//!
//! The stream and the responses record their activity in a few atomic words. One timer per
//! connection checks them, at most once in the shortest of the limits. A request reads the clock
//! twice.

use super::limits::Limits;
use super::linger::Linger;
use parking_lot::Mutex;
use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A peer that takes at least this many bytes within the write limit makes progress.
pub const PROGRESS_BYTES_MIN: usize = 16 * 1024;
/// The moment that stands for none.
const NEVER: u64 = u64::MAX;
/// The preface of an HTTP/2 client (RFC 9113, 3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

raingauge_core::names! {
    /// The limit that a connection has reached.
    pub enum Expiry {
        Head = "head",
        Idle = "idle",
        Write = "write",
    }
}

/// The activity of one connection. Moments are milliseconds since it began.
pub struct Activity {
    began: Instant,
    /// Requests whose responses have not been handed over completely.
    in_flight: AtomicUsize,
    /// Since when the connection waits for the head of a request; `NEVER` between requests.
    head_since: AtomicU64,
    /// The last moment of a request or response.
    idle_since: AtomicU64,
    /// Since when the peer takes no bytes; `NEVER` while it does.
    blocked_since: AtomicU64,
    /// See [`Activity::is_body_unread`].
    is_body_unread: AtomicBool,
    /// Large HTTP/2 responses, each of which waits for the peer: when more of it was last
    /// requested.
    paces: Mutex<Vec<Weak<AtomicU64>>>,
}

impl Default for Activity {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            in_flight: AtomicUsize::new(0),
            head_since: AtomicU64::new(0),
            idle_since: AtomicU64::new(0),
            blocked_since: AtomicU64::new(NEVER),
            is_body_unread: AtomicBool::new(false),
            paces: Mutex::default(),
        }
    }
}

impl Activity {
    /// Records the arrival of a request, which is in flight until the response is dropped.
    pub fn begin(self: &Arc<Self>) -> Handling {
        self.in_flight.fetch_add(1, Relaxed);
        self.head_since.store(NEVER, Relaxed);
        self.is_body_unread.store(false, Relaxed);
        Handling(Arc::clone(self))
    }

    /// Records that a body was dropped before its end.
    pub fn leave_unread(&self) {
        self.is_body_unread.store(true, Relaxed);
    }

    /// Whether the newest request was answered before its body had arrived.
    pub fn is_body_unread(&self) -> bool {
        self.is_body_unread.load(Relaxed)
    }

    /// Waits until the connection has reached one of its limits.
    pub async fn expired(&self, limits: &Limits) -> Expiry {
        loop {
            let now = self.now();
            let wait = match self.deadline(limits) {
                Some((deadline, expiry)) if deadline <= now => return expiry,
                Some((deadline, _)) => Duration::from_millis(deadline - now),
                None => limits.shortest(),
            };
            // A limit that begins to run after this check cannot be reached before the next one.
            tokio::time::sleep(wait.min(limits.shortest())).await;
        }
    }

    /// Returns when the connection reaches which limit, if nothing changes.
    fn deadline(&self, limits: &Limits) -> Option<(u64, Expiry)> {
        let after = |since: u64, limit: Duration, expiry| {
            (since.saturating_add(limit.as_millis() as u64), expiry)
        };
        let blocked = self.blocked_since.load(Relaxed).min(self.slowest());
        if blocked != NEVER {
            return Some(after(blocked, limits.write, Expiry::Write));
        }

        if self.in_flight.load(Relaxed) > 0 {
            return None;
        }

        match self.head_since.load(Relaxed) {
            NEVER => Some(after(self.idle_since.load(Relaxed), limits.idle, Expiry::Idle)),
            since => Some(after(since, limits.head, Expiry::Head)),
        }
    }

    /// Returns since when the slowest of the large responses waits for the peer.
    fn slowest(&self) -> u64 {
        let mut paces = self.paces.lock();
        paces.retain(|pace| pace.strong_count() > 0);
        paces.iter().filter_map(Weak::upgrade).map(|pace| pace.load(Relaxed)).min().unwrap_or(NEVER)
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    fn unblock(&self) {
        self.blocked_since.store(NEVER, Relaxed);
        self.idle_since.store(self.now(), Relaxed);
    }
}

/// A request in flight.
pub struct Handling(Arc<Activity>);

impl Handling {
    /// Watches a large response.
    pub fn pace(&self) -> Pace {
        let since = Arc::new(AtomicU64::new(self.0.now()));
        self.0.paces.lock().push(Arc::downgrade(&since));
        Pace { activity: Arc::clone(&self.0), since }
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        self.0.idle_since.store(self.0.now(), Relaxed);
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

/// The progress of a large HTTP/2 response.
pub struct Pace {
    activity: Arc<Activity>,
    since: Arc<AtomicU64>,
}

impl Pace {
    /// A part was handed over; the peer decides when the next one is requested.
    pub fn handed_over(&self) {
        self.since.store(self.activity.now(), Relaxed);
    }

    /// The peer waits for the rest of the response.
    pub fn awaits_server(&self) {
        self.since.store(NEVER, Relaxed);
    }
}

/// The stream of a connection, which records its activity.
pub struct Watched<S> {
    stream: S,
    activity: Arc<Activity>,
    protocol: Protocol,
    /// Bytes that the peer has taken since it last took none.
    progress: usize,
    /// Set once the stream has sent everything.
    linger: Option<Linger>,
}

/// The protocol of a connection. HTTP/2 sends frames between requests too, so its bytes do not
/// begin a head.
enum Protocol {
    /// The number of bytes so far that match the preface of HTTP/2.
    Unknown(usize),
    Http1,
    Http2,
}

impl<S> Watched<S> {
    pub fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity, protocol: Protocol::Unknown(0), progress: 0, linger: None }
    }

    fn note_read(&mut self, bytes: &[u8]) {
        let activity = &self.activity;
        match self.protocol {
            Protocol::Http1 => {
                let begins_head = activity.in_flight.load(Relaxed) == 0
                    && activity.head_since.load(Relaxed) == NEVER
                    && !bytes.is_empty();
                if begins_head {
                    activity.head_since.store(activity.now(), Relaxed);
                }
            }
            Protocol::Http2 => {}
            Protocol::Unknown(known) => {
                let rest = &HTTP2_PREFACE[known..];
                let same = rest.iter().zip(bytes).take_while(|(a, b)| a == b).count();
                self.protocol = match same {
                    _ if same == rest.len() => {
                        activity.idle_since.store(activity.now(), Relaxed);
                        activity.head_since.store(NEVER, Relaxed);
                        Protocol::Http2
                    }
                    _ if same < bytes.len() => Protocol::Http1,
                    _ => Protocol::Unknown(known + same),
                };
            }
        }
    }

    fn note_written<T>(
        &mut self,
        written: Poll<Result<T>>,
        len: impl FnOnce(&T) -> usize,
    ) -> Poll<Result<T>> {
        let is_blocked = self.activity.blocked_since.load(Relaxed) != NEVER;
        match &written {
            Poll::Pending if !is_blocked => {
                self.progress = 0;
                self.activity.blocked_since.store(self.activity.now(), Relaxed);
            }
            Poll::Ready(Ok(done)) if is_blocked => {
                self.progress += len(done);
                if self.progress >= PROGRESS_BYTES_MIN {
                    self.activity.unblock();
                }
            }
            _ => {}
        }

        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            self.note_read(&buffer.filled()[before..]);
        }
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_written(written, |len| *len)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.note_written(written, |len| *len)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// When this has ended, the peer has no bytes left to take.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.note_written(flushed, |()| PROGRESS_BYTES_MIN)
    }

    /// A refused body is read on for a while: a connection that is closed with unread bytes is
    /// reset, and the peer may never see the response.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        if self.linger.is_none() {
            let shut = Pin::new(&mut self.stream).poll_shutdown(context);
            ready!(self.note_written(shut, |()| PROGRESS_BYTES_MIN))?;
            if !self.activity.is_body_unread() {
                return Poll::Ready(Ok(()));
            }
        }

        let Self { stream, linger, .. } = &mut *self;
        linger.get_or_insert_default().poll(stream, context).map(Ok)
    }
}

//! Reads the body of a request, within the limits of its route and the budget for bodies.

use super::problem::Problem;
use axum::body::HttpBody;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use futures_util::FutureExt as _;
use raingauge_app::App;
use raingauge_app::budget::{BodyShare, Class};
use raingauge_core::code::Code;
use raingauge_core::limits::{
    BUCKETS_BODY_BYTES_MAX, CONFIGURATION_BODY_BYTES_MAX, COUNTS_BODY_BYTES_MAX,
};
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Within each window an incomplete body must receive at least [`PACE_BYTES`].
const PACE_WINDOW: Duration = Duration::from_secs(5);
const PACE_BYTES: usize = 4 * 1_024;
/// The limits of one kind of route.
pub trait Kind {
    const CLASS: Class;
    /// Longest body; `server.body_bytes_max` may be less.
    const BYTES_MAX: usize;
    /// Whether the handler unpacks gzip.
    const TAKES_GZIP: bool = false;
}

/// `POST /v1/events`
pub struct Events;
/// `POST /v1/counts`
pub struct Counts;
/// `POST /v1/buckets`
pub struct Buckets;
/// Counters, previews, the cache policy, and documents of products.
pub struct Configuration;
/// Documents with events that they are tried on.
pub struct Trial;

impl Kind for Events {
    const CLASS: Class = Class::Events;
    const BYTES_MAX: usize = usize::MAX;
    const TAKES_GZIP: bool = true;
}

impl Kind for Counts {
    const CLASS: Class = Class::Counts;
    const BYTES_MAX: usize = COUNTS_BODY_BYTES_MAX;
}

impl Kind for Buckets {
    const CLASS: Class = Class::Buckets;
    const BYTES_MAX: usize = BUCKETS_BODY_BYTES_MAX;
}

impl Kind for Configuration {
    const CLASS: Class = Class::Configurations;
    const BYTES_MAX: usize = CONFIGURATION_BODY_BYTES_MAX;
}

impl Kind for Trial {
    const CLASS: Class = Class::Buckets;
    const BYTES_MAX: usize = BUCKETS_BODY_BYTES_MAX;
}

/// A whole body, and its share of the budget.
pub struct Body<K> {
    pub bytes: Bytes,
    pub share: BodyShare,
    kind: PhantomData<K>,
}

impl<K: Kind> FromRequest<Arc<App>> for Body<K> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let (head, mut body) = request.into_parts();
        if !K::TAKES_GZIP && !is_plain(&head.headers) {
            let detail = "this route takes bodies without content-encoding only";
            return Err(Problem::new(Code::EncodingUnknown, detail));
        }

        let bytes_max = K::BYTES_MAX.min(app.limits.body_bytes_max);
        let mut share = app.limits.bodies.of(K::CLASS).share();
        let read = read(&mut body, bytes_max, &mut share).await;
        if let Err(problem) = &read
            && matches!(problem.code(), Code::BodyTooLarge | Code::BodiesInFlight)
            && !head.headers.contains_key(header::EXPECT)
        {
            pass_over(&mut body, app.limits.body_bytes_max, &mut share).await;
        }

        Ok(Self { bytes: read?, share, kind: PhantomData })
    }
}

/// A body that is read as it comes. A part of it is in memory at a time.
pub struct Upload {
    body: axum::body::Body,
    pace: Pace,
}

impl Upload {
    /// Returns the next bytes; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        // The time that the handler took is not the caller's.
        if Instant::now() >= self.pace.window_end {
            self.pace = Pace::begin();
        }
        self.pace.next(&mut self.body).await
    }
}

impl FromRequest<Arc<App>> for Upload {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &Arc<App>) -> Result<Self, Problem> {
        Ok(Self { body: request.into_body(), pace: Pace::begin() })
    }
}

fn is_plain(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_ENCODING).is_none_or(|encoding| encoding == "identity")
}

/// Reads a body of at most `bytes_max` bytes to its end.
async fn read(
    body: &mut axum::body::Body,
    bytes_max: usize,
    share: &mut BodyShare,
) -> Result<Bytes, Problem> {
    let announced = body.size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large(bytes_max));
    }

    let mut pace = Pace::begin();

    // Most bodies arrive in one chunk, which is not copied.
    let Some(first) = pace.next(body).await? else {
        return Ok(Bytes::new());
    };
    check_len(first.len(), bytes_max)?;
    share.resize(first.len())?;

    let Some(second) = pace.next(body).await? else {
        return Ok(first);
    };

    let mut whole = Vec::with_capacity(announced.unwrap_or(first.len() + second.len()));
    whole.extend_from_slice(&first);
    drop(first);

    let mut next = Some(second);
    while let Some(chunk) = next {
        let len = whole.len() + chunk.len();
        check_len(len, bytes_max)?;
        share.resize(len)?;
        whole.extend_from_slice(&chunk);
        drop(chunk);
        next = pace.next(body).await?;
    }

    Ok(whole.into())
}

fn check_len(len: usize, bytes_max: usize) -> Result<(), Problem> {
    if len <= bytes_max { Ok(()) } else { Err(too_large(bytes_max)) }
}

/// The problem of a body that is longer than its route allows.
pub fn too_large(bytes_max: usize) -> Problem {
    let detail = format!(
        "the body has more than {bytes_max} bytes, the most that this route takes: send it in parts"
    );
    Problem::new(Code::BodyTooLarge, detail)
}

/// Reads and drops the rest of a body that is too large, or for which no memory is left: many
/// clients read the response only after they have sent everything. A body that announces more than
/// any route takes is not read.
async fn pass_over(body: &mut axum::body::Body, bytes_max: usize, share: &mut BodyShare) {
    let _ = share.resize(0);
    if body.size_hint().lower() > bytes_max as u64 {
        return;
    }
    let mut pace = Pace::begin();
    let mut passed = 0;
    while passed <= bytes_max {
        match pace.next(body).await {
            Ok(Some(chunk)) => passed += chunk.len(),
            Ok(None) | Err(_) => return,
        }
    }
}

/// Checks that a body keeps arriving: its first bytes hold memory that other requests wait for.
struct Pace {
    window_end: Instant,
    in_window: usize,
}

impl Pace {
    fn begin() -> Self {
        Self { window_end: Instant::now() + PACE_WINDOW, in_window: 0 }
    }

    /// Returns the next bytes; `None` at the end.
    async fn next(&mut self, body: &mut axum::body::Body) -> Result<Option<Bytes>, Problem> {
        loop {
            let mut frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context));

            // Bytes that have arrived already need no timer.
            let frame = match (&mut frame).now_or_never() {
                Some(frame) => frame,
                None => self.wait(frame).await?,
            };
            match frame.transpose().map_err(|_| broken_off())? {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(chunk) = frame.into_data() {
                        self.in_window += chunk.len();
                        return Ok(Some(chunk));
                    }
                }
            }
        }
    }

    async fn wait<T>(&mut self, mut frame: impl Future<Output = T> + Unpin) -> Result<T, Problem> {
        loop {
            if let Ok(frame) = timeout_at(self.window_end, &mut frame).await {
                return Ok(frame);
            }
            if std::mem::take(&mut self.in_window) < PACE_BYTES {
                let detail = format!(
                    "the body came too slowly: at least {PACE_BYTES} bytes are due in {PACE_WINDOW:?}"
                );
                return Err(Problem::new(Code::BodyTooSlow, detail));
            }
            self.window_end = Instant::now() + PACE_WINDOW;
        }
    }
}

fn broken_off() -> Problem {
    Problem::new(Code::RequestMalformed, "the body breaks off, or its chunks are malformed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream::{self, StreamExt as _};
    use raingauge_app::budget::BodyBudget;
    use std::convert::Infallible;

    const KIB: usize = 1_024;

    #[tokio::test]
    async fn room_is_taken_for_bytes_that_are_there() {
        let budget = BodyBudget::new(10 * KIB, 240 * KIB);
        let mut share = budget.share();
        let chunks = [vec![b'a'; 3 * KIB], vec![b'b'; KIB], vec![b'c'; 2 * KIB]];
        let whole = chunks.concat();
        let parts = stream::iter(chunks.map(|chunk| Ok::<_, Infallible>(Bytes::from(chunk))));
        let mut body = axum::body::Body::from_stream(parts);
        assert_eq!(read(&mut body, 6 * KIB, &mut share).await.unwrap(), whole);
        assert_eq!(budget.free()[0], 4 * KIB);
    }

    #[tokio::test]
    async fn a_body_without_an_announced_length_is_read_up_to_its_limit() {
        let budget = BodyBudget::new(10 * KIB, 240 * KIB);
        let endless = stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(&[7; KIB])));
        let mut body = axum::body::Body::from_stream(endless.take(1_000));
        let refused = read(&mut body, 4 * KIB, &mut budget.share()).await.unwrap_err();
        assert_eq!(refused.code(), Code::BodyTooLarge);
        assert_eq!(budget.free()[0], 10 * KIB);
    }
}

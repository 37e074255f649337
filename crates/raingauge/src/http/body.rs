//! Bodies: how many bytes of them may be in memory at once, and how one is read.
//!
//! Room is taken for bytes that are there, never for bytes that are announced, so that a caller who announces much and
//! sends little keeps nobody out. Each class of routes has room of its own, so that bodies of counts do not keep events
//! out, and within a class short bodies have room that long ones cannot fill.

use super::Door;
use super::problem::Problem;
use axum::body::HttpBody;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use futures_util::FutureExt as _;
use raingauge_core::code::Code;
use raingauge_core::limits::{
    BUCKETS_BODY_BYTES_MAX, CONFIGURATION_BODY_BYTES_MAX, COUNTS_BODY_BYTES_MAX,
};
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// Bodies of the largest size of their class that may be in memory at once, or many smaller ones of as many bytes.
const LARGEST_BODIES_MAX: usize = 4;
/// The same of configurations: parsed, one takes up to thirty times its bytes.
const LARGEST_CONFIGURATIONS_MAX: usize = 8;
/// Longest body that has the room of short ones.
const SHORT_MAX: usize = 64 * 1_024;
/// Room for short bodies: of events, of counts and of buckets, each; and of configurations.
const SHORT_ROOM: usize = 16 * 1_024 * 1_024;
const SHORT_CONFIGURATIONS_ROOM: usize = 1_024 * 1_024;
/// Room is counted in units of this many bytes.
const ROOM_UNIT: usize = 1_024;
/// What a caller is told to wait when there is no room for its body.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Within each window a body that is not there yet must bring at least [`PACE_BYTES`].
const PACE_WINDOW: Duration = Duration::from_secs(5);
const PACE_BYTES: usize = 4 * 1_024;
/// Longest body that is decoded on a worker that also answers counts; a longer one would keep them waiting.
const DECODED_AT_ONCE_MAX: usize = 256 * 1_024;

/// Routes that share room for their bodies.
#[derive(Clone, Copy, Debug)]
pub enum Class {
    Events,
    Counts,
    Buckets,
    Configurations,
}

/// Room for the bodies of all requests, by class.
pub struct Rooms {
    events: Room,
    counts: Room,
    buckets: Room,
    configurations: Room,
}

impl Rooms {
    pub fn new(body_bytes_max: usize) -> Self {
        let room = |bytes_max: usize| {
            Room::new(SHORT_ROOM, LARGEST_BODIES_MAX * bytes_max.min(body_bytes_max))
        };
        let configurations =
            LARGEST_CONFIGURATIONS_MAX * CONFIGURATION_BODY_BYTES_MAX.min(body_bytes_max);
        Self {
            events: room(body_bytes_max),
            counts: room(COUNTS_BODY_BYTES_MAX),
            buckets: room(BUCKETS_BODY_BYTES_MAX),
            configurations: Room::new(SHORT_CONFIGURATIONS_ROOM, configurations),
        }
    }

    pub fn of(&self, class: Class) -> &Room {
        match class {
            Class::Events => &self.events,
            Class::Counts => &self.counts,
            Class::Buckets => &self.buckets,
            Class::Configurations => &self.configurations,
        }
    }
}

/// Room for the bodies of one class.
#[derive(Clone)]
pub struct Room {
    short: Arc<Semaphore>,
    long: Arc<Semaphore>,
}

impl Room {
    fn new(short_bytes: usize, long_bytes: usize) -> Self {
        let room = |bytes: usize| Arc::new(Semaphore::new(bytes.div_ceil(ROOM_UNIT)));
        Self { short: room(short_bytes), long: room(long_bytes) }
    }

    /// A share of the room, of no bytes yet.
    pub fn share(&self) -> Share {
        Share { room: self.clone(), held: None }
    }
}

/// What one request holds of a room. It is given back when this goes out of scope.
pub struct Share {
    room: Room,
    held: Option<OwnedSemaphorePermit>,
}

impl Share {
    /// Makes this a share of so many bytes, more or fewer than before.
    pub fn resize(&mut self, bytes: usize) -> Result<(), Problem> {
        let units = bytes.div_ceil(ROOM_UNIT);
        let room = if bytes <= SHORT_MAX { &self.room.short } else { &self.room.long };
        let held = self.held.take().filter(|held| Arc::ptr_eq(held.semaphore(), room));
        self.held = Some(match held {
            Some(mut held) if units <= held.num_permits() => {
                let surplus = held.num_permits() - units;
                drop(held.split(surplus));
                held
            }
            Some(mut held) => {
                held.merge(acquired(room, units - held.num_permits())?);
                held
            }
            None => acquired(room, units)?,
        });
        Ok(())
    }
}

fn acquired(room: &Arc<Semaphore>, units: usize) -> Result<OwnedSemaphorePermit, Problem> {
    let units = u32::try_from(units).map_err(|_| no_room())?;
    Arc::clone(room).try_acquire_many_owned(units).map_err(|_| no_room())
}

pub fn no_room() -> Problem {
    let detail = "the bodies of other requests fill the memory that is set aside for them: try again in a moment";
    Problem::new(Code::BodiesInFlight, detail).retry_after(RETRY_AFTER)
}

/// What the routes of one kind take.
pub trait Kind {
    const CLASS: Class;
    /// Longest body; `server.body_bytes_max` may be less.
    const BYTES_MAX: usize;
    /// Whether the handler undoes gzip.
    const TAKES_GZIP: bool = false;
}

/// `POST /v1/events`
pub struct Events;
/// `POST /v1/counts`
pub struct Counts;
/// `POST /v1/buckets`
pub struct Buckets;
/// Counters, previews, the cache policy.
pub struct Configuration;

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

/// A whole body, and the room that it takes.
pub struct Body<K> {
    pub bytes: Bytes,
    pub share: Share,
    kind: PhantomData<K>,
}

impl<K: Kind> FromRequest<Arc<Door>> for Body<K> {
    type Rejection = Problem;

    async fn from_request(request: Request, door: &Arc<Door>) -> Result<Self, Problem> {
        let (head, mut body) = request.into_parts();
        if !K::TAKES_GZIP && !is_plain(&head.headers) {
            let detail = "this route takes bodies without content-encoding only";
            return Err(Problem::new(Code::EncodingUnknown, detail));
        }
        let bytes_max = K::BYTES_MAX.min(door.body_bytes_max);
        let mut share = door.rooms.of(K::CLASS).share();
        let read = read(&mut body, bytes_max, &mut share).await;
        if let Err(problem) = &read
            && matches!(problem.refusal.code, Code::BodyTooLarge | Code::BodiesInFlight)
            && !head.headers.contains_key(header::EXPECT)
        {
            pass_over(&mut body, door.body_bytes_max, &mut share).await;
        }
        Ok(Self { bytes: read?, share, kind: PhantomData })
    }
}

fn is_plain(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_ENCODING).is_none_or(|encoding| encoding == "identity")
}

/// Reads a body of at most so many bytes to its end.
async fn read(
    body: &mut axum::body::Body,
    bytes_max: usize,
    share: &mut Share,
) -> Result<Bytes, Problem> {
    let announced = body.size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large(bytes_max));
    }
    let mut pace = Pace::begin();
    // Most bodies come in one chunk, which is not copied.
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

/// A body that is longer than its route takes.
pub fn too_large(bytes_max: usize) -> Problem {
    let detail = format!(
        "the body has more than {bytes_max} bytes, the most that this route takes: send it in parts"
    );
    Problem::new(Code::BodyTooLarge, detail)
}

/// Reads what is left of a body that is too large, or for which there is no room, and keeps nothing of it: many clients look
/// for the answer only when they have sent everything. One that announces more than any route takes is not waited for.
async fn pass_over(body: &mut axum::body::Body, bytes_max: usize, share: &mut Share) {
    let _ = share.resize(0);
    if body.size_hint().lower() > bytes_max as u64 {
        return;
    }
    let (mut pace, mut passed) = (Pace::begin(), 0);
    while passed <= bytes_max {
        match pace.next(body).await {
            Ok(Some(chunk)) => passed += chunk.len(),
            Ok(None) | Err(_) => return,
        }
    }
}

/// Watches that a body keeps coming: what has come takes room that others wait for.
struct Pace {
    window_end: Instant,
    in_window: usize,
}

impl Pace {
    fn begin() -> Self {
        Self { window_end: Instant::now() + PACE_WINDOW, in_window: 0 }
    }

    /// The next bytes; `None` at the end.
    async fn next(&mut self, body: &mut axum::body::Body) -> Result<Option<Bytes>, Problem> {
        loop {
            let mut frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
            // What has arrived already needs no timer.
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

/// Decodes a body of so many bytes; a long one where it keeps no other request waiting.
pub fn decoded<T>(len: usize, decode: impl FnOnce() -> T) -> T {
    if len > DECODED_AT_ONCE_MAX { tokio::task::block_in_place(decode) } else { decode() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream::{self, StreamExt as _};
    use std::convert::Infallible;

    const LONG: usize = 80 * ROOM_UNIT;

    fn room() -> Room {
        Room::new(10 * ROOM_UNIT, 3 * LONG)
    }

    fn free(room: &Room) -> (usize, usize) {
        (room.short.available_permits() * ROOM_UNIT, room.long.available_permits() * ROOM_UNIT)
    }

    #[test]
    fn a_share_grows_and_shrinks_with_its_body() {
        let room = room();
        let (mut one, mut other) = (room.share(), room.share());
        one.resize(1).unwrap();
        assert_eq!(free(&room), (9 * ROOM_UNIT, 3 * LONG));
        one.resize(6 * ROOM_UNIT).unwrap();
        assert_eq!(other.resize(5 * ROOM_UNIT).unwrap_err().refusal.code, Code::BodiesInFlight);
        one.resize(2 * LONG).unwrap();
        other.resize(10 * ROOM_UNIT).unwrap();
        assert_eq!(free(&room), (0, LONG));
        assert_eq!(other.resize(2 * LONG).unwrap_err().refusal.code, Code::BodiesInFlight);
        one.resize(LONG).unwrap();
        other.resize(2 * LONG).unwrap();
        one.resize(0).unwrap();
        assert_eq!(free(&room), (10 * ROOM_UNIT, LONG));
        drop((one, other));
        assert_eq!(free(&room), (10 * ROOM_UNIT, 3 * LONG));
    }

    #[test]
    fn long_bodies_leave_the_room_of_short_ones() {
        let room = room();
        let (mut long, mut short) = (room.share(), room.share());
        long.resize(3 * LONG).unwrap();
        short.resize(10 * ROOM_UNIT).unwrap();
    }

    #[tokio::test]
    async fn room_is_taken_for_bytes_that_are_there() {
        let room = room();
        let mut share = room.share();
        let chunks = [vec![b'a'; 3 * ROOM_UNIT], vec![b'b'; ROOM_UNIT], vec![b'c'; 2 * ROOM_UNIT]];
        let whole = chunks.concat();
        let parts = stream::iter(chunks.map(|chunk| Ok::<_, Infallible>(Bytes::from(chunk))));
        let mut body = axum::body::Body::from_stream(parts);
        assert_eq!(read(&mut body, 6 * ROOM_UNIT, &mut share).await.unwrap(), whole);
        assert_eq!(free(&room).0, 4 * ROOM_UNIT);
    }

    #[tokio::test]
    async fn a_body_without_an_announced_length_is_read_up_to_its_limit() {
        let room = room();
        let endless =
            stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(&[7; ROOM_UNIT])));
        let mut body = axum::body::Body::from_stream(endless.take(1_000));
        let refused = read(&mut body, 4 * ROOM_UNIT, &mut room.share()).await.unwrap_err();
        assert_eq!(refused.refusal.code, Code::BodyTooLarge);
        assert_eq!(free(&room).0, 10 * ROOM_UNIT);
    }
}

//! What stands before every method: the token's scope, room for the message, the time a call may take, the metrics.

use super::status;
use crate::http::body::{Class, Room, Share, no_room};
use crate::http::problem::Problem;
use crate::http::{Deadline, Door, refuse_foreign, role_absent};
use crate::settings::Role;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::StreamExt;
use parking_lot::Mutex;
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_people::tokens::Tokens;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tonic::Status;

/// What one method asks of its callers.
pub struct Guard {
    tokens: Arc<Tokens>,
    scope: Scope,
    /// The role that the method needs, when this process does not have it.
    lacks: Option<Role>,
    room: Room,
    timeout: Duration,
    method: &'static str,
    seconds: metrics::Histogram,
    succeeded: metrics::Counter,
}

impl Guard {
    pub fn new(door: &Door, path: &'static str, scope: Scope) -> Self {
        let method = path.trim_start_matches('/');
        let labels = [("method", method), ("status", status::name(tonic::Code::Ok))];
        let (role, class) = match scope {
            Scope::EventsWrite => (Role::Writer, Class::Events),
            _ => (Role::Reader, Class::Counts),
        };
        Self {
            tokens: Arc::clone(&door.tokens),
            scope,
            lacks: Some(role).filter(|role| !door.services.has(*role)),
            room: door.rooms.of(class).clone(),
            timeout: door.request_timeout,
            method,
            seconds: metrics::histogram!("raingauge_grpc_request_seconds", "method" => method),
            succeeded: metrics::counter!("raingauge_grpc_requests_total", &labels),
        }
    }

    fn check(&self, request: &Request) -> Result<(), Problem> {
        if let Some(role) = self.lacks {
            return Err(role_absent(role));
        }
        let headers = request.headers();
        if !self.tokens.is_asked() {
            refuse_foreign(headers, request.uri()).map_err(|problem| *problem)?;
        }
        let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        self.tokens.check(header, self.scope).map(|_| ()).map_err(Problem::from)
    }

    /// Runs a call whose token is good, with room for its message.
    async fn run(&self, request: Request, next: Next) -> Result<Response, Status> {
        let (mut head, body) = request.into_parts();
        let room = Arc::new(MessageRoom::new(&self.room));
        head.extensions.insert(Arc::clone(&room));
        let taking = Arc::clone(&room);
        let chunks = body.into_data_stream().map(move |chunk| {
            let chunk = chunk?;
            taking.take(chunk.len()).map(|()| chunk)
        });
        let response = next.run(Request::from_parts(head, Body::from_stream(chunks))).await;
        if room.is_refused() {
            return Err(no_room().into());
        }
        match Status::from_header_map(response.headers()) {
            Some(refused) if !response.headers().contains_key(status::CODE) => {
                Err(explained(&refused).into())
            }
            _ => Ok(response),
        }
    }

    fn note(&self, began: Instant, response: &Response) {
        self.seconds.record(began.elapsed().as_secs_f64());
        // What went well says so behind its message, not before.
        match Status::from_header_map(response.headers())
            .map_or(tonic::Code::Ok, |status| status.code())
        {
            tonic::Code::Ok => self.succeeded.increment(1),
            code => {
                let labels = [("method", self.method), ("status", status::name(code))];
                metrics::counter!("raingauge_grpc_requests_total", &labels).increment(1);
            }
        }
    }
}

/// How long a call may take, and until when.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    deadline: Deadline,
    timeout: Duration,
}

impl Patience {
    /// Until when the call may wait for events to be counted, and still tell what became of them.
    pub fn for_counting(self) -> Instant {
        self.deadline.for_counting(self.timeout)
    }
}

/// Lets a call through to its method.
pub async fn pass(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let timeout =
        asked_timeout(request.headers()).map_or(guard.timeout, |asked| asked.min(guard.timeout));
    request.extensions_mut().insert(Patience { deadline: Deadline::after(timeout), timeout });
    let answer = match guard.check(&request) {
        Ok(()) => {
            tokio::time::timeout(timeout, guard.run(request, next)).await.unwrap_or_else(|_| {
                let detail = format!("the call took longer than {timeout:?}: ask for less at once");
                Err(Problem::new(Code::Timeout, detail).into())
            })
        }
        Err(problem) => Err(problem.into()),
    };
    let response = answer.unwrap_or_else(|status| status.into_http());
    guard.note(began, &response);
    response
}

/// Room for the message of one call, taken as it comes in.
pub struct MessageRoom(Mutex<Taken>);

struct Taken {
    share: Share,
    len: usize,
    is_refused: bool,
}

impl MessageRoom {
    fn new(room: &Room) -> Self {
        Self(Mutex::new(Taken { share: room.share(), len: 0, is_refused: false }))
    }

    fn take(&self, len: usize) -> Result<(), axum::Error> {
        let mut taken = self.0.lock();
        taken.len += len;
        let len = taken.len;
        taken.share.resize(len).map_err(|problem| {
            taken.is_refused = true;
            axum::Error::new(std::io::Error::other(problem.refusal.detail))
        })
    }

    fn is_refused(&self) -> bool {
        self.0.lock().is_refused
    }

    /// Gives the room back: nothing of the message is needed any more.
    pub fn release(&self) {
        // A share of nothing is never refused.
        let _ = self.0.lock().share.resize(0);
    }
}

/// What the framework refuses by itself, before a method sees it, has a code too.
fn explained(refused: &Status) -> Problem {
    match refused.code() {
        tonic::Code::OutOfRange => {
            let detail = "the message is longer than this method takes: send it in parts";
            Problem::new(Code::BodyTooLarge, detail)
        }
        tonic::Code::Unimplemented => {
            Problem::new(Code::EncodingUnknown, "messages are taken unpacked only")
        }
        _ => Problem::new(
            Code::RequestMalformed,
            format!("the message cannot be read: {}", refused.message()),
        ),
    }
}

/// The time that the caller gives the call: up to eight digits and a unit.
fn asked_timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3_600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_a_caller_gives_is_read() {
        let asked = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", text.parse().unwrap());
            asked_timeout(&headers)
        };
        assert_eq!(asked("99999999H"), Some(Duration::from_secs(99_999_999 * 3_600)));
        assert_eq!([asked("2M"), asked("120S")], [Some(Duration::from_secs(120)); 2]);
        assert_eq!(
            [asked("7m"), asked("7000u"), asked("7000000n")],
            [Some(Duration::from_millis(7)); 3]
        );
        for wrong in ["", "S", "5", "5s", "-5S", "123456789S", "5 S"] {
            assert_eq!(asked(wrong), None, "{wrong}");
        }
        assert_eq!(asked_timeout(&HeaderMap::new()), None);
    }
}

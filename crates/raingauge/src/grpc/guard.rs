//! What stands before every method: the token's scope, room for the message, the time a call may take, the metrics.

use super::status;
use crate::auth::{Scope, Tokens};
use crate::http::problem::Problem;
use crate::http::{Door, Room, role_absent};
use crate::settings::Role;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::{StreamExt, stream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tonic::{Code, Status};

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
        let labels = [("method", method), ("status", status::name(Code::Ok))];
        let role = if scope == Scope::EventsWrite { Role::Writer } else { Role::Reader };
        Self {
            tokens: Arc::clone(&door.tokens),
            scope,
            lacks: Some(role).filter(|role| !door.services.has(*role)),
            room: door.room.clone(),
            timeout: door.request_timeout,
            method,
            seconds: metrics::histogram!("raingauge_grpc_request_seconds", "method" => method),
            succeeded: metrics::counter!("raingauge_grpc_requests_total", &labels),
        }
    }

    fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        if let Some(role) = self.lacks {
            return Err(role_absent(role));
        }
        let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        self.tokens.check(header, self.scope).map(|_| ()).map_err(Problem::from)
    }

    /// Runs a call whose token is good, with room for its message.
    async fn run(&self, request: Request, next: Next) -> Result<Response, Status> {
        let (head, body) = request.into_parts();
        let mut chunks = body.into_data_stream();
        let first = chunks.next().await;
        let _room = match &first {
            Some(Ok(chunk)) => Some(self.room.take_bytes(announced_len(chunk))?),
            _ => None,
        };
        let body = Body::from_stream(stream::iter(first).chain(chunks));
        let response = next.run(Request::from_parts(head, body)).await;
        match Status::from_header_map(response.headers()) {
            Some(refused) if !response.headers().contains_key(status::CODE) => Err(explained(&refused).into()),
            _ => Ok(response),
        }
    }

    fn note(&self, began: Instant, response: &Response) {
        self.seconds.record(began.elapsed().as_secs_f64());
        // What went well says so behind its message, not before.
        match Status::from_header_map(response.headers()).map_or(Code::Ok, |status| status.code()) {
            Code::Ok => self.succeeded.increment(1),
            code => {
                let labels = [("method", self.method), ("status", status::name(code))];
                metrics::counter!("raingauge_grpc_requests_total", &labels).increment(1);
            }
        }
    }
}

/// Lets a call through to its method.
pub async fn pass(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let timeout = asked_timeout(request.headers()).map_or(guard.timeout, |asked| asked.min(guard.timeout));
    let answer = match guard.check(request.headers()) {
        Ok(()) => tokio::time::timeout(timeout, guard.run(request, next)).await.unwrap_or_else(|_| {
            let detail = format!("the call took longer than {timeout:?}: ask for less at once");
            Err(Problem::new(StatusCode::GATEWAY_TIMEOUT, "timeout", detail).into())
        }),
        Err(problem) => Err(problem.into()),
    };
    let response = answer.unwrap_or_else(|status| status.into_http());
    guard.note(began, &response);
    response
}

/// The length that a message announces in the five bytes before it: whether it is packed, and how long it is. Who sends
/// fewer bytes at once takes room for the largest message.
fn announced_len(chunk: &Bytes) -> usize {
    match chunk[..] {
        [_, a, b, c, d, ..] => u32::from_be_bytes([a, b, c, d]) as usize,
        _ => usize::MAX,
    }
}

/// What the framework refuses by itself, before a method sees it, has a code too.
fn explained(refused: &Status) -> Problem {
    match refused.code() {
        Code::OutOfRange => {
            let detail = "the message is longer than this method takes: send it in parts";
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
        }
        Code::Unimplemented => {
            Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoding_unknown", "messages are taken unpacked only")
        }
        _ => Problem::bad_request("request_malformed", format!("the message cannot be read: {}", refused.message())),
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
        assert_eq!([asked("7m"), asked("7000u"), asked("7000000n")], [Some(Duration::from_millis(7)); 3]);
        for wrong in ["", "S", "5", "5s", "-5S", "123456789S", "5 S"] {
            assert_eq!(asked(wrong), None, "{wrong}");
        }
        assert_eq!(asked_timeout(&HeaderMap::new()), None);
    }

    #[test]
    fn room_is_taken_for_what_a_message_announces() {
        assert_eq!(announced_len(&Bytes::from_static(&[0, 0, 1, 0, 2, 9, 9])), 65_538);
        assert_eq!(announced_len(&Bytes::from_static(&[0, 0, 1, 0])), usize::MAX);
    }
}

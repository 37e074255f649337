//! What stands before every method: who may call it, memory for the message, the time a call may
//! take, the metrics.

use crate::status::{self, refused};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::StreamExt;
use parking_lot::Mutex;
use raingauge_app::budget::{BodyBudget, BodyShare, Class, exhausted};
use raingauge_app::{Access, App, Deadline, Problem, Role};
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tonic::Status;

/// What one method asks of its callers, and what a call may take.
pub struct Guard {
    access: Access,
    budget: BodyBudget,
    timeout: Duration,
    method: &'static str,
    seconds: metrics::Histogram,
    succeeded: metrics::Counter,
}

impl Guard {
    pub fn new(app: &App, path: &'static str, scope: Scope, role: Role, class: Class) -> Self {
        let method = path.trim_start_matches('/');
        let labels = [("method", method), ("status", status::name(tonic::Code::Ok))];
        Self {
            access: Access::new(app, Some(scope), Some(role)),
            budget: app.limits.bodies.of(class).clone(),
            timeout: app.limits.request_timeout,
            method,
            seconds: metrics::histogram!("raingauge_grpc_request_seconds", "method" => method),
            succeeded: metrics::counter!("raingauge_grpc_requests_total", &labels),
        }
    }

    /// Runs a call that may pass, with memory for its message.
    async fn run(&self, request: Request, next: Next) -> Result<Response, Status> {
        let (mut head, body) = request.into_parts();
        let share = Arc::new(MessageShare::new(&self.budget));
        head.extensions.insert(Arc::clone(&share));

        let taking = Arc::clone(&share);
        let chunks = body.into_data_stream().map(move |chunk| {
            let chunk = chunk?;
            taking.take(chunk.len()).map(|()| chunk)
        });
        let response = next.run(Request::from_parts(head, Body::from_stream(chunks))).await;

        if share.is_refused() {
            return Err(refused(exhausted()));
        }

        match Status::from_header_map(response.headers()) {
            Some(status) if !response.headers().contains_key(status::CODE) => {
                Err(refused(explained(&status)))
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

/// Lets a call through to its method.
pub async fn pass(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let timeout =
        asked_timeout(request.headers()).map_or(guard.timeout, |asked| asked.min(guard.timeout));
    request.extensions_mut().insert(Deadline::after(timeout));

    let answer = match guard.access.check(request.headers(), request.uri()) {
        Ok(who) => {
            if let Some(who) = who {
                request.extensions_mut().insert(who);
            }
            tokio::time::timeout(timeout, guard.run(request, next)).await.unwrap_or_else(|_| {
                let detail = format!("the call took longer than {timeout:?}: ask for less at once");
                Err(refused(Problem::new(Code::Timeout, detail)))
            })
        }
        Err(problem) => Err(refused(*problem)),
    };

    let response = answer.unwrap_or_else(|status| status.into_http());
    guard.note(began, &response);
    response
}

/// Memory for the message of one call, taken as it comes in.
pub struct MessageShare(Mutex<Taken>);

struct Taken {
    share: BodyShare,
    len: usize,
    is_refused: bool,
}

impl MessageShare {
    fn new(budget: &BodyBudget) -> Self {
        Self(Mutex::new(Taken { share: budget.share(), len: 0, is_refused: false }))
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

    /// Gives the memory back: nothing of the message is needed any more.
    pub fn release(&self) {
        // A share of nothing is never refused.
        let _ = self.0.lock().share.resize(0);
    }
}

/// What the framework refuses by itself, before a method sees it, has a code too.
fn explained(status: &Status) -> Problem {
    match status.code() {
        tonic::Code::OutOfRange => {
            let detail = "the message is longer than this method takes: send it in parts";
            Problem::new(Code::BodyTooLarge, detail)
        }
        tonic::Code::Unimplemented => {
            Problem::new(Code::EncodingUnknown, "messages are taken unpacked only")
        }
        _ => Problem::new(
            Code::RequestMalformed,
            format!("the message cannot be read: {}", status.message()),
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

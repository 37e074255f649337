//! What stands before every handler: the token's scope, room for the body, the time a request may take, the metrics.

use super::Door;
use super::audit::Asked;
use super::problem::Problem;
use crate::auth::{Denied, Scope, Tokens, Who};
use crate::settings::Role;
use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bodies of the largest size that may be in memory at once, or many smaller ones of as many bytes together.
const LARGEST_BODIES_MAX: usize = 4;
/// Room for bodies is counted in units of so many bytes.
const ROOM_UNIT: usize = 1_024;

/// Room for the bodies of all requests together.
#[derive(Clone)]
pub struct Room {
    units: Arc<Semaphore>,
    body_bytes_max: usize,
}

impl Room {
    pub fn new(body_bytes_max: usize) -> Self {
        let units = Arc::new(Semaphore::new(LARGEST_BODIES_MAX * (body_bytes_max / ROOM_UNIT + 1)));
        Self { units, body_bytes_max }
    }

    /// Takes room for the body of a request, which says how long it is, or may be as long as any.
    fn take(&self, request: &Request) -> Result<Option<OwnedSemaphorePermit>, Box<Problem>> {
        // A packed body may grow to the largest size when it is unpacked.
        let is_packed = request.headers().contains_key(header::CONTENT_ENCODING);
        let upper = request.body().size_hint().upper().filter(|upper| *upper == 0 || !is_packed);
        let bytes = upper.map_or(self.body_bytes_max, |upper| upper.min(self.body_bytes_max as u64) as usize);
        if bytes == 0 { Ok(None) } else { self.take_bytes(bytes).map(Some) }
    }

    /// Takes room for so many bytes, or for the largest body.
    pub fn take_bytes(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Box<Problem>> {
        let units = (bytes.min(self.body_bytes_max) / ROOM_UNIT + 1) as u32;
        Arc::clone(&self.units).try_acquire_many_owned(units).map_err(|_| {
            let detail =
                "the bodies of other requests fill the memory that is set aside for them: try again in a moment";
            Box::new(Problem::new(StatusCode::TOO_MANY_REQUESTS, "bodies_in_flight", detail).retry_after(RETRY_AFTER))
        })
    }
}

/// What a caller is told to wait when there is no room for its body.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What one route asks of its callers.
pub struct Guard {
    door: Arc<Door>,
    tokens: Arc<Tokens>,
    scope: Option<Scope>,
    /// The role that the route needs, when this process does not have it.
    lacks: Option<Role>,
    room: Room,
    timeout: Duration,
    path: &'static str,
    seconds: metrics::Histogram,
    succeeded: metrics::Counter,
}

impl Guard {
    pub fn new(door: &Arc<Door>, path: &'static str, scope: Option<Scope>) -> Self {
        Self {
            door: Arc::clone(door),
            tokens: Arc::clone(&door.tokens),
            scope,
            lacks: role_of(path).filter(|role| !door.services.has(*role)),
            room: door.room.clone(),
            timeout: door.request_timeout,
            path,
            seconds: metrics::histogram!("raingauge_http_request_seconds", "route" => path),
            succeeded: metrics::counter!("raingauge_http_requests_total", "route" => path, "status" => "200"),
        }
    }

    fn check(&self, request: &Request) -> Result<Option<Who>, Box<Problem>> {
        if let Some(role) = self.lacks {
            return Err(Box::new(role_absent(role)));
        }
        let Some(scope) = self.scope else { return Ok(None) };
        let header = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        self.tokens.check(header, scope).map(Some).map_err(|denied| Box::new(denied.into()))
    }

    fn note(&self, began: Instant, status: StatusCode) {
        self.seconds.record(began.elapsed().as_secs_f64());
        if status == StatusCode::OK {
            self.succeeded.increment(1);
        } else {
            let labels = [("route", self.path.to_owned()), ("status", status.as_u16().to_string())];
            metrics::counter!("raingauge_http_requests_total", &labels).increment(1);
        }
    }
}

/// The answer of a process that lacks the role for what it is asked.
pub fn role_absent(role: Role) -> Problem {
    let detail = format!("this instance does not have the role {0}: ask one that runs with --role {0}", role.name());
    Problem::new(StatusCode::NOT_FOUND, "role_absent", detail)
}

/// The role that answers a route; none when every process does.
fn role_of(path: &str) -> Option<Role> {
    let begins = |starts: &[&str]| starts.iter().any(|start| path.starts_with(start));
    match path {
        _ if begins(&["/v1/events", "/v1/buckets"]) => Some(Role::Writer),
        _ if begins(&["/v1/counts", "/v1/series"]) => Some(Role::Reader),
        _ if begins(&["/v1/"]) => Some(Role::Portal),
        _ => None,
    }
}

/// Lets a request through to its handler, and says who asks.
pub async fn pass(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let admitted = guard.check(&request).and_then(|who| Ok((who, guard.room.take(&request)?)));
    let response = match admitted {
        Err(problem) => unread(&request, problem.into_response()),
        Ok((who, _room)) => {
            let asked = Asked::of(&guard.door, guard.path, &request);
            if let Some(who) = who.clone() {
                request.extensions_mut().insert(who);
            }
            match who.zip(asked) {
                Some((who, asked)) => guard.change(request, next, asked, who).await,
                None => guard.answer(request, next).await,
            }
        }
    };
    guard.note(began, response.status());
    response
}

impl Guard {
    async fn answer(&self, request: Request, next: Next) -> Response {
        match tokio::time::timeout(self.timeout, next.run(request)).await {
            Ok(response) => explained(response, self.room.body_bytes_max),
            Err(_) => {
                let detail = format!("the request took longer than {} s: ask for less at once", self.timeout.as_secs());
                Problem::new(StatusCode::GATEWAY_TIMEOUT, "timeout", detail).into_response()
            }
        }
    }

    /// A change goes on to its end, with its line in the audit log, also when whoever asked for it hangs up.
    async fn change(self: &Arc<Self>, request: Request, next: Next, asked: Asked, who: Who) -> Response {
        let guard = Arc::clone(self);
        let changing = tokio::spawn(async move {
            let response = guard.answer(request, next).await;
            let entry = asked.answered(&response);
            guard.door.audit.deed(entry.actor(&who), entry.deed.clone(), &entry.outcome).await;
            response
        });
        changing.await.unwrap_or_else(|_| {
            let detail = "the change broke off: read what became of it before you repeat it";
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", detail).into_response()
        })
    }
}

/// A connection whose request was not read to its end is closed. Whoever sent it is told, and sends nothing more over it.
fn unread(request: &Request, mut response: Response) -> Response {
    if request.version() <= Version::HTTP_11 && !request.body().is_end_stream() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// What the framework refuses by itself, before a handler sees it, is told as a problem document too.
fn explained(response: Response, body_bytes_max: usize) -> Response {
    let status = response.status();
    let is_plain =
        response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/"));
    if !status.is_client_error() || !is_plain {
        return response;
    }
    if status == StatusCode::PAYLOAD_TOO_LARGE {
        let detail = format!("the body has more than {body_bytes_max} bytes: send it in parts");
        return Problem::new(status, "body_too_large", detail).into_response();
    }
    let detail = "the path, the query or the body could not be read: the id of a counter is a whole number, \
                  and all three are UTF-8";
    Problem::new(status, "request_malformed", detail).into_response()
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Missing => Self::new(
                StatusCode::UNAUTHORIZED,
                "token_missing",
                "send a token: Authorization: Bearer rg_…; `raingauge token` makes one",
            ),
            Denied::Unknown => {
                Self::new(StatusCode::UNAUTHORIZED, "token_unknown", "this token is not one of the configured ones")
            }
            Denied::Scope(scope) => Self::new(
                StatusCode::FORBIDDEN,
                "scope_missing",
                format!("this token lacks the scope {}", scope.name()),
            ),
        }
    }
}

//! The checks before every handler: the token's scope, the media type, the request's deadline, and
//! the metrics.

use super::Route;
use super::audit::PendingAudit;
use super::headers::protect;
use super::problem::Problem;
use axum::body::HttpBody;
use axum::extract::Request;
use axum::handler::Handler;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Version, header};
use axum::response::{IntoResponse, Response};
use raingauge_app::{self as app, Access, App, Deadline};
use raingauge_core::code::Code;
use raingauge_core::decode::media_type;
use raingauge_core::limits::REASON_LEN_MAX;
use raingauge_people::Principal;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The route of events, which have media types of their own, and whose handler minds its deadline.
const EVENTS: &str = "/v1/events";
/// Longest time of an upload, which has to keep coming.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(3_600);
/// The media type that curl sends by default.
const FORM: &str = "application/x-www-form-urlencoded";

/// What one route requires of its callers.
pub struct Guard {
    app: Arc<App>,
    access: Access,
    timeout: Duration,
    path: &'static str,
    /// Whether the handler checks the media type of its bodies itself.
    has_own_media: bool,
    /// The audit log's verb; `None` for routes that change no definitions.
    verb: Option<&'static str>,
    seconds: metrics::Histogram,
    succeeded: metrics::Counter,
}

impl Guard {
    pub fn new(app: &Arc<App>, route: &Route) -> Self {
        let Route { path, scope, role, verb, is_upload, .. } = *route;
        let request_timeout = app.limits.request_timeout;
        let timeout = if is_upload { UPLOAD_TIMEOUT } else { request_timeout };
        Self {
            app: Arc::clone(app),
            access: Access::new(app, scope, role),
            timeout,
            path,
            has_own_media: is_upload || path == EVENTS,
            verb,
            seconds: metrics::histogram!("raingauge_http_request_seconds", "route" => path),
            succeeded: metrics::counter!("raingauge_http_requests_total", "route" => path, "status" => "200"),
        }
    }

    fn check(&self, request: &Request) -> Result<Option<Principal>, Box<app::Problem>> {
        let who = self.access.check(request.headers(), request.uri())?;
        if who.is_some() {
            self.check_media_type(request)?;
            check_reason(request.headers())?;
        }
        Ok(who)
    }

    /// Refuses a body whose media type is not JSON. Browsers send three other media types across
    /// sites without a preflight, so a change without a token must declare JSON; elsewhere curl's
    /// default type is accepted as JSON. Events and uploads have media types of their own, which
    /// their routes check.
    fn check_media_type(&self, request: &Request) -> Result<(), Box<app::Problem>> {
        if self.has_own_media || request.body().is_end_stream() {
            return Ok(());
        }
        let Some(kind) = request.headers().get(header::CONTENT_TYPE) else {
            return Ok(());
        };
        let kind = media_type(kind.to_str().unwrap_or("?"));
        let is_json = kind.is_empty() || kind.ends_with("json");
        let is_lenient = self.access.asks_for_tokens() || self.verb.is_none();
        if is_json || (is_lenient && kind == FORM) {
            return Ok(());
        }

        let detail = "the body must be JSON: send it with content-type: application/json";
        Err(Box::new(app::Problem::new(Code::MediaTypeUnknown, detail)))
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

/// Refuses a reason that is too long for each version and each entry of the audit log.
fn check_reason(headers: &HeaderMap) -> Result<(), Box<app::Problem>> {
    let len = headers.get("x-reason").map_or(0, HeaderValue::len);
    if len <= REASON_LEN_MAX {
        return Ok(());
    }
    let detail = format!("x-reason has {len} bytes; at most {REASON_LEN_MAX} are kept");
    Err(Box::new(app::Problem::new(Code::ReasonTooLong, detail)))
}

/// A handler behind its guard. It is a handler rather than a layer of the router, because layers
/// pass requests on in boxes.
#[derive(Clone)]
pub struct Guarded<H> {
    pub guard: Arc<Guard>,
    pub handler: H,
}

impl<T, H: Handler<T, Arc<App>>> Handler<T, Arc<App>> for Guarded<H> {
    type Future = Pin<Box<dyn Future<Output = Response> + Send>>;

    fn call(self, request: Request, app: Arc<App>) -> Self::Future {
        let Self { guard, handler } = self;
        Box::pin(async move { guard.pass(request, |request| handler.call(request, app)).await })
    }
}

impl Guard {
    /// Passes a request to its handler, with its principal.
    async fn pass<F: Future<Output = Response> + Send + 'static>(
        self: &Arc<Self>,
        mut request: Request,
        handle: impl FnOnce(Request) -> F + Send + 'static,
    ) -> Response {
        let began = Instant::now();
        let mut response = match self.check(&request) {
            Err(problem) => unread(&request, Problem(*problem).into_response()),
            Ok(who) => {
                let pending = self.verb.map(|verb| PendingAudit::new(&self.app, verb, &request));
                if let Some(who) = who.clone() {
                    request.extensions_mut().insert(who);
                }

                match who.zip(pending) {
                    Some((who, pending)) => self.change(request, handle, pending, who).await,
                    None => self.answer(request, handle).await,
                }
            }
        };

        self.note(began, response.status());
        protect(response.headers_mut());
        response
    }

    async fn answer<F: Future<Output = Response>>(
        &self,
        mut request: Request,
        handle: impl FnOnce(Request) -> F,
    ) -> Response {
        let deadline = Deadline::after(self.timeout);
        if self.path == EVENTS {
            request.extensions_mut().insert(deadline);
        }

        match tokio::time::timeout_at(deadline.at, handle(request)).await {
            Ok(response) => explained(response),
            Err(_) => {
                let detail = format!(
                    "the request took longer than {} s: ask for less at once",
                    self.timeout.as_secs()
                );
                Problem::new(Code::Timeout, detail).into_response()
            }
        }
    }

    /// Runs a change to its end, with its audit entry, even when the caller disconnects.
    async fn change<F: Future<Output = Response> + Send + 'static>(
        self: &Arc<Self>,
        request: Request,
        handle: impl FnOnce(Request) -> F + Send + 'static,
        pending: PendingAudit,
        who: Principal,
    ) -> Response {
        let guard = Arc::clone(self);
        let changing = tokio::spawn(async move {
            let response = guard.answer(request, handle).await;
            pending.answered(&response).write(&guard.app.people.audit, &who.recorded_name()).await;
            response
        });
        changing.await.unwrap_or_else(|_| {
            let detail = "the change broke off: read what became of it before you repeat it";
            Problem::new(Code::Failed, detail).into_response()
        })
    }
}

/// Closes a connection whose request was not read to its end. The response says so, and the client
/// sends nothing more over it.
fn unread(request: &Request, mut response: Response) -> Response {
    if request.version() <= Version::HTTP_11 && !request.body().is_end_stream() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Turns refusals of the framework, which no handler sees, into problem documents.
fn explained(response: Response) -> Response {
    let is_plain = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/"));
    if !response.status().is_client_error() || !is_plain {
        return response;
    }
    let detail = "the path or the query could not be read: the id of a counter is a whole number, and both are UTF-8";
    Problem::new(Code::RequestMalformed, detail).into_response()
}

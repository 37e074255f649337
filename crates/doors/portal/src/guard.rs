//! The middleware around every page. Before the page: authentication, roles, and whether a form
//! comes from one of the portal's own pages. After it: the audit log and the protective headers.

pub mod origin;

use crate::cookies;
use crate::fault::Fault;
use crate::fields::Fields;
use crate::routes::Needs;
use crate::{CONTENT_SECURITY_POLICY, Portal};
use axum::body::to_bytes;
use axum::extract::{Extension, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use raingauge_app::origin::remote;
use raingauge_app::origin_of;
use raingauge_core::access::Role;
use raingauge_people::Principal;
use raingauge_people::audit::AuditAction;
use raingauge_people::secrets::masked;
use std::sync::Arc;
use std::time::Duration;

/// Largest form, in bytes.
pub const FORM_BYTES_MAX: usize = 256 * 1024;

/// The requirements of one route.
#[derive(Clone)]
pub struct Guard {
    pub portal: Portal,
    pub needs: Needs,
    /// The path of the route, with its parameter names.
    pub path: &'static str,
    /// The verb in the audit log, if the route writes an entry.
    pub verb: Option<&'static str>,
}

/// How long after signing in a person may grant rights. A browser that was left open cannot grant
/// any.
pub const FRESH_S: i64 = 900;

/// Passes a request to its page. A change runs to its end and is written to the audit log even if
/// the client disconnects.
pub async fn pass(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    if request.method() == Method::POST {
        tokio::spawn(async move { guard.answer(request, next).await }).await.unwrap_or_else(|_| {
            let advice = "Check whether the change was made before you repeat it. The log of \
                          raingauge has the details.";
            Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "An internal error occurred", advice)
                .page(&[], "", None)
        })
    } else {
        guard.answer(request, next).await
    }
}

/// The page for a request that exceeded its time limit. The connection is closed, because the rest
/// of a form may never arrive.
pub fn too_slow(portal: &Portal, limit: Duration) -> Response {
    let advice =
        format!("It took longer than {} s. Choose a shorter range, or try again.", limit.as_secs());
    let mut response = Fault::new(StatusCode::GATEWAY_TIMEOUT, "The request timed out", advice)
        .page(&[], "", None);
    protect(response.headers_mut(), portal.accounts.options.is_https());
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

impl Guard {
    async fn answer(&self, request: Request, next: Next) -> Response {
        let options = &self.portal.accounts.options;
        let (mut head, body) = request.into_parts();
        let origin = origin_of(&head.extensions, &head.headers, options);
        head.extensions.insert(origin.clone());

        let path = head.uri.path().to_owned();
        let (person, admitted) = match self.person(&head).await {
            Ok(person) => {
                let shown = person.as_ref().map(with_masked_token);
                let request = Request::from_parts(head, body);
                (shown.clone(), self.admit(person, shown, request).await)
            }
            Err(fault) => (None, Err(Box::new(fault.into_response()))),
        };

        let response = match admitted {
            Ok(request) => next.run(request).await,
            Err(refused) => *refused,
        };
        if let Some(verb) = self.verb
            && let Some(person) = &person
            && let Some((action, outcome)) = action(verb, &path, &response)
        {
            self.portal.accounts.audit.note(&person.name, &origin, action, &outcome).await;
        }

        let fault = response.extensions().get::<Fault>().cloned();
        let mut response =
            fault.map_or(response, |fault| fault.page(&self.portal.links, &path, person.as_ref()));
        protect(response.headers_mut(), options.is_https());

        response
    }

    /// The person who sent the request; `None` if they have not signed in.
    async fn person(&self, head: &Parts) -> Result<Option<Principal>, Fault> {
        let accounts = &self.portal.accounts;
        if accounts.options.sign_in {
            let secret = cookies::session_in(&head.headers, accounts.options.is_https());
            return match secret {
                Some(secret) => Ok(accounts.principal(secret).await?),
                None => Ok(None),
            };
        }

        // Clients behind a proxy, and pages under a name that was pointed at this host, do not
        // become administrators.
        if let Some(reason) = remote(&head.headers, &head.uri) {
            let advice = format!(
                "Nobody needs to sign in here, so this portal answers requests of its own machine \
                 only, and {reason}. Use http://localhost or http://127.0.0.1 with the port, \
                 without a proxy."
            );
            let title = "This portal answers its own machine only";
            return Err(Fault::new(StatusCode::FORBIDDEN, title, advice));
        }

        let csrf = Arc::clone(&self.portal.open_secret);
        Ok(Some(Principal::anonymous(Some(csrf))))
    }

    /// Checks the rights of a person and the form that they sent. `shown` is the person as the page
    /// gets them.
    async fn admit(
        &self,
        person: Option<Principal>,
        shown: Option<Principal>,
        request: Request,
    ) -> Result<Request, Box<Response>> {
        if let Some(role) = self.needs.role() {
            let Some(person) = &person else {
                return Err(Box::new(send_to_sign_in(&request)));
            };
            if !person.may(role) {
                return Err(Box::new(self.lacks(person, role).await.into_response()));
            }

            if matches!(self.needs, Needs::FreshRole(_)) && self.is_long_ago(person) {
                return Err(Box::new(sign_in_again(self.path)));
            }
        }

        let changes = request.method() == Method::POST;
        let (mut head, body) = request.into_parts();
        let body = if changes {
            let Ok(bytes) = to_bytes(body, FORM_BYTES_MAX).await else {
                let advice =
                    format!("A form has at most {FORM_BYTES_MAX} bytes. Send less at once.");
                return Err(refuse(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "The form is too large",
                    &advice,
                ));
            };

            let fields = Fields::parse(&bytes);
            if !origin::is_own(&head, &fields, person.as_ref(), &self.portal.accounts.options) {
                let advice = "It was not sent by a page of this portal, or the page was loaded \
                              before you signed in. Go back, load the page again, and repeat it.";
                return Err(refuse(StatusCode::FORBIDDEN, "The form was not accepted", advice));
            }

            head.extensions.insert(fields);
            bytes.into()
        } else {
            body
        };

        if let Some(shown) = shown {
            head.extensions.insert(shown);
        }
        Ok(Request::from_parts(head, body))
    }

    fn is_long_ago(&self, person: &Principal) -> bool {
        let now_s = self.portal.clock.now_s();
        person.session().is_some_and(|session| now_s - session.since_s > FRESH_S)
    }

    /// Says which role is missing, and who can grant it.
    async fn lacks(&self, person: &Principal, role: Role) -> Fault {
        let users = self.portal.accounts.users().await.unwrap_or_default();
        let admins: Vec<&str> = users
            .iter()
            .filter(|user| user.role == Role::Admin && user.may_sign_in())
            .map(|user| user.name.as_str())
            .take(5)
            .collect();

        let whom =
            if admins.is_empty() { "an administrator".to_owned() } else { admins.join(", ") };
        let own = person.role().map_or_else(String::new, |own| {
            let article = if own == Role::Viewer { "a" } else { "an" };
            format!(", and you are {article} {own}")
        });
        let advice = format!("It needs the role {role}{own}. Ask {whom} to grant it.");

        Fault::new(StatusCode::FORBIDDEN, "You may not do this", advice)
    }
}

/// The person as a page gets them: their token is masked, for this page alone.
fn with_masked_token(person: &Principal) -> Principal {
    let csrf = person.csrf.as_deref().map(|token| masked(token).into());
    Principal { csrf, ..person.clone() }
}

/// The audit entry of a form and its outcome; `None` when the form is only shown again.
fn action(verb: &'static str, path: &str, response: &Response) -> Option<(AuditAction, String)> {
    let from_handler = response.extensions().get::<AuditAction>();
    let status =
        response.extensions().get::<NoChange>().map_or(response.status(), |undone| undone.0);
    let is_refused = status.is_client_error() || status.is_server_error();
    if from_handler.is_none() && !is_refused && !status.is_redirection() {
        return None;
    }

    let outcome =
        if is_refused { format!("refused_{}", status.as_u16()) } else { "done".to_owned() };
    Some((from_handler.cloned().unwrap_or_else(|| AuditAction::of_path(verb, path)), outcome))
}

/// Marks a redirect back to a page after a form that changed nothing. Holds the status that the
/// response would otherwise have. Stored in the extensions of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoChange(pub StatusCode);

/// Redirects a person who has not signed in to the sign-in page, and from there back. A submitted
/// form is not repeated automatically.
fn send_to_sign_in(request: &Request) -> Response {
    let headers = request.headers();
    if request.method() == Method::POST {
        let advice = "Your session has ended, or you have signed out. Sign in, and repeat it.";
        return *refuse(StatusCode::UNAUTHORIZED, "You are not signed in", advice);
    }

    if headers.contains_key("hx-request") {
        // The sign-in page cannot replace a part of a page, so the whole page goes there.
        let page =
            headers.get("hx-current-url").and_then(|url| url.to_str().ok()?.parse::<Uri>().ok());
        let place = sign_in_address(page.as_ref().unwrap_or(request.uri()));
        return (StatusCode::UNAUTHORIZED, [(HeaderName::from_static("hx-redirect"), place)])
            .into_response();
    }

    Redirect::to(&sign_in_address(request.uri())).into_response()
}

/// Redirects to sign in again, and from there back to the page of the form. Nothing was done.
fn sign_in_again(path: &str) -> Response {
    let page = path.split('/').nth(1).unwrap_or_default();
    let place = Redirect::to(&format!("/sign-in?again=1&next=%2F{page}"));
    (Extension(NoChange(StatusCode::FORBIDDEN)), place).into_response()
}

fn sign_in_address(page: &Uri) -> String {
    let next = page.path_and_query().map_or("/", |next| next.as_str());
    if next == "/" {
        return "/sign-in".to_owned();
    }
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish();
    format!("/sign-in?{query}")
}

fn refuse(status: StatusCode, title: &str, advice: &str) -> Box<Response> {
    Box::new(Fault::new(status, title, advice).into_response())
}

/// Sets the security headers of every page.
pub fn protect(headers: &mut HeaderMap, is_https: bool) {
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::X_FRAME_OPTIONS, "DENY");
    set(header::REFERRER_POLICY, "same-origin");
    set(header::CACHE_CONTROL, "no-store");
    set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    set(HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()");
    if is_https {
        set(header::STRICT_TRANSPORT_SECURITY, "max-age=31536000");
    }
}

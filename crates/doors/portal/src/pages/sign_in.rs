//! Signing in and out, and the page behind a one-time link.

use crate::caller::{Caller, Submitted};
use crate::cookies;
use crate::fault::Fault;
use crate::fields::Fields;
use crate::html::parts::{self, Field, Mood};
use crate::html::{layout, passwords};
use crate::{Answer, Portal};
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{AppendHeaders, IntoResponse, Redirect, Response};
use maud::{Markup, html};
use raingauge_people::Principal;
use raingauge_people::accounts::Admission;
use raingauge_people::{AccountError, Origin};
use raingauge_ports::people::Invitation;

pub type Maybe = Option<Extension<Principal>>;

/// `GET /sign-in`
pub async fn form(State(portal): State<Portal>, person: Maybe, uri: Uri) -> Answer {
    let fields = Fields::parse(uri.query().unwrap_or_default().as_bytes());
    let next = local(fields.text("next"));
    let is_again = fields.given("again").is_some();
    if person.is_some() && !is_again {
        return Ok(Redirect::to(next).into_response());
    }
    let is_empty = !portal.accounts.has_people().await?;
    let shown = SignIn { next, name: "", problem: None, is_empty, person: person.as_deref() };
    Ok(page(StatusCode::OK, &sign_in(&portal, &shown)))
}

/// `POST /sign-in`
pub async fn enter(
    State(portal): State<Portal>,
    person: Maybe,
    Extension(origin): Extension<Origin>,
    headers: HeaderMap,
    Submitted(fields): Submitted,
) -> Answer {
    let name = fields.text("name");
    let next = local(fields.text("next"));
    let mark = cookies::device_in(&headers, portal.accounts.options.is_https());
    match portal.accounts.sign_in(name, fields.exact("password"), &origin, mark).await {
        Ok(admitted) => with_session(&portal, &person, next, &admitted).await,
        Err(refusal) => {
            let (status, words) = explain(refusal)?;
            let shown = SignIn {
                next,
                name,
                problem: Some(&words),
                is_empty: false,
                person: person.as_deref(),
            };

            let mut response = page(status.0, &sign_in(&portal, &shown));
            if let Some(seconds) = status.1 {
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            }
            Ok(response)
        }
    }
}

/// `POST /sign-out`
pub async fn leave(Caller { portal, person }: Caller) -> Answer {
    portal.accounts.sign_out(&person).await?;
    let cookie = cookies::take(portal.accounts.options.is_https());
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to("/sign-in")).into_response())
}

/// `GET /welcome/{secret}`
pub async fn welcome(
    State(portal): State<Portal>,
    person: Maybe,
    Path(secret): Path<String>,
) -> Answer {
    let invitation = portal.accounts.invitation(&secret).await?;
    Ok(page(StatusCode::OK, &choose(&secret, &invitation, "", None, person.as_deref())))
}

/// `POST /welcome/{secret}`
pub async fn accept(
    State(portal): State<Portal>,
    person: Maybe,
    Path(secret): Path<String>,
    Extension(origin): Extension<Origin>,
    Submitted(fields): Submitted,
) -> Answer {
    let invitation = portal.accounts.invitation(&secret).await?;
    let name = fields.text("name");
    let accepted = match passwords::chosen(&fields) {
        Ok(password) => portal.accounts.welcome(&secret, name, password, &origin).await,
        Err(refusal) => Err(refusal),
    };

    match accepted {
        Ok(admitted) => with_session(&portal, &person, "/?note=welcome", &admitted).await,
        Err(AccountError::Field(field, words)) => {
            let problem = Some((field, words.as_str()));
            let body = choose(&secret, &invitation, name, problem, person.as_deref());
            Ok(page(StatusCode::UNPROCESSABLE_ENTITY, &body))
        }
        Err(refusal) => {
            let (status, words) = explain(refusal)?;
            Err(Fault::new(status.0, "This did not work", words))
        }
    }
}

/// Returns the status, after how many seconds to retry, and the message. An error of the store
/// becomes a `Fault`.
pub fn explain(refusal: AccountError) -> Result<((StatusCode, Option<i64>), String), Fault> {
    Ok(match refusal {
        AccountError::Wrong => {
            ((StatusCode::UNPROCESSABLE_ENTITY, None), "Name or password is wrong.".to_owned())
        }
        AccountError::Wait(seconds) => (
            (StatusCode::TOO_MANY_REQUESTS, Some(seconds)),
            format!("There were too many attempts. Wait {seconds} s, then try again."),
        ),
        AccountError::Busy => (
            (StatusCode::SERVICE_UNAVAILABLE, Some(2)),
            "Too many people are signing in. Try again in a moment.".to_owned(),
        ),
        AccountError::NoPasswords => {
            let words = "Passwords are switched off here: sign in at the provider. While the \
                         provider is unavailable, the operator of the server can create a link with \
                         `raingauge portal invite`.";
            ((StatusCode::FORBIDDEN, None), words.to_owned())
        }
        AccountError::Field(_, words) => ((StatusCode::UNPROCESSABLE_ENTITY, None), words),
        AccountError::Store(error) => return Err(error.into()),
    })
}

/// Redirects the browser with a new session. Its previous session ends.
pub async fn with_session(
    portal: &Portal,
    before: &Maybe,
    next: &str,
    admitted: &Admission,
) -> Answer {
    if let Some(Extension(person)) = before {
        portal.accounts.sign_out(person).await?;
    }
    let is_https = portal.accounts.options.is_https();
    let mark = admitted.mark.as_ref();
    let mark = mark.map(|mark| (header::SET_COOKIE, cookies::give_device(mark, is_https)));
    let session = (header::SET_COOKIE, cookies::give(&admitted.session, is_https));
    let cookies = AppendHeaders([session].into_iter().chain(mark));
    Ok((cookies, Redirect::to(next)).into_response())
}

pub fn page(status: StatusCode, body: &Markup) -> Response {
    (status, layout::page(&[], None, layout::Place::Nowhere, "Sign in", body)).into_response()
}

/// The contents of the sign-in page.
struct SignIn<'a> {
    next: &'a str,
    name: &'a str,
    problem: Option<&'a str>,
    /// No account exists yet, so no one can sign in.
    is_empty: bool,
    /// The person who is signed in and confirms their identity again.
    person: Option<&'a Principal>,
}

fn sign_in(portal: &Portal, shown: &SignIn<'_>) -> Markup {
    let SignIn { next, name, problem, is_empty, person } = *shown;
    let has_passwords = portal.accounts.options.passwords;

    // If there is a provider, the password comes second, unless the person has just tried one.
    let is_second = portal.openid.is_some() && problem.is_none();
    html! {
        section.card.entrance {
            h1 { "Sign in" }
            @if let Some(person) = person {
                (parts::notice(Mood::Wait, &html! {
                    "You are " b { (person.name) }
                    ". Sign in again: links, roles and tokens need a recent sign-in."
                }))
            }
            @if is_empty { (nobody_yet()) }
            @if let Some(problem) = problem { (parts::notice(Mood::Bad, &html! { (problem) })) }
            @if let Some(openid) = &portal.openid {
                a.button.primary href=(openid_address(next, person.is_some())) {
                    (openid.rules.label)
                }
                @if has_passwords { p.or { "or with a password" } }
            }
            @if has_passwords {
                (password_form(next, name, is_second, person))
                p.quiet { "Forgot the password? An administrator can create a link for a new one." }
            }
        }
    }
}

fn nobody_yet() -> Markup {
    parts::notice(
        Mood::Wait,
        &html! {
            "Nobody can sign in yet. When raingauge started, it wrote a link for the first \
             administrator to its terminal, or to the file " code { "first-admin-link" }
            " in its data folder. " code { "raingauge portal invite NAME --role admin" }
            " creates another one."
        },
    )
}

fn password_form(next: &str, name: &str, is_second: bool, person: Option<&Principal>) -> Markup {
    html! {
        form.form method="post" action="/sign-in" {
            @if let Some(person) = person { (parts::csrf(person)) }
            input type="hidden" name="next" value=(next);
            (Field { name: "name", label: "Name", hint: "", problem: None }.around(&html! {
                input type="text" id="name" name="name" value=(name) required autocomplete="username"
                    autocapitalize="none" spellcheck="false" maxlength="128" autofocus[!is_second];
            }))
            (passwords::field("password", "Password", "", None, "current-password"))
            button.button.primary[!is_second] { "Sign in" }
        }
    }
}

/// The address that starts a sign-in through the provider.
fn openid_address(next: &str, is_again: bool) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("next", next);
    if is_again {
        query.append_pair("again", "1");
    }
    format!("/sign-in/openid?{}", query.finish())
}

fn choose(
    secret: &str,
    invitation: &Invitation,
    name: &str,
    problem: Option<(&str, &str)>,
    person: Option<&Principal>,
) -> Markup {
    let of = |field: &str| problem.filter(|(found, _)| *found == field).map(|(_, words)| words);
    let hint = "It appears beside your changes.";
    html! {
        section.card.entrance {
            h1 { "Welcome to raingauge" }
            p {
                @if invitation.name.is_empty() {
                    "You are the first person here, and become its administrator. Choose a name \
                     and a password."
                } @else {
                    "You are invited as " b { (invitation.name) } " with the role " b { (invitation.role) }
                    ". Choose a password."
                }
            }
            form.form method="post" action={ "/welcome/" (secret) } {
                @if let Some(person) = person { (parts::csrf(person)) }
                @if invitation.name.is_empty() {
                    (Field { name: "name", label: "Name", hint, problem: of("name") }.around(&html! {
                        input type="text" id="name" name="name" value=(name) required autocomplete="username"
                            autocapitalize="none" spellcheck="false" maxlength="128" autofocus
                            aria-invalid=[of("name").map(|_| "true")] aria-describedby="name-words";
                    }))
                } @else {
                    // For password managers, which store the name with the password.
                    input type="hidden" name="username" value=(invitation.name) autocomplete="username";
                }
                (passwords::pair(of("password"), of("again")))
                button.button.primary { "Create the account" }
            }
        }
    }
}

/// Restricts a redirect target to this portal; any other target becomes the first page.
pub fn local(next: &str) -> &str {
    let is_local = next.starts_with('/')
        && !next.starts_with("//")
        && next.len() <= 2_000
        && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_local { next } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_elsewhere() {
        for fine in ["/", "/counters/34?from=1&to=2", "/audit?who=zo%C3%AB#x"] {
            assert_eq!(local(fine), fine);
        }
        for foreign in [
            "",
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "javascript:alert(1)",
            "/a\r\nb",
            "/\t/evil.example",
            "evil",
            "/é",
        ] {
            assert_eq!(local(foreign), "/", "{foreign:?}");
        }
    }
}

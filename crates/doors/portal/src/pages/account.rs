//! A person's own account: the password, and the sessions.

use crate::Answer;
use crate::caller::{Caller, Page, Submitted};
use crate::cookies;
use crate::fault::Fault;
use crate::fields::{Fields, Query};
use crate::html::parts::{self, ButtonForm, Mood};
use crate::html::{layout, notes, passwords};
use axum::extract::Extension;
use axum::http::{StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Redirect};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_people::AccountError;
use raingauge_people::audit::AuditAction;
use raingauge_people::{OwnSession, Principal};
use raingauge_ports::people::{Hash, Session};
use serde_json::json;

/// `GET /account`
pub async fn show(caller: Caller, Query(fields): Query) -> Page {
    page(&caller, &fields, None).await
}

/// `POST /account/password`
pub async fn change_password(caller: Caller, Submitted(fields): Submitted) -> Answer {
    let current = fields.exact("current");
    let changed = match passwords::chosen(&fields) {
        Ok(new) => caller.portal.accounts.change_password(&caller.person, current, new).await,
        Err(refusal) => Err(refusal),
    };

    let (status, field, words) = match changed {
        Ok(mark) => {
            let action = AuditAction::new(
                "person.password",
                format!("person {}", caller.person.name),
                json!({}),
            );
            let is_https = caller.portal.accounts.options.is_https();
            let cookie =
                mark.map(|mark| (header::SET_COOKIE, cookies::give_device(&mark, is_https)));
            let to = Redirect::to("/account?note=password");

            return Ok((Extension(action), AppendHeaders(cookie), to).into_response());
        }
        Err(AccountError::Field(field, words)) => (StatusCode::UNPROCESSABLE_ENTITY, field, words),
        Err(AccountError::Wait(seconds)) => {
            let words = format!("There were too many attempts. Wait {seconds} s, then try again.");
            (StatusCode::TOO_MANY_REQUESTS, "current", words)
        }
        Err(AccountError::Store(error)) => return Err(error.into()),
        Err(AccountError::NoPasswords) => return Err(without_passwords()),
        Err(AccountError::Wrong | AccountError::Busy) => {
            let advice = "Passwords cannot be changed right now. Try again in a moment.";
            return Err(Fault::new(StatusCode::SERVICE_UNAVAILABLE, "This did not work", advice));
        }
    };

    let page = page(&caller, &Fields::default(), Some((field, &words))).await?;
    Ok((status, page).into_response())
}

/// `POST /account/sessions/end`: ends one of the person's own sessions, or all but the current one.
pub async fn end_session(
    Caller { portal, person }: Caller,
    Submitted(fields): Submitted,
) -> Answer {
    let own = person.session().ok_or_else(without_sign_in)?;
    let one = fields.given("session").map(hash_of).transpose()?;
    portal.accounts.end_sessions(&own, one).await?;
    let action = AuditAction::new("session.end", format!("person {}", person.name), json!({}));
    Ok((Extension(action), Redirect::to("/account?note=session-ended")).into_response())
}

fn hash_of(hex_digits: &str) -> Result<Hash, Fault> {
    let mut hash = Hash::default();
    hex::decode_to_slice(hex_digits, &mut hash).map_err(|_| Fault::not_found("such session"))?;
    Ok(hash)
}

fn without_passwords() -> Fault {
    let advice = "Passwords are switched off here: people sign in at the provider.";
    Fault::new(StatusCode::FORBIDDEN, "There are no passwords", advice)
}

fn without_sign_in() -> Fault {
    let advice = "Nobody needs to sign in here: portal.sign_in is off. Switch it on in the \
                  configuration to have accounts.";
    Fault::new(StatusCode::CONFLICT, "There are no accounts", advice)
}

async fn page(caller: &Caller, fields: &Fields, problem: Option<(&str, &str)>) -> Page {
    let Caller { portal, person } = caller;
    let body = match person.session() {
        Some(own) => {
            let sessions = portal.accounts.sessions(own.user_id).await?;
            let has_password = portal.accounts.has_password(person).await?;
            html! {
                div.page-head { h1 { (person.name) } span.state { (own.role) } }
                (notes::shown(fields))
                div.columns {
                    @if has_password { (password_card(person, problem)) }
                    @else { (elsewhere_card()) }
                    (sessions_card(person, &own, &sessions, portal.clock.now_s(), &fields.zone()))
                }
            }
        }
        None => html! {
            div.page-head { h1 { "Your account" } }
            (parts::notice(Mood::Wait, &html! { (without_sign_in().advice) }))
        },
    };
    Ok(caller.page(layout::Place::Nowhere, "Your account", &body))
}

/// The card of a person who signs in through OpenID Connect only.
fn elsewhere_card() -> Markup {
    html! {
        section.card {
            h2 { "Password" }
            p { "You have no password here: you sign in by OpenID Connect." }
            p.quiet { "An administrator can create a link with which you choose one." }
        }
    }
}

fn password_card(person: &Principal, problem: Option<(&str, &str)>) -> Markup {
    let of = |field: &str| problem.filter(|(found, _)| *found == field).map(|(_, words)| words);
    html! {
        section.card {
            h2 { "Password" }
            form.form method="post" action="/account/password" {
                (parts::csrf(person))
                input type="hidden" name="username" value=(person.name) autocomplete="username";
                (passwords::field("current", "Current password", "", of("current"), "current-password"))
                (passwords::pair(of("password"), of("again")))
                div.actions { button.button.primary { "Change the password" } }
                p.quiet { "This ends all of your other sessions." }
            }
        }
    }
}

const END_SESSION: &str = "/account/sessions/end";

fn sessions_card(
    person: &Principal,
    own: &OwnSession,
    sessions: &[Session],
    now_s: i64,
    zone: &TimeZone,
) -> Markup {
    html! {
        section.card {
            h2 { "Where you are signed in" }
            ul.sessions {
                @for session in sessions {
                    @let is_this = session.hash == own.hash;
                    li.session {
                        div {
                            p.session-browser {
                                (browser(&session.browser))
                                @if is_this {
                                    " " span.state data-state="active" { "this session" }
                                }
                            }
                            p.quiet {
                                @if !session.address.is_empty() { (session.address) " · " }
                                "since " (parts::zoned(session.created_at, zone)) " · seen "
                                (parts::ago(now_s - session.seen_at))
                            }
                        }
                        @if !is_this {
                            @let label = format!("End the session of {}", browser(&session.browser));
                            @let hash = hex::encode(session.hash);
                            (ButtonForm::new(END_SESSION, "End").about(&label)
                                .with(&[("session", &hash)]).markup(person))
                        }
                    }
                }
            }
            @if sessions.len() > 1 {
                (ButtonForm::new(END_SESSION, "End all other sessions").class("danger").markup(person))
            }
        }
    }
}

/// The browser and the operating system, as far as the user agent reveals them.
fn browser(agent: &str) -> String {
    let first = |known: &[(&str, &'static str)]| {
        known.iter().find(|(mark, _)| agent.contains(mark)).map(|(_, name)| *name)
    };
    let browser = first(&[
        ("Edg/", "Edge"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ]);

    let system = first(&[
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ]);

    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        _ if agent.is_empty() => "an unnamed browser".to_owned(),
        _ => agent.chars().take(60).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_have_short_names() {
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36";
        assert_eq!(browser(chrome), "Chrome on Linux");
        assert_eq!(
            browser("Mozilla/5.0 (Windows NT 10.0; rv:132.0) Gecko/20100101 Firefox/132.0"),
            "Firefox on Windows"
        );
        assert_eq!(browser("curl/8"), "curl/8");
        assert_eq!(browser(""), "an unnamed browser");
    }
}

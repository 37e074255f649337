//! Signing in through an OpenID provider: the redirect to it, and the return.

use super::sign_in::{Maybe, explain, local, page, with_session};
use crate::Answer;
use crate::Portal;
use crate::cookies;
use crate::fault::Fault;
use crate::fields::Fields;
use crate::html::parts::{self, Mood};
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use raingauge_people::openid::{Denial, OpenId, ProviderAnswer};
use raingauge_people::trips::{TRIP_S, Trip};
use raingauge_people::{AccountError, Origin};
use raingauge_ports::identity::Error;

/// Path of the redirect URI, below the public address of the portal.
pub const BACK: &str = "/sign-in/openid/back";

/// Status and text of the page for a sign-in that failed.
struct Words {
    status: StatusCode,
    title: &'static str,
    advice: String,
}

/// `GET /sign-in/openid`: a link and not a form, because the content security policy allows forms
/// only to the portal itself.
pub async fn leave(State(portal): State<Portal>, person: Maybe, uri: Uri) -> Answer {
    let openid = configured(&portal)?;
    let fields = Fields::parse(uri.query().unwrap_or_default().as_bytes());
    let next = local(fields.text("next"));

    if person.is_some() && fields.given("again").is_none() {
        return Ok(Redirect::to(next).into_response());
    }

    match openid.begin(next, portal.clock.now_s()).await {
        Ok((trip, address)) => {
            let cookie =
                cookies::give_trip(trip.cookie(), TRIP_S, portal.accounts.options.is_https());
            Ok(([(header::SET_COOKIE, cookie)], Redirect::to(&address)).into_response())
        }
        Err(error) => Ok(refused(&failed(&error))),
    }
}

/// `GET /sign-in/openid/back`: the provider has redirected the browser back.
pub async fn back(
    State(portal): State<Portal>,
    person: Maybe,
    Extension(origin): Extension<Origin>,
    headers: HeaderMap,
    uri: Uri,
) -> Answer {
    let openid = configured(&portal)?;
    let is_https = portal.accounts.options.is_https();
    let fields = Fields::parse(uri.query().unwrap_or_default().as_bytes());
    let cookie = cookies::trip_in(&headers, is_https).unwrap_or_default();
    let trip = Trip::resume(cookie, fields.exact("state"), portal.clock.now_s());
    let Some(trip) = trip else {
        return Ok(refused(&astray()));
    };

    let answer = ProviderAnswer { code: fields.given("code"), error: fields.given("error") };
    let mut response = match portal.accounts.finish_trip(openid, &trip, answer, &origin).await {
        Ok(admitted) => with_session(&portal, &person, local(&trip.next), &admitted).await?,
        Err(denial) => refused(&explained(denial, &openid.rules.label)),
    };
    response.headers_mut().append(header::SET_COOKIE, cookies::take_trip(is_https));

    Ok(response)
}

fn configured(portal: &Portal) -> Result<&OpenId, Fault> {
    portal.openid.as_ref().ok_or_else(|| Fault::not_found("sign-in by OpenID Connect"))
}

/// Explains a return that does not match the sign-in this browser started.
fn astray() -> Words {
    let minutes = TRIP_S / 60;
    let advice = format!(
        "It took more than {minutes} minutes, was started in another browser or again in another \
         tab, or the browser keeps no cookies. Start again."
    );
    Words { status: StatusCode::BAD_REQUEST, title: "This sign-in cannot be completed", advice }
}

/// Explains an error of the provider. Details go to the log: the person signing in cannot act on
/// them.
fn failed(error: &Error) -> Words {
    tracing::warn!(%error, "a sign-in by OpenID Connect failed");
    let (status, title, advice) = match error {
        Error::Refused(code) if code == "access_denied" => (
            StatusCode::FORBIDDEN,
            "The provider denied the sign-in",
            "The sign-in was cancelled there, or the provider does not let you use raingauge. Start \
             again, or ask the person who manages the provider.",
        ),
        Error::Unavailable(_) => (
            StatusCode::BAD_GATEWAY,
            "The provider is out of reach",
            "Try again in a moment. Until then, anyone who has a password here can sign in with it.",
        ),
        Error::Refused(_) | Error::Unproven(_) => (
            StatusCode::BAD_GATEWAY,
            "The provider's answer was not accepted",
            "Start again. If it happens again, ask an administrator: the log of raingauge says what \
             is wrong.",
        ),
    };
    Words { status, title, advice: advice.to_owned() }
}

/// Explains why the portal denies access to a person whom the provider has authenticated.
fn explained(denial: Denial, label: &str) -> Words {
    let advice = match denial {
        Denial::Unverified => format!(
            "The provider has not verified your e-mail address, so raingauge cannot tell who you \
             are. Have your address verified at the provider, and use “{label}” again."
        ),
        Denial::NotInvited(email) => format!(
            "At the provider you are {email}, and nobody has invited this address. Ask an \
             administrator of raingauge to invite it, and use “{label}” again. If you have another \
             account at the provider, sign out there first."
        ),
        Denial::NoRole => "None of your groups at the provider has a role here. Ask an \
                           administrator of raingauge, or the person who manages the groups."
            .to_owned(),
        Denial::Disabled => {
            "Your account here is disabled. Ask an administrator of raingauge to enable it."
                .to_owned()
        }
        Denial::Contested(email) => format!(
            "At the provider you are {email}, and an account here with this address belongs to \
             someone else. Ask an administrator of raingauge to invite you again, with this \
             address."
        ),
        Denial::NobodyYet => {
            "There is no administrator yet. When raingauge started, it wrote a link for the first \
             one to its terminal, or to the file first-admin-link in its data folder."
                .to_owned()
        }
        Denial::Provider(error) => return failed(&error),
        Denial::Account(refusal) => return denied(refusal),
    };
    Words { status: StatusCode::FORBIDDEN, title: "You may not sign in", advice }
}

fn denied(refusal: AccountError) -> Words {
    match explain(refusal) {
        Ok(((status, _), advice)) => Words { status, title: "This did not work", advice },
        Err(Fault { status, advice, .. }) => Words { status, title: "This did not work", advice },
    }
}

fn refused(words: &Words) -> Response {
    let body = html! {
        section.card.entrance {
            h1 { (words.title) }
            (parts::notice(Mood::Bad, &html! { (words.advice) }))
            a.button.primary href="/sign-in" { "Back to sign-in" }
        }
    };
    page(words.status, &body)
}

//! API tokens: created, shown once, revoked.

use super::people::base;
use crate::Answer;
use crate::Portal;
use crate::caller::{Caller, Page, Submitted};
use crate::fault::Fault;
use crate::fields::{Fields, Query};
use crate::html::layout;
use crate::html::parts::Column::{self, Text};
use crate::html::parts::{self, ButtonForm, Field, Mood};
use crate::pages::page_state::PageState;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::access::Scope;
use raingauge_people::tokens::{NewToken, TokenRequest};
use raingauge_people::{ANONYMOUS, AccountError, Principal};
use raingauge_ports::people::ApiToken;

/// The lifetimes of a token in days, with their labels; an empty value for none.
const EXPIRIES: [(&str, &str); 4] =
    [("30", "in 30 days"), ("90", "in 90 days"), ("365", "in a year"), ("", "never")];
const DAY_S: i64 = 86_400;

/// A token that was just created: its name, its secret, and the base address of this portal.
type Secret<'a> = (&'a str, &'a str, String);

/// `GET /tokens`
pub async fn list(caller: Caller, Query(fields): Query) -> Page {
    page(&caller, &PageState::asked(&fields)).await
}

/// `POST /tokens`: the token is shown in this response only, never again.
pub async fn create(caller: Caller, Submitted(fields): Submitted, headers: HeaderMap) -> Answer {
    let made = match read(&fields) {
        Ok(request) => caller.portal.accounts.create_token(request, &caller.person.name).await,
        Err(refusal) => Err(refusal),
    };
    match made {
        Ok(NewToken { name, secret, action }) => {
            let made = (&*name, &*secret, base(&caller.portal, &headers));
            let shown = page(&caller, &PageState::made(made)).await?;
            Ok((Extension(action), shown).into_response())
        }
        Err(AccountError::Field(field, words)) => {
            let shown = PageState::refused(&fields, field, &words);
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page(&caller, &shown).await?).into_response())
        }
        Err(AccountError::Store(error)) => Err(error.into()),
        Err(_) => Err(Fault::bad_request("No token was created", "Try again in a moment.")),
    }
}

/// `POST /tokens/{id}/revoke`
pub async fn revoke(State(portal): State<Portal>, Path(id): Path<i64>) -> Answer {
    let action = portal.accounts.revoke_token(id).await?;
    Ok((Extension(action), Redirect::to("/tokens?note=revoked")).into_response())
}

/// Reads the requested token from the form.
fn read(fields: &Fields) -> Result<TokenRequest, AccountError> {
    let days = fields.text("expires");
    if !EXPIRIES.iter().any(|(known, _)| *known == days) {
        return Err(AccountError::Field("expires", "Choose one of the lifetimes.".to_owned()));
    }
    Ok(TokenRequest {
        name: fields.text("name").to_owned(),
        scopes: fields.values("scope").filter_map(Scope::from_name).collect(),
        lifetime_s: days.parse::<i64>().ok().map(|days| days * DAY_S),
    })
}

async fn page(caller: &Caller, shown: &PageState<'_, Secret<'_>>) -> Page {
    let Caller { portal, person } = caller;
    let tokens = portal.accounts.tokens().await?;
    let now_s = portal.clock.now_s();
    let (in_use, ended): (Vec<_>, Vec<_>) = tokens.iter().partition(|token| token.is_in_use(now_s));
    let users = portal.accounts.users().await?;
    let is_there = |maker: &str| {
        maker == ANONYMOUS || users.iter().any(|user| user.name == maker && user.may_sign_in())
    };
    let orphans: Vec<&str> = in_use
        .iter()
        .filter(|token| !is_there(&token.created_by))
        .map(|token| token.name.as_str())
        .collect();

    let body = html! {
        div.page-head { h1 { "API tokens" } }
        (shown.note)
        @if let Some((name, secret, base)) = &shown.made { (secret_card(name, secret, base)) }
        @if !portal.accounts.options.asks_for_tokens {
            (parts::notice(Mood::Wait, &html! {
                "This server does not require tokens: it listens on this machine only, and its \
                 configuration has none. A token still names the author of a change in the audit \
                 log. Set " code { "auth.required" } " to require tokens."
            }))
        }
        @if !orphans.is_empty() {
            (parts::notice(Mood::Wait, &html! {
                "Still valid, although their makers may not sign in any more: "
                b { (orphans.join(", ")) }
                ". Revoke the tokens that nobody needs, and create the others again."
            }))
        }
        @if in_use.is_empty() {
            (parts::empty("No token is in use", &html! {
                "Programs that send events or query counts identify themselves by a token. Create \
                 one below. Tokens of the configuration file are not listed here."
            }))
        } @else {
            (table(person, &in_use, now_s, &shown.zone, "Tokens in use"))
        }
        (create_card(person, shown))
        @if !ended.is_empty() {
            details {
                summary { "Revoked and expired (" (ended.len()) ")" }
                (table(person, &ended, now_s, &shown.zone, "Revoked and expired tokens"))
            }
        }
    };
    Ok(caller.page(layout::Place::Tokens, "API tokens", &body))
}

fn secret_card(name: &str, secret: &str, base: &str) -> Markup {
    let curl = format!("curl -H 'Authorization: Bearer {secret}' {base}/v1/counters");
    html! {
        section.card {
            h2 { "The token of " (name) }
            p {
                "Copy it now: it is not stored, and is not shown again. Every instance accepts it \
                 within two seconds."
            }
            (parts::command(secret))
            p.quiet { "For example:" }
            (parts::command(&curl))
        }
    }
}

fn table(
    person: &Principal,
    tokens: &[&ApiToken],
    now_s: i64,
    zone: &TimeZone,
    caption: &str,
) -> Markup {
    let rows = html! { @for token in tokens { (row(person, token, now_s, zone)) } };
    html! { div.card.table-card { (parts::named_table(caption, "list", &COLUMNS, &rows)) } }
}

const COLUMNS: [Column<'_>; 6] = [
    Text("Name"),
    Text("Scopes"),
    Text("Created"),
    Text("Last used"),
    Text("Expires"),
    Text("Actions"),
];

fn row(person: &Principal, token: &ApiToken, now_s: i64, zone: &TimeZone) -> Markup {
    html! {
        tr {
            th.person scope="row" { (token.name) }
            td { @for scope in token.scopes.iter() { code.scope { (scope) } " " } }
            td { (parts::zoned(token.created_at, zone)) br; span.quiet { "by " (token.created_by) } }
            td { (parts::last_time(token.used_at, now_s)) }
            td {
                @match (token.revoked_at, token.expires_at) {
                    (Some(at_s), _) => { "revoked " (parts::zoned(at_s, zone)) },
                    (None, Some(at_s)) => (parts::zoned(at_s, zone)),
                    (None, None) => span.quiet { "never" },
                }
            }
            td {
                @if token.is_in_use(now_s) {
                    @let about = format!("Revoke {}", token.name);
                    (ButtonForm::new(&format!("/tokens/{}/revoke", token.id), "Revoke").class("danger")
                        .about(&about).markup(person))
                }
            }
        }
    }
}

fn create_card(person: &Principal, shown: &PageState<'_, Secret<'_>>) -> Markup {
    let is_chosen = |scope: Scope| {
        shown.typed.is_some_and(|fields| fields.values("scope").any(|name| name == scope.name()))
    };
    let field = |name, label, hint| Field { name, label, hint, problem: shown.problem(name) };
    let name = field("name", "Name", "Shown in logs, version history and the audit log.");
    let expires = field("expires", "Expires", "");
    let lifetime = shown.typed.map_or("90", |_| shown.text("expires"));

    html! {
        section.card {
            h2 { "Create a token" }
            form.form method="post" action="/tokens" {
                (parts::csrf(person))
                (name.text(shown.text("name")))
                fieldset.field {
                    legend { "Scopes" }
                    @for scope in Scope::ALL {
                        label.check {
                            input type="checkbox" name="scope" value=(scope) checked[is_chosen(scope)];
                            span { code { (scope) } " " span.quiet { (meaning(scope)) } }
                        }
                    }
                    @if let Some(problem) = shown.problem("scope") { p.problem { (problem) } }
                }
                (expires.around(&html! {
                    select id="expires" name="expires" {
                        @for (days, label) in EXPIRIES {
                            option value=(days) selected[days == lifetime] { (label) }
                        }
                    }
                }))
                div.actions { button.button.primary { "Create the token" } }
            }
        }
    }
}

const fn meaning(scope: Scope) -> &'static str {
    match scope {
        Scope::EventsWrite => "send events",
        Scope::CountsRead => "query counts, read counters",
        Scope::CountersWrite => "create, change and archive counters",
        Scope::BucketsWrite => "overwrite stored counts",
        Scope::MetricsRead => "read metrics only",
        Scope::CampaignsRead => "read campaigns, their decisions and what they sent",
        Scope::CampaignsWrite => "define campaigns, load tables, test",
        Scope::CampaignsOperate => {
            "start and stop campaigns, redrive and cancel actions, define destinations"
        }
        Scope::PointsRead => "read programmes, members, statements and entries of points",
        Scope::PointsAward => "award points",
        Scope::PointsSpend => "burn, hold, transfer and exchange points, redeem rewards",
        Scope::PointsCorrect => "reverse and adjust points, set tiers, close wallets",
        Scope::PointsWrite => "define programmes and rewards",
        Scope::PointsAdmin => "operate queues, sweeps, seals and audits of points",
        Scope::ObjectsRead => "read the objects of Redis clients, subscribe to channels",
        Scope::ObjectsWrite => "change and delete the objects of Redis clients, publish",
        Scope::Admin => "everything",
    }
}

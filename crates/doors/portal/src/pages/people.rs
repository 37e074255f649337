//! The people: who they are, their roles, and pending invitations.

use crate::caller::{Caller, Page, Submitted};
use crate::fault::Fault;
use crate::fields::{Fields, Query};
use crate::html::layout;
use crate::html::parts::Column::{self, Text};
use crate::html::parts::{self, ButtonForm, Field, Mood};
use crate::pages::page_state::PageState;
use crate::{Answer, Portal};
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::access::Role;
use raingauge_people::AccountError;
use raingauge_people::Principal;
use raingauge_people::audit::AuditAction;
use raingauge_people::invitations::{Invitee, Link};
use raingauge_ports::people::{Hash, Invitation, User};

/// The recipient of a new link, and the link itself.
type NewLink<'a> = (&'a str, String);

/// `GET /people`
pub async fn list(caller: Caller, Query(fields): Query) -> Page {
    page(&caller, &PageState::asked(&fields)).await
}

/// `POST /people/invite`: the link is shown in this response only, never again.
pub async fn invite(caller: Caller, Submitted(fields): Submitted, headers: HeaderMap) -> Answer {
    let name = fields.text("name");
    let role = role_of(&fields)?;
    let invitee = Invitee { name: name.to_owned(), email: fields.text("email").to_owned(), role };

    match caller.portal.accounts.invite(invitee, &caller.person.name).await {
        Ok(Link { path, action }) => {
            let link = format!("{}{path}", base(&caller.portal, &headers));
            let shown = page(&caller, &PageState::made((name, link))).await?;
            Ok((Extension(action), shown).into_response())
        }
        Err(AccountError::Field(field, words)) => {
            let shown = PageState::refused(&fields, field, &words);
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page(&caller, &shown).await?).into_response())
        }
        Err(AccountError::Store(error)) => Err(error.into()),
        Err(_) => Err(Fault::bad_request("Nobody was invited", "Try again in a moment.")),
    }
}

/// `POST /people/withdraw`
pub async fn withdraw(State(portal): State<Portal>, Submitted(fields): Submitted) -> Answer {
    let mut hash = Hash::default();
    hex::decode_to_slice(fields.text("invitation"), &mut hash)
        .map_err(|_| Fault::not_found("such invitation"))?;
    Ok(done(portal.accounts.withdraw(hash).await?, "withdrawn"))
}

/// `POST /people/{id}/role`
pub async fn change_role(
    State(portal): State<Portal>,
    Path(id): Path<i64>,
    Submitted(fields): Submitted,
) -> Answer {
    let role = role_of(&fields)?;
    Ok(done(portal.accounts.change_role(id, role).await?, "role"))
}

/// `POST /people/{id}/disable`
pub async fn disable(State(portal): State<Portal>, Path(id): Path<i64>) -> Answer {
    let (action, tokens) = portal.accounts.disable(id).await?;
    Ok(done(action, if tokens > 0 { "disabled-tokens" } else { "disabled" }))
}

/// `POST /people/{id}/enable`
pub async fn enable(State(portal): State<Portal>, Path(id): Path<i64>) -> Answer {
    Ok(done(portal.accounts.enable(id).await?, "enabled"))
}

/// `POST /people/{id}/remove`
pub async fn remove(State(portal): State<Portal>, Path(id): Path<i64>) -> Answer {
    Ok(done(portal.accounts.remove(id).await?, "removed"))
}

/// `POST /people/{id}/sign-out`: ends all sessions of this person.
pub async fn sign_out(State(portal): State<Portal>, Path(id): Path<i64>) -> Answer {
    Ok(done(portal.accounts.sign_out_everywhere(id).await?, "signed-out"))
}

fn done(action: AuditAction, note: &str) -> Response {
    (Extension(action), Redirect::to(&format!("/people?note={note}"))).into_response()
}

fn role_of(fields: &Fields) -> Result<Role, Fault> {
    Role::from_name(fields.text("role")).ok_or_else(|| {
        Fault::bad_request("There is no such role", "The roles are viewer, editor and admin.")
    })
}

/// The base address under which the browser reaches this portal.
pub fn base(portal: &Portal, headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let scheme = if portal.accounts.options.is_https() { "https" } else { "http" };
    portal.accounts.options.public_url.clone().unwrap_or_else(|| format!("{scheme}://{host}"))
}

async fn page(caller: &Caller, shown: &PageState<'_, NewLink<'_>>) -> Page {
    let portal = &caller.portal;
    let users = portal.accounts.users().await?;
    let open = portal.accounts.open_invitations().await?;
    let now_s = portal.clock.now_s();
    let body = html! {
        div.page-head { h1 { "People" } }
        (shown.note)
        @if let Some((name, link)) = &shown.made { (link_notice(name, link)) }
        @if !portal.accounts.options.sign_in {
            (parts::notice(Mood::Wait, &html! {
                "Nobody needs to sign in here: " code { "portal.sign_in" }
                " is off, and anyone who reaches this page is an administrator. Once it is switched \
                 on in the configuration, these people need their passwords."
            }))
        }
        @if users.is_empty() {
            (parts::empty("Nobody has an account yet", &html! { "Invite someone below. They choose their own password." }))
        } @else {
            (users_table(&caller.person, &users, now_s))
        }
        div.columns {
            (invite_card(caller, shown))
            (invitations_card(&caller.person, &open, &shown.zone))
        }
    };

    Ok(caller.page(layout::Place::People, "People", &body))
}

fn link_notice(name: &str, link: &str) -> Markup {
    html! {
        section.card {
            h2 { "A link for " (name) }
            p {
                "Send it over a private channel. It works once, within 24 hours, and is not shown \
                 again."
            }
            (parts::command(link))
        }
    }
}

fn users_table(person: &Principal, users: &[User], now_s: i64) -> Markup {
    let rows = html! { @for user in users { (user_row(person, user, now_s)) } };
    html! { div.card.table-card { (parts::named_table("People", "list", &COLUMNS, &rows)) } }
}

const COLUMNS: [Column<'_>; 5] =
    [Text("Name"), Text("Role"), Text("Signed in"), Text("State"), Text("Actions")];

fn user_row(person: &Principal, user: &User, now_s: i64) -> Markup {
    let is_self = person.session().is_some_and(|own| own.user_id == user.id);
    let about_link = format!("Create a link for a new password of {}", user.name);
    html! {
        tr {
            th.person scope="row" {
                (user.name) @if is_self { " " span.quiet { "(you)" } }
                @if !user.email.is_empty() && user.email != user.name {
                    br; span.quiet { (user.email) }
                }
                @if !user.openid.is_empty() { br; span.quiet { "signs in by OpenID Connect" } }
            }
            td {
                form.actions.inline method="post" action={ "/people/" (user.id) "/role" } {
                    (parts::csrf(person))
                    (role_select(&format!("role-{}", user.id), user.role, Some(&user.name)))
                    button.button aria-label={ "Save the role of " (user.name) } { "Save" }
                }
            }
            td { (parts::last_time(user.signed_in_at, now_s)) }
            td {
                @if user.may_sign_in() { span.state data-state="active" { "active" } }
                @else { span.state data-state="bad" { "disabled" } }
            }
            td {
                div.actions {
                    (button(person, user, "sign-out", "Sign out", ""))
                    (ButtonForm::new("/people/invite", "New password").about(&about_link)
                        .with(&[("name", &user.name), ("role", user.role.name())]).markup(person))
                    @if user.may_sign_in() { (button(person, user, "disable", "Disable", "danger")) }
                    @else {
                        (button(person, user, "enable", "Enable", ""))
                        (button(person, user, "remove", "Remove for good", "danger"))
                    }
                }
            }
        }
    }
}

fn button(person: &Principal, user: &User, what: &str, words: &str, class: &str) -> Markup {
    let address = format!("/people/{}/{what}", user.id);
    let about = format!("{words} {}", user.name);
    ButtonForm::new(&address, words).class(class).about(&about).markup(person)
}

fn role_select(id: &str, chosen: Role, of: Option<&str>) -> Markup {
    html! {
        select id=(id) name="role" aria-label=[of.map(|name| format!("Role of {name}"))] {
            @for role in Role::ALL { option value=(role) selected[role == chosen] { (role) } }
        }
    }
}

fn invite_card(caller: &Caller, shown: &PageState<'_, NewLink<'_>>) -> Markup {
    let role = Role::from_name(shown.text("role")).unwrap_or(Role::Viewer);
    let name_hint = "They sign in with this name, and it appears beside their changes.";
    let role_hint = "Viewers see counters and counts, editors define counters, admins manage \
                     people and the system.";
    let email_hint = match &caller.portal.openid {
        Some(openid) => {
            format!("Lets them sign in by “{}” too, without the link.", openid.rules.label)
        }
        None => {
            "For sign-in by OpenID Connect, which is not set up here. No mail is sent.".to_owned()
        }
    };
    let field = |name, label, hint| {
        Field { name, label, hint, problem: shown.problem(name) }.text(shown.text(name))
    };
    let role_field = Field { name: "role", label: "Role", hint: role_hint, problem: None };

    html! {
        section.card {
            h2 { "Invite someone" }
            form.form method="post" action="/people/invite" {
                (parts::csrf(&caller.person))
                (field("name", "Name", name_hint))
                (field("email", "E-mail (optional)", &email_hint))
                (role_field.around(&role_select("role", role, None)))
                div.actions { button.button.primary { "Create a link" } }
            }
        }
    }
}

fn invitations_card(person: &Principal, open: &[Invitation], zone: &TimeZone) -> Markup {
    html! {
        section.card {
            h2 { "Open invitations" }
            @if open.is_empty() { p.quiet { "Every link was used or has expired." } }
            ul.sessions {
                @for invitation in open {
                    @let name = if invitation.name.is_empty() { "the first administrator" } else { &invitation.name };
                    li.session {
                        div {
                            p { (name) " " span.state { (invitation.role) } }
                            p.quiet {
                                "by " (invitation.invited_by) ", until "
                                (parts::zoned(invitation.expires_at, zone))
                            }
                        }
                        @let hash = hex::encode(invitation.hash);
                        @let about = format!("Withdraw the invitation of {name}");
                        (ButtonForm::new("/people/withdraw", "Withdraw").about(&about)
                            .with(&[("invitation", &hash)]).markup(person))
                    }
                }
            }
        }
    }
}

//! People on any database.

mod rows;

use crate::database::{Change, Database, Lock, Statement, lock};
use hex::encode as hex;
use raingauge_core::limits::{AUDIT_ENTRIES_MAX, SESSIONS_PER_USER_MAX};
use raingauge_ports::BoxFuture;
use raingauge_ports::people::{
    ApiToken, AuditTrail, Entry, Error, Filter, Hash, Invitation, Invitations, NewUser,
    RemovedUser, Session, Sessions, Tokens, User, UserChange, Users, handle,
};
use rows::{EntryRow, InvitationRow, SessionRow, TokenRow, UserRow};

/// Every change of users, links and tokens begins by taking this lock.
const LOCK: Lock = lock!("people_revision");

/// The people in a database that also holds the catalog.
#[derive(Clone, Debug)]
pub struct People<D>(pub(crate) D);

impl<D: Database> People<D> {
    async fn users_where(&self, statement: Statement) -> Result<Vec<User>, Error> {
        let rows: Vec<UserRow> = self.0.rows(statement).await?;
        rows.into_iter().map(rows::user).collect()
    }

    async fn add_user_now(&self, new: NewUser) -> Result<User, Error> {
        let mut change = self.0.begin(Some(&LOCK)).await?;
        let users = users(&mut change).await?;
        let (mut change, user) = change.decided(User::added(&users, new)).await?;
        change.run(rows::insert_user(&user)).await?;
        change.commit().await?;
        Ok(user)
    }

    async fn change_user_now(&self, id: i64, wanted: UserChange) -> Result<User, Error> {
        let mut change = self.0.begin(Some(&LOCK)).await?;
        let users = users(&mut change).await?;
        let (mut change, user) = change.decided(User::changed(&users, id, wanted)).await?;
        change.run(rows::update_user(&user)).await?;
        if !user.may_sign_in() {
            change.run(Statement::new(rows::CLOSE_SESSIONS).with(id).with("")).await?;
        }
        change.commit().await?;
        Ok(user)
    }

    async fn invite_now(&self, invitation: Invitation) -> Result<(), Error> {
        let mut change = self.0.begin(Some(&LOCK)).await?;
        let there_are: Vec<InvitationRow> = change.rows(Statement::new(rows::INVITATIONS)).await?;
        let (mut change, ()) = change.decided(Invitation::fits(there_are.len())).await?;
        change.run(rows::insert_invitation(&invitation)).await?;
        Ok(change.commit().await?)
    }

    async fn accept_now(&self, hash: Hash, new: NewUser) -> Result<User, Error> {
        let mut change = self.0.begin(Some(&LOCK)).await?;
        let found: Vec<InvitationRow> =
            change.rows(Statement::new(rows::INVITATION).with(hex(hash)).with(new.at_s)).await?;
        let users = users(&mut change).await?;
        let decision = || -> Result<(User, Invitation), Error> {
            let invitation = rows::invitation(found.into_iter().next().ok_or(Error::LinkSpent)?)?;
            Ok((User::invited(&users, &invitation, new)?, invitation))
        };
        let (mut change, (user, invitation)) = change.decided(decision()).await?;
        if users.iter().any(|known| known.id == user.id) {
            change.run(rows::update_user(&user)).await?
        } else {
            change.run(rows::insert_user(&user)).await?
        }

        change.run(Statement::new(rows::SPEND_INVITATIONS).with(handle(&invitation.name))).await?;
        change.run(Statement::new(rows::CLOSE_SESSIONS).with(user.id).with("")).await?;
        change.commit().await?;

        Ok(user)
    }

    async fn remove_user_now(&self, id: i64) -> Result<RemovedUser, Error> {
        let mut change = self.0.begin(Some(&LOCK)).await?;
        let users = users(&mut change).await?;
        let (mut change, removed) = change.decided(User::removed(&users, id)).await?;
        let RemovedUser { user, pseudonym } = &removed;

        for text in rows::RENAME {
            change
                .run(Statement::new(text).with(pseudonym.as_str()).with(user.name.as_str()))
                .await?;
        }

        let quoted = |name: &str| serde_json::Value::from(name).to_string();
        let contributor = Statement::new(rows::RENAME_CONTRIBUTOR)
            .with(quoted(&user.name))
            .with(quoted(pseudonym));
        change.run(contributor).await?;

        let object = format!("person {}", user.name);
        change
            .run(Statement::new(rows::FORGET_OBJECT).with(pseudonym.as_str()).with(object))
            .await?;
        change.run(Statement::new(rows::SPEND_INVITATIONS).with(handle(&user.name))).await?;
        change.run(Statement::new(rows::CLOSE_SESSIONS).with(id).with("")).await?;
        change.run(Statement::new(rows::REMOVE_USER).with(id)).await?;
        change.commit().await?;

        Ok(removed)
    }

    async fn withdraw_now(&self, hash: Hash) -> Result<(), Error> {
        let mut change = self.0.begin(Some(&LOCK)).await?;
        change.run(Statement::new(rows::WITHDRAW).with(hex(hash))).await?;
        Ok(change.commit().await?)
    }

    async fn open_session_now(&self, session: Session) -> Result<(), Error> {
        self.0.run(rows::insert_session(&session)).await?;
        let signed_in =
            Statement::new(rows::SIGNED_IN).with(session.created_at).with(session.user_id);
        self.0.run(signed_in).await?;
        for ended in
            self.sessions_now(session.user_id).await?.into_iter().skip(SESSIONS_PER_USER_MAX)
        {
            self.0.run(Statement::new(rows::CLOSE_SESSION).with(hex(ended.hash))).await?;
        }
        Ok(())
    }

    async fn sessions_now(&self, user_id: i64) -> Result<Vec<Session>, Error> {
        let rows: Vec<SessionRow> =
            self.0.rows(Statement::new(rows::SESSIONS).with(user_id)).await?;
        rows.into_iter().map(rows::session).collect()
    }

    async fn session_now(&self, hash: Hash) -> Result<Option<(Session, User)>, Error> {
        let rows: Vec<SessionRow> =
            self.0.rows(Statement::new(rows::SESSION).with(hex(hash))).await?;
        let Some(session) = rows.into_iter().next().map(rows::session).transpose()? else {
            return Ok(None);
        };
        let mut users = self.users_where(Statement::new(rows::USER).with(session.user_id)).await?;
        Ok(users.pop().map(|user| (session, user)))
    }

    async fn add_token_now(&self, token: ApiToken) -> Result<ApiToken, Error> {
        let mut change = self.0.begin(Some(&LOCK)).await?;
        let tokens = tokens(&mut change).await?;
        let (mut change, token) = change.decided(ApiToken::added(&tokens, token)).await?;
        change.run(rows::insert_token(&token)).await?;
        change.commit().await?;
        Ok(token)
    }

    async fn revoke_token_now(&self, id: i64, at_s: i64) -> Result<ApiToken, Error> {
        let mut change = self.0.begin(Some(&LOCK)).await?;
        let found = tokens(&mut change).await?.into_iter().find(|token| token.id == id);
        let (mut change, mut token) = change.decided(found.ok_or(Error::NotFound("token"))).await?;
        token.revoked_at = token.revoked_at.or(Some(at_s));
        change.run(Statement::new(rows::REVOKE_TOKEN).with(token.revoked_at).with(id)).await?;
        change.commit().await?;
        Ok(token)
    }

    async fn entries_now(&self, filter: Filter) -> Result<Vec<Entry>, Error> {
        let limit = filter.limit.min(AUDIT_ENTRIES_MAX) as i64;
        let statement =
            Statement::new(rows::ENTRIES).with(filter.before).with(filter.from_s).with(filter.to_s);
        let statement =
            statement.with(filter.who).with(filter.verb).with(filter.object).with(limit);
        let rows: Vec<EntryRow> = self.0.rows(statement).await?;
        Ok(rows.into_iter().map(rows::entry).collect())
    }
}

async fn users(change: &mut impl Change) -> Result<Vec<User>, Error> {
    let rows: Vec<UserRow> = change.rows(Statement::new(rows::USERS)).await?;
    rows.into_iter().map(rows::user).collect()
}

async fn tokens(change: &mut impl Change) -> Result<Vec<ApiToken>, Error> {
    let rows: Vec<TokenRow> = change.rows(Statement::new(rows::TOKENS)).await?;
    rows.into_iter().map(rows::token).collect()
}

impl<D: Database> Users for People<D> {
    fn users(&self) -> BoxFuture<'_, Result<Vec<User>, Error>> {
        Box::pin(self.users_where(Statement::new(rows::USERS)))
    }

    fn has_users(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async {
            let rows: Vec<(i64,)> = self.0.rows(Statement::new(rows::ANY_USER)).await?;
            Ok(!rows.is_empty())
        })
    }

    fn user_called<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<User>, Error>> {
        let statement = Statement::new(rows::USER_CALLED).with(handle(name));
        Box::pin(async { Ok(self.users_where(statement).await?.pop()) })
    }

    fn user_of_openid<'a>(&'a self, openid: &'a str) -> BoxFuture<'a, Result<Option<User>, Error>> {
        let statement = Statement::new(rows::USER_OF_OPENID).with(openid);
        // MySQL ignores trailing blanks when it compares texts.
        let is_same = move |user: &User| user.openid == openid;
        Box::pin(async move { Ok(self.users_where(statement).await?.into_iter().find(is_same)) })
    }

    fn add_user(&self, user: NewUser) -> BoxFuture<'_, Result<User, Error>> {
        Box::pin(self.add_user_now(user))
    }

    fn change_user(&self, id: i64, change: UserChange) -> BoxFuture<'_, Result<User, Error>> {
        Box::pin(self.change_user_now(id, change))
    }

    fn remove_user(&self, id: i64) -> BoxFuture<'_, Result<RemovedUser, Error>> {
        Box::pin(self.remove_user_now(id))
    }
}

impl<D: Database> Invitations for People<D> {
    fn invite(&self, invitation: Invitation) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.invite_now(invitation))
    }

    fn invitation(&self, hash: Hash) -> BoxFuture<'_, Result<Option<Invitation>, Error>> {
        Box::pin(async move {
            let statement = Statement::new(rows::INVITATION_OF_HASH).with(hex(hash));
            let rows: Vec<InvitationRow> = self.0.rows(statement).await?;
            rows.into_iter().next().map(rows::invitation).transpose()
        })
    }

    fn invitations(&self) -> BoxFuture<'_, Result<Vec<Invitation>, Error>> {
        Box::pin(async {
            let rows: Vec<InvitationRow> = self.0.rows(Statement::new(rows::INVITATIONS)).await?;
            rows.into_iter().map(rows::invitation).collect()
        })
    }

    fn withdraw(&self, hash: Hash) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.withdraw_now(hash))
    }

    fn accept(&self, hash: Hash, user: NewUser) -> BoxFuture<'_, Result<User, Error>> {
        Box::pin(self.accept_now(hash, user))
    }

    fn sweep_invitations(&self, now_s: i64) -> BoxFuture<'_, Result<(), Error>> {
        let statement = Statement::new(rows::SWEEP_INVITATIONS).with(now_s);
        Box::pin(async { Ok(self.0.run(statement).await?) })
    }
}

impl<D: Database> Sessions for People<D> {
    fn open_session(&self, session: Session) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.open_session_now(session))
    }

    fn session(&self, hash: Hash) -> BoxFuture<'_, Result<Option<(Session, User)>, Error>> {
        Box::pin(self.session_now(hash))
    }

    fn touch_session(&self, hash: Hash, at_s: i64) -> BoxFuture<'_, Result<(), Error>> {
        let statement = Statement::new(rows::TOUCH_SESSION).with(at_s).with(hex(hash));
        Box::pin(async { Ok(self.0.run(statement).await?) })
    }

    fn sessions(&self, user_id: i64) -> BoxFuture<'_, Result<Vec<Session>, Error>> {
        Box::pin(self.sessions_now(user_id))
    }

    fn close_session(&self, hash: Hash) -> BoxFuture<'_, Result<(), Error>> {
        let statement = Statement::new(rows::CLOSE_SESSION).with(hex(hash));
        Box::pin(async { Ok(self.0.run(statement).await?) })
    }

    fn close_sessions(&self, user_id: i64, but: Option<Hash>) -> BoxFuture<'_, Result<(), Error>> {
        let but = but.map(hex).unwrap_or_default();
        let statement = Statement::new(rows::CLOSE_SESSIONS).with(user_id).with(but);
        Box::pin(async { Ok(self.0.run(statement).await?) })
    }

    fn sweep_sessions(&self, now_s: i64, idle_since_s: i64) -> BoxFuture<'_, Result<(), Error>> {
        let statement = Statement::new(rows::SWEEP_SESSIONS).with(now_s).with(idle_since_s);
        Box::pin(async { Ok(self.0.run(statement).await?) })
    }
}

impl<D: Database> Tokens for People<D> {
    fn tokens(&self) -> BoxFuture<'_, Result<Vec<ApiToken>, Error>> {
        Box::pin(async {
            let rows: Vec<TokenRow> = self.0.rows(Statement::new(rows::TOKENS)).await?;
            rows.into_iter().map(rows::token).collect()
        })
    }

    fn add_token(&self, token: ApiToken) -> BoxFuture<'_, Result<ApiToken, Error>> {
        Box::pin(self.add_token_now(token))
    }

    fn revoke_token(&self, id: i64, at_s: i64) -> BoxFuture<'_, Result<ApiToken, Error>> {
        Box::pin(self.revoke_token_now(id, at_s))
    }

    fn note_tokens_used(&self, used: Vec<(i64, i64)>) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async {
            for (id, at_s) in used {
                self.0.run(Statement::new(rows::TOKEN_USED).with(at_s).with(id)).await?;
            }
            Ok(())
        })
    }

    fn revision(&self) -> BoxFuture<'_, Result<i64, Error>> {
        Box::pin(async {
            let rows: Vec<(i64,)> = self.0.rows(Statement::new(LOCK.read)).await?;
            let revision = rows.first().map(|(revision,)| *revision);
            revision.ok_or_else(|| self.0.refuse(LOCK.missing).into())
        })
    }
}

impl<D: Database> AuditTrail for People<D> {
    fn record(&self, entry: Entry) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { Ok(self.0.run(rows::insert_entry(entry)).await?) })
    }

    fn entries(&self, filter: Filter) -> BoxFuture<'_, Result<Vec<Entry>, Error>> {
        Box::pin(self.entries_now(filter))
    }

    fn sweep_entries(&self, before_s: i64) -> BoxFuture<'_, Result<(), Error>> {
        let statement = Statement::new(rows::SWEEP_ENTRIES).with(before_s);
        Box::pin(async { Ok(self.0.run(statement).await?) })
    }
}

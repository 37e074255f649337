//! People in memory.

use parking_lot::Mutex;
use raingauge_core::limits::{AUDIT_ENTRIES_MAX, SESSIONS_PER_USER_MAX};
use raingauge_ports::BoxFuture;
use raingauge_ports::people::{
    ApiToken, AuditTrail, Entry, Error, Filter, Hash, Invitation, Invitations, NewUser,
    RemovedUser, Session, Sessions, Tokens, User, UserChange, Users, handle,
};
use std::cmp::Reverse;

#[derive(Debug, Default)]
pub struct People(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    revision: i64,
    users: Vec<User>,
    invitations: Vec<Invitation>,
    sessions: Vec<Session>,
    tokens: Vec<ApiToken>,
    entries: Vec<Entry>,
    entries_ever: i64,
}

impl State {
    /// Replaces the user with the same id, or appends a new one.
    fn put(&mut self, user: User) -> User {
        self.users.retain(|known| known.id != user.id);
        self.users.push(user.clone());
        self.users.sort_by_key(|user| handle(&user.name));
        self.revision += 1;
        user
    }

    fn change_user(&mut self, id: i64, change: UserChange) -> Result<User, Error> {
        let changed = User::changed(&self.users, id, change)?;
        if !changed.may_sign_in() {
            self.sessions.retain(|session| session.user_id != id);
        }
        Ok(self.put(changed))
    }

    fn remove_user(&mut self, id: i64) -> Result<RemovedUser, Error> {
        let removed = User::removed(&self.users, id)?;
        let RemovedUser { user, pseudonym } = &removed;
        self.users.retain(|known| known.id != id);
        self.sessions.retain(|session| session.user_id != id);
        self.invitations.retain(|invitation| handle(&invitation.name) != handle(&user.name));

        for token in self.tokens.iter_mut().filter(|token| token.created_by == user.name) {
            token.created_by.clone_from(pseudonym);
        }
        let object = format!("person {}", user.name);
        for entry in &mut self.entries {
            if entry.who == user.name {
                entry.who.clone_from(pseudonym);
                entry.address.clear();
            }
            if entry.object == object {
                entry.object.clone_from(pseudonym);
                "{}".clone_into(&mut entry.details);
            }
        }

        self.revision += 1;
        Ok(removed)
    }

    fn accept(&mut self, hash: Hash, new: NewUser) -> Result<User, Error> {
        let found = self.invitations.iter().find(|invitation| invitation.hash == hash);
        let invitation =
            found.filter(|found| new.at_s < found.expires_at).ok_or(Error::LinkSpent)?.clone();
        let user = User::invited(&self.users, &invitation, new)?;
        self.invitations.retain(|other| handle(&other.name) != handle(&invitation.name));
        self.sessions.retain(|session| session.user_id != user.id);
        Ok(self.put(user))
    }

    fn sessions(&self, user_id: i64) -> Vec<Session> {
        let mut found: Vec<Session> =
            self.sessions.iter().filter(|session| session.user_id == user_id).cloned().collect();
        found.sort_by_key(|session| Reverse((session.seen_at, session.created_at, session.hash)));
        found
    }

    fn open_session(&mut self, session: Session) {
        let user_id = session.user_id;
        if let Some(user) = self.users.iter_mut().find(|user| user.id == user_id) {
            user.signed_in_at = Some(session.created_at);
        }
        self.sessions.push(session);
        for ended in self.sessions(user_id).into_iter().skip(SESSIONS_PER_USER_MAX) {
            self.sessions.retain(|session| session.hash != ended.hash);
        }
    }

    fn add_token(&mut self, token: ApiToken) -> Result<ApiToken, Error> {
        let added = ApiToken::added(&self.tokens, token)?;
        self.tokens.insert(0, added.clone());
        self.revision += 1;
        Ok(added)
    }

    fn revoke_token(&mut self, id: i64, at_s: i64) -> Result<ApiToken, Error> {
        let token =
            self.tokens.iter_mut().find(|token| token.id == id).ok_or(Error::NotFound("token"))?;
        token.revoked_at = token.revoked_at.or(Some(at_s));
        self.revision += 1;
        Ok(token.clone())
    }

    fn entries(&self, filter: &Filter) -> Vec<Entry> {
        let is_wanted = |entry: &&Entry| {
            entry.id < filter.before
                && (filter.from_s..filter.to_s).contains(&entry.at_s)
                && entry.who.contains(&filter.who)
                && entry.verb.contains(&filter.verb)
                && entry.object.contains(&filter.object)
        };
        let limit = filter.limit.min(AUDIT_ENTRIES_MAX);
        self.entries.iter().rev().filter(is_wanted).take(limit).cloned().collect()
    }
}

impl People {
    /// Does the work at once, even if the future is never polled.
    fn with<'a, T: Send + 'a>(
        &self,
        work: impl FnOnce(&mut State) -> Result<T, Error>,
    ) -> BoxFuture<'a, Result<T, Error>> {
        let answer = work(&mut self.0.lock());
        Box::pin(async move { answer })
    }

    /// As `with`, for work that cannot fail.
    fn done<'a, T: Send + 'a>(
        &self,
        work: impl FnOnce(&mut State) -> T,
    ) -> BoxFuture<'a, Result<T, Error>> {
        self.with(|state| Ok(work(state)))
    }
}

impl Users for People {
    fn users(&self) -> BoxFuture<'_, Result<Vec<User>, Error>> {
        self.done(|state| state.users.clone())
    }

    fn has_users(&self) -> BoxFuture<'_, Result<bool, Error>> {
        self.done(|state| !state.users.is_empty())
    }

    fn user_called<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<User>, Error>> {
        let is_called = |user: &&User| handle(&user.name) == handle(name);
        self.done(|state| state.users.iter().find(is_called).cloned())
    }

    fn user_of_openid<'a>(&'a self, openid: &'a str) -> BoxFuture<'a, Result<Option<User>, Error>> {
        let is_of = |user: &&User| user.openid == openid && !openid.is_empty();
        self.done(|state| state.users.iter().find(is_of).cloned())
    }

    fn add_user(&self, user: NewUser) -> BoxFuture<'_, Result<User, Error>> {
        self.with(|state| User::added(&state.users, user).map(|added| state.put(added)))
    }

    fn change_user(&self, id: i64, change: UserChange) -> BoxFuture<'_, Result<User, Error>> {
        self.with(|state| state.change_user(id, change))
    }

    fn remove_user(&self, id: i64) -> BoxFuture<'_, Result<RemovedUser, Error>> {
        self.with(|state| state.remove_user(id))
    }
}

impl Invitations for People {
    fn invite(&self, invitation: Invitation) -> BoxFuture<'_, Result<(), Error>> {
        self.with(|state| {
            Invitation::fits(state.invitations.len())?;
            state.invitations.push(invitation);
            let age = |invitation: &Invitation| Reverse((invitation.created_at, invitation.hash));
            state.invitations.sort_by_key(age);
            state.revision += 1;
            Ok(())
        })
    }

    fn invitation(&self, hash: Hash) -> BoxFuture<'_, Result<Option<Invitation>, Error>> {
        let is_of = |invitation: &&Invitation| invitation.hash == hash;
        self.done(|state| state.invitations.iter().find(is_of).cloned())
    }

    fn invitations(&self) -> BoxFuture<'_, Result<Vec<Invitation>, Error>> {
        self.done(|state| state.invitations.clone())
    }

    fn withdraw(&self, hash: Hash) -> BoxFuture<'_, Result<(), Error>> {
        self.done(|state| {
            state.invitations.retain(|invitation| invitation.hash != hash);
            state.revision += 1;
        })
    }

    fn accept(&self, hash: Hash, user: NewUser) -> BoxFuture<'_, Result<User, Error>> {
        self.with(|state| state.accept(hash, user))
    }

    fn sweep_invitations(&self, now_s: i64) -> BoxFuture<'_, Result<(), Error>> {
        self.done(|state| state.invitations.retain(|invitation| invitation.expires_at > now_s))
    }
}

impl Sessions for People {
    fn open_session(&self, session: Session) -> BoxFuture<'_, Result<(), Error>> {
        self.done(|state| state.open_session(session))
    }

    fn session(&self, hash: Hash) -> BoxFuture<'_, Result<Option<(Session, User)>, Error>> {
        self.done(|state| {
            let session = state.sessions.iter().find(|session| session.hash == hash)?;
            let user = state.users.iter().find(|user| user.id == session.user_id)?;
            Some((session.clone(), user.clone()))
        })
    }

    fn touch_session(&self, hash: Hash, at_s: i64) -> BoxFuture<'_, Result<(), Error>> {
        self.done(|state| {
            let session = state.sessions.iter_mut().find(|session| session.hash == hash);
            session.into_iter().for_each(|session| session.seen_at = at_s);
        })
    }

    fn sessions(&self, user_id: i64) -> BoxFuture<'_, Result<Vec<Session>, Error>> {
        self.done(|state| state.sessions(user_id))
    }

    fn close_session(&self, hash: Hash) -> BoxFuture<'_, Result<(), Error>> {
        self.done(|state| state.sessions.retain(|session| session.hash != hash))
    }

    fn close_sessions(&self, user_id: i64, but: Option<Hash>) -> BoxFuture<'_, Result<(), Error>> {
        let stays = |session: &Session| session.user_id != user_id || Some(session.hash) == but;
        self.done(|state| state.sessions.retain(stays))
    }

    fn sweep_sessions(&self, now_s: i64, idle_since_s: i64) -> BoxFuture<'_, Result<(), Error>> {
        let is_open =
            |session: &Session| session.expires_at > now_s && session.seen_at > idle_since_s;
        self.done(|state| state.sessions.retain(is_open))
    }
}

impl Tokens for People {
    fn tokens(&self) -> BoxFuture<'_, Result<Vec<ApiToken>, Error>> {
        self.done(|state| state.tokens.clone())
    }

    fn add_token(&self, token: ApiToken) -> BoxFuture<'_, Result<ApiToken, Error>> {
        self.with(|state| state.add_token(token))
    }

    fn revoke_token(&self, id: i64, at_s: i64) -> BoxFuture<'_, Result<ApiToken, Error>> {
        self.with(|state| state.revoke_token(id, at_s))
    }

    fn note_tokens_used(&self, used: Vec<(i64, i64)>) -> BoxFuture<'_, Result<(), Error>> {
        self.done(|state| {
            for (id, at_s) in used {
                let token = state.tokens.iter_mut().find(|token| token.id == id);
                token.into_iter().for_each(|token| token.used_at = Some(at_s));
            }
        })
    }

    fn revision(&self) -> BoxFuture<'_, Result<i64, Error>> {
        self.done(|state| state.revision)
    }
}

impl AuditTrail for People {
    fn record(&self, entry: Entry) -> BoxFuture<'_, Result<(), Error>> {
        self.done(|state| {
            state.entries_ever += 1;
            state.entries.push(Entry { id: state.entries_ever, ..entry });
        })
    }

    fn entries(&self, filter: Filter) -> BoxFuture<'_, Result<Vec<Entry>, Error>> {
        self.done(|state| state.entries(&filter))
    }

    fn sweep_entries(&self, before_s: i64) -> BoxFuture<'_, Result<(), Error>> {
        self.done(|state| state.entries.retain(|entry| entry.at_s >= before_s))
    }
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn it_keeps_the_contract() {
        raingauge_ports::contract::people::suite(async || super::People::default()).await;
    }
}

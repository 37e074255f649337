//! The contract of API tokens, and of the revision that caches follow.

use super::{AWKWARD, HOUR_S, NOW_S, entry, hash, invitation, new_user, session, token};
use crate::people::{ApiToken, Error, People, Tokens, UserChange};
use raingauge_core::access::{Role, Scope};

pub async fn a_token_comes_back_whole(people: &dyn Tokens) {
    let added = people.add_token(token(1, AWKWARD)).await.unwrap();
    assert_eq!(added, ApiToken { id: 1, ..token(1, AWKWARD) });

    let admin = ApiToken {
        scopes: [Scope::Admin].into_iter().collect(),
        expires_at: Some(NOW_S + HOUR_S),
        ..token(2, "shop")
    };

    let second = people.add_token(admin).await.unwrap();
    assert_eq!(second.id, 2);
    people.note_tokens_used(vec![(1, NOW_S + 5), (7, NOW_S)]).await.unwrap();

    let used = ApiToken { used_at: Some(NOW_S + 5), ..added };
    assert_eq!(people.tokens().await.unwrap(), [second, used.clone()]);

    let revoked = ApiToken { revoked_at: Some(NOW_S + 6), ..used };
    assert_eq!(people.revoke_token(1, NOW_S + 6).await.unwrap(), revoked);
    assert_eq!(people.revoke_token(1, NOW_S + 7).await.unwrap(), revoked);
    assert_eq!(people.revoke_token(9, NOW_S).await, Err(Error::NotFound("token")));
    assert_eq!(people.tokens().await.unwrap()[1], revoked);
}

pub async fn a_name_is_free_again_when_its_token_is_revoked(people: &dyn Tokens) {
    let first = people.add_token(token(1, "shop")).await.unwrap();
    let refused = people.add_token(token(2, "shop")).await;
    assert_eq!(refused, Err(Error::NameTaken("shop".to_owned())));
    people.revoke_token(first.id, NOW_S).await.unwrap();
    let expiring = ApiToken { expires_at: Some(NOW_S + 10), ..token(2, "shop") };
    people.add_token(expiring).await.unwrap();
    let later = ApiToken { created_at: NOW_S + 10, ..token(3, "shop") };
    assert_eq!(people.add_token(later).await.unwrap().id, 3);
}

pub async fn the_revision_grows_with_what_followers_hold(people: &dyn People) {
    let mut last = people.revision().await.unwrap();
    let mut grows = async |what: &str, does: bool| {
        let revision = people.revision().await.unwrap();
        assert_eq!(revision > last, does, "{what}: {last} -> {revision}");
        last = revision;
    };

    let user = people.add_user(new_user("zoe", Role::Admin)).await.unwrap();
    grows("a user", true).await;
    people.change_user(user.id, UserChange::Password("p".to_owned())).await.unwrap();
    grows("a password", true).await;
    people.invite(invitation(1, "max", Role::Viewer)).await.unwrap();
    grows("a link", true).await;
    people.accept(hash(1), new_user("max", Role::Viewer)).await.unwrap();
    grows("a link that is used", true).await;
    people.add_token(token(1, "shop")).await.unwrap();
    grows("a token", true).await;
    people.revoke_token(1, NOW_S).await.unwrap();
    grows("a revoked token", true).await;

    // Changes made with every request must not cause caches to be read again.
    people.open_session(session(1, &user)).await.unwrap();
    people.touch_session(hash(1), NOW_S + 60).await.unwrap();
    people.note_tokens_used(vec![(1, NOW_S)]).await.unwrap();
    people.record(entry(NOW_S, "zoe", "counter.create", "counter 34")).await.unwrap();
    grows("requests", false).await;
}

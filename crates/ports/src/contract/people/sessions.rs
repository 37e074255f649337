//! The contract of sessions.

use super::{HOUR_S, NOW_S, hash, invitation, new_user, session};
use crate::people::{People, Session, Sessions, User, UserChange};
use raingauge_core::access::Role;
use raingauge_core::limits::SESSIONS_PER_USER_MAX;

async fn two(people: &dyn People) -> (User, User) {
    let one = people.add_user(new_user("zoe", Role::Admin)).await.unwrap();
    (one, people.add_user(new_user("max", Role::Viewer)).await.unwrap())
}

async fn hashes(people: &dyn Sessions, user: &User) -> Vec<u8> {
    people.sessions(user.id).await.unwrap().iter().map(|session| session.hash[0]).collect()
}

pub async fn a_session_is_found_by_its_hash(people: &dyn People) {
    let (zoe, max) = two(people).await;
    people.open_session(session(1, &zoe)).await.unwrap();
    people.open_session(session(2, &max)).await.unwrap();

    let signed_in = User { signed_in_at: Some(NOW_S), ..zoe };
    assert_eq!(
        people.session(hash(1)).await.unwrap(),
        Some((session(1, &signed_in), signed_in.clone()))
    );
    assert_eq!(people.user_called("zoe").await.unwrap(), Some(signed_in.clone()));
    assert_eq!(people.session(hash(2)).await.unwrap().unwrap().1.name, "max");
    assert_eq!(people.session(hash(3)).await.unwrap(), None);
    people.touch_session(hash(1), NOW_S + 60).await.unwrap();
    people.touch_session(hash(3), NOW_S + 60).await.unwrap();

    let seen = Session { seen_at: NOW_S + 60, ..session(1, &signed_in) };
    assert_eq!(people.sessions(signed_in.id).await.unwrap(), [seen]);
}

pub async fn sessions_end_one_by_one_or_together(people: &dyn People) {
    let (zoe, max) = two(people).await;
    for number in 1..=4 {
        people.open_session(session(number, &zoe)).await.unwrap();
    }
    people.open_session(session(5, &max)).await.unwrap();
    assert_eq!(hashes(people, &zoe).await, [4, 3, 2, 1]);
    people.close_session(hash(2)).await.unwrap();
    people.close_session(hash(2)).await.unwrap();
    assert_eq!(people.session(hash(2)).await.unwrap(), None);
    assert_eq!(hashes(people, &zoe).await, [4, 3, 1]);
    people.close_sessions(zoe.id, Some(hash(3))).await.unwrap();
    assert_eq!(hashes(people, &zoe).await, [3]);
    people.close_sessions(zoe.id, None).await.unwrap();
    assert_eq!(hashes(people, &zoe).await, [0; 0]);
    assert_eq!(hashes(people, &max).await, [5]);
}

pub async fn who_is_disabled_is_signed_out(people: &dyn People) {
    let (zoe, max) = two(people).await;
    people.open_session(session(1, &max)).await.unwrap();
    people.open_session(session(2, &zoe)).await.unwrap();
    people.change_user(max.id, UserChange::Role(Role::Editor)).await.unwrap();
    assert_eq!(people.session(hash(1)).await.unwrap().unwrap().1.role, Role::Editor);
    people.change_user(max.id, UserChange::Disabled(NOW_S)).await.unwrap();
    assert_eq!(people.session(hash(1)).await.unwrap(), None);
    assert_eq!(hashes(people, &zoe).await, [2]);
}

pub async fn the_longest_unused_session_makes_room(people: &dyn People) {
    let (zoe, _) = two(people).await;
    let last = SESSIONS_PER_USER_MAX as u8 + 2;
    for number in 1..=last {
        people.open_session(session(number, &zoe)).await.unwrap();
    }
    assert_eq!(hashes(people, &zoe).await, (3..=last).rev().collect::<Vec<_>>());
}

pub async fn what_has_expired_is_swept(people: &dyn People) {
    let (zoe, max) = two(people).await;
    let sweep = async |now_s| {
        people.sweep_sessions(now_s, now_s - HOUR_S).await.unwrap();
        people.sweep_invitations(now_s).await.unwrap();
    };
    people.open_session(Session { expires_at: NOW_S + 10, ..session(1, &zoe) }).await.unwrap();
    people.open_session(session(2, &max)).await.unwrap();
    people.invite(invitation(1, "eve", Role::Viewer)).await.unwrap();
    sweep(NOW_S + 9).await;
    assert_eq!((hashes(people, &zoe).await, hashes(people, &max).await), (vec![1], vec![2]));
    sweep(NOW_S + 10).await;
    assert_eq!((hashes(people, &zoe).await, hashes(people, &max).await), (vec![], vec![2]));
    sweep(NOW_S + 2 + HOUR_S).await;
    assert_eq!(hashes(people, &max).await, [0; 0]);
    assert_eq!(people.invitations().await.unwrap().len(), 1);
    sweep(NOW_S + 24 * HOUR_S).await;
    assert_eq!(people.invitations().await.unwrap(), []);
    assert_eq!(people.users().await.unwrap().len(), 2);
}

//! The contract of people.

mod audit;
mod sessions;
mod tokens;
mod users;

use crate::people::{ApiToken, Entry, Hash, Invitation, NewUser, People, Session, User};
use raingauge_core::access::{Role, Scope};

/// A day in 2024.
pub const NOW_S: i64 = 1_727_215_200;
const HOUR_S: i64 = 3_600;

/// Text with characters that a database might treat specially. It must come back unchanged.
pub const AWKWARD: &str = "Zoë ☔ 'quoted' \"twice\" \\ ; DROP TABLE users; -- % _ <b>";

/// Runs the whole suite. `fresh` returns an empty store each time.
pub async fn suite<P: People>(fresh: impl AsyncFn() -> P) {
    users::nobody_is_there_at_first(&fresh().await).await;
    users::a_user_comes_back_whole(&fresh().await).await;
    users::names_differ_in_more_than_case(&fresh().await).await;
    users::changes_are_kept(&fresh().await).await;
    users::an_administrator_stays(&fresh().await).await;
    users::of_two_administrators_who_remove_each_other_one_stays(&fresh().await).await;
    users::a_link_is_good_once(&fresh().await).await;
    users::a_link_for_a_known_person_sets_a_new_password(&fresh().await).await;
    users::a_link_with_an_address_sets_it(&fresh().await).await;
    users::the_first_link_is_spent_with_the_first_user(&fresh().await).await;
    users::a_link_ends(&fresh().await).await;
    users::a_removed_person_is_forgotten(&fresh().await).await;
    sessions::a_session_is_found_by_its_hash(&fresh().await).await;
    sessions::sessions_end_one_by_one_or_together(&fresh().await).await;
    sessions::who_is_disabled_is_signed_out(&fresh().await).await;
    sessions::the_longest_unused_session_makes_room(&fresh().await).await;
    sessions::what_has_expired_is_swept(&fresh().await).await;
    tokens::a_token_comes_back_whole(&fresh().await).await;
    tokens::a_name_is_free_again_when_its_token_is_revoked(&fresh().await).await;
    tokens::the_revision_grows_with_what_followers_hold(&fresh().await).await;
    audit::entries_come_newest_first_in_pages(&fresh().await).await;
    audit::entries_are_filtered(&fresh().await).await;
    audit::old_entries_are_swept(&fresh().await).await;
}

pub fn hash(number: u8) -> Hash {
    [number; 32]
}

pub fn new_user(name: &str, role: Role) -> NewUser {
    let email = format!("{name}@example.com");
    let password = format!("$argon2id$ of {name}");
    NewUser { name: name.to_owned(), email, role, password, openid: String::new(), at_s: NOW_S }
}

pub fn invitation(number: u8, name: &str, role: Role) -> Invitation {
    Invitation {
        hash: hash(number),
        name: name.to_owned(),
        email: String::new(),
        role,
        invited_by: "zoe".to_owned(),
        created_at: NOW_S + i64::from(number),
        expires_at: NOW_S + 24 * HOUR_S,
    }
}

pub fn session(number: u8, user: &User) -> Session {
    Session {
        hash: hash(number),
        user_id: user.id,
        created_at: NOW_S,
        seen_at: NOW_S + i64::from(number),
        expires_at: NOW_S + 24 * HOUR_S,
        address: "192.0.2.7".to_owned(),
        browser: AWKWARD.to_owned(),
    }
}

pub fn token(number: u8, name: &str) -> ApiToken {
    ApiToken {
        id: 0,
        hash: hash(number),
        name: name.to_owned(),
        scopes: [Scope::EventsWrite, Scope::CountsRead].into_iter().collect(),
        created_by: "zoe".to_owned(),
        created_at: NOW_S,
        expires_at: None,
        revoked_at: None,
        used_at: None,
    }
}

pub fn entry(at_s: i64, who: &str, verb: &str, object: &str) -> Entry {
    let [who, verb, object] = [who, verb, object].map(str::to_owned);
    let details = "{}".to_owned();
    let outcome = "done".to_owned();
    Entry { id: 0, at_s, who, address: "192.0.2.7".to_owned(), verb, object, details, outcome }
}

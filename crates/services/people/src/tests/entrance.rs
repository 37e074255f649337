//! Signing in with a password: who gets in, the limit of attempts, and how long a session lasts.

use super::{HERE, HOUR_S, House, NOW_S, PASSWORD, WRONG};
use crate::accounts::Admission;
use crate::limits::{NAME_IN_NETWORK, NAME_IN_SUSPECT_NETWORK, NETWORK};
use crate::{AccountError, Origin};
use raingauge_core::access::Role;

impl House {
    async fn sign_in(
        &self,
        name: &str,
        password: &str,
        mark: Option<&str>,
    ) -> Result<Admission, AccountError> {
        let origin = Origin { address: HERE.to_owned(), browser: String::new() };
        self.accounts.sign_in(name, password, &origin, mark).await
    }

    /// Why nobody comes in with this name and password, in a browser that is not known.
    async fn refusal(&self, name: &str, password: &str) -> Option<AccountError> {
        self.sign_in(name, password, None).await.err()
    }
}

#[tokio::test]
async fn guessers_do_not_keep_a_known_browser_out() {
    let house = House::with_root().await;
    let mark = house.sign_in("root", PASSWORD, None).await.unwrap().mark.expect("a mark");

    for _ in 0..NAME_IN_NETWORK.burst() * 2 {
        house.refusal("root", WRONG).await;
    }
    assert!(matches!(house.refusal("root", PASSWORD).await, Some(AccountError::Wait(_))));

    // Behind the same proxy, and of the same name.
    let mark = house.sign_in("root", PASSWORD, Some(&mark)).await.unwrap().mark.expect("a mark");

    // The mark does not lift the limit for a guesser at the same browser.
    for _ in 0..NAME_IN_NETWORK.burst() {
        assert_eq!(
            house.sign_in("root", WRONG, Some(&mark)).await.err(),
            Some(AccountError::Wrong)
        );
    }
    let refused = house.sign_in("root", PASSWORD, Some(&mark)).await.err();
    assert!(matches!(refused, Some(AccountError::Wait(_))));
}

/// Behind a proxy that does not name its callers, all of them come from one address.
#[tokio::test]
async fn wrong_passwords_of_others_keep_nobody_out() {
    let house = House::with_root().await;
    for number in 0..NETWORK.burst() + 10 {
        assert_eq!(house.refusal(&format!("x{number}"), WRONG).await, Some(AccountError::Wrong));
    }
    // A guesser who goes through all names has two attempts for each.
    for _ in 0..NAME_IN_SUSPECT_NETWORK.burst() {
        assert_eq!(house.refusal("max", WRONG).await, Some(AccountError::Wrong));
    }
    assert_eq!(house.refusal("max", WRONG).await, Some(AccountError::Wait(300)));

    assert!(house.sign_in("root", PASSWORD, None).await.is_ok());
}

#[tokio::test]
async fn a_session_ends_by_itself() {
    let house = House::with_root().await;

    // Its absolute end is a day away, and it may rest for twelve hours.
    let session = house.with("zoe", Role::Viewer).await;
    for hours in [0, 11, 22] {
        house.clock.set_s(NOW_S + hours * HOUR_S);
        assert!(house.principal(&session).await.is_some(), "{hours}");
    }

    house.clock.set_s(NOW_S + 24 * HOUR_S);
    assert_eq!(house.principal(&session).await, None);

    let session = house.with("max", Role::Viewer).await;
    house.clock.set_s(NOW_S + 36 * HOUR_S);
    assert_eq!(house.principal(&session).await, None);
    house.accounts.sweep().await.unwrap();

    let id = house.id_of("max").await;
    assert_eq!(house.accounts.people.sessions(id).await.unwrap(), []);
}

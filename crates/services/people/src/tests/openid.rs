//! Who comes in by a provider, and as whom.

use super::{HOUR_S, House, NOW_S};
use crate::accounts::Admission;
use crate::openid::{Denial, OpenId, ProviderAnswer, Rules};
use crate::trips::Trip;
use crate::{AccountError, Origin};
use parking_lot::Mutex;
use raingauge_core::access::Role;
use raingauge_ports::BoxFuture;
use raingauge_ports::identity::{Error, Identity, IdentityProvider, Ticket};
use raingauge_ports::people;
use std::sync::Arc;

const ZOE: &str = "zoe@rain.example";

/// Answers as the test has set it up.
struct Provider(Mutex<Result<Identity, Error>>);

impl IdentityProvider for Provider {
    fn begin(&self, ticket: Ticket) -> BoxFuture<'_, Result<String, Error>> {
        Box::pin(async move { Ok(format!("https://id.example/?state={}", ticket.state)) })
    }

    fn finish(&self, _code: String, _ticket: Ticket) -> BoxFuture<'_, Result<Identity, Error>> {
        let answer = self.0.lock().clone();
        Box::pin(async move { answer })
    }
}

struct World {
    house: House,
    provider: Arc<Provider>,
    openid: OpenId,
}

impl World {
    fn new(house: House, rules: Rules) -> Self {
        let provider = Arc::new(Provider(Mutex::new(Ok(Identity::default()))));
        let openid = OpenId { provider: Arc::clone(&provider) as _, rules };
        Self { house, provider, openid }
    }

    fn says(&self, subject: &str, email: &str, groups: &[&str]) {
        *self.provider.0.lock() = Ok(Identity {
            openid: format!("https://id.example {subject}"),
            email: email.to_owned(),
            is_email_verified: true,
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        });
    }

    async fn sign_in(&self) -> Result<Admission, Denial> {
        let now_s = NOW_S;
        let (left, _) = self.openid.begin("/", now_s).await.expect("the provider is there");
        let trip = Trip::resume(left.cookie(), &left.ticket().state, now_s).expect("it is over");
        let answer = ProviderAnswer { code: Some("code"), error: None };
        self.house.accounts.finish_trip(&self.openid, &trip, answer, &Origin::default()).await
    }

    async fn denial(&self) -> Option<Denial> {
        self.sign_in().await.err()
    }
}

fn rules() -> Rules {
    Rules {
        label: "Sign in with rain".to_owned(),
        domains: vec!["rain.example".to_owned()],
        role: Role::Viewer,
        groups: Vec::new(),
    }
}

#[tokio::test]
async fn a_domain_comes_in_without_an_invitation() {
    let world = World::new(House::empty(), Rules { role: Role::Editor, ..rules() });
    world.says("7", ZOE, &[]);
    assert_eq!(world.denial().await, Some(Denial::NobodyYet));

    let path = world.house.accounts.invite_first().await.unwrap();
    world.house.accept(&path.expect("the link is still good"), "root").await.unwrap();

    let session = world.sign_in().await.expect("of the domain").session;
    let zoe = world.house.principal(&session).await.expect("signed in");
    assert_eq!((&*zoe.name, zoe.role()), (ZOE, Some(Role::Editor)));
    assert_eq!(world.house.entries_of("person.add").await[0].object, format!("person {ZOE}"));

    let foreign = "zoe@snow.example".to_owned();
    let strange = "<zoe>@rain.example".to_owned();
    for (subject, email, denial) in [
        ("8", &*foreign, Denial::NotInvited(foreign.clone())),
        ("9", ZOE, Denial::Contested(ZOE.to_owned())),
        ("10", &*strange, Denial::NotInvited(strange.clone())),
    ] {
        world.says(subject, email, &[]);
        assert_eq!(world.denial().await, Some(denial), "{email}");
    }

    // The name of another person equals this address.
    let max = "max@rain.example";
    world.house.with(max, Role::Viewer).await;
    world.says("11", max, &[]);
    assert_eq!(world.denial().await, Some(Denial::Contested(max.to_owned())));
}

#[tokio::test]
async fn roles_follow_the_groups() {
    let groups = [("team", Role::Viewer), ("ops", Role::Admin)]
        .map(|(group, role)| (group.to_owned(), role))
        .to_vec();
    let world = World::new(House::empty(), Rules { groups, ..rules() });

    // An administrator by group may be the first one.
    world.says("7", ZOE, &["team", "ops"]);
    let session = world.sign_in().await.expect("an administrator").session;
    let role = async || world.house.principal(&session).await.expect("signed in").role();
    assert_eq!(role().await, Some(Role::Admin));

    world.says("7", ZOE, &["team"]);
    let last = Denial::Account(AccountError::Store(people::Error::LastAdmin));
    assert_eq!(world.denial().await, Some(last));
    world.house.with("root", Role::Admin).await;
    assert!(world.sign_in().await.is_ok());
    assert_eq!(role().await, Some(Role::Viewer));

    let details = &world.house.entries_of("person.role").await[0].details;
    assert_eq!(details, r#"{"by":"openid","role":"viewer"}"#);

    for none in [&["guests"][..], &[]] {
        world.says("7", ZOE, none);
        assert_eq!(world.denial().await, Some(Denial::NoRole));
    }
}

#[tokio::test]
async fn the_provider_is_asked_again_after_eight_hours() {
    let world = World::new(House::with_root().await, rules());
    world.says("7", ZOE, &[]);
    let session = world.sign_in().await.expect("of the domain").session;
    for hour in 1..8 {
        world.house.clock.set_s(NOW_S + hour * HOUR_S);
        assert!(world.house.principal(&session).await.is_some(), "{hour}");
    }
    world.house.clock.set_s(NOW_S + 8 * HOUR_S);
    assert_eq!(world.house.principal(&session).await, None);
}

#[tokio::test]
async fn failed_ways_back_keep_nobody_out() {
    let world = World::new(House::with_root().await, rules());
    let refused = Error::Refused("invalid_grant".to_owned());
    *world.provider.0.lock() = Err(refused.clone());
    for _ in 0..200 {
        assert_eq!(world.denial().await, Some(Denial::Provider(refused.clone())));
    }
    world.says("7", ZOE, &[]);
    assert!(world.sign_in().await.is_ok());
}

#[tokio::test]
async fn what_the_browser_brings_back_is_a_code_or_a_word() {
    let world = World::new(House::with_root().await, rules());
    world.says("7", ZOE, &[]);

    let (trip, _) = world.openid.begin("/", NOW_S).await.expect("the provider is there");
    for (code, error, expected) in [
        (None, Some("access_denied"), Error::Refused("access_denied".to_owned())),
        (Some("code"), Some("<b>no</b>"), Error::Refused("bnob".to_owned())),
        (None, None, Error::Unproven("there is no code in it".to_owned())),
    ] {
        let answer = ProviderAnswer { code, error };
        let origin = Origin::default();
        let denied = world.house.accounts.finish_trip(&world.openid, &trip, answer, &origin).await;
        assert_eq!(denied.err(), Some(Denial::Provider(expected)));
    }

    assert_eq!(Trip::resume(trip.cookie(), "another state", NOW_S), None);
}

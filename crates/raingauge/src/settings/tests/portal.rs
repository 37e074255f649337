//! The settings of the portal and of sign-in.

use super::{assert_starts, load};
use raingauge_core::access::Role as PersonRole;

/// A portal for others requires tokens from programs.
const REQUIRED: [(&str, &str); 1] = [("RAINGAUGE__AUTH__REQUIRED", "true")];

#[test]
fn without_passwords_there_is_a_provider() {
    let alone = load("[portal]\npasswords = false\n", &REQUIRED).unwrap_err();
    assert_starts(
        &alone,
        &["2 portal.passwords: passwords are switched off, and there is no provider"],
    );
    let beside = "[portal]\npasswords = false\npublic_url = \"https://rain.example\"\naddress_header = \"none\"\n\
                  [openid]\nissuer = \"https://login.example\"\nclient_id = \"rain\"\n";
    assert!(!load(beside, &REQUIRED).unwrap().people.passwords);
}

#[test]
fn behind_an_address_of_others_callers_are_distinguished() {
    let portal = |text: &str| load(&format!("[portal]\n{text}\n"), &REQUIRED);
    for named in ["X-Forwarded-For", "none"] {
        assert!(
            portal(&format!("public_url = \"https://rain.example\"\naddress_header = \"{named}\""))
                .is_ok()
        );
    }

    let has_one = |text: &str| portal(text).unwrap().people.has_one_address;
    assert!(has_one("public_url = \"https://rain.example\""));

    for told in [
        "public_url = \"https://rain.example\"\naddress_header = \"none\"",
        "public_url = \"http://localhost\"",
        "",
    ] {
        assert!(!has_one(told), "{told}");
    }

    let proxies = |text: &str| {
        portal(&format!("proxies = \"{text}\"")).map(|settings| settings.people.proxies)
    };
    assert_eq!(proxies("10.0.0.0/8, 2001:db8::1").unwrap().len(), 2);
    assert_eq!(proxies("").unwrap(), []);

    assert_starts(
        &proxies("10.0.0.0/8, proxy").unwrap_err(),
        &["2 portal.proxies: \"proxy\" cannot be read"],
    );
}

#[test]
fn a_provider_of_openid_is_checked_as_a_whole() {
    let right = "[portal]\npublic_url = \"https://rain.example\"\naddress_header = \"none\"\n[openid]\nissuer = \"https://login.example/realms/rain\"\n\
                 client_id = \"rain\"\nclient_secret = \"hidden\"\ndomains = \"Rain.example, @snow.example\"\n\
                 groups_claim = \"groups\"\ngroups = \"cn=ops=admin, team = viewer\"\n";
    let openid = load(right, &REQUIRED).unwrap().openid;
    assert_eq!(openid.domains, ["rain.example", "snow.example"]);
    assert_eq!(
        openid.groups,
        [("cn=ops".to_owned(), PersonRole::Admin), ("team".to_owned(), PersonRole::Viewer)]
    );
    assert_eq!(openid.scopes, "openid email profile");
    assert!(!format!("{openid:?}").contains("hidden"));

    let wrong = "[openid]\nissuer = \"http://login.example\"\ndomains = \"a b\"\ngroups = \"team=guest\"\nrole = \"guest\"\n";
    let expected = [
        "0 openid.client_id: people are sent to a provider",
        "0 portal.public_url: people are sent to a provider",
        "2 openid.issuer: \"http://login.example\" is not the address of a provider",
        "3 openid.domains: \"a b\" is not a domain",
        "4 openid.groups: \"team=guest\" gives no role",
        "5 openid.role: \"guest\" is not one of its words",
    ];

    let mut found = load(wrong, &REQUIRED).unwrap_err();
    found.sort_by_key(|problem| (problem.origin.line().unwrap_or(0), problem.key.clone()));
    assert_starts(&found, &expected);

    let alone = load(&right.replace("groups_claim = \"groups\"\n", ""), &REQUIRED).unwrap_err();
    assert_starts(&alone, &["9 openid.groups: openid.groups_claim and openid.groups go together"]);

    for here in ["http://127.0.0.1:9/", "http://localhost:9", "http://[::1]:9/a"] {
        assert!(
            load(&right.replace("https://login.example/realms/rain", here), &REQUIRED).is_ok(),
            "{here}"
        );
    }

    for wrong in [
        "https://",
        "http://127.0.0.1.evil.example",
        "ftp://a",
        "https://a?b",
        "https://a b",
        "https://u@a",
    ] {
        let problems = load(&right.replace("https://login.example/realms/rain", wrong), &REQUIRED)
            .unwrap_err();
        assert_starts(&problems, &["5 openid.issuer: "]);
    }

    let admins = load(&right.replace("groups_claim", "role = \"admin\"\ngroups_claim"), &REQUIRED)
        .unwrap_err();
    assert_starts(
        &admins,
        &["9 openid.role: everybody with an address of openid.domains would be an administrator"],
    );
}

#[test]
fn the_address_of_the_portal_has_no_path() {
    let url = |url: &str| {
        load(&format!("[portal]\npublic_url = \"{url}\"\naddress_header = \"none\"\n"), &REQUIRED)
    };
    assert_eq!(
        url("https://Rain.example:8443/").unwrap().people.public_url.as_deref(),
        Some("https://rain.example:8443")
    );

    for wrong in [
        "rain.example",
        "ftp://rain.example",
        "https://",
        "https://rain.example/portal",
        "https://a@b",
    ] {
        assert_starts(&url(wrong).unwrap_err(), &["2 portal.public_url: "]);
    }

    let header = |name: &str| load(&format!("[portal]\naddress_header = \"{name}\"\n"), &REQUIRED);
    assert_eq!(
        header("X-Forwarded-For").unwrap().people.address_header.as_deref(),
        Some("x-forwarded-for")
    );
    assert_starts(&header("X Forwarded").unwrap_err(), &["2 portal.address_header: "]);
    assert_eq!(header("None").unwrap().people.address_header, None);

    let switch = load("[portal]\nsign_in = \"maybe\"\n", &REQUIRED);
    assert_starts(&switch.unwrap_err(), &["2 portal.sign_in: \"maybe\" is neither true nor false"]);
}

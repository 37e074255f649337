//! The keys of the portal.

use super::{Key, Kind, whole};

const fn text(name: &'static str, default: &'static str, doc: &'static str) -> Key {
    Key { section: "openid", name, kind: Kind::Text { default, is_secret: false }, doc }
}

pub const KEYS: &[Key] = &[
    Key {
        section: "portal",
        name: "sign_in",
        kind: Kind::Switch { default: true },
        doc: "Whether people must sign in; without it everyone who reaches the portal is an administrator, and it must listen on loopback.",
    },
    Key {
        section: "portal",
        name: "passwords",
        kind: Kind::Switch { default: true },
        doc: "Whether people may sign in by passwords; without them they sign in by OpenID Connect, and by links of raingauge portal invite.",
    },
    Key {
        section: "portal",
        name: "public_url",
        kind: Kind::Text { default: "", is_secret: false },
        doc: "How browsers reach the portal, such as https://raingauge.example; with https, cookies are kept to TLS.",
    },
    whole(
        "portal",
        "session_idle_hours",
        12,
        (1, 8_760),
        "hours",
        "How long after the last page people must sign in again.",
    ),
    whole(
        "portal",
        "session_max_days",
        14,
        (1, 365),
        "days",
        "How long after signing in people must sign in again, however busy.",
    ),
    whole(
        "portal",
        "audit_days",
        1_095,
        (1, 36_500),
        "days",
        "How long the audit log keeps its entries.",
    ),
    Key {
        section: "portal",
        name: "address_header",
        kind: Kind::Text { default: "", is_secret: false },
        doc: "Header in which a proxy in front writes its caller's address, such as X-Forwarded-For; none where no proxy does, which also ends the warning beside portal.public_url.",
    },
    Key {
        section: "portal",
        name: "proxies",
        kind: Kind::Text { default: "127.0.0.0/8, ::1", is_secret: false },
        doc: "Addresses and networks of the proxies whose word in portal.address_header is believed, with commas.",
    },
    Key {
        section: "portal",
        name: "approval",
        kind: Kind::Switch { default: false },
        doc: "Whether a second person has to approve a draft of a counter before it takes effect.",
    },
    Key {
        section: "portal",
        name: "show_samples",
        kind: Kind::Switch { default: true },
        doc: "Whether editors and administrators see payloads of events, examples of fields and keys of previews; others never do.",
    },
    Key {
        section: "portal",
        name: "masked_fields",
        kind: Kind::Text { default: "", is_secret: false },
        doc: "Fields whose values no page and no preview shows, such as data.email, subject, with commas.",
    },
    whole(
        "portal",
        "check_interval_minutes",
        60,
        (0, 10_080),
        "minutes",
        "How often stored counts are compared with the log; 0 for never.",
    ),
    whole(
        "portal",
        "check_keys",
        20,
        (0, 1_000),
        "keys",
        "Keys that are compared each time; 0 for none.",
    ),
    text(
        "issuer",
        "",
        "Issuer of the OpenID provider, exactly as it calls itself, such as https://login.example/realms/rain; empty for passwords alone.",
    ),
    text("client_id", "", "Name under which this portal is registered at the provider."),
    Key {
        section: "openid",
        name: "client_secret",
        kind: Kind::Text { default: "", is_secret: true },
        doc: "Secret of that client; empty for one that proves itself by PKCE alone.",
    },
    text("scopes", "openid email profile", "Scopes that the provider is asked for, with blanks."),
    text("label", "Sign in with OpenID Connect", "Words on the button."),
    text(
        "domains",
        "",
        "Domains of e-mail whose people come in without an invitation, with commas; empty for those alone whose address an administrator has given.",
    ),
    Key {
        section: "openid",
        name: "role",
        kind: Kind::OneOf { default: "viewer", words: &["viewer", "editor", "admin"] },
        doc: "Role of people who come in without an invitation.",
    },
    text(
        "groups_claim",
        "",
        "Claim whose values say the role at each sign-in, such as groups; empty for roles that are given in the portal.",
    ),
    text(
        "groups",
        "",
        "Roles of its values, such as rain-admins=admin, rain-team=viewer; the highest applies, and people without one may not enter.",
    ),
];

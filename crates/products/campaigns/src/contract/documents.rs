//! Documents: campaigns, and what they name.

use super::{campaign_id, of_campaign, operation, path_name, text};
use raingauge_campaigns::documents::Kind;
use raingauge_core::code::Code;
use raingauge_http::{Operation, Refusal, Shared, query};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// A kind of document, as the contract describes it.
pub trait Described: ToSchema + 'static {
    type List: ToSchema;
    type Versions: ToSchema;
    const KIND: Kind;
    /// The name of one, as in `readCampaign`.
    const TITLE: &'static str;
    /// The name of one in a sentence.
    const NOUN: &'static str;
    /// The path of the list, whose last segment is its name in the answer; of one; of its
    /// versions.
    const PATHS: [&'static str; 3];
    /// The audit log's verbs of creation, replacement and deletion.
    const VERBS: [&'static str; 3];

    fn example() -> Value;
}

macro_rules! described {
    (
        $(
            $(#[doc = $text:literal])+
            $name:ident, $verb:literal, $noun:literal, $path:literal,
            $list:ident { $field:ident }, $versions:ident, $example:expr;
        )+
    ) => { $(
        $(#[doc = $text])+
        #[derive(ToSchema)]
        #[schema(value_type = Object)]
        pub struct $name(pub Value);

        #[derive(ToSchema)]
        pub struct $list {
            pub $field: Vec<$name>,
        }

        #[derive(ToSchema)]
        pub struct $versions {
            /// Newest first. One that was deleted has `isDeleted`.
            pub versions: Vec<$name>,
        }

        impl Described for $name {
            type List = $list;
            type Versions = $versions;
            const KIND: Kind = Kind::$name;
            const TITLE: &'static str = stringify!($name);
            const NOUN: &'static str = $noun;
            const PATHS: [&'static str; 3] =
                [concat!("/v1/", stringify!($field)), $path, concat!($path, "/versions")];
            const VERBS: [&'static str; 3] =
                [concat!($verb, ".create"), concat!($verb, ".replace"), concat!($verb, ".delete")];

            fn example() -> Value {
                $example
            }
        }
    )+ };
}

described! {
    /// A campaign, as docs/campaigns.md describes it, with its `version`, `changedBy`,
    /// `changedByKind`, `reason` and `changedAt`, and its derived `status`.
    Campaign, "campaign", "campaign", "/v1/campaigns/{id}", Campaigns { campaigns }, CampaignVersions, json!({
        "name": "third_order", "eventTypes": ["mart.order"], "subject": "data.user_id",
        "counts": { "orders": { "window": { "calendar": "month" } } },
        "steps": [{
            "name": "reward", "when": { "operator": "reaches", "lhs": "count.orders", "rhs": 3 },
            "actions": [{ "name": "voucher", "kind": "reward", "to": "rewards", "reward": "MART5" }],
        }],
    });
    /// Where actions are sent: `url`, `secretEnv` or `secretFile`, `rate`, `concurrency`,
    /// `timeoutMs`, `breaker`; with its version. Lists and reads add its `status`.
    Destination, "destination", "destination", "/v1/destinations/{name}", Destinations { destinations }, DestinationVersions, json!({
        "name": "rewards", "url": "https://rewards.internal/v1/award",
        "secretEnv": "RAINGAUGE_SECRET_REWARDS", "rate": [{ "perSecond": 500, "burst": 500 }],
    });
    /// A value of a database or of a service that rules read; with its version.
    Lookup, "lookup", "lookup", "/v1/lookups/{name}", Lookups { lookups }, LookupVersions, json!({
        "name": "risk", "class": "http", "url": "https://risk.internal/v1/users/{subject}",
        "ttlS": 60, "timeoutMs": 300, "onError": "hold",
    });
    /// A table, or a segment, which has no columns; with its version, and how many `rows`
    /// were loaded.
    Table, "table", "table or segment", "/v1/tables/{name}", Tables { tables }, TableVersions, json!({
        "kind": "table", "name": "users", "key": "subject", "columns": { "tier": "text" },
    });
    /// A budget that several campaigns share; with its version.
    Budget, "budget", "budget", "/v1/budgets/{name}", Budgets { budgets }, BudgetVersions, json!({
        "name": "growth", "unit": "SGD_cents", "max": 1_000_000, "period": "week",
    });
    /// A bound of the actions to a set of destinations, for each subject and local day; with its
    /// version.
    Cap, "cap", "cap", "/v1/caps/{name}", Caps { caps }, CapVersions, json!({
        "name": "messages_a_day", "destinations": ["messages"], "max": 3,
    });
    /// A share of the units that campaigns leave out; with its version.
    Holdout, "holdout", "holdout", "/v1/holdouts/{name}", Holdouts { holdouts }, HoldoutVersions, json!({
        "name": "everybody", "seed": "everybody-2026", "share": 100,
    });
}

/// An operation on the document in the path.
fn of_one<D: Described>(id: &str, summary: &str) -> Operation {
    let parameter = match D::KIND {
        Kind::Campaign => campaign_id(),
        _ => path_name("name", D::example()["name"].as_str().unwrap_or_default()),
    };
    let unknown = format!("There is no such {}.", D::NOUN);
    operation(id, summary).parameter(parameter).refusal(&[Code::DocumentUnknown], &unknown)
}

fn invalid<D: Described>(operation: Operation) -> Operation {
    let code =
        if D::KIND == Kind::Campaign { Code::CampaignInvalid } else { Code::DocumentInvalid };
    operation.refusal(&[code], "The document is wrong; `problems` has everything that is.")
}

pub fn list<D: Described>() -> Operation {
    let operation = operation(&format!("list{}s", D::TITLE), &format!("All {}s, by name", D::NOUN));
    let operation = match D::KIND {
        Kind::Campaign => {
            ["state", "owner", "eventType"].into_iter().fold(operation, |operation, name| {
                operation.parameter(query(name, "Only those with it.", text()))
            })
        }
        _ => operation,
    };
    operation.answers::<D::List>(200, "The documents in effect.", Value::Null)
}

pub fn create<D: Described>() -> Operation {
    let noun = D::NOUN;
    let only = json!({ "type": "string", "enum": ["only"] });
    let location = json!({ "description": "Its path.", "schema": { "type": "string" } });
    let operation = operation(&format!("create{}", D::TITLE), &format!("Create a {noun}"))
        .text("Answers when it is in effect. With `validate=only` it is checked, and not stored.")
        .parameter(query("validate", "Check it, and store nothing.", only))
        .takes(&[Shared::Reason])
        .body::<D>(D::example())
        .answers::<D>(
            200,
            "With `validate=only`: the document, as it would be stored.",
            Value::Null,
        )
        .answers::<D>(201, "The document.", Value::Null)
        .etag(201, noun, 1)
        .header(201, "Location", location)
        .refusal(
            &[Code::IdTaken, Code::ChangeRefused],
            "Its name or id is in use, or a limit is reached.",
        );
    invalid::<D>(operation)
}

pub fn read<D: Described>() -> Operation {
    of_one::<D>(&format!("read{}", D::TITLE), &format!("Read a {}", D::NOUN))
        .answers::<D>(200, "The document.", Value::Null)
        .etag(200, D::NOUN, 1)
}

pub fn replace<D: Described>() -> Operation {
    let operation = of_one::<D>(&format!("replace{}", D::TITLE), &format!("Replace a {}", D::NOUN))
        .text("Answers when the new version is in effect.")
        .takes(&[Shared::IfMatch, Shared::Reason])
        .body::<D>(D::example())
        .answers::<D>(200, "The new version.", Value::Null)
        .etag(200, D::NOUN, 2)
        .refuses(&[Refusal::VersionMismatch])
        .refusal(&[Code::ChangeRefused], "The document cannot be changed so.");
    invalid::<D>(operation)
}

pub fn delete<D: Described>() -> Operation {
    of_one::<D>(&format!("delete{}", D::TITLE), &format!("Delete a {}", D::NOUN))
        .text("Its versions stay. What another document names is not deleted.")
        .takes(&[Shared::IfMatch, Shared::Reason])
        .answers::<D>(200, "The version that was deleted.", Value::Null)
        .refuses(&[Refusal::VersionMismatch])
        .refusal(&[Code::ChangeRefused], "Another document names it.")
}

pub fn versions<D: Described>() -> Operation {
    of_one::<D>(&format!("list{}Versions", D::TITLE), &format!("All versions of a {}", D::NOUN))
        .answers::<D::Versions>(200, "The versions.", Value::Null)
}

/// A change of the state of the campaign in the path.
fn state(id: &str, summary: &str) -> Operation {
    of_campaign(id, summary)
        .takes(&[Shared::IfMatch, Shared::Reason])
        .answers::<Campaign>(200, "The campaign at its new version.", Value::Null)
        .etag(200, "campaign", 2)
        .refuses(&[Refusal::VersionMismatch])
        .refusal(&[Code::ChangeRefused], "The campaign cannot be in that state.")
}

pub fn pause() -> Operation {
    state("pauseCampaign", "Decide nothing and send nothing")
        .text("Tallies go on. Timers and undelivered actions wait; nothing is made up for later.")
}

pub fn resume() -> Operation {
    state("resumeCampaign", "Go on after a pause")
}

pub fn shadow() -> Operation {
    state("shadowCampaign", "Decide without acting")
        .text("With budgets and limits of its own, which `activate` forgets.")
}

pub fn activate() -> Operation {
    state("activateCampaign", "Decide and act")
}

pub fn archive() -> Operation {
    state("archiveCampaign", "End a campaign: what waits is cancelled")
}

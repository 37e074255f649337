//! Addresses that lead nowhere, and users who may not.

use crate::server::{PrivateServer, free_port};
use crate::support::{Server, name_of, says, sentence};
use raingauge_core::access::Role;
use raingauge_core::counter::Counter;
use raingauge_ports::campaigns::DocumentStore;
use raingauge_ports::catalog::{Catalog, Policies};
use raingauge_ports::checks::{Checks, Outcome};
use raingauge_ports::contract::campaigns::documents;
use raingauge_ports::contract::catalog::{change, counter};
use raingauge_ports::contract::checks::check;
use raingauge_ports::contract::instances::instance;
use raingauge_ports::contract::people::{entry, hash, invitation, new_user, session, token};
use raingauge_ports::contract::rollouts;
use raingauge_ports::drafts::{Draft, Drafts};
use raingauge_ports::instances::Instances;
use raingauge_ports::people::{People, UserChange, Users};
use raingauge_ports::rollouts::Rollouts;
use raingauge_sql::{MySqlCatalog, MySqlOptions};
use serde_json::json;

const PASSWORD: &str = "never-to-be-told-1";

/// The rights that docs/operations/engines.md lists.
const MIGRATES: &str = "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, CREATE VIEW";

async fn make_user(server: &Server, name: &str) {
    server.run("", &format!("CREATE USER '{name}'@'%' IDENTIFIED BY '{PASSWORD}'")).await;
}

#[tokio::test]
async fn a_wrong_address_is_explained_without_its_password() {
    let Some(private) = PrivateServer::start(&[]).await else {
        return;
    };
    let server = private.databases();
    let options = server.database().await;
    let user = "known";

    make_user(&server, user).await;
    let cases = [
        (
            server.options_of(user, "guessed-123", &name_of(&options)),
            "correct the name and the password",
        ),
        (
            server.options_of("nobody_at_all", PASSWORD, &name_of(&options)),
            "correct the name and the password",
        ),
        (server.options_of(user, PASSWORD, &name_of(&options)), "this user lacks a right"),
        (server.options("raingauge_test_not_there"), "there is no such database"),
        (
            MySqlOptions::new(format!("mysql://{user}:{PASSWORD}@127.0.0.1:{}/d", free_port())),
            "nothing listens there: start the server, or correct host and port",
        ),
        (
            MySqlOptions::new(format!("mysql://{user}:{PASSWORD}@no-such-host.invalid/d")),
            "it cannot be reached: correct host and port",
        ),
        (
            MySqlOptions::new(format!("mysql://{user}:{PASSWORD}@h/d?socket=/no/such/mysqld.sock")),
            "MySQL at /no/such/mysqld.sock, database d: a file that the address names cannot be opened",
        ),
    ];

    for (options, part) in cases {
        let opened = sentence(MySqlCatalog::open(&options).await);
        assert!(opened.contains(part), "{opened}");

        let catalog = MySqlCatalog::lazy(&options).unwrap();
        let called = sentence(catalog.list().await);
        assert_eq!(called, opened);

        let migrated = sentence(MySqlCatalog::migrate(&options).await);
        assert!(migrated.contains(part), "{migrated}");

        for text in [opened, migrated, format!("{catalog:?}{options:?}")] {
            assert!(!text.contains(PASSWORD) && !text.contains("guessed"), "{text}");
        }
    }
}

#[tokio::test]
async fn the_documented_rights_are_enough() {
    let Some(private) = PrivateServer::start(&[]).await else {
        return;
    };
    let server = private.databases();
    let name = server.empty_database().await;
    let [migrates, serves] = ["migrates", "serves"];

    make_user(&server, migrates).await;
    make_user(&server, serves).await;
    server.run("", &format!("GRANT {MIGRATES} ON {name}.* TO '{migrates}'@'%'")).await;

    let migrating = server.options_of(migrates, PASSWORD, &name);
    MySqlCatalog::migrate(&migrating).await.unwrap();
    server
        .run(
            "",
            &format!(
                "GRANT SELECT, INSERT ON {name}.* TO '{serves}'@'%';
                 GRANT UPDATE ON {name}.catalog_revision TO '{serves}'@'%';
                 GRANT UPDATE ON {name}.people_revision TO '{serves}'@'%';
                 GRANT UPDATE ON {name}.drafts_revision TO '{serves}'@'%';
                 GRANT UPDATE ON {name}.drafts TO '{serves}'@'%';
                 GRANT DELETE ON {name}.draft_contributors TO '{serves}'@'%';
                 GRANT UPDATE ON {name}.rollouts_revision TO '{serves}'@'%';
                 GRANT UPDATE ON {name}.product_documents_revision TO '{serves}'@'%';
                 GRANT UPDATE ON {name}.rollouts TO '{serves}'@'%';
                 GRANT UPDATE ON {name}.users TO '{serves}'@'%';
                 GRANT UPDATE ON {name}.api_tokens TO '{serves}'@'%';
                 GRANT UPDATE, DELETE ON {name}.sessions TO '{serves}'@'%';
                 GRANT DELETE ON {name}.invitations TO '{serves}'@'%';
                 GRANT DELETE ON {name}.audit_entries TO '{serves}'@'%';
                 GRANT DELETE ON {name}.instances TO '{serves}'@'%';
                 GRANT DELETE ON {name}.checks TO '{serves}'@'%'"
            ),
        )
        .await;

    let serving = server.options_of(serves, PASSWORD, &name);
    says(
        MySqlCatalog::migrate(&server.options_of(serves, PASSWORD, "mysql")).await,
        "this user lacks a right",
    );

    // The user who made the tables may go.
    server.run("", &format!("DROP USER '{migrates}'@'%'")).await;
    let catalog = MySqlCatalog::open(&serving).await.unwrap();
    let first = catalog.create(counter("a"), change("")).await.unwrap();
    catalog
        .replace(Counter { name: "b".to_owned(), ..first.counter }, None, change(""))
        .await
        .unwrap();
    catalog.set_cache_policy(Default::default(), None, change("")).await.unwrap();
    assert_eq!(catalog.versions(1).await.unwrap().len(), 2);
    assert_eq!(catalog.list().await.unwrap().len(), 1);
    assert_eq!(catalog.revision().await.unwrap(), 3);
    use_all_of(&catalog.people()).await;

    let draft = catalog
        .drafts()
        .create(Draft::new("counter", json!({ "name": "c" }), 0, "zoe", 7))
        .await
        .unwrap();

    catalog.drafts().replace(draft).await.unwrap();
    assert_eq!(catalog.drafts().list(true, 9).await.unwrap().len(), 1);

    let begun = catalog.rollouts().begin(rollouts::run()).await.unwrap();
    catalog.rollouts().replace(begun).await.unwrap();
    assert_eq!(catalog.rollouts().running().await.unwrap().map(|run| run.revision), Some(2));

    let document = documents::document("cap", "calm", json!({ "max": 2 }));
    catalog.documents().put(document, 0).await.unwrap();
    assert_eq!(catalog.documents().newest().await.unwrap().len(), 1);

    let instances = catalog.instances();
    let checks = catalog.checks();
    instances.announce(instance("a", 7)).await.unwrap();
    instances.announce(instance("a", 8)).await.unwrap();
    instances.leave("a").await.unwrap();
    instances.forget(9).await.unwrap();
    checks.add(vec![check("k", Outcome::Equal)], 1).await.unwrap();
    assert_eq!(
        (instances.list().await.unwrap().len(), checks.differing(1).await.unwrap().len()),
        (0, 0)
    );

    // Removing a person rewrites what the serving user otherwise never alters.
    let people = catalog.people();
    let moe = people.add_user(new_user("moe", Role::Viewer)).await.unwrap();
    people.change_user(moe.id, UserChange::Disabled(9)).await.unwrap();

    let refused = people.remove_user(moe.id).await.unwrap_err().to_string();
    assert!(refused.contains("this user lacks a right"), "{refused}");

    let grants = [
        "DELETE ON {}.users",
        "UPDATE ON {}.audit_entries",
        "UPDATE ON {}.invitations",
        "UPDATE ON {}.counter_versions",
        "UPDATE ON {}.cache_policies",
        "UPDATE ON {}.draft_contributors",
        "UPDATE ON {}.product_documents",
    ];

    for grant in grants {
        server.run("", &format!("GRANT {} TO '{serves}'@'%'", grant.replace("{}", &name))).await;
    }
    people.remove_user(moe.id).await.unwrap();
}

/// Runs every statement of people once.
async fn use_all_of(people: &dyn People) {
    let user = people.add_user(new_user("zoe", Role::Admin)).await.unwrap();
    people.invite(invitation(1, "max", Role::Viewer)).await.unwrap();
    people.accept(hash(1), new_user("max", Role::Viewer)).await.unwrap();
    people.withdraw(hash(2)).await.unwrap();
    people.change_user(user.id, UserChange::Password("new".to_owned())).await.unwrap();
    people.open_session(session(1, &user)).await.unwrap();
    people.touch_session(hash(1), 7).await.unwrap();
    people.close_session(hash(1)).await.unwrap();
    people.close_sessions(user.id, None).await.unwrap();
    people.add_token(token(1, "shop")).await.unwrap();
    people.note_tokens_used(vec![(1, 7)]).await.unwrap();
    people.revoke_token(1, 8).await.unwrap();
    people.record(entry(7, "zoe", "token.revoke", "token shop")).await.unwrap();
    people.sweep_sessions(0, 0).await.unwrap();
    people.sweep_invitations(0).await.unwrap();
    people.sweep_entries(0).await.unwrap();
}

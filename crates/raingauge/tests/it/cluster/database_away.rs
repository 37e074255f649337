//! MariaDB going away and coming back under running processes.

use super::place::{Place, start};
use super::roles::{NOON_S, settle};
use crate::client::{event, forever};
use crate::server::until;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A MariaDB that one test has for itself.
struct Database {
    folder: TempDir,
}

impl Database {
    fn start() -> Self {
        let database = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        database.services("start", &["--mariadb"]);
        database
    }

    fn stop(&self) {
        self.services("stop", &["mariadb"]);
    }

    fn restart(&self) {
        self.services("restart", &["mariadb"]);
    }

    fn services(&self, command: &str, arguments: &[&str]) {
        let script: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/services");
        let ran =
            Command::new(script).arg(command).arg(self.folder.path()).args(arguments).output();
        let ran = ran.expect("scripts/services can be started");
        assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    fn url(&self) -> String {
        let environment = std::fs::read_to_string(self.folder.path().join("env"))
            .expect("scripts/services writes it");
        let url = environment.lines().find_map(|line| line.strip_prefix("RAINGAUGE_TEST_MYSQL="));
        url.expect("MariaDB is among it").to_owned()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/services");
        let _ = Command::new(script).arg("stop").arg(self.folder.path()).output();
    }
}

fn counter(value: i64) -> Value {
    json!({"id": 1, "name": "drops", "template": "drops:{city}", "eventType": "drop", "value": value,
        "retentionDays": forever()})
}

#[test]
fn counting_goes_on_without_the_database_and_edits_work_when_it_is_back() {
    let Some(place) = Place::bare(2) else { return };
    let database = Database::start();
    let home = place.home_with(&[("mysql.url", &place.database_at(&database.url()))]);
    let migrated = home.run(&["migrate"]);

    assert!(migrated.status.success(), "{migrated:?}");
    let server = start(&home, "reader,writer,portal");
    server.create(counter(1));
    settle(&server, &server, &server, place.partitions);

    let mut sent = 0;
    let mut send = |count: i64| {
        let events: Vec<Value> = (sent..sent + count)
            .map(|index| event("drop", &format!("drop-{index}"), NOON_S, json!({"city": "oslo"})))
            .collect();
        sent += count;
        server.count_events(&events);

        server.count("drops:oslo", NOON_S, NOON_S + 900)
    };

    assert_eq!(send(100), 100);

    database.stop();

    for _ in 0..3 {
        let problem = server.send("PUT", "/v1/counters/1", &[], counter(10).to_string().as_bytes());
        problem.expect_problem(503, "unavailable");
        server.get("/v1/counters").expect_problem(503, "unavailable");
    }

    assert_eq!(send(100), 200, "what was known last goes on counting");
    assert_eq!(server.get("/readyz").status, 200);

    // A process that starts now waits, and says for what.
    let late_home = place.home_with(&[("mysql.url", &place.database_url(&database.url()))]);
    std::thread::scope(|scope| {
        let late = scope.spawn(|| start(&late_home, "reader"));
        until("the late one says what it waits for", || {
            late_home.errors().contains("waiting for the catalog").then_some(())
        });
        assert!(!late.is_finished(), "it is not ready");
        database.restart();

        let late = late.join().expect("it starts");
        assert_eq!(late.count("drops:oslo", NOON_S, NOON_S + 900), 200);
    });

    until("edits work again", || {
        let answer = server.send("PUT", "/v1/counters/1", &[], counter(10).to_string().as_bytes());
        assert!([200, 503].contains(&answer.status), "{}", answer.text());
        (answer.status == 200).then_some(())
    });
    settle(&server, &server, &server, place.partitions);
    assert_eq!(send(10), 300, "the edit counts");
}

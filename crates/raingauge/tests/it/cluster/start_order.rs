//! Processes that start before the servers they need.

use super::place::Place;
use crate::client::Client;
use crate::server::{Home, until};
use std::fs::File;
use std::process::{Child, Stdio};
use std::time::Instant;

#[test]
fn a_reader_waits_for_the_schema_and_then_answers() {
    let Some(place) = Place::bare(2) else { return };
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| place.start("reader"));
        until("it says what it waits for", || {
            let errors = place.home.errors();
            let says = errors.contains("waiting for the bucket store")
                && errors.contains("run `raingauge migrate`");
            says.then_some(())
        });
        assert!(!reader.is_finished(), "it is not ready");
        place.migrate();

        let reader = reader.join().expect("it starts");
        assert_eq!(reader.get("/readyz").status, 200);
    });

    // The same for the event log, which is checked after the store.
    let elsewhere = place
        .home_with(&[("kafka.topic", "nowhere"), ("mysql.url", "mysql://nobody@127.0.0.1:1/none")]);
    Waiting::start(&elsewhere, "waiting for the event log, topic nowhere").terminate();

    let unreachable = place.home_with(&[("kafka.brokers", "127.0.0.1:1")]);
    Waiting::start(&unreachable, "waiting for the event log").terminate();

    let without_catalog = place.home_with(&[("mysql.url", "mysql://nobody@127.0.0.1:1/none")]);
    Waiting::start(&without_catalog, "waiting for the catalog").terminate();
}

/// Needs no servers: none is running.
#[test]
fn a_waiting_process_says_for_what_and_ends_on_a_signal() {
    let home = Home::with(&[("cluster.engines", "cluster"), ("cql.contact_points", "127.0.0.1:1")]);
    let waiting = Waiting::start(&home, "waiting for the bucket store");
    let errors = home.errors();
    assert!(
        errors.contains("127.0.0.1:1") && errors.contains("check that the nodes run"),
        "{errors}"
    );

    let door = waiting.door(&errors);
    assert_eq!(door.get("/healthz").status, 200, "it lives");

    for path in ["/readyz", "/v1/counters", "/metrics"] {
        let problem = door.get(path).expect_problem(503, "not_ready");
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(
            detail.contains("waiting for the bucket store") && detail.contains("127.0.0.1:1"),
            "{path}: {detail}"
        );
    }

    waiting.terminate();
}

/// A writer that waits for a server.
struct Waiting {
    child: Child,
}

impl Waiting {
    /// Returns when the process has reported what it waits for.
    fn start(home: &Home, says: &str) -> Self {
        let errors = File::options()
            .create(true)
            .append(true)
            .open(home.errors_path())
            .expect("a file for the logs");

        let arguments = ["serve", "--role", "writer", "--listen", "127.0.0.1:0"].map(str::to_owned);
        let child = home
            .command(&arguments)
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .expect("it starts");

        let mut waiting = Self { child };
        until(&format!("it says: {says}"), || {
            assert!(
                waiting.child.try_wait().expect("it can be asked").is_none(),
                "it ended: {}",
                home.errors()
            );
            home.errors().contains(says).then_some(())
        });
        waiting
    }

    /// Returns the address of its door, from its log.
    fn door(&self, errors: &str) -> Client {
        let line =
            errors.lines().find(|line| line.contains("the HTTP door is open")).expect("it says so");
        let (_, address) = line.split_once("address=").expect("and where");
        Client::new(address.split_whitespace().next().expect("an address"))
    }

    /// Sends the signal of a service manager; the process ends gracefully, long before anyone would
    /// kill it.
    fn terminate(mut self) {
        let sent = std::process::Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status();
        assert!(sent.is_ok_and(|status| status.success()));
        let began = Instant::now();
        let status = until("it ends", || self.child.try_wait().expect("it can be asked"));
        println!("a process that waited ended after {:?}", began.elapsed());
        assert!(status.success(), "{status:?}");
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! A short run of the instrument that breaks clusters (docs/evidence/faults.md), with
//! the same load and the same oracle. The servers
//! are shared with other tests: only the processes of this run are killed and paused.

use super::place::Place;
use raingauge_lab::cluster::ClusterOptions;
use raingauge_lab::faults::{self, Fault, Kind, Options};
use std::path::Path;
use std::time::Duration;

/// Longer than a session in the consumer group lasts: when the writer wakes, another one has its
/// partitions.
const ZOMBIE: Duration = Duration::from_secs(8);
const SHORT: Duration = Duration::from_millis(300);
const LONGER: Duration = Duration::from_secs(1);

/// What is broken, one thing or two at once.
fn rounds() -> Vec<Vec<Fault>> {
    let fault = |kind, which, lasts| Fault { kind, which, lasts };
    vec![
        vec![fault(Kind::WriterKilled, 0, SHORT), fault(Kind::ReaderKilled, 0, SHORT)],
        vec![fault(Kind::Rebalance, 0, LONGER)],
        vec![fault(Kind::WriterPaused, 1, ZOMBIE)],
        vec![fault(Kind::ReaderPaused, 1, LONGER), fault(Kind::PortalKilled, 0, SHORT)],
        vec![fault(Kind::WriterStopped, 1, SHORT)],
        vec![fault(Kind::RolesRestarted, 0, SHORT)],
    ]
}

#[test]
fn after_a_short_run_of_faults_every_count_equals_the_model() {
    let Some(place) = Place::bare(4) else { return };
    let Some(services) = std::env::var_os("RAINGAUGE_TEST_SERVICES") else {
        return println!(
            "skipped: RAINGAUGE_TEST_SERVICES names no folder of servers; `make test` starts them"
        );
    };

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/services");
    let logs = tempfile::tempdir().expect("a temporary folder");
    let settings = place.settings().into_iter().map(|(name, value)| (name.to_owned(), value));
    let given = ClusterOptions {
        services: services.into(),
        script,
        binary: env!("CARGO_BIN_EXE_raingauge").into(),
    };
    let options = Options {
        seconds_between: 0.2,
        seconds_quiet: 1.0,
        partitions: place.partitions,
        logs: Some(logs.path().to_owned()),
        settings: settings.chain([("mysql.url".to_owned(), place.catalog_url())]).collect(),
        exactly: rounds(),
        ..Options::new(given)
    };

    let report = faults::run(&options).expect("the run begins");
    println!("{}", report.markdown());

    if let Some(fault) = report.fault() {
        panic!("{fault}; what the processes said is in {}", logs.keep().display());
    }
    assert_eq!(report.faults, rounds().concat().len());
}

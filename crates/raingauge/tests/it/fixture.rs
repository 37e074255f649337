//! Data folders of earlier versions still open.

use crate::client::at;
use crate::server::Home;
use serde_json::json;
use std::process::Command;

/// A folder that the first version wrote: 300 events of three cities in September 2024, one bucket
/// that was set, and a clean end. Every format is in it: segments, the acknowledged mark, control
/// entries, tiles, state, catalog.
#[test]
fn a_folder_of_version_1_still_answers() {
    let home = Home::new();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/data-1.tar.gz");
    let unpacked = Command::new("tar").arg("-xzf").arg(fixture).arg("-C").arg(home.path()).status();
    assert!(unpacked.expect("tar is there").success());

    let server = home.start();
    assert!(home.data().join("campaigns/ledger").is_dir(), "what is new is made");
    assert_eq!(server.get("/v1/campaigns").json()["campaigns"], json!([]));
    let (from, to) = (at("2024-09-01T00:00:00Z"), at("2024-10-01T00:00:00Z"));
    let keys = ["rain_drops:city:0", "rain_drops:city:1", "rain_drops:city:2", "rain_drops:city:9"];
    assert_eq!(server.counts(&keys.map(|key| (key, from, to))), [100, 100, 100, 214]);
    assert_eq!(server.get("/v1/counters/34").json()["version"], json!(1));

    let event = json!({"specversion": "1.0", "id": "7", "source": "fixture", "type": "rain_drop",
        "time": "2024-09-08T07:07:00Z", "data": {"city_id": 1}});
    assert_eq!(
        server.lines("/v1/events", &[event]).json()["duplicates"],
        json!(1),
        "the log is what remembers"
    );

    let key = "rain_drops:city:1";
    let recount = server.get(&format!("/v1/recount?key={key}&fromTime={from}&toTime={to}")).json();
    assert_eq!(recount["equal"], json!(true), "{recount}");
}

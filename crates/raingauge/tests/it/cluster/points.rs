//! Points of a cluster: several processes award over one database, and any of them may die.

use super::place::{Place, start};
use crate::client::Client;
use crate::server::until;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Mutex;

const MEMBERS: usize = 7;
const AWARDS: usize = 300;
const BATCH: usize = 10;
const POINTS: i64 = 3;

/// What a command was answered: its entry.
type Entries = Mutex<HashMap<String, String>>;

#[test]
fn processes_share_the_ledger_and_any_may_die() {
    let Some(place) = Place::new(1) else { return };
    let home = place.home_with(&[("points.enabled", "true")]);
    let other_home = place.home_with(&[("points.enabled", "true")]);
    let first = start(&home, "portal");
    let second = start(&other_home, "portal");

    let programme = json!({"programme": "rain", "unit": "drops", "timezone": "UTC",
        "expiry": {"kind": "never"}});
    first.post("/v1/points/programmes", &programme).expect(201);
    for (server, name) in [(&first, "first"), (&second, "second")] {
        until("the programme is in force in each process", || {
            let answer = server.post("/v1/points/awards", &json!({"awards": [award(name, 1)]}));
            (answer.status == 200 && answer.json()["results"][0]["error"].is_null()).then_some(())
        });
    }

    // Both give the same awards, and one of them is killed and replaced.
    let entries = Entries::default();
    std::thread::scope(|scope| {
        let giving = scope.spawn(|| give_all(&first, &entries));
        give_some(&second, &entries, AWARDS / 2);
        second.kill();
        let second = start(&other_home, "portal");
        give_all(&second, &entries);
        giving.join().expect("the first one goes on");
        compare(&first, &second);
    });
    assert_eq!(entries.lock().expect("no panic").len(), AWARDS);
}

fn member(number: usize) -> String {
    format!("m{}", number % MEMBERS)
}

fn award(key: &str, number: usize) -> Value {
    json!({"programme": "rain", "member": member(number), "key": key, "points": POINTS})
}

fn give_all(server: &Client, entries: &Entries) {
    give_some(server, entries, AWARDS);
}

/// Gives the first awards, and asserts that each has the same entry wherever it is given.
fn give_some(server: &Client, entries: &Entries, count: usize) {
    let numbers: Vec<usize> = (0..count).collect();
    for batch in numbers.chunks(BATCH) {
        let key = |number: usize| format!("award-{number}");
        let awards: Vec<Value> = batch.iter().map(|number| award(&key(*number), *number)).collect();
        let answer = server.post("/v1/points/awards", &json!({ "awards": awards })).expect(200);
        for (number, result) in batch.iter().zip(answer["results"].as_array().expect("results")) {
            let entry = result["entry"].as_str().unwrap_or_else(|| panic!("an entry: {result}"));
            let mut entries = entries.lock().expect("no panic");
            let before = entries.entry(key(*number)).or_insert_with(|| entry.to_owned());
            assert_eq!(before, entry, "an award has one entry");
        }
    }
}

/// Asserts that both processes read the same, and that nothing was awarded twice.
fn compare(first: &Client, second: &Client) {
    let mut sum = 0;
    for number in 0..MEMBERS {
        let path = format!("/v1/points/rain/members/{}", member(number));
        let balance = first.get(&path).expect(200);
        assert_eq!(second.get(&path).expect(200), balance);

        let rows = second.get(&format!("{path}/statement?limit=500")).expect(200);
        let rows = rows["rows"].as_array().expect("rows").len() as i64;
        assert_eq!(balance["available"], json!(rows * POINTS));
        sum += rows;
    }
    // The two awards by which the programme was waited for have keys of their own.
    assert_eq!(sum, AWARDS as i64 + 2);
}

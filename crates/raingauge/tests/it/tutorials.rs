//! The tutorials of the pages, from an empty folder to their end: every command as it stands there,
//! but for ports, which the system chooses.

mod played;

use crate::server::until;
use played::Tutorial;
use serde_json::{Value, json};

/// What a shell printed of answers that are one JSON object each.
fn answers(printed: &str) -> Vec<Value> {
    let answers = serde_json::Deserializer::from_str(printed).into_iter();
    answers.map(|answer| answer.unwrap_or_else(|error| panic!("{error}: {printed}"))).collect()
}

#[test]
fn files_are_counted_in_five_minutes() {
    let mut tutorial = Tutorial::open("README.md", "Five minutes with your own data");
    tutorial.start("127.0.0.1:8080");
    tutorial.save_files();
    let told = tutorial.run();
    let counts: Vec<&str> = told.lines().rev().take(2).collect();
    assert_eq!(counts, ["4850", "2"], "{told}");
    let again = tutorial.run_again();
    assert_eq!(again.lines().rev().take(2).collect::<Vec<_>>(), counts, "{again}");

    let answered = answers(&tutorial.run());
    assert_eq!(answered[0]["accepted"], 1, "{answered:?}");
    let of = |place: usize| &answered[1]["results"][place]["count"];
    assert_eq!((of(0), of(1)), (&json!(3), &json!(1_790)), "{answered:?}");
    tutorial.end();
}

#[test]
fn a_reward_is_delivered_in_ten_minutes() {
    let mut tutorial = Tutorial::open("docs/campaigns.md", "A delivered reward in ten minutes");
    let receiver = tutorial.start("127.0.0.1:9099");
    tutorial.start("127.0.0.1:8080");
    assert_eq!(tutorial.run().matches("created").count(), 2, "destinations");
    assert!(tutorial.run().contains("mart_three_orders"), "the campaign");

    let receipts = answers(&tutorial.run());
    assert_eq!(receipts.len(), 3);
    assert!(receipts.iter().all(|receipt| receipt["accepted"] == 1), "{receipts:?}");
    let arrived = || {
        let lines = receiver.output();
        let mut bodies: Vec<String> =
            lines.lines().filter_map(|line| Some(line.split_once("u-7: ")?.1.to_owned())).collect();
        bodies.sort();
        bodies
    };
    let wanted = ["Congratulations, u-7!", "MART5", "Make one more order to earn a reward"];
    until("the reward is delivered", || (arrived() == wanted).then_some(()));

    let repeated = answers(&tutorial.run_again());
    assert!(repeated.iter().all(|receipt| receipt["duplicates"] == 1), "{repeated:?}");
    let told = tutorial.run();
    for words in ["voucher  granted", "step_false", "vouchers 500"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert_eq!(arrived(), wanted, "nothing more happens");
    tutorial.end();
}

#[test]
fn bob_has_180_points_in_five_minutes() {
    let mut tutorial = Tutorial::open("docs/points.md", "Bob's 180 in five minutes");
    tutorial.start("127.0.0.1:8080");
    assert!(tutorial.run().contains("lunch"), "the programme");
    let corrected = answers(&tutorial.run());
    assert_eq!(corrected.len(), 1, "{corrected:?}");
    assert_eq!(answers(&tutorial.run())[0]["accepted"], json!(1));

    assert_eq!(answers(&tutorial.run_again())[0]["duplicates"], json!(1));
    let told = tutorial.run();
    assert!(told.contains("180"), "{told}");
    tutorial.end();
}

#[test]
fn a_redis_client_sets_and_counts() {
    let mut tutorial = Tutorial::open("docs/redis.md", "Try it");
    if !tutorial.has("redis-cli") {
        println!("skipped: redis-cli is not installed");
        return;
    }
    tutorial.replace("127.0.0.1:6380", "127.0.0.1:0");
    let server = tutorial.start("127.0.0.1:8080");
    let log = server.log();
    let (_, opened) = log.split_once("resp_address=127.0.0.1:").expect("the door is open");
    let port = opened.split_whitespace().next().expect("a port");
    tutorial.replace("-p 6380", &format!("-p {port}"));
    assert!(tutorial.run().contains("orders"), "the counter");

    let replies = tutorial.run();
    assert!(replies.starts_with("OK\n{\"user\": 7}\n1\n0\n0\n"), "{replies}");
    until("the event is counted", || {
        tutorial.run_again().ends_with("\n0\n1\n0\n1\n").then_some(())
    });
    tutorial.end();
}

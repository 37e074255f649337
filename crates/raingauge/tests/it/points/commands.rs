//! The command line of points.

use super::{create, member, pound};
use crate::server::Home;
use serde_json::json;

#[test]
fn the_command_line_awards_shows_and_verifies() {
    let home = Home::new();
    let data = home.data().display().to_string();
    {
        let server = home.start();
        let url = format!("http://{}", server.address);
        let mut programme = pound();
        programme["budgets"] = json!({"gifts": {"limit": 150}});
        programme["rewards"] = json!([{"name": "coffee", "points": 20, "stock": 3}]);
        create(&server, &programme);
        let run = |arguments: &[&str]| {
            let arguments: Vec<&str> =
                arguments.iter().copied().chain(["--server", &url]).collect();
            let ran = home.run(&arguments);
            assert!(ran.status.success(), "{arguments:?}: {ran:?}");
            ran.output
        };
        let ann = ["ann", "--programme", "pound"];
        let awarded =
            run(&[&["points", "award"], &ann[..], &["--key", "k", "--points", "50"]].concat());
        assert_eq!(awarded, "ann: 50, which makes 50\n");
        run(&[&["points", "burn"], &ann[..], &["--key", "b", "--points", "20"]].concat());
        let adjust = ["--key", "a", "--points", "-5", "--reason", "counted twice"];
        run(&[&["points", "adjust"], &ann[..], &adjust].concat());
        assert!(run(&[&["points", "balance"], &ann[..]].concat()).contains("available  25"));
        let statement = run(&[&["points", "statement"], &ann[..]].concat());
        assert!(statement.contains("counted twice"), "{statement}");
        assert!(run(&["points", "programmes", "list"]).contains("pound"));
        assert!(run(&["points", "liability", "pound"]).contains("outstanding 25"));
        run(&[
            "points",
            "award",
            "dan",
            "--programme",
            "pound",
            "--key",
            "g",
            "--points",
            "60",
            "--budget",
            "gifts",
        ]);
        let budgets = run(&["points", "budgets", "pound"]);
        assert!(
            budgets.lines().any(|line| line.split_whitespace().eq(["gifts", "150", "60", "90"])),
            "{budgets}"
        );
        let rewards = run(&["points", "rewards", "--programme", "pound"]);
        assert!(
            rewards
                .lines()
                .any(|line| line.split_whitespace().eq(["pound", "coffee", "20", "3", "3"])),
            "{rewards}"
        );
        assert!(run(&["points", "queues", "list"]).contains("retry"));
        assert!(run(&["points", "seal", "--json"]).contains("\"hash\""));

        // A file counts once, however often it is loaded.
        let rows = "programme,member,points,expiresOn\npound,bob,7,\npound,cat,9,2099-12-31\n";
        std::fs::write(home.path().join("balances.csv"), rows).expect("a file");
        assert!(run(&["points", "import", "balances.csv"]).starts_with("2 awarded, 0 known"));
        assert!(run(&["points", "import", "balances.csv"]).starts_with("0 awarded, 2 known"));
        assert_eq!(member(&server, "pound", "cat")["expiresOn"], "2099-12-31");

        // Nor does a row that is loaded again beside others that were corrected or changed.
        let load = |rows: &str| {
            std::fs::write(home.path().join("balances.csv"), rows).expect("a file");
            home.run(&["points", "import", "balances.csv", "--server", &url])
        };
        let wrong = load("programme,member,points,expiresOn\npound,bob,7,\npound,eve,many,\n");
        assert!(!wrong.status.success(), "{wrong:?}");
        assert!(format!("{wrong:?}").contains("line 3, eve: "), "{wrong:?}");
        let wrong = load("programme,member,points\r\n\r\npound,eve,many\r\n");
        assert!(format!("{wrong:?}").contains("line 3, eve: "), "{wrong:?}");
        let right = load("programme,member,points,expiresOn\npound,eve,5,\npound,bob,7,\n");
        assert!(right.output.starts_with("1 awarded, 1 known"), "{right:?}");
        let changed = load("programme,member,points,expiresOn\npound,bob,8,\n");
        assert!(format!("{changed:?}").contains("bob: key_reused: a row of this"), "{changed:?}");
        assert_eq!(member(&server, "pound", "bob")["available"], 7);
        server.kill();
    }

    let verified = home.run(&["points", "verify", "--data-dir", &data]);
    assert!(verified.status.success(), "{verified:?}");
    assert!(verified.output.starts_with("The journal is sound: "), "{verified:?}");
    let rebuilt = home.run(&["points", "verify", "--rebuild", "--data-dir", &data]);
    assert_eq!(rebuilt.output, verified.output, "{rebuilt:?}");
    let offline = home.run(&[
        "points",
        "balance",
        "bob",
        "--programme",
        "pound",
        "--data-dir",
        &data,
        "--json",
    ]);
    assert_eq!(offline.json()["available"], 7);
    let exported = home.run(&["points", "export", "--data-dir", &data]);
    assert!(exported.status.success() && exported.output.lines().count() >= 6, "{exported:?}");
    let csv = home.run(&["points", "export", "--data-dir", &data, "--format", "csv"]).output;
    assert!(csv.starts_with("book,sequence,") && csv.contains(",bob,bonus,7,"), "{csv}");
}

#[test]
fn a_damaged_folder_does_not_verify() {
    let home = Home::new();
    let data = home.data().display().to_string();
    let none = home.run(&["points", "verify", "--data-dir", &data]);
    assert_eq!(none.status.code(), Some(1), "{none:?}");

    let server = home.start();
    create(&server, &pound());
    let award = json!({"programme": "pound", "member": "ann", "key": "k", "points": 5});
    super::award(&server, &award);
    server.kill();

    // A bit of the journal flips.
    let journal = home.data().join("points/journal");
    let mut files: Vec<_> = std::fs::read_dir(&journal)
        .expect("a folder")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| std::fs::metadata(path).is_ok_and(|file| file.len() > 200))
        .collect();
    files.sort();
    let path = files.first().expect("a segment");
    let mut bytes = std::fs::read(path).expect("bytes");
    let place = bytes.windows(3).position(|bytes| bytes == b"ann").expect("the member");
    bytes[place] ^= 1;
    std::fs::write(path, bytes).expect("it can be written");
    let verified = home.run(&["points", "verify", "--data-dir", &data]);
    assert_eq!(verified.status.code(), Some(1), "{verified:?}");
    assert!(!verified.errors.is_empty());
}

//! The measuring scripts accept every option that their help documents, and refuse a wrong one
//! before a server is started or a folder created.

use std::path::Path;
use std::process::{Command, Output};

const BINARY: &str = env!("CARGO_BIN_EXE_raingauge");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A script, what stands before its options, and the command of the lab that takes them.
const SCRIPTS: [(&str, &[&str], &str); 4] = [
    ("bench", &[], "peers"),
    ("faults", &[], "faults"),
    ("lab", &["cache-removal"], "cache-removal"),
    ("lab", &["turns"], "turns"),
];

/// A program with nothing but the arguments, and a folder for temporary files of its own.
fn run(program: &str, arguments: &[&str], temporary: &Path) -> Output {
    Command::new(program)
        .args(arguments)
        .current_dir(ROOT)
        .env("RAINGAUGE_BINARY", BINARY)
        .env("TMPDIR", temporary)
        .output()
        .unwrap_or_else(|error| panic!("{program} cannot be run: {error}"))
}

/// The options in a help text, each with whether it takes a value.
fn options(help: &str) -> Vec<(String, bool)> {
    let after_dashes = |line: &str| line.trim().strip_prefix("--").map(str::to_owned);
    let lines = help.lines().filter_map(after_dashes);
    lines
        .map(|line| {
            let name = line.split([' ', '=']).next().unwrap_or_default();
            (format!("--{name}"), line.contains('<'))
        })
        .filter(|(name, _)| name != "--check-arguments")
        .collect()
}

/// A value that an option of a command takes.
fn sample(command: &str, option: &str) -> &'static str {
    match (command, option) {
        ("faults", "--only") => "writer killed",
        ("faults", "--set") => "log.lag_events_max=7",
        ("peers", "--only") => "raingauge,redis",
        _ => "7",
    }
}

#[test]
fn every_documented_option_of_a_script_is_taken() {
    let temporary = tempfile::tempdir().unwrap();
    for (script, words, command) in SCRIPTS {
        let help = run(BINARY, &["lab", command, "--help"], temporary.path());
        let help = String::from_utf8(help.stdout).unwrap();
        let documented = options(&help);
        assert!(documented.len() > 3, "{command} documents options: {help}");

        // Which servers is for the script to say.
        for (option, takes_value) in documented.iter().filter(|(name, _)| name != "--services") {
            let mut arguments = words.to_vec();
            arguments.push(option);
            arguments.extend(takes_value.then(|| sample(command, option)));
            arguments.push("--check-arguments");

            let ran = run(&format!("{ROOT}/scripts/{script}"), &arguments, temporary.path());
            assert!(ran.status.success(), "{script} {arguments:?}: {ran:?}");
        }
    }

    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[test]
fn a_wrong_option_of_a_script_is_refused_before_anything_is_started() {
    let temporary = tempfile::tempdir().unwrap();
    for (script, words, _) in SCRIPTS {
        let arguments = [words, &["--no-such-option"]].concat();
        let ran = run(&format!("{ROOT}/scripts/{script}"), &arguments, temporary.path());
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{script}: {said}");
        assert!(said.contains("--no-such-option"), "{script}: {said}");
    }

    let scripts =
        ["crash", "bench-cluster", "bench-redis", "redis-suite", "check-redis-clients", "lab"];
    for script in scripts {
        let ran = run(&format!("{ROOT}/scripts/{script}"), &["none"], temporary.path());
        assert_eq!(ran.status.code(), Some(2), "{script}: {ran:?}");
    }

    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

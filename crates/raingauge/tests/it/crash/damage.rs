//! Damage to files of storage after a crash: the server either recovers exactly or refuses to start
//! and says why. It never serves a wrong count.

use super::{Sequence, seed};
use crate::client::Client;
use crate::server::Home;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::fs;
use std::path::{Path, PathBuf};

/// Random damages, each to one file of a copy of the same data.
const DAMAGES: usize = 60;
/// The tail of a file, where crashes do damage.
const TAIL_BYTES: usize = 8 << 10;

#[test]
fn damage_is_recovered_from_or_refused_and_never_served() {
    let mut random = StdRng::seed_from_u64(seed());
    let mut sequence = Sequence::new(&mut random);
    {
        let server = sequence.home.start();
        for _ in 0..6 {
            sequence.load(&server, 40);
        }
        server.kill();
    }

    let sound = sequence.home.path().join("sound");
    copy_folder(&sequence.home.data(), &sound);

    let mut recovered = 0;
    let mut refused = 0;
    for number in 0..DAMAGES {
        let data = sequence.home.data();
        fs::remove_dir_all(&data).expect("the data can be removed");
        copy_folder(&sound, &data);

        let what = damage(&data, &mut random);
        match serve_damaged(&mut sequence, &mut random) {
            Verdict::Recovered => recovered += 1,
            Verdict::Refused => refused += 1,
            Verdict::Wrong(why) => panic!("damage {number}, {what}: {why}"),
        }
    }

    println!("of {DAMAGES} damages, {recovered} were recovered from and {refused} refused");
    assert!(recovered > 0 && refused > 0, "both were seen");
}

enum Verdict {
    Recovered,
    Refused,
    Wrong(String),
}

fn serve_damaged(sequence: &mut Sequence, random: &mut StdRng) -> Verdict {
    match sequence.home.try_start() {
        Err(refused) if refused.status.success() => {
            Verdict::Wrong("it ended as if all were well".to_owned())
        }
        Err(refused) if has_panicked(&refused.errors) => {
            Verdict::Wrong(format!("it panicked: {}", refused.errors))
        }
        Err(refused) if refused.errors.trim().len() < 40 => {
            Verdict::Wrong(format!("it does not say why: {}", refused.errors))
        }
        Err(_) => Verdict::Refused,
        Ok(server) => {
            let verdict = compare(sequence, &server, random);
            if has_panicked(&server.errors()) {
                Verdict::Wrong(format!("it panicked: {}", server.errors()))
            } else {
                verdict
            }
        }
    }
}

/// The storage engine asserts what it reads in builds for tests, and ends the process if that
/// happens twice; this refuses damage too, if not politely.
fn has_panicked(errors: &str) -> bool {
    let is_of_engine = |line: &str| {
        ["/fjall-", "/lsm-tree-", "/core/src/panicking"].iter().any(|at| line.contains(at))
    };
    let panics: Vec<&str> = errors.lines().filter(|line| line.contains("panicked at")).collect();
    match panics[..] {
        [] => false,
        [first, ..] if !cfg!(debug_assertions) || first.contains("/core/src/") => true,
        _ => !panics.into_iter().all(is_of_engine),
    }
}

/// Counts are right, before and after duplicates come in, or they are errors.
fn compare(sequence: &mut Sequence, client: &Client, random: &mut StdRng) -> Verdict {
    let expected = sequence.expected(random);
    let mut whole = true;
    for _ in 0..2 {
        let ranges: Vec<(&str, i64, i64)> =
            expected.iter().map(|(key, from, to, _)| (key.as_str(), *from, *to)).collect();
        for ((key, from, to, expected), result) in expected.iter().zip(client.results(&ranges)) {
            match result["count"].as_i64() {
                Some(count) if count == *expected => {}
                Some(count) => {
                    return Verdict::Wrong(format!(
                        "{key} in [{from}, {to}) is {expected}, and {count} was served"
                    ));
                }
                None => whole = false,
            }
        }

        for producer in &mut sequence.producers {
            if let Some(answer) = producer.repeat(client, 200)
                && answer.status == 200
                && answer.json()["accepted"] != 0
            {
                return Verdict::Wrong(format!("duplicates were accepted: {}", answer.text()));
            }
        }
    }

    if whole { Verdict::Recovered } else { Verdict::Refused }
}

/// Changes one file a little, and returns how.
fn damage(data: &Path, random: &mut StdRng) -> String {
    let mut files = Vec::new();
    list_files(data, &mut files);
    files.retain(|path| fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0));
    files.sort();

    let path = files.choose(random).expect("there are files");
    let mut bytes = fs::read(path).expect("a file can be read");
    let tail = bytes.len().min(TAIL_BYTES);
    let at = bytes.len() - random.random_range(1..=tail);
    let how = match random.random_range(0..5) {
        0 => {
            bytes.truncate(at);
            "cut off"
        }
        1 => {
            bytes[at] ^= 1 << random.random_range(0..8);
            "a bit turned"
        }
        2 => {
            bytes[at..].fill(0);
            "zeros from there on"
        }
        3 => {
            bytes[at..].iter_mut().for_each(|byte| *byte = random.random());
            "noise from there on"
        }
        _ => {
            let noise = random.random_range(1..5_000);
            bytes.extend((0..noise).map(|_| random.random::<u8>()));
            "noise behind its end"
        }
    };

    let len = bytes.len();
    fs::write(path, bytes).expect("a file can be written");

    let name = path.strip_prefix(data).unwrap_or(path).display().to_string();
    format!("{name} at byte {at} of {len}: {how}")
}

fn list_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder can be read") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { list_files(&path, files) } else { files.push(path) }
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("a folder can be read") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).expect("a file can be copied");
        }
    }
}

/// A log whose tail was torn before it was acknowledged goes on; all that was acknowledged is
/// there.
#[test]
fn a_tail_that_was_never_acknowledged_is_cut_off() {
    let mut random = StdRng::seed_from_u64(seed());
    let mut sequence = Sequence::new(&mut random);
    let server = sequence.home.start();
    sequence.load(&server, 20);
    server.kill();

    for torn in [&b"RGB1"[..], b"RGB1\0\0\0\0\x40\0\0\0\x01\0\0\0\x02", b"noise", &[0; 4_096]] {
        let segment = newest_segment(&sequence.home);
        let mut bytes = fs::read(&segment).expect("the segment can be read");
        bytes.extend_from_slice(torn);
        fs::write(&segment, bytes).expect("the segment can be written");

        let server = sequence.home.start();
        sequence.check(&server, &mut random);
        sequence.load(&server, 3);
        server.kill();
    }
}

fn newest_segment(home: &Home) -> PathBuf {
    let mut files = Vec::new();
    list_files(&home.data().join("log"), &mut files);
    files.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    files.into_iter().max().expect("a log has a segment")
}

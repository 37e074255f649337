//! Faults under the books, their journal and fjall alike: see [`crate::faults`].

use super::*;
use crate::faults::Library;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command as Process, Stdio};

const TURNS: usize = 30;
const SEED: u64 = 11;
const TEST: &str = "books::tests::faults::a_process_under_faults";

/// The process under faults; as a test of its own it does nothing. It reports the number of the
/// last entry of each turn.
#[test]
fn a_process_under_faults() {
    let Some(folder) = std::env::var_os("FAULTS_FOLDER") else {
        return;
    };
    let opened = PointBooks::open(Path::new(&folder), &options());
    if opened.and_then(|books| run(&books)).is_err() {
        // Exits as the program does, without any cleanup.
        std::process::exit(1);
    }
}

fn run(books: &PointBooks) -> Result<(), Error> {
    let mut scene = Scene::new(SEED);
    for _ in 0..TURNS {
        scene.turn(books)?;
        println!("\ncommitted {}", scene.head().sequence);
        std::io::stdout().flush().expect("the parent listens");
        if scene.random.chance(30) {
            books.inner.records.write_all()?;
        }
    }
    Ok(())
}

/// Succeeds if the books hold exactly the turns up to their last entry, and their records are what
/// follows from it.
fn is_sound(folder: &Path, committed: u64) -> Result<(), String> {
    let books = open(folder).map_err(|why| why.to_string())?;
    let found = books.head(0).map_err(|why| why.to_string())?.sequence;
    if found < committed {
        return Err(format!("{committed} entries were committed, and {found} are left"));
    }

    // The same turns, decided again.
    let mut scene = Scene::new(SEED);
    let twin = Twin::new(1);
    while scene.head().sequence < found {
        scene.turn(&twin).map_err(|why| why.to_string())?;
        let _ = scene.random.chance(30);
    }
    if scene.head().sequence != found {
        return Err(format!("{found} entries end within a turn"));
    }

    same_content(&books, &scene);
    drop(books);
    let verified = verify(folder, &options()).map_err(|why| why.to_string())?;
    verified.map(|_| ()).map_err(|difference| format!("{difference:?}"))
}

#[test]
fn no_fault_under_the_books_loses_or_changes_an_entry() {
    Library::new(TEST).examine(&is_sound);
}

#[test]
fn a_sync_that_is_left_out_is_noticed() {
    Library::new(TEST).notices_missing_syncs(&is_sound);
}

/// SIGKILL while the books are at work.
#[test]
fn a_killed_process_leaves_what_it_committed() {
    for until in [1, 5, 14, 25] {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Process::new(std::env::current_exe().expect("this test"));
        process.args(["--exact", TEST, "--nocapture"]).env("FAULTS_FOLDER", folder.path());
        let mut running =
            process.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a process");

        let lines = BufReader::new(running.stdout.take().expect("its output")).lines();
        let mut committed = lines.map_while(Result::ok).filter_map(|line| {
            line.strip_prefix("committed ").and_then(|sequence| sequence.parse::<u64>().ok())
        });
        let sequence = committed.nth(until - 1).expect("it has committed");
        running.kill().expect("it is killed");
        running.wait().expect("it has ended");

        is_sound(folder.path(), sequence).unwrap();
    }
}

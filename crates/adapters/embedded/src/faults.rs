//! Faults under fjall, which calls the file system itself and takes no port. A separate process
//! works on a store, with a library between it and the C library (`faults.c`) that ends the process
//! or fails its n-th operation. The result is opened without faults and compared with a model.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs of each kind of fault.
const RUNS: u64 = 8;

/// The fault at the n-th operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// The process ends before it, or after half of it.
    Kill,
    Tear,
    /// The power fails: files revert to their last synced contents.
    Power,
    /// The operation fails, or the disk is full from then on.
    Error,
    Full,
}

/// Opens the result of a run in a folder. Succeeds if it holds exactly what was committed up to its
/// position, which is not less than what was reported as committed.
pub type IsSound = dyn Fn(&Path, u64) -> Result<(), String> + Sync;

/// The library, compiled into a temporary folder.
pub struct Library {
    folder: tempfile::TempDir,
    /// The test that works on a store in the process.
    test: &'static str,
}

impl Library {
    pub fn new(test: &'static str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/faults/faults.c");
        let mut compiler = Command::new("cc");
        compiler
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(folder.path().join("faults.so"))
            .arg(source);
        let compiled = compiler.args(["-ldl", "-lpthread"]).status().expect("cc is installed");
        assert!(compiled.success());
        Self { folder, test }
    }

    /// Runs the process. Returns the last number behind `committed ` in its output.
    pub fn run(&self, place: &Place, fault: Fault, at: u64, lies: bool) -> u64 {
        let kind = match fault {
            Fault::Kill | Fault::Power => "kill",
            Fault::Tear => "tear",
            Fault::Error => "error",
            Fault::Full => "full",
        };

        let mut process = Command::new(std::env::current_exe().expect("this test"));
        process.args(["--exact", self.test, "--nocapture"]);
        process.env("LD_PRELOAD", self.folder.path().join("faults.so"));
        process
            .env("FAULTS_FOLDER", place.store())
            .env("FAULTS_COUNT", place.folder.path().join("operations"));
        process.env("FAULTS_KIND", kind).env("FAULTS_AT", at.to_string());

        if fault == Fault::Power {
            process.env("FAULTS_SHADOW", place.shadow());
        }

        if lies {
            process.env("FAULTS_LIES", "yes");
        }

        let mut running =
            process.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a process");
        let lines = BufReader::new(running.stdout.take().expect("its output")).lines();
        let committed = lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("committed ")?.parse().ok());
        let position = committed.last().unwrap_or(0);

        running.wait().expect("it has ended");
        position
    }
}

/// The folders of one run.
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().expect("a folder") };
        std::fs::create_dir(place.shadow()).expect("a folder");
        place
    }

    pub fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn shadow(&self) -> PathBuf {
        self.folder.path().join("shadow")
    }

    /// Reverts every file to its last synced contents.
    pub fn lose_power(&self) {
        let mut folders = vec![self.store()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten() {
                let entry = entry.expect("an entry");
                let metadata = entry.metadata().expect("its metadata");
                if metadata.is_dir() {
                    folders.push(entry.path());
                    continue;
                }

                let synced = std::fs::read(self.shadow().join(metadata.ino().to_string()))
                    .unwrap_or_default();
                std::fs::write(entry.path(), synced).expect("it is put back");
            }
        }
    }
}

impl Library {
    /// Number of operations of a run without a fault.
    fn operations(&self, is_sound: &IsSound) -> u64 {
        let place = Place::new();
        let committed = self.run(&place, Fault::Kill, 0, false);
        assert!(committed > 0);
        is_sound(&place.store(), committed).expect("it is sound");
        let operations = std::fs::read_to_string(place.folder.path().join("operations"));
        operations.expect("they were counted").parse().expect("a number")
    }

    /// Runs the process with each kind of fault at several operations, and examines what is left.
    pub fn examine(&self, is_sound: &IsSound) {
        let operations = self.operations(is_sound);
        let kinds = [Fault::Kill, Fault::Tear, Fault::Power, Fault::Error, Fault::Full];
        let next = AtomicU64::new(0);

        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(|| {
                    while let run = next.fetch_add(1, Ordering::Relaxed)
                        && run < RUNS * kinds.len() as u64
                    {
                        // Half of the faults hit while the store is created, the others anywhere.
                        let fault = kinds[(run % 5) as usize];
                        let place = Place::new();
                        let mixed = run.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
                        let is_early = run / 5 < RUNS / 2;
                        let at = if is_early { 1 + run } else { 1 + mixed % operations };

                        let committed = self.run(&place, fault, at, false);
                        if fault == Fault::Power {
                            place.lose_power();
                        }
                        is_sound(&place.store(), committed)
                            .unwrap_or_else(|why| panic!("{fault:?} at operation {at}: {why}"));
                    }
                });
            }
        });
    }

    /// Data that is not synced does not survive, and the examination notices.
    pub fn notices_missing_syncs(&self, is_sound: &IsSound) {
        let place = Place::new();
        let committed = self.run(&place, Fault::Power, 0, true);
        assert!(committed > 0);
        place.lose_power();
        is_sound(&place.store(), committed).expect_err("nothing was synced");
    }
}

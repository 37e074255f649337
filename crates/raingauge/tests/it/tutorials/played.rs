//! A section of a page whose commands are run one block after the other.

use crate::server::until;
use std::collections::VecDeque;
use std::fs::{File, read_to_string};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Where the server of a page listens unless it says otherwise.
const SERVER: &str = "127.0.0.1:8080";
/// Commands that run until they are stopped. Each stands at the end of its block.
const SERVERS: [&str; 2] = ["raingauge serve", "raingauge sink"];

pub struct Tutorial {
    blocks: VecDeque<String>,
    /// Names and texts of files that the reader saves.
    files: Vec<(String, String)>,
    /// The block that ran last.
    last: String,
    /// Texts of the page, and what stands for each of them here.
    replaced: Vec<(String, String)>,
    running: Vec<Arc<Running>>,
    /// Where the next block runs. It begins empty.
    place: PathBuf,
    /// For output and notes of the processes.
    beside: TempDir,
}

/// A process that runs until the end of the tutorial.
pub struct Running {
    child: Mutex<Child>,
    output: PathBuf,
    log: PathBuf,
    address: String,
}

impl Tutorial {
    /// Reads the blocks of commands below a heading of a page.
    pub fn open(page: &str, heading: &str) -> Self {
        let text = read_to_string(Path::new(ROOT).join(page)).expect("the page is there");
        let (_, section) =
            text.split_once(&format!("\n## {heading}\n")).expect("the page has the heading");
        let section = section.split("\n## ").next().unwrap_or_default();
        let parts: Vec<&str> = section.split("\n```").collect();
        let mut blocks = VecDeque::new();
        let mut files = Vec::new();
        for fenced in parts.chunks_exact(2) {
            let [prose, block] = fenced else { continue };
            let (language, text) = block.split_once('\n').expect("a block has lines");
            match language {
                "sh" => blocks.push_back(text.to_owned()),
                _ => files.push((file_named(prose, language), format!("{text}\n"))),
            }
        }

        let beside = tempfile::tempdir().expect("a temporary folder");
        let place = beside.path().join("empty");
        std::fs::create_dir(&place).expect("a folder can be made");
        Self {
            blocks,
            files,
            last: String::new(),
            replaced: Vec::new(),
            running: Vec::new(),
            place,
            beside,
        }
    }

    /// Whether a program that the page takes for granted is on this machine.
    pub fn has(&self, program: &str) -> bool {
        let found = self.shell(&format!("command -v {program}")).output();
        found.expect("a shell can be started").status.success()
    }

    /// Writes something else for a text of the page from now on.
    pub fn replace(&mut self, text: &str, by: &str) {
        self.replaced.push((text.to_owned(), by.to_owned()));
    }

    /// Starts what the next block ends with: a process that listens on this address of the page.
    /// It takes a free port instead.
    pub fn start(&mut self, address: &str) -> Arc<Running> {
        let block = self.next().replace(address, "127.0.0.1:0");
        let found = SERVERS.iter().find_map(|server| Some((server, block.rfind(server)?)));
        let (_, at) = found.unwrap_or_else(|| panic!("nothing is started by: {block}"));
        let end = &block[at..];
        assert!(!end.contains('\n'), "nothing can be typed behind a server: {block}");

        // The shell becomes the server, so that the server can be stopped.
        let begin = &block[..at];
        let (before, assigned) = begin.rsplit_once('\n').unwrap_or(("", begin));
        let place = self.beside.path().join("place");
        let script = format!("{before}\npwd > '{}'\n{assigned} exec {end}", place.display());
        let number = self.running.len();
        let [output, log] =
            ["output", "log"].map(|name| self.beside.path().join(format!("{name}-{number}")));
        let file = |path: &Path| File::create(path).expect("a file can be made");
        let child = self
            .shell(&script)
            .stdout(file(&output))
            .stderr(file(&log))
            .spawn()
            .expect("a shell can be started");

        let mut running = Running { child: child.into(), output, log, address: String::new() };
        running.address = until("the process listens", || running.listens_on());
        self.place = read_to_string(place).expect("a folder").trim_end().into();
        self.replace(address, &running.address);
        let running = Arc::new(running);
        self.running.push(Arc::clone(&running));
        running
    }

    /// Saves the files that the page shows where the next block runs.
    pub fn save_files(&self) {
        for (name, text) in &self.files {
            std::fs::write(self.place.join(name), text).expect("a file can be written");
        }
    }

    /// Runs the next block and returns what it printed. Every command of it must succeed.
    pub fn run(&mut self) -> String {
        self.last = self.next();
        self.run_again()
    }

    /// Runs the last block once more.
    pub fn run_again(&self) -> String {
        let Output { status, stdout, stderr } =
            self.shell(&self.last).output().expect("a shell can be started");
        let [printed, errors] =
            [stdout, stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
        assert!(status.success(), "{}\n{printed}\n{errors}", self.last);
        printed
    }

    /// Checks that no block was left out.
    pub fn end(self) {
        assert!(self.blocks.is_empty(), "blocks that did not run: {:?}", self.blocks);
    }

    fn next(&mut self) -> String {
        let block = self.blocks.pop_front().expect("the page has another block");
        let replaced = self.replaced.iter();
        replaced.fold(block, |block, (text, by)| block.replace(text, by))
    }

    /// A shell as a reader has it, with raingauge in its path.
    fn shell(&self, script: &str) -> Command {
        let binary = Path::new(env!("CARGO_BIN_EXE_raingauge"));
        let folders = [binary.parent().expect("it lies in a folder"), "/usr/local/bin".as_ref()];
        let folders = folders.into_iter().chain(["/usr/bin".as_ref(), "/bin".as_ref()]);
        let server = self.replaced.iter().find(|(text, _)| text == SERVER);

        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-ec", script])
            .current_dir(&self.place)
            .env_clear()
            .env("PATH", std::env::join_paths(folders).expect("no colon is in them"))
            .env("RAINGAUGE__SERVER__LISTEN", "127.0.0.1:0")
            .envs(server.map(|(_, address)| ("RAINGAUGE_SERVER", format!("http://{address}"))))
            .stdin(Stdio::null());
        shell
    }
}

/// The name that the text before a file calls it by.
fn file_named(prose: &str, language: &str) -> String {
    let end = format!(".{language}");
    let named = prose.split('`').rfind(|word| word.ends_with(&end) && !word.contains(' '));
    named.unwrap_or_else(|| panic!("no name of a {language} file in: {prose}")).to_owned()
}

impl Running {
    /// What it has printed so far.
    pub fn output(&self) -> String {
        read_to_string(&self.output).expect("its output")
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        read_to_string(&self.log).expect("its log")
    }

    /// Where it listens, when it has said so in a whole line.
    fn listens_on(&self) -> Option<String> {
        let said = |text: String| {
            let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            let mut ends = lines.filter_map(|line| line.split_once(" on http://"));
            ends.next().map(|(_, end)| end.trim_end().to_owned())
        };
        let ended = self.child.lock().expect("no thread panics with it").try_wait();
        assert!(matches!(ended, Ok(None)), "it has ended: {}", self.log());
        said(self.output()).or_else(|| said(self.log()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let child = self.child.get_mut().expect("no thread panics with it");
        let _ = child.kill();
        let _ = child.wait();
    }
}

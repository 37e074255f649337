//! The real binary over a temporary data folder: started, killed, terminated, started again.

use crate::client::Client;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest wait for a server to be ready, for a process to end, or for a condition to hold. A
/// failing test ends by it.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// A data folder, and the settings of its servers. The folder is removed with it.
pub struct Home {
    folder: TempDir,
    environment: Vec<(String, String)>,
    /// The limit of open files of its processes, if it differs from that of the tests.
    open_files_max: Option<usize>,
    program: String,
}

/// A server that did not start.
#[derive(Debug)]
pub struct Refused {
    pub status: ExitStatus,
    pub errors: String,
}

/// The outcome of a command.
#[derive(Debug)]
pub struct Ran {
    pub status: ExitStatus,
    pub output: String,
    pub errors: String,
}

impl Ran {
    /// Returns the JSON output of a command, which must have succeeded.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        assert!(self.status.success(), "{self:?}");
        serde_json::from_str(&self.output).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Home {
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// Settings by their place in the configuration, such as `("log.queue_bytes_max", "65536")`.
    pub fn with(settings: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = env!("CARGO_BIN_EXE_raingauge").to_owned();
        let mut home = Self { folder, environment: Vec::new(), open_files_max: None, program };
        settings.iter().for_each(|(key, value)| home.set(key, value));
        home
    }

    /// Another folder with the same settings.
    pub fn like(&self) -> Self {
        Self { environment: self.environment.clone(), ..Self::new() }
    }

    pub fn set(&mut self, key: &str, value: &str) {
        let variable = format!("RAINGAUGE__{}", key.replace('.', "__").to_uppercase());
        self.environment.retain(|(known, _)| *known != variable);
        self.environment.push((variable, value.to_owned()));
    }

    /// Sets a variable that is no setting.
    pub fn export(&mut self, variable: &str, value: &str) {
        self.environment.push((variable.to_owned(), value.to_owned()));
    }

    /// Runs another release of the binary from now on.
    pub fn run_program(&mut self, path: &str) {
        path.clone_into(&mut self.program);
    }

    /// Starts processes with this limit of open files, which they cannot raise.
    pub fn limit_open_files(&mut self, open_files_max: usize) {
        self.open_files_max = Some(open_files_max);
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A folder beside the data, for files of the test.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The log file of the processes of this home.
    pub fn errors_path(&self) -> PathBuf {
        self.folder.path().join("errors.txt")
    }

    /// Returns what the processes of this home have logged.
    pub fn errors(&self) -> String {
        std::fs::read_to_string(self.errors_path()).unwrap_or_default()
    }

    pub fn start(&self) -> Server {
        self.try_start().unwrap_or_else(|refused| panic!("the server did not start: {refused:?}"))
    }

    pub fn try_start(&self) -> Result<Server, Refused> {
        self.try_start_on("127.0.0.1:0")
    }

    /// Starts a server on an address; returns when it has reported that it is ready, or has ended.
    pub fn try_start_on(&self, address: &str) -> Result<Server, Refused> {
        let data = self.data();
        let arguments = ["serve", "--data-dir", &data.display().to_string(), "--listen", address]
            .map(str::to_owned);
        self.try_start_with(&arguments)
    }

    pub fn try_start_with(&self, arguments: &[String]) -> Result<Server, Refused> {
        let errors_path = self.errors_path();
        let errors = File::options()
            .create(true)
            .append(true)
            .open(&errors_path)
            .expect("a file for the logs");

        let errors_from = errors.metadata().map_or(0, |metadata| metadata.len()) as usize;
        let mut child = self
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .expect("the binary can be started");

        let ready = ready_line(&mut child);
        let errors =
            || std::fs::read_to_string(&errors_path).unwrap_or_default().split_off(errors_from);
        let address = ready
            .as_deref()
            .and_then(|line| line.trim().rsplit_once("://"))
            .map(|(_, address)| address);
        match address {
            Some(address) => {
                Ok(Server { client: Client::new(address), child, errors_path, errors_from })
            }
            None => {
                let _ = child.kill();
                Err(Refused { status: child.wait().expect("the process ends"), errors: errors() })
            }
        }
    }

    /// Runs a command of the binary to its end, in the folder of this home. Returns its output.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        let arguments: Vec<String> =
            arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let output = self
            .command(&arguments)
            .current_dir(self.folder.path())
            .output()
            .expect("the binary can be started");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("what is printed is UTF-8");
        Ran { status: output.status, output: text(output.stdout), errors: text(output.stderr) }
    }

    /// The binary with the settings of this home, without the environment of the tests.
    pub fn command(&self, arguments: &[String]) -> Command {
        let binary = self.program.as_str();
        let mut command = match self.open_files_max {
            None => Command::new(binary),
            Some(max) => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", &format!("ulimit -n {max} && exec \"$0\" \"$@\""), binary]);
                shell
            }
        };

        command
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null());
        command
    }
}

/// Returns the first line on standard output; `None` when the process ends or [`PATIENCE`] runs out
/// first.
fn ready_line(child: &mut Child) -> Option<String> {
    let output = child.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        if BufReader::new(output).read_line(&mut line).is_ok_and(|len| len > 0) {
            let _ = sender.send(line);
        }
    });
    receiver.recv_timeout(PATIENCE).ok()
}

/// A running server. It is killed when it goes out of scope.
pub struct Server {
    client: Client,
    child: Child,
    errors_path: PathBuf,
    errors_from: usize,
}

impl Deref for Server {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Server {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the process at once, as a crash would.
    pub fn kill(mut self) {
        self.child.kill().expect("a running process can be killed");
        self.child.wait().expect("a killed process ends");
    }

    /// Terminates the process and waits for its end. Returns its status and the time it took.
    pub fn terminate(self) -> (ExitStatus, Duration) {
        self.signal("TERM");
        let began = Instant::now();
        (self.ended(), began.elapsed())
    }

    /// Waits until the process, which has got a signal to stop, has ended.
    pub fn ended(mut self) -> ExitStatus {
        until("the process ends", || self.child.try_wait().expect("the process can be asked"))
    }

    pub fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the signal {name} can be sent");
    }

    /// Returns what the server has logged.
    pub fn errors(&self) -> String {
        std::fs::read_to_string(&self.errors_path).unwrap_or_default().split_off(self.errors_from)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("the log of process {}:\n{}", self.pid(), self.errors());
        }
    }
}

/// Polls until there is an answer.
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

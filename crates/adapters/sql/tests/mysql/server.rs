//! A server of one test, which the test may stop.

use crate::support::{Server, shared_address};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const START_TIMEOUT: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Names the `mysqld` of a MySQL that is tested instead of MariaDB.
const MYSQLD: &str = "RAINGAUGE_TEST_MYSQLD";

/// What options of TLS begin with. The MySQL that tests can get has a library without elliptic
/// curves, and so no cipher that its clients take too.
const TLS: &str = "--ssl-";

/// How names of tables are compared, which MySQL wants to know when its folder is made.
const CASE: &str = "--lower-case-table-names=";

/// A MariaDB, or a MySQL, in a folder of its own, ended when this is dropped.
pub struct PrivateServer {
    folder: TempDir,
    port: u16,
    options: Vec<String>,
    running: Option<Child>,
}

/// A port that nobody listens on.
pub fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

impl PrivateServer {
    /// Makes the folder; none where the tests run without servers.
    pub fn prepare(options: &[&str]) -> Option<Self> {
        shared_address()?;
        if mysqld().is_some() && options.iter().any(|option| option.starts_with(TLS)) {
            eprintln!("skipped: {MYSQLD} names a server without ciphers that are still in use");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        let names = |option: &&&str| mysqld().is_some() && option.starts_with(CASE);
        let installed = installation()
            .args(options.iter().filter(names))
            .args(folders(&folder))
            .args(user_argument())
            .output()
            .expect("mariadb-install-db of the package mariadb-server is needed");
        assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        Some(Self { folder, port: free_port(), options, running: None })
    }

    /// A server that answers.
    pub async fn start(options: &[&str]) -> Option<Self> {
        let mut server = Self::prepare(options)?;
        server.go().await;
        Some(server)
    }

    /// Starts the server, again or for the first time, and waits until it answers.
    pub async fn go(&mut self) {
        assert!(self.running.is_none(), "the server runs already");
        let log = std::fs::File::options().create(true).append(true).open(self.log_path()).unwrap();
        let child = daemon()
            .args(folders(&self.folder))
            .arg(format!("--socket={}", self.folder.path().join("socket").display()))
            .arg(format!("--port={}", self.port))
            .args(["--bind-address=127.0.0.1", "--innodb-buffer-pool-size=16M"])
            .args(user_argument())
            .args(&self.options)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("mariadbd of the package mariadb-server is needed");

        self.running = Some(child);
        let deadline = Instant::now() + START_TIMEOUT;

        while tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.is_err() {
            let ended = self.running.as_mut().and_then(|child| child.try_wait().unwrap());
            let log = || std::fs::read_to_string(self.log_path()).unwrap_or_default();
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "the server did not start: {ended:?}\n{}",
                log()
            );
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Ends the server and waits until it is gone: with `Signal::TERM` in order, with
    /// `Signal::KILL` as in a crash.
    pub fn stop(&mut self, signal: Signal) {
        self.signal(signal);
        self.running.take().expect("the server runs").wait().unwrap();
    }

    /// Freezes the server, which then takes connections and answers nothing.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
        // A signal arrives some time after it was sent, and until then calls are answered.
        waitpid(Some(self.id()), WaitOptions::UNTRACED).unwrap();
    }

    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.id(), signal).unwrap();
    }

    fn id(&self) -> Pid {
        Pid::from_child(self.running.as_ref().expect("the server runs"))
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server, as the tests of the shared one know it.
    pub fn databases(&self) -> Server {
        Server::at(&format!("mysql://root@127.0.0.1:{}", self.port))
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        if let Some(mut child) = self.running.take() {
            // Nothing in it is needed any more. Also ends a server that is frozen.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn mysqld() -> Option<String> {
    std::env::var(MYSQLD).ok().filter(|path| !path.is_empty())
}

/// What fills an empty folder: a root without a password, and nothing else.
fn installation() -> Command {
    if let Some(mysqld) = mysqld() {
        let mut command = Command::new(mysqld);
        command.args(["--no-defaults", "--initialize-insecure"]);
        return command;
    }
    let mut command = program("mariadb-install-db");
    command.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
    command
}

fn daemon() -> Command {
    if let Some(mysqld) = mysqld() {
        let mut command = Command::new(mysqld);
        // The port of its other protocol is the same for all servers of a machine.
        command.args(["--no-defaults", "--mysqlx=OFF", "--skip-ssl"]);
        return command;
    }
    let mut command = program("mariadbd");
    command.arg("--no-defaults");
    command
}

/// A program of MariaDB. Some lie where only administrators look for programs.
fn program(name: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(name);
    command.env("PATH", format!("{path}:/usr/local/sbin:/usr/sbin:/sbin"));
    command
}

/// A server that starts removes what looks like left-overs from the folder for temporary tables, so
/// that each needs one of its own.
fn folders(folder: &TempDir) -> [String; 2] {
    [("datadir", "data"), ("tmpdir", "tmp")]
        .map(|(name, path)| format!("--{name}={}", folder.path().join(path).display()))
}

/// The server refuses to run as root unless an option allows it.
fn user_argument() -> Option<&'static str> {
    rustix::process::getuid().is_root().then_some("--user=root")
}

use raingauge_ports::cache::ResultCache;
use raingauge_redis::{self as redis, Options};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time for a call where the test is not about time.
pub const AMPLE: Duration = Duration::from_secs(5);
/// How long something may take that must come about.
const PATIENCE: Duration = Duration::from_secs(30);

/// A redis-server of the test's own; ends with it.
pub struct Server {
    pub port: u16,
    child: Child,
    folder: tempfile::TempDir,
    arguments: Vec<String>,
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
}

/// Whether there is a redis-server; says so when there is none.
pub fn is_installed() -> bool {
    let found =
        Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        println!("skipped: there is no redis-server on this machine");
    }
    found
}

impl Server {
    pub fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>();
        for _ in 0..10 {
            let port = free_port();
            let mut child = spawn(port, folder.path(), &arguments);
            if answers(port, &mut child) {
                return Self { port, child, folder, arguments };
            }
        }
        panic!("redis-server does not start");
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn signal(&self, signal: Signal) {
        let id = Pid::from_raw(self.child.id() as i32).expect("a process");
        kill_process(id, signal).expect("signalled");
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }

    /// Starts again what was killed, on the same port.
    pub fn revive(&mut self) {
        self.child = spawn(self.port, self.folder.path(), &self.arguments);
        assert!(answers(self.port, &mut self.child), "redis-server starts again");
    }

    /// What redis-cli answers.
    pub fn ask(&self, words: &[&str]) -> String {
        let output =
            Command::new("redis-cli").arg("-p").arg(self.port.to_string()).args(words).output();
        String::from_utf8(output.expect("redis-cli runs").stdout).expect("text").trim().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(port: u16, folder: &Path, arguments: &[String]) -> Child {
    let mut command = Command::new("redis-server");
    command.args([
        "--port",
        &port.to_string(),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
    ]);
    command.arg("--dir").arg(folder).args(arguments).stdout(Stdio::null());

    command.spawn().expect("redis-server starts")
}

/// Whether the server answers before it ends.
fn answers(port: u16, child: &mut Child) -> bool {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until && child.try_wait().expect("a state").is_none() {
        let mut answer = [0; 1];
        let asked = TcpStream::connect(("127.0.0.1", port)).and_then(|mut stream| {
            stream.write_all(b"PING\r\n")?;
            stream.read_exact(&mut answer)
        });

        // An error is an answer too: it may ask for a password.
        if asked.is_ok() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }

    let _ = child.kill();
    let _ = child.wait();
    false
}

pub fn open(urls: &[String], cluster: bool, timeout: Duration) -> redis::Cache {
    redis::Cache::open(&Options { cluster, timeout, ..Options::new(urls) })
        .expect("options that can be used")
}

/// Waits until the cache answers as it should.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < until, "{what} does not come about");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub async fn works(cache: &redis::Cache) -> bool {
    let entry = ("works".to_owned(), 1);
    cache.put(vec![entry], Duration::from_secs(9)).await.is_ok()
        && cache.get(vec!["works".to_owned()]).await.is_ok_and(|found| found == [Some(1)])
}

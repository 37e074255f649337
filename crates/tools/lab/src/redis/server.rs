//! A real redis-server on a free port, for the judges and for comparisons.

use anyhow::{Context, Result, ensure};
use raingauge_resp_client::{Address, Connection};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const START_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);

/// A server that keeps nothing, and ends with this value.
pub struct Redis {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Redis {
    /// Starts a server with more arguments; `None`, and a remark, where there is none installed.
    pub fn start(arguments: &[&str]) -> Result<Option<Self>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let name = format!("raingauge-redis-{}-{port}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder)?;

        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.arg("--dir").arg(&folder).args(arguments).stdout(Stdio::null());
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                eprintln!("skipped: there is no redis-server on this machine");
                return Ok(None);
            }
            Err(error) => return Err(error).context("redis-server cannot be started"),
        };

        let mut server = Self { child, port, folder };
        let began = Instant::now();
        while Connection::open(&server.address()).is_err() {
            ensure!(server.child.try_wait()?.is_none(), "redis-server has ended");
            ensure!(began.elapsed() < START_MAX, "redis-server does not answer");
            std::thread::sleep(POLL);
        }
        Ok(Some(server))
    }

    pub fn address(&self) -> Address {
        Address::local(self.port)
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

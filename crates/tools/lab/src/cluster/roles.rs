//! The raingauge processes: each has its own role, port and log, and can be killed, paused and
//! restarted.

use super::servers::Servers;
use crate::http::Target;
use crate::http::client::Client;
use anyhow::{Context, Result, bail, ensure};
use rand::Rng;
use std::fs::{File, OpenOptions};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const READY_MAX: Duration = Duration::from_secs(180);
const STOP_MAX: Duration = Duration::from_secs(60);
const MIGRATE_MAX_S: u64 = 180;
const POLL: Duration = Duration::from_millis(100);
/// Below the ephemeral ports of Linux, so that the port of a stopped process stays free.
const PORTS: std::ops::Range<u16> = 10_000..30_000;

/// Configuration shared by all processes.
pub struct Setup {
    pub binary: PathBuf,
    pub folder: PathBuf,
    variables: Vec<(String, String)>,
}

impl Setup {
    pub fn new(
        binary: &Path,
        folder: &Path,
        servers: &Servers,
        run: &str,
        partitions: u16,
    ) -> Result<Self> {
        let replication = servers.nodes().min(3);
        let settings = [
            ("CLUSTER__ENGINES", "cluster".to_owned()),
            ("CLUSTER__CATALOG", "mysql".to_owned()),
            ("CQL__CONTACT_POINTS", servers.needed("CQL")?.to_owned()),
            ("CQL__KEYSPACE", format!("raingauge_{run}")),
            (
                "CQL__REPLICATION",
                format!(
                    "{{'class': 'NetworkTopologyStrategy', 'replication_factor': {replication}}}"
                ),
            ),
            // Short enough that the loss of a node makes requests time out.
            ("CQL__REQUEST_TIMEOUT_MS", "1000".to_owned()),
            ("KAFKA__BROKERS", servers.needed("KAFKA")?.to_owned()),
            ("KAFKA__TOPIC", format!("{run}-events")),
            ("KAFKA__DEAD_LETTER_TOPIC", format!("{run}-dead-letters")),
            ("KAFKA__GROUP", run.to_owned()),
            ("KAFKA__PARTITIONS", partitions.to_string()),
            ("KAFKA__REPLICATION", servers.broker_copies().to_string()),
            ("KAFKA__SESSION_TIMEOUT_MS", "6000".to_owned()),
            ("KAFKA__DELIVERY_TIMEOUT_MS", "5000".to_owned()),
            ("MYSQL__URL", servers.needed("MYSQL")?.to_owned()),
            ("SERVER__REQUEST_TIMEOUT_S", "15".to_owned()),
        ];

        let variables = settings.map(|(key, value)| (format!("RAINGAUGE__{key}"), value)).to_vec();
        Ok(Self { binary: binary.to_owned(), folder: folder.to_owned(), variables })
    }

    /// Uses the embedded engines; each process has its own data folder.
    pub fn embedded(binary: &Path, folder: &Path) -> Self {
        Self { binary: binary.to_owned(), folder: folder.to_owned(), variables: Vec::new() }
    }

    /// Sets a setting by its configuration name; a later value replaces an earlier one.
    pub fn set(&mut self, name: &str, value: &str) {
        let variable = format!("RAINGAUGE__{}", name.replace('.', "__").to_uppercase());
        self.variables.push((variable, value.to_owned()));
    }

    pub fn migrate(&self) -> Result<()> {
        let output = Command::new("timeout")
            .arg(MIGRATE_MAX_S.to_string())
            .arg(&self.binary)
            .arg("migrate")
            .envs(self.variables.iter().cloned())
            .output()
            .context("raingauge migrate")?;

        ensure!(
            output.status.success(),
            "raingauge migrate failed ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }
}

/// One process of raingauge, running or not.
pub struct Role {
    pub name: String,
    role: &'static str,
    pub address: SocketAddr,
    variables: Vec<(String, String)>,
    /// The core that it is pinned to.
    core: Option<usize>,
    child: Option<Child>,
    /// A process that has been asked to stop, which may take as long as an engine is unavailable.
    leaving: Option<Child>,
}

impl Role {
    /// A process that has not been started. `more` are its own settings.
    pub fn new(name: &str, role: &'static str, more: &[(&str, &str)]) -> Result<Self> {
        let variables = more
            .iter()
            .map(|(key, value)| (format!("RAINGAUGE__{key}"), (*value).to_owned()))
            .collect();
        Ok(Self {
            name: name.to_owned(),
            role,
            address: free_address()?,
            variables,
            core: None,
            child: None,
            leaving: None,
        })
    }

    /// Pins the process to a core when it starts.
    pub fn on_core(mut self, core: usize) -> Self {
        self.core = Some(core);
        self
    }

    pub fn target(&self) -> Target {
        Target { address: self.address, token: None }
    }

    /// The process id, while the process runs.
    pub fn process(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    pub fn log(&self, setup: &Setup) -> PathBuf {
        setup.folder.join(format!("{}.log", self.name))
    }

    /// Starts the process. It ends with the calling thread, however that ends, so no process is
    /// left behind.
    pub fn start(&mut self, setup: &Setup) -> Result<()> {
        let log = OpenOptions::new().create(true).append(true).open(self.log(setup))?;
        let out = File::create(setup.folder.join(format!("{}.out", self.name)))?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some(core) = self.core {
            command.args(["taskset", "-c", &core.to_string()]);
        }
        let child = command
            .arg(&setup.binary)
            .args([
                "serve",
                "--role",
                self.role,
                "--listen",
                &self.address.to_string(),
                "--data-dir",
            ])
            .arg(setup.folder.join(&self.name))
            .envs(setup.variables.iter().cloned())
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {} by setpriv", setup.binary.display()))?;

        self.child = Some(child);
        Ok(())
    }

    pub fn wait_ready(&mut self, setup: &Setup) -> Result<()> {
        let deadline = Instant::now() + READY_MAX;
        let mut said = String::new();
        while Instant::now() < deadline {
            self.check(setup)?;

            match self.ready() {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => said = format!("{error:#}"),
            }

            std::thread::sleep(POLL);
        }

        bail!(
            "waited {READY_MAX:?} until {} was ready ({said}), see {}",
            self.name,
            self.log(setup).display()
        )
    }

    fn ready(&self) -> Result<bool> {
        let mut client = Client::connect_within(&self.target(), Duration::from_secs(2))?;
        Ok(client.call("GET", "/readyz", b"")?.status == 200)
    }

    /// Fails if a process that should be running has exited on its own.
    pub fn check(&mut self, setup: &Setup) -> Result<()> {
        if let Some(child) = &mut self.child
            && let Some(status) = child.try_wait()?
        {
            bail!(
                "{} exited unexpectedly with {status}, see {}",
                self.name,
                self.log(setup).display()
            );
        }
        Ok(())
    }

    pub fn kill(&mut self) -> Result<()> {
        for mut child in [self.child.take(), self.leaving.take()].into_iter().flatten() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    pub fn pause(&self) -> Result<()> {
        self.signal("STOP")
    }

    pub fn resume(&self) -> Result<()> {
        self.signal("CONT")
    }

    /// Asks the process to shut down, and waits until it has.
    pub fn stop(&mut self) -> Result<()> {
        self.terminate()?;
        self.wait_stopped()
    }

    /// Asks the process to shut down.
    pub fn terminate(&mut self) -> Result<()> {
        self.signal("TERM")?;
        self.leaving = self.child.take();
        Ok(())
    }

    /// Waits for a process that has been asked to shut down.
    pub fn wait_stopped(&mut self) -> Result<()> {
        let Some(mut child) = self.leaving.take() else {
            return Ok(());
        };
        let deadline = Instant::now() + STOP_MAX;
        while Instant::now() < deadline {
            if let Some(status) = child.try_wait()? {
                ensure!(
                    status.success(),
                    "{} was asked to stop and exited with {status}",
                    self.name
                );
                return Ok(());
            }
            std::thread::sleep(POLL);
        }

        self.leaving = Some(child);
        bail!("{} did not stop within {STOP_MAX:?} of SIGTERM", self.name)
    }

    fn signal(&self, signal: &str) -> Result<()> {
        let Some(child) = &self.child else {
            return Ok(());
        };
        let status =
            Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status()?;
        ensure!(status.success(), "cannot send SIG{signal} to {}", self.name);
        Ok(())
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        // A failed run leaves no process behind.
        let _ = self.kill();
    }
}

fn free_address() -> Result<SocketAddr> {
    let address = |_| SocketAddr::from(([127, 0, 0, 1], rand::rng().random_range(PORTS)));
    let mut addresses = (0..1_000).map(address);
    addresses.find(|address| TcpListener::bind(address).is_ok()).context("no free port was found")
}

//! The server of a command: a running one, or one that the command starts over a data folder.

use crate::commands::arguments::Place;
use crate::observe;
use crate::serve::{self, Server};
use crate::settings::Settings;
use raingauge_app::App;
use raingauge_console::{Client, Trust};
use raingauge_core::access::{Scope, Scopes};
use raingauge_people::tokens::{Token, new_token};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Runtime;

/// A server to talk to, for the duration of one command.
pub struct Session {
    pub client: Client,
    own: Option<OwnServer>,
}

/// A server that belongs to the command alone.
pub struct OwnServer {
    pub runtime: Runtime,
    pub dedupe_window: Duration,
    pub queue_bytes_max: u64,
    server: Server,
}

impl Place {
    /// Runs some work with a server, and ends the server gracefully if it is the command's own.
    pub fn with<T>(&self, work: impl FnOnce(&Session) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let session = match &self.data_dir {
            Some(folder) => Session::over_folder(self.config.as_deref(), folder)?,
            None => Session {
                client: Client::new(&self.server, self.token.as_deref(), &self.trust)?,
                own: None,
            },
        };
        let result = work(&session);
        session.close()?;
        result
    }
}

impl Session {
    /// Starts a server in this process, on an address and with a token that only the command knows.
    fn over_folder(config: Option<&Path>, folder: &Path) -> anyhow::Result<Self> {
        let mut settings = serve::load_settings(config, Some(folder), Some("127.0.0.1:0"))?;
        settings.auth.tokens.clear();
        let (token, own_token) = own_token();
        settings.auth.tokens.push(own_token);
        let own = OwnServer::start(settings)?;
        Ok(Self { client: own.client(Some(&token))?, own: Some(own) })
    }

    /// Returns the command's own server, when it works on a data folder.
    pub fn own(&self) -> Option<&OwnServer> {
        self.own.as_ref()
    }

    fn close(self) -> anyhow::Result<()> {
        self.own.map_or(Ok(()), OwnServer::stop)
    }
}

impl OwnServer {
    /// Logs only warnings: the command prints its own output.
    pub fn start(mut settings: Settings) -> anyhow::Result<Self> {
        settings.observe.log_level = "warn";
        // Only this process connects to it.
        settings.server.tls = None;
        let metrics = observe::install(&settings.observe)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let server = runtime.block_on(Server::start(&settings, metrics))?;
        let dedupe_window = settings.dedupe.window;
        let queue_bytes_max = settings.log.queue_bytes_max as u64;
        Ok(Self { runtime, dedupe_window, queue_bytes_max, server })
    }

    pub fn client(&self, token: Option<&str>) -> anyhow::Result<Client> {
        Client::new(&self.url(), token, &Trust::default())
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Where Redis clients reach it, if that door is open.
    pub fn resp_address(&self) -> Option<SocketAddr> {
        self.server.resp_address
    }

    pub fn app(&self) -> &App {
        self.server.app()
    }

    pub fn stop(self) -> anyhow::Result<()> {
        self.runtime.block_on(self.server.stop())
    }
}

/// Returns a token for everything, known to this process alone: the secret, and its entry in the
/// settings.
pub fn own_token() -> (String, Token) {
    let (secret, hash) = new_token();
    let mut sha256 = [0; 32];
    hex::decode_to_slice(hash, &mut sha256)
        .expect("a new token comes with its hash in hexadecimal");
    let mut scopes = Scopes::default();
    scopes.insert(Scope::Admin);
    (secret, Token { name: "command line".to_owned(), sha256, scopes })
}

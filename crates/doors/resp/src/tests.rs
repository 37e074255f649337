//! Clients on real sockets, with objects in memory.

mod clients;
mod protocol;
mod replies;
mod server;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use raingauge_core::access::{Scope, Scopes};
use raingauge_objects::{Objects, Options};
use raingauge_people::tokens::{Auth, Token, Tokens};
use raingauge_ports::clock::SystemClock;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::observed::Observed;
use crate::settings::Settings;
use crate::{Deps, Door};

/// Longest wait for what a test expects.
const PATIENCE: Duration = Duration::from_secs(10);

/// A door with objects in memory.
struct House {
    address: SocketAddr,
    store: Arc<raingauge_memory::Objects>,
    objects: Arc<Objects>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl House {
    async fn open() -> House {
        House::with(Settings::default(), &[]).await
    }

    /// A door with settings, and with tokens of these scopes whose secret is their name.
    async fn with(settings: Settings, tokens: &[(&str, &[Scope])]) -> House {
        House::guarded(settings, Tokens::new(&auth(tokens))).await
    }

    async fn guarded(settings: Settings, tokens: Tokens) -> House {
        let store = Arc::new(raingauge_memory::Objects::new());
        let clock = Arc::new(SystemClock);
        let options = Options::of_memory(64 << 20);
        let objects = Objects::open(store.clone(), store.clone(), clock.clone(), options);

        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopping) = watch::channel(false);
        let deps = Deps {
            objects: Arc::clone(&objects),
            tokens: Arc::new(tokens),
            rain: None,
            observed: Arc::new(Observed::new()),
            clock,
            settings,
            address,
        };

        House { address, store, objects, stop, serving: Door::serve(listener, deps, stopping) }
    }

    async fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).await.expect("a connection");

        Client { stream }
    }
}

fn auth(tokens: &[(&str, &[Scope])]) -> Auth {
    let tokens = tokens.iter().map(|(name, scopes)| Token {
        name: (*name).to_owned(),
        sha256: Sha256::digest(name.as_bytes()).into(),
        scopes: scopes.iter().copied().collect::<Scopes>(),
    });

    Auth { tokens: tokens.collect(), ..Auth::default() }
}

/// A client that sends bytes and compares bytes.
struct Client {
    stream: TcpStream,
}

impl Client {
    async fn send(&mut self, request: impl AsRef<[u8]>) {
        self.stream.write_all(request.as_ref()).await.expect("the door reads");
    }

    /// Reads exactly as many bytes as are expected, and compares them.
    async fn expect(&mut self, expected: impl AsRef<[u8]>) {
        let expected = expected.as_ref();
        let mut read = Vec::new();

        while read.len() < expected.len() {
            let mut piece = vec![0; (expected.len() - read.len()).min(65_536)];
            let reading = tokio::time::timeout(PATIENCE, self.stream.read(&mut piece));
            match reading.await {
                Ok(Ok(len)) if len > 0 => read.extend_from_slice(&piece[..len]),
                other => panic!(
                    "{other:?} instead of {:?} behind {:?}",
                    String::from_utf8_lossy(expected),
                    String::from_utf8_lossy(&read)
                ),
            }
            if !expected.starts_with(&read) {
                break;
            }
        }

        let shown =
            |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]).into_owned();
        assert_eq!(shown(&read), shown(expected));
        assert!(read == expected);
    }

    async fn ask(&mut self, request: impl AsRef<[u8]>, expected: impl AsRef<[u8]>) {
        self.send(request).await;
        self.expect(expected).await;
    }

    /// The reply to an inline command that is one line or one string, without its frame.
    async fn text(&mut self, request: &str) -> String {
        self.send(format!("{request}\r\n")).await;

        let line = self.line().await;
        let Some(len) = line.strip_prefix(['$', '=']).and_then(|len| len.parse::<usize>().ok())
        else {
            return line;
        };
        let mut text = vec![0; len + 2];
        tokio::time::timeout(PATIENCE, self.stream.read_exact(&mut text))
            .await
            .expect("a reply in time")
            .expect("a whole reply");
        text.truncate(len);
        String::from_utf8(text).expect("text")
    }

    async fn line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let reading = tokio::time::timeout(PATIENCE, self.stream.read_u8());
            line.push(reading.await.expect("a reply in time").expect("a reply"));
        }
        line.truncate(line.len() - 2);
        String::from_utf8(line).expect("text")
    }

    /// Waits until the door closes the connection.
    async fn expect_end(&mut self) {
        let mut rest = Vec::new();
        let reading = tokio::time::timeout(PATIENCE, self.stream.read_to_end(&mut rest));

        // A connection that is closed while bytes are on their way may be reset.
        let _ = reading.await.expect("the connection ends");
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }
}

/// Waits for a condition.
async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };

    tokio::time::timeout(PATIENCE, waiting).await.expect("the condition in time");
}

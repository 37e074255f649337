//! A destination that records what it receives.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub path: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

/// It listens for as long as the tests run, and answers everything with one status, 204 at first.
#[derive(Clone)]
pub struct Receiver {
    pub address: String,
    requests: Arc<Mutex<Vec<Received>>>,
    status: Arc<AtomicU16>,
}

impl Receiver {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has an address").to_string();
        let status = Arc::new(AtomicU16::new(204));
        let receiver = Self { address, requests: Arc::default(), status };

        let own = receiver.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = own.clone();
                std::thread::spawn(move || own.serve(stream));
            }
        });
        receiver
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Answers with another status from now on.
    pub fn answer(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    pub fn received(&self) -> Vec<Received> {
        self.requests.lock().expect("no thread panics with it").clone()
    }

    /// The bodies of each action, which are the same on every attempt.
    pub fn by_action(&self) -> BTreeMap<String, Received> {
        let mut found: BTreeMap<String, Received> = BTreeMap::new();
        for received in self.received() {
            let id = received.headers["webhook-id"].clone();
            match found.get(&id) {
                Some(earlier) => {
                    let attempts = (&earlier.path, &earlier.body);
                    assert_eq!(attempts, (&received.path, &received.body), "{id}");
                }
                None => drop(found.insert(id, received)),
            }
        }
        found
    }

    /// Answers the requests of a connection. One that breaks off was not received.
    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(received) = read(&mut reader) {
            self.requests.lock().expect("no thread panics with it").push(received);
            let status = self.status.load(Ordering::SeqCst);
            let answer = match status {
                204 => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
                status => format!("HTTP/1.1 {status} Refused\r\ncontent-length: 0\r\n\r\n"),
            };
            if reader.get_mut().write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|len| *len > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();

    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|len| *len > 0)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.insert(name.to_lowercase(), value.to_owned()),
            None => break,
        };
    }

    let len = headers.get("content-length")?.parse().ok()?;
    let mut body = vec![0; len];
    reader.read_exact(&mut body).ok()?;
    Some(Received { path, headers, body: String::from_utf8(body).ok()? })
}

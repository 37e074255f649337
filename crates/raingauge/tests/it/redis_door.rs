//! The door for Redis clients, asked as they ask it.

mod copy;
mod crash;
mod histories;
mod noise;
mod once;
mod oracle;
mod rain;
mod restart;
#[cfg(feature = "cluster")]
mod result_cache;
mod rights;
mod table;
mod usage;
mod verify;

use crate::server::{Home, Server};
use raingauge_resp_client::{Address, Connection, Reply};

/// A home whose servers open the door on a free port.
pub fn home() -> Home {
    Home::with(&[("resp.listen", "127.0.0.1:0")])
}

/// Where the door of a server is, as it has logged.
pub fn address_of(server: &Server) -> Option<String> {
    let log = server.errors();
    let (_, rest) = log.split_once("resp_address=")?;
    rest.split_whitespace().next().map(str::to_owned)
}

/// A client, with the words of a command as text.
pub struct Client(Connection);

impl Client {
    pub fn new(server: &Server) -> Self {
        Self::connect(&address_of(server).expect("the address is in the log"))
    }

    pub fn connect(address: &str) -> Self {
        let address: Address = format!("redis://{address}").parse().expect("an address");
        Self(Connection::open(&address).expect("the door is open"))
    }

    /// The reply to a command, which may be an error.
    #[track_caller]
    pub fn call(&mut self, words: &[&str]) -> Reply {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.0.call(&words).expect("a reply")
    }

    /// The replies to commands that are sent together.
    #[track_caller]
    pub fn pipeline(&mut self, commands: &[Vec<String>]) -> Vec<Reply> {
        for command in commands {
            let words: Vec<&[u8]> = command.iter().map(String::as_bytes).collect();
            self.0.push(&words);
        }
        self.replies(commands.len())
    }

    /// Puts a command behind those that are sent next.
    pub fn push(&mut self, command: &str) {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        self.0.push(&words);
    }

    /// Sends what was put behind each other.
    pub fn send(&mut self) {
        self.0.flush().expect("a pipeline can be sent");
    }

    /// Sends what was put behind each other, and reads as many replies.
    pub fn replies(&mut self, len: usize) -> Vec<Reply> {
        self.send();
        (0..len).map(|_| self.0.reply().expect("a reply")).collect()
    }

    #[track_caller]
    pub fn integer(&mut self, words: &[&str]) -> i64 {
        let reply = self.call(words);
        reply.integer().unwrap_or_else(|| panic!("{words:?}: {reply:?}"))
    }

    /// The text of the error that a command is refused with.
    #[track_caller]
    pub fn refused(&mut self, words: &[&str]) -> String {
        let reply = self.call(words);
        reply.error().unwrap_or_else(|| panic!("{words:?}: {reply:?}"))
    }
}

/// The words of a command.
pub fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

pub fn integers(numbers: &[i64]) -> Reply {
    Reply::Array(numbers.iter().map(|number| Reply::Integer(*number)).collect())
}

pub fn ok() -> Reply {
    Reply::Simple(b"OK".to_vec())
}

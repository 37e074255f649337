//! One connection: commands out, replies in.

use crate::{Address, Error, Reply};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

const READ_BYTES: usize = 64 * 1024;
/// Longest wait for a part of a reply.
const PATIENCE: Duration = Duration::from_secs(60);
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// A connection that is signed in. Commands may be pipelined: the caller reads one reply for each.
pub struct Connection {
    stream: TcpStream,
    address: Address,
    buffer: Vec<u8>,
    start: usize,
    out: Vec<u8>,
}

/// Appends a command to bytes that will be sent.
pub fn command(bytes: &mut Vec<u8>, words: &[&[u8]]) {
    // Writing to memory cannot fail.
    let _ = write!(bytes, "*{}\r\n", words.len());
    for word in words {
        let _ = write!(bytes, "${}\r\n", word.len());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
}

impl Connection {
    /// Connects, signs in where the address has a password, and selects its database.
    pub fn open(address: &Address) -> Result<Self, Error> {
        let stream = connect(address)
            .map_err(|source| Error::Connect { address: address.to_string(), source })?;
        let mut connection = Self {
            stream,
            address: address.clone(),
            buffer: Vec::with_capacity(READ_BYTES),
            start: 0,
            out: Vec::new(),
        };

        if let Some(password) = &address.password {
            match &address.user {
                Some(user) => connection.done(&[b"AUTH", user.as_bytes(), password.as_bytes()])?,
                None => connection.done(&[b"AUTH", password.as_bytes()])?,
            };
        }
        if address.database != 0 {
            connection.done(&[b"SELECT", address.database.to_string().as_bytes()])?;
        }
        Ok(connection)
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Longest wait for a part of a reply; [`Error::Broken`] when it is over.
    pub fn set_patience(&self, patience: Duration) -> Result<(), Error> {
        self.stream.set_read_timeout(Some(patience)).map_err(|source| self.broken(source))
    }

    /// Adds a command to the pipeline, which [`Self::flush`] sends.
    pub fn push(&mut self, words: &[&[u8]]) {
        command(&mut self.out, words);
    }

    pub fn flush(&mut self) -> Result<(), Error> {
        let out = std::mem::take(&mut self.out);
        let sent = self.send(&out);
        self.out = out;
        self.out.clear();
        sent
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.stream.write_all(bytes).map_err(|source| self.broken(source))
    }

    /// Reads the next reply.
    pub fn reply(&mut self) -> Result<Reply, Error> {
        loop {
            if let Some((reply, used)) = Reply::parse(&self.buffer[self.start..])? {
                self.start += used;
                if self.start == self.buffer.len() {
                    self.buffer.clear();
                    self.start = 0;
                }
                return Ok(reply);
            }
            self.fill()?;
        }
    }

    /// Sends a command and reads its reply, which may be an error.
    pub fn call(&mut self, words: &[&[u8]]) -> Result<Reply, Error> {
        self.push(words);
        self.flush()?;
        self.reply()
    }

    /// The same, but a reply that is an error is returned as one.
    pub fn done(&mut self, words: &[&[u8]]) -> Result<Reply, Error> {
        let reply = self.call(words)?;
        match reply.error() {
            None => Ok(reply),
            Some(answer) => {
                let name = words.first().copied().unwrap_or_default();
                Err(Error::Refused { command: String::from_utf8_lossy(name).into_owned(), answer })
            }
        }
    }

    fn fill(&mut self) -> Result<(), Error> {
        self.buffer.drain(..self.start);
        self.start = 0;

        // A reply of many megabytes is read in pieces that grow with it.
        let filled = self.buffer.len();
        self.buffer.resize(filled + READ_BYTES.max(filled), 0);
        let read = loop {
            match self.stream.read(&mut self.buffer[filled..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };

        self.buffer.truncate(filled + read.as_ref().map_or(0, |count| *count));
        match read {
            Ok(0) => Err(Error::Closed(self.address.to_string())),
            Ok(_) => Ok(()),
            Err(source) => Err(self.broken(source)),
        }
    }

    fn broken(&self, source: std::io::Error) -> Error {
        Error::Broken { address: self.address.to_string(), source }
    }
}

fn connect(address: &Address) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::new(ErrorKind::NotFound, "the host has no address");
    for place in (address.host.as_str(), address.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&place, CONNECT_MAX) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_bulk_strings() {
        let mut bytes = Vec::new();
        command(&mut bytes, &[b"GET", b"key"]);
        assert_eq!(bytes, b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
    }
}

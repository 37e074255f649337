//! What can go wrong between a client and a server.

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0:?} is not an address of the form redis://[user:password@]host:port[/database]")]
    Address(String),
    #[error("cannot connect to {address}: {source}")]
    Connect { address: String, source: std::io::Error },
    #[error("the connection to {address} failed: {source}")]
    Broken { address: String, source: std::io::Error },
    #[error("{0} closed the connection")]
    Closed(String),
    #[error("malformed reply: {0}")]
    Malformed(String),
    /// The server answered with an error; the text begins with its code word.
    #[error("the server answered {command}: {answer}")]
    Refused { command: String, answer: String },
    #[error("the server answered {command} with {answer}")]
    Unexpected { command: String, answer: String },
}

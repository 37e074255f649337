//! The client against servers of this process.

mod contract;
mod guard;
mod server;
mod tls;

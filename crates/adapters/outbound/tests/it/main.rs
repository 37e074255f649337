//! The client against servers of this process.

mod certificates;
mod contract;
mod guard;
mod server;

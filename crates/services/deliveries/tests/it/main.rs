//! The service over a ledger in memory, a sender that a test scripts, and a clock that runs only
//! while everything waits.

mod bench;
mod campaigns;
mod crashes;
mod failures;
mod log;
mod pace;
mod sending;

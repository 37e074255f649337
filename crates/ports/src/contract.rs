//! One suite for each port, which every adapter passes. They panic where a contract is broken.

pub mod buckets;
pub mod cache;
pub mod catalog;
pub mod log;

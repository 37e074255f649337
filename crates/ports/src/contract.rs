//! One suite for each port, which every adapter passes. A suite panics where the contract is
//! broken.

pub mod books;
pub mod buckets;
pub mod cache;
pub mod campaigns;
pub mod catalog;
pub mod checks;
pub mod chunks;
pub mod consumers;
pub mod drafts;
pub mod entry_stream;
pub mod instances;
pub mod log;
pub mod maintenance;
pub mod objects;
pub mod people;
pub mod queues;
pub mod rollouts;

//! The pages, one module for each section of the portal.

pub mod account;
pub mod actions;
pub mod audit;
pub mod checks;
pub mod counter;
pub mod counters;
mod deeds;
pub mod drafts;
pub mod edit;
pub mod erase;
pub mod events;
pub mod export;
pub mod openid;
pub mod people;
pub mod query;
mod shown;
pub mod sign_in;
pub mod system;
pub mod tokens;

//! The pages, one module for each section of the portal.

pub mod account;
pub mod actions;
pub mod audit;
mod audit_actions;
pub mod checks;
pub mod counter;
pub mod counters;
pub mod drafts;
pub mod edit;
pub mod erase;
pub mod events;
pub mod export;
pub mod openid;
mod page_state;
pub mod people;
pub mod query;
pub mod sign_in;
pub mod system;
pub mod tokens;

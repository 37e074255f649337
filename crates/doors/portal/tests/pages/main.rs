//! The pages over services whose engines are in memory, asked as a browser asks.

#[allow(dead_code, reason = "each area uses a part of it")]
mod browser;
mod checks;
mod counter;
mod counters;
mod drafts;
mod edit;
mod events;
#[allow(dead_code, reason = "each area uses a part of it")]
mod forms;
mod people;
mod query;
mod rollout;
mod safety;
mod system;
#[allow(dead_code, reason = "each area uses a part of it")]
mod world;

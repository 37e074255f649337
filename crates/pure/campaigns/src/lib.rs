//! What a campaign decides, as pure functions: no clock, no input or output, no threads.
//!
//! ```text
//!   event ──▶ index ──▶ candidates ──▶ rules, cheapest leaf first ──▶ gates ──▶ decisions
//!                          ▲                  ▲                         ▲
//!                       tallies            lookups              limits and budgets
//! ```
//!
//! A campaign says which event, under which conditions, triggers which actions. The worker of the
//! service, the backtest and the simulator all call this crate, so that they decide alike. Times,
//! ids and answers of lookups come in as arguments. Time zones are computed from data that is
//! compiled in.

pub mod body;
pub mod budget;
pub mod calendar;
pub mod campaign;
pub mod cost;
pub mod decision;
pub mod delay;
pub mod documents;
mod encoding;
pub mod engine;
pub mod experiment;
pub mod forecast;
pub mod index;
pub mod limit;
pub mod limits;
mod local_time;
pub mod message;
pub mod retry;
pub mod rule;
pub mod schedule;
pub mod sign;
pub mod states;
pub mod template;
pub mod tree;
pub mod values;
pub mod window;

pub use encoding::DecodeError;

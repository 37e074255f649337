//! Rules about the service itself, as pure functions of numbers and times: which counter is cached
//! how, whether a rollout goes on or back, whether an engine that fails is left alone, how much may
//! happen per second and at a time.
//!
//! ```text
//!   numbers, the time ──▶ a rule of this crate ──▶ a decision
//!   (read by a service)                            (carried out by a service)
//! ```
//!
//! Nothing here names a metric, a route or an engine. The callers read the numbers where they come
//! from, pass them in, and act on what they get back.

pub mod breaker;
pub mod cache;
pub mod concurrency;
pub mod histogram;
pub mod rate;
pub mod rollout;

//! Replays over a log and a ledger in memory, beside the worker that decides live.

mod audits;
mod backtests;
mod comparisons;
mod explanations;
mod jobs;
mod live;
mod real_data;
mod trials;
mod world;

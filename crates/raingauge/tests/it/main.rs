//! Tests of the whole program: each starts the real binary over a folder of its own and talks to it
//! through its doors.
//!
//! No test waits for time to pass; it waits for a condition. Random tests print the seed that
//! replays them.

mod abuse;
mod auth;
mod cache_policy;
mod campaigns;
mod client;
mod cluster;
mod command_line;
mod connections;
mod consumers;
mod contract;
mod crash;
mod event_log;
mod fixture;
mod grpc;
mod maintenance;
mod model;
mod operations;
mod points;
mod portal;
mod redis_door;
mod replay;
mod rollout;
mod scripts;
mod server;
mod tls;
mod truth;
mod tutorials;

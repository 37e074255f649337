//! The commands: one file each, with its arguments and its work.

pub mod cache_policy;
pub mod check_config;
pub mod count;
pub mod counters;
pub mod demo;
pub mod import;
pub mod maintenance;
pub mod migrate;
pub mod portal;
pub mod recount;
pub mod repair;
pub mod serve;
mod session;
pub mod skip_lost;
mod table;
pub mod token;

use crate::cli::Command;
use serde_json::Value;
use std::io::Write;

pub fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Serve(serve) => serve.run(),
        Command::Count(count) => count.run(),
        Command::Recount(recount) => recount.run(),
        Command::Counters(counters) => counters.run(),
        Command::CachePolicy(policy) => policy.run(),
        Command::Import(import) => import.run(),
        Command::Maintenance(maintenance) => maintenance.run(),
        Command::Migrate(migrate) => migrate.run(),
        Command::SkipLost(skip) => skip.run(),
        Command::Repair(repair) => repair.run(),
        Command::Portal(portal) => portal.run(),
        Command::CheckConfig(check) => check.run(),
        Command::Token(token) => token.run(),
        Command::Demo(demo) => demo.run(),
        Command::Lab(lab) => raingauge_lab::cli::run(*lab),
    }
}

/// Prints a text and a line end to standard output.
fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Prints JSON for a machine, indented for human readers.
fn print_json(json: &Value) -> std::io::Result<()> {
    print(&format!("{json:#}"))
}

/// Prints a remark for people to standard error, so that standard output holds the result alone.
fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

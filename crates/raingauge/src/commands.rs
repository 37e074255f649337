//! The commands: one file each, with its arguments and its work.

pub mod actions;
mod arguments;
pub mod cache_policy;
pub mod campaigns;
pub mod check_config;
pub mod count;
pub mod counters;
pub mod decisions;
pub mod demo;
pub mod destinations;
pub mod import;
pub mod maintenance;
pub mod migrate;
pub mod objects;
pub mod points;
pub mod portal;
pub mod recount;
pub mod repair;
pub mod serve;
mod session;
pub mod sink;
pub mod skip_lost;
pub mod tables;
pub mod token;

use crate::cli::Command;
use raingauge_console::{note, print, print_json, table};

pub fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Serve(serve) => serve.run(),
        Command::Count(count) => count.run(),
        Command::Recount(recount) => recount.run(),
        Command::Counters(counters) => counters.run(),
        Command::Campaigns(campaigns) => campaigns.run(),
        Command::Decisions(decisions) => decisions.run(),
        Command::Actions(actions) => actions.run(),
        Command::Tables(tables) => tables.run(),
        Command::Sink(sink) => sink.run(),
        Command::Destinations(destinations) => destinations.run(),
        Command::Points(points) => points.run(),
        Command::Objects(objects) => objects.run(),
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

//! The command line: which commands there are. What each of them takes stands beside what it does,
//! in `commands`.

use crate::commands::{
    actions, cache_policy, campaigns, check_config, count, counters, decisions, demo, destinations,
    import, maintenance, migrate, objects, points, portal, recount, repair, serve, sink, skip_lost,
    tables, token,
};
use clap::{Parser, Subcommand};

#[cfg(test)]
mod pages;

/// Counts things as they happen, and answers how many of X between two times, exactly.
#[derive(Debug, Parser)]
#[command(name = "raingauge", version, arg_required_else_help = true)]
#[command(after_help = "Example: raingauge demo\n\nTimes are epoch seconds or RFC 3339.")]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Serve(serve::Serve),
    Count(count::Count),
    Recount(recount::Recount),
    Counters(counters::Counters),
    Campaigns(campaigns::Campaigns),
    Decisions(decisions::Decisions),
    Actions(actions::Actions),
    Tables(tables::Tables),
    Destinations(destinations::Destinations),
    Sink(sink::SinkCommand),
    Points(points::Points),
    Objects(objects::Objects),
    CachePolicy(cache_policy::CachePolicy),
    Import(import::Import),
    Maintenance(maintenance::Maintenance),
    Migrate(migrate::Migrate),
    SkipLost(skip_lost::SkipLost),
    Repair(repair::Repair),
    Portal(portal::Portal),
    CheckConfig(check_config::CheckConfig),
    Token(token::Token),
    Demo(demo::Demo),
    /// Measures raingauge, and what would happen if the cache, the plan or the compaction were
    /// another
    Lab(Box<raingauge_lab::cli::Lab>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example() {
        fn check(command: &clap::Command) {
            if command.has_subcommands() {
                command
                    .get_subcommands()
                    .filter(|command| command.get_name() != "help")
                    .for_each(check);
            } else {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("Example"), "{} has no example", command.get_name());
            }
        }
        check(&Cli::command());
    }

    #[test]
    fn times_come_in_both_forms() {
        let parse = |from: &str| {
            Cli::try_parse_from(["raingauge", "count", "k", "--from", from, "--to", "1727400000"])
        };
        for from in ["1727215430", "2024-09-24T22:03:50Z", "2024-09-25T00:03:50+02:00"] {
            let Command::Count(count) = parse(from).unwrap().command else {
                panic!("count was asked for")
            };
            assert_eq!((count.range.from, count.range.to), (1_727_215_430, 1_727_400_000));
        }
        assert!(parse("soon").unwrap_err().to_string().contains("RFC 3339"));
    }

    #[test]
    fn times_may_be_relative_to_now() {
        let range = ["raingauge", "count", "k", "--from", "-7d", "--to", "now"];
        let Command::Count(count) = Cli::try_parse_from(range).unwrap().command else {
            panic!("count was asked for")
        };
        // The clock may tick between the two ends.
        let span_s = count.range.to - count.range.from;
        assert!((7 * 86_400..7 * 86_400 + 60).contains(&span_s), "{span_s}");
    }

    #[test]
    fn a_configuration_goes_with_a_data_folder_alone() {
        let parse = |more: &[&str]| {
            let given =
                ["raingauge", "count", "k", "--from", "0", "--to", "900"].iter().chain(more);
            Cli::try_parse_from(given).map(|_| ())
        };
        assert!(parse(&["--data-dir", "d", "--config", "c"]).is_ok());
        assert!(parse(&["--config", "c"]).is_err());
    }
}

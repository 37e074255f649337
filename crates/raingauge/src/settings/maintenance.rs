//! The settings of maintenance.

use super::check::Checker;
use super::seconds;
use raingauge_operations::maintenance::{Error, OnFailure, Options, Schedules};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maintenance {
    pub options: Options,
    pub compaction: Compaction,
}

/// How raingauge compacts the nodes of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction {
    pub way: &'static str,
    pub command: Vec<String>,
    pub url: String,
    pub all_tables: bool,
}

impl Maintenance {
    pub fn read(from: &mut Checker) -> Self {
        let options = Options {
            schedules: schedules(from),
            max_duration: seconds(60 * from.whole("maintenance", "max_duration_minutes")),
            pause: seconds(from.whole("maintenance", "pause_s")),
            on_failure: match from.word("maintenance", "on_failure") {
                "stop" => OnFailure::Stop,
                _ => OnFailure::Continue,
            },
        };

        let compaction = Compaction {
            way: from.word("maintenance", "compaction_way"),
            command: from
                .text("maintenance", "compaction_command")
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
            url: from.text("maintenance", "compaction_url"),
            all_tables: from.word("maintenance", "compaction_tables") == "all",
        };
        Self { options, compaction }
    }
}

fn schedules(from: &mut Checker) -> Schedules {
    let text = from.text("maintenance", "schedule");
    let zone = from.text("maintenance", "timezone");
    Schedules::parse(&text, &zone).unwrap_or_else(|error| {
        let (key, advice) = match error {
            Error::Zone(_) => {
                ("maintenance.timezone", "Give the IANA name of a time zone; the default is UTC")
            }
            _ => (
                "maintenance.schedule",
                "Give cron expressions such as \"0 3 * * *; 0 14 * * 1-5\", or none",
            ),
        };

        from.problem(key, from.origin(key), error.to_string(), advice);
        Schedules::none()
    })
}

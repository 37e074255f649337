//! `raingauge points`

mod changes;
mod checks;
mod export;
mod import;
mod members;
mod programmes;
mod queues;

pub use programmes::{apply, parse};

use super::counters::reason;
use crate::commands::arguments::Place;
use clap::{Args, Subcommand};

/// The path of the jobs of points.
const JOBS: &str = "/v1/points/jobs";

/// Read and change points, their programmes and their queues
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Example: raingauge points balance bob --programme grab-sg"
)]
pub struct Points {
    #[command(subcommand)]
    command: Command,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what a member has
    #[command(after_help = "Example: raingauge points balance bob --programme grab-sg --at -30d")]
    Balance {
        #[command(flatten)]
        member: Member,
        /// As of this time: epoch seconds, RFC 3339, or an age such as -7d
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        at: Option<String>,
        #[command(flatten)]
        place: Place,
    },
    /// Show what happened to the points of a member, newest first
    #[command(after_help = "Example: raingauge points statement bob --programme grab-sg")]
    Statement {
        #[command(flatten)]
        member: Member,
        /// Rows before this sequence alone
        #[arg(long, value_name = "SEQUENCE")]
        before: Option<u64>,
        /// Most rows
        #[arg(long, value_name = "NUMBER", default_value_t = 100)]
        limit: u32,
        #[command(flatten)]
        place: Place,
    },
    /// Say where the points of a member come from
    #[command(after_help = "Example: raingauge points explain bob --programme grab-sg")]
    Explain {
        #[command(flatten)]
        member: Member,
        #[command(flatten)]
        place: Place,
    },
    /// Award points, or points for an amount by a rule of the programme
    #[command(
        after_help = "Example: raingauge points award bob --programme grab-sg --key sorry-7 --points 100"
    )]
    Award(changes::Award),
    /// Burn points of a member
    #[command(
        after_help = "Example: raingauge points burn bob --programme grab-sg --key voucher-3 --points 100"
    )]
    Burn(changes::Burn),
    /// Give or take points by hand
    #[command(
        after_help = "Example: raingauge points adjust bob --programme grab-sg --key fix-1 --points -20 --reason 'counted twice'"
    )]
    Adjust(changes::Adjust),
    /// Read and change programmes
    #[command(subcommand)]
    Programmes(programmes::Command),
    /// Show what a programme owes its members
    #[command(after_help = "Example: raingauge points liability grab-sg")]
    Liability {
        /// Name of the programme
        programme: String,
        #[command(flatten)]
        place: Place,
    },
    /// Show what the budgets of a programme have left
    #[command(after_help = "Example: raingauge points budgets grab-sg")]
    Budgets {
        /// Name of the programme
        programme: String,
        #[command(flatten)]
        place: Place,
    },
    /// Show what points can be exchanged for, and how much of it is left
    #[command(after_help = "Example: raingauge points rewards --programme grab-sg")]
    Rewards {
        /// Name of the programme; those of all without it
        #[arg(long)]
        programme: Option<String>,
        #[command(flatten)]
        place: Place,
    },
    /// See what waits and what failed, and send it again
    #[command(subcommand)]
    Queues(queues::Command),
    /// Settle wallets that are due: expiry, activation, tiers
    #[command(after_help = "Example: raingauge points sweep")]
    Sweep {
        #[command(flatten)]
        place: Place,
    },
    /// Recompute everything from the journal of points, and compare
    ///
    /// Ends with 0 and a summary, or with 1 and the first difference. No server may be running on a
    /// data folder; only what a start does is changed in it, or, with --rebuild, what follows from
    /// the journal. The ledger of a cluster is read as of one moment, while its processes go on,
    /// and nothing in it is changed.
    #[command(after_help = "Example: raingauge points verify --config config/cluster.toml")]
    Verify(checks::Verify),
    /// Price the events of the log again, and compare with what was awarded
    #[command(after_help = "Example: raingauge points audit --programme grab-sg")]
    Audit {
        /// One programme alone
        #[arg(long, value_name = "NAME")]
        programme: Option<String>,
        /// Send awards that are nowhere to the queue of awards
        #[arg(long)]
        resend: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Show the newest hash of each book, which proves all entries before it
    #[command(after_help = "Example: raingauge points seal --json >seal.json")]
    Seal {
        #[command(flatten)]
        place: Place,
    },
    /// Load opening balances from a CSV file with the columns programme, member and points
    ///
    /// A row may also have expiresOn, key and reason. A row without a key gets one from the name
    /// of the load, its member and its number among the rows of that member. So a file can be
    /// corrected and loaded again under the same --name: what was loaded before counts once.
    #[command(after_help = "Example: raingauge points import balances.csv")]
    Import(import::Import),
    /// Write all entries of a data folder, one a line
    #[command(
        after_help = "Example: raingauge points export --data-dir /var/lib/raingauge --format csv >entries.csv"
    )]
    Export(export::Export),
}

/// A member of a programme.
#[derive(Debug, Args)]
struct Member {
    /// Name of the member
    member: String,
    /// Name of the programme
    #[arg(long, value_name = "NAME")]
    programme: String,
}

impl Points {
    pub fn run(self) -> anyhow::Result<()> {
        let json = self.json;
        match self.command {
            Command::Balance { member, at, place } => {
                place.with(|session| members::balance(session, &member, at.as_deref(), json))
            }
            Command::Statement { member, before, limit, place } => {
                place.with(|session| members::statement(session, &member, before, limit, json))
            }
            Command::Explain { member, place } => {
                place.with(|session| members::explain(session, &member, json))
            }
            Command::Award(award) => award.run(json),
            Command::Burn(burn) => burn.run(json),
            Command::Adjust(adjust) => adjust.run(json),
            Command::Programmes(command) => command.run(json),
            Command::Liability { programme, place } => {
                place.with(|session| members::liability(session, &programme, json))
            }
            Command::Budgets { programme, place } => {
                place.with(|session| members::budgets(session, &programme, json))
            }
            Command::Rewards { programme, place } => {
                place.with(|session| members::rewards(session, programme.as_deref(), json))
            }
            Command::Queues(command) => command.run(json),
            Command::Sweep { place } => place.with(|session| checks::sweep(session, json)),
            Command::Verify(verify) => verify.run(json),
            Command::Audit { programme, resend, place } => {
                place.with(|session| checks::audit(session, programme.as_deref(), resend, json))
            }
            Command::Seal { place } => place.with(|session| checks::seal(session, json)),
            Command::Import(import) => import.run(json),
            Command::Export(export) => export.run(),
        }
    }
}

impl Member {
    /// The path of the member in the API.
    fn path(&self, rest: &str) -> String {
        let [programme, member] =
            [&self.programme, &self.member].map(|name| raingauge_console::encoded(name));
        format!("/v1/points/{programme}/members/{member}{rest}")
    }
}

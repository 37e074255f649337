//! raingauge's own commands: counts and events, over the handles that the other doors use.
//!
//! ```text
//!   RAIN.COUNT, RAIN.COUNTS ──▶ neighbours are one batch of the reader
//!   RAIN.EVENT, RAIN.ADD    ──▶ neighbours are one group of the event log
//!   RAIN.SERIES, RAIN.TOP   ──▶ reader
//!   RAIN.HOT, RAIN.SIZES, RAIN.DOCTOR ──▶ Observed
//! ```
//!
//! `RAIN.ONCE` is a command of the object store, since its reply is kept with what it changes.

mod counts;
mod events;
mod json;
mod usage;

use crate::observed::Observed;
use raingauge_app::{App, Problem, Role};
use raingauge_core::code::{Code, Refusal};
use raingauge_objects::limits::RUN_REPLY_BYTES;
use raingauge_resp::{Command, Drain, Gate, Id, Replies, Room};
use std::sync::Arc;

/// Most counts, or most events, that are answered together.
const COMMANDS_TOGETHER_MAX: usize = 1_000;

/// Runs raingauge's own commands, for all connections.
pub struct Rain {
    app: Arc<App>,
    observed: Arc<Observed>,
}

/// Commands that are answered in the same way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Counts,
    Events,
    Other(Id),
}

impl Family {
    const fn of(id: Id) -> Self {
        match id {
            Id::RainCount | Id::RainCounts => Self::Counts,
            Id::RainEvent | Id::RainAdd => Self::Events,
            id => Self::Other(id),
        }
    }

    /// Most commands that are answered together when they are neighbours.
    const fn together_max(self) -> usize {
        match self {
            Self::Counts | Self::Events => COMMANDS_TOGETHER_MAX,
            Self::Other(_) => 1,
        }
    }

    /// The role of the process that answers.
    const fn role(self) -> Option<Role> {
        match self {
            Self::Events => Some(Role::Writer),
            Self::Counts | Self::Other(Id::RainSeries | Id::RainTop) => Some(Role::Reader),
            Self::Other(_) => None,
        }
    }
}

impl Rain {
    pub fn new(app: Arc<App>, observed: Arc<Observed>) -> Self {
        Self { app, observed }
    }

    /// Runs the commands of a drain from `from` on, as long as they are raingauge's own, and
    /// appends their replies, in order: also for those that are malformed, or that the caller has
    /// no right to. `caller` is the name under which it waits for its turn to read much. Returns
    /// the index of the first command of another kind, or of the next one when the replies are
    /// long.
    pub async fn run(
        &self,
        caller: &str,
        gate: &Gate,
        drain: &Drain,
        from: usize,
        out: &mut Replies,
    ) -> usize {
        let replied_before = out.len();
        let mut next = from;
        let mut together = Vec::new();
        let mut family = Family::Counts;

        while next < drain.len() && is_own(drain.get(next)) {
            let command = drain.get(next);
            let admitted = gate.admit(&command);
            let is_alike = admitted.as_ref().is_ok_and(|spec| Family::of(spec.id) == family);
            if !is_alike || together.len() == family.together_max() {
                self.answer(family, caller, &together, out).await;
                together.clear();
                if out.len() - replied_before > RUN_REPLY_BYTES {
                    return next;
                }
            }

            match admitted {
                Ok(spec) => {
                    family = Family::of(spec.id);
                    together.push(command);
                }
                Err(failure) => out.fail(&failure),
            }
            next += 1;
        }

        self.answer(family, caller, &together, out).await;
        next
    }

    /// Answers commands of one family.
    async fn answer(
        &self,
        family: Family,
        caller: &str,
        commands: &[Command<'_>],
        out: &mut Replies,
    ) {
        if commands.is_empty() {
            return;
        }
        if let Some(role) = family.role().filter(|role| !self.app.node.has(*role)) {
            let refusal = role_absent(role);
            commands.iter().for_each(|_| refuse(&refusal, out));
            return;
        }

        match family {
            Family::Counts => counts::answer(&self.app, commands, out).await,
            Family::Events => events::answer(&self.app, commands, out).await,
            Family::Other(id) => {
                for command in commands {
                    self.answer_one(id, caller, *command, out).await;
                }
            }
        }
    }

    async fn answer_one(&self, id: Id, caller: &str, command: Command<'_>, out: &mut Replies) {
        let arguments = command.arguments;
        match id {
            Id::RainSeries => counts::series(&self.app, arguments, out).await,
            Id::RainTop => counts::top(&self.app, caller, arguments, out).await,
            Id::RainHot => usage::hot(&self.observed, arguments, out),
            Id::RainSizes => usage::sizes(&self.observed, arguments, out),
            Id::RainDoctor => usage::doctor(&self.observed, arguments, out),
            _ => out.error("ERR this command is not answered here"),
        }
    }
}

fn is_own(command: Command<'_>) -> bool {
    command.spec().is_some_and(|spec| spec.room == Room::Rain)
}

fn role_absent(role: Role) -> Refusal {
    let detail =
        format!("this process does not have the role {0}: ask one that has it", role.name());
    Refusal::new(Code::RoleAbsent, detail)
}

/// Appends a refusal: `-RAIN`, its code and its sentence.
fn refuse(refusal: &Refusal, out: &mut Replies) {
    let code = refusal.code.as_str();
    metrics::counter!("raingauge_errors_total", "code" => code).increment(1);
    out.error(&format!("RAIN {code} {}", refusal.detail));
}

/// The same, of a request that failed as a whole.
fn refuse_problem(problem: &Problem, out: &mut Replies) {
    refuse(&problem.refusal, out);
}

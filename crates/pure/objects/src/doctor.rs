//! Clients that send commands one by one, each right after the reply to the last, where a pipeline
//! would send them together.
//!
//! ```text
//!   command ─▶ reply ─▶ command ─▶ reply ─▶ …      each within GAP_US_MAX of the reply before
//!   └────────── elapsed: the server works for a small part of it ──────────┘
//! ```
//!
//! A pipeline needs one round trip for all commands of a burst. What it would save is the time that
//! the burst took without the server's own, less one round trip. That is an upper bound, since the
//! client may have computed between its commands.

/// Longest time from a reply to the next command of a burst, in microseconds.
pub const GAP_US_MAX: u64 = 2_000;
/// Fewest commands of a burst.
pub const COMMANDS_MIN: u64 = 20;
/// A burst that goes on is noted after this many commands.
const COMMANDS_MAX: u64 = 10_000;
/// A burst that goes on is noted after this time, in microseconds.
const ELAPSED_US_MAX: u64 = 10_000_000;
/// Pairs of a client and a command that are remembered.
const CASES_MAX: usize = 256;

/// One message of a client, and its reply.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// Commands of the message.
    pub commands: usize,
    /// The name of the first.
    pub command: &'static str,
    /// When the message had arrived, in microseconds of any clock that never goes back.
    pub arrived_us: u64,
    /// When its replies were sent.
    pub replied_us: u64,
}

/// The commands that one connection sends one by one.
#[derive(Debug, Default)]
pub struct Burst {
    commands: u64,
    began_us: u64,
    replied_us: u64,
    server_us: u64,
    /// The most frequent command, if one is the majority, by Boyer and Moore's vote.
    command: &'static str,
    votes: u64,
}

/// A burst that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    pub command: &'static str,
    pub commands: u64,
    /// From the first command to the last reply, in microseconds.
    pub elapsed_us: u64,
    /// The part of it in which the server worked.
    pub server_us: u64,
}

impl Finding {
    /// The time that a pipeline would have saved, at most.
    pub fn gain_us(&self) -> u64 {
        let waiting_us = self.elapsed_us.saturating_sub(self.server_us);
        waiting_us - waiting_us / self.commands.max(1)
    }
}

impl Burst {
    /// Notes an exchange. Returns the burst that ended before it, or with it.
    pub fn note(&mut self, exchange: Exchange) -> Option<Finding> {
        let gap_us = exchange.arrived_us.saturating_sub(self.replied_us);
        let is_single = exchange.commands == 1;
        let goes_on = is_single && self.commands > 0 && gap_us <= GAP_US_MAX;
        let ended = if goes_on { None } else { self.end() };
        if !is_single {
            return ended;
        }

        if self.commands == 0 {
            self.began_us = exchange.arrived_us;
        }
        self.commands += 1;
        self.server_us += exchange.replied_us.saturating_sub(exchange.arrived_us);
        self.replied_us = exchange.replied_us;
        self.vote(exchange.command);

        let is_long = self.commands >= COMMANDS_MAX
            || self.replied_us.saturating_sub(self.began_us) >= ELAPSED_US_MAX;
        if is_long { self.end() } else { ended }
    }

    fn vote(&mut self, command: &'static str) {
        if self.votes == 0 {
            self.command = command;
        }
        if self.command == command {
            self.votes += 1;
        } else {
            self.votes -= 1;
        }
    }

    /// Ends the burst, as when the connection closes. `None` when it was too short to matter.
    pub fn end(&mut self) -> Option<Finding> {
        let burst = std::mem::take(self);
        let is_burst = burst.commands >= COMMANDS_MIN;
        is_burst.then(|| Finding {
            command: burst.command,
            commands: burst.commands,
            elapsed_us: burst.replied_us.saturating_sub(burst.began_us),
            server_us: burst.server_us,
        })
    }
}

/// The bursts of one client with one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The name that the client gave itself; empty without one.
    pub client: String,
    pub command: &'static str,
    pub bursts: u64,
    pub commands: u64,
    pub elapsed_us: u64,
    pub server_us: u64,
    /// What pipelines would have saved in all these bursts, at most.
    pub gain_us: u64,
}

impl Case {
    /// The case in a sentence, such as *worker-7: 1,512 commands (hget) in 350 ms, of which the
    /// server worked 5 ms: a pipeline would save up to 344 ms*.
    pub fn sentence(&self) -> String {
        let client = if self.client.is_empty() { "a client without a name" } else { &self.client };
        let Self { command, commands, .. } = self;
        let [elapsed, server, gain] =
            [self.elapsed_us, self.server_us, self.gain_us].map(milliseconds);
        let commands = with_commas(*commands);
        format!(
            "{client}: {commands} commands ({command}) in {elapsed} ms, of which the server worked \
             {server} ms: a pipeline would save up to {gain} ms"
        )
    }
}

/// Whole milliseconds from 10 on, and one digit behind the point below.
fn milliseconds(us: u64) -> String {
    if us >= 10_000 { with_commas(us / 1_000) } else { format!("{:.1}", us as f64 / 1_000.0) }
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What was found, by client and command.
#[derive(Debug, Default)]
pub struct Doctor {
    cases: Vec<Case>,
}

impl Doctor {
    /// Adds a burst to the case of its client and command. A new case takes the place of the one
    /// with the smallest gain when there are too many.
    pub fn note(&mut self, client: &str, found: Finding) {
        let is_same = |case: &&mut Case| case.command == found.command && case.client == client;
        if let Some(case) = self.cases.iter_mut().find(is_same) {
            case.bursts += 1;
            case.commands += found.commands;
            case.elapsed_us += found.elapsed_us;
            case.server_us += found.server_us;
            case.gain_us += found.gain_us();
            return;
        }

        let case = Case {
            client: client.to_owned(),
            command: found.command,
            bursts: 1,
            commands: found.commands,
            elapsed_us: found.elapsed_us,
            server_us: found.server_us,
            gain_us: found.gain_us(),
        };
        if self.cases.len() < CASES_MAX {
            self.cases.push(case);
        } else if let Some(smallest) = self.cases.iter_mut().min_by_key(|case| case.gain_us) {
            *smallest = case;
        }
    }

    /// All cases, the largest gain first.
    pub fn cases(&self) -> Vec<Case> {
        let mut cases = self.cases.clone();
        cases.sort_by_key(|case| std::cmp::Reverse(case.gain_us));
        cases
    }

    pub fn clear(&mut self) {
        self.cases.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands one by one, each with this gap behind the reply before and 3 µs of the server's.
    fn one_by_one(burst: &mut Burst, count: u64, gap_us: u64, from_us: u64) -> Vec<Finding> {
        let exchange = |index: u64| {
            let arrived_us = from_us + index * (gap_us + 3);
            Exchange { commands: 1, command: "hget", arrived_us, replied_us: arrived_us + 3 }
        };
        (0..count).filter_map(|index| burst.note(exchange(index))).collect()
    }

    #[test]
    fn a_burst_is_found_when_it_ends() {
        let mut burst = Burst::default();
        assert_eq!(one_by_one(&mut burst, 1_500, 230, 5), []);
        let found = burst.end().unwrap();
        let elapsed_us = 1_499 * 233 + 3;
        assert_eq!(
            found,
            Finding { command: "hget", commands: 1_500, elapsed_us, server_us: 4_500 }
        );
        assert_eq!(found.gain_us(), (elapsed_us - 4_500) - (elapsed_us - 4_500) / 1_500);
        assert_eq!(burst.end(), None);
    }

    #[test]
    fn pauses_and_pipelines_end_a_burst() {
        let mut burst = Burst::default();
        assert_eq!(one_by_one(&mut burst, 30, 100, 0), []);
        let found = one_by_one(&mut burst, 1, 100, 1_000_000);
        assert_eq!(found[0].commands, 30);
        assert_eq!(one_by_one(&mut burst, 25, 100, 1_000_100), []);
        let pipeline = Exchange {
            commands: 100,
            command: "get",
            arrived_us: 1_002_800,
            replied_us: 1_002_900,
        };
        assert_eq!(burst.note(pipeline).unwrap().commands, 26);
        assert_eq!(burst.note(pipeline), None);
    }

    #[test]
    fn few_commands_and_slow_clients_are_no_burst() {
        let mut burst = Burst::default();
        assert_eq!(one_by_one(&mut burst, COMMANDS_MIN - 1, 100, 0), []);
        assert_eq!(burst.end(), None);
        assert_eq!(one_by_one(&mut burst, 1_000, GAP_US_MAX + 1, 0), []);
        assert_eq!(burst.end(), None);
    }

    #[test]
    fn a_burst_without_an_end_is_noted_all_the_same() {
        let mut burst = Burst::default();
        let found = one_by_one(&mut burst, 25_000, 10, 0);
        assert_eq!(found.iter().map(|found| found.commands).collect::<Vec<_>>(), [10_000; 2]);
    }

    #[test]
    fn the_list_begins_with_the_largest_gain() {
        let mut doctor = Doctor::default();
        let finding = |command, commands, elapsed_us| Finding {
            command,
            commands,
            elapsed_us,
            server_us: 5_000,
        };
        doctor.note("worker-7", finding("hget", 1_512, 350_000));
        doctor.note("worker-7", finding("get", 20, 900_000));
        doctor.note("", finding("get", 20, 6_000));
        doctor.note("worker-7", finding("hget", 1_512, 350_000));

        let cases = doctor.cases();
        assert_eq!(cases.len(), 3);
        assert_eq!((cases[0].command, cases[1].command), ("get", "hget"));
        assert_eq!((cases[1].bursts, cases[1].commands), (2, 3_024));
        assert_eq!(
            cases[1].sentence(),
            "worker-7: 3,024 commands (hget) in 700 ms, of which the server worked 10 ms: a \
             pipeline would save up to 689 ms"
        );
        assert!(cases[2].sentence().starts_with("a client without a name: 20 commands (get) in 6"));
    }

    #[test]
    fn the_list_is_bounded() {
        let mut doctor = Doctor::default();
        for client in 0..CASES_MAX as u64 + 50 {
            let found =
                Finding { command: "get", commands: 20, elapsed_us: 1_000 * client, server_us: 0 };
            doctor.note(&client.to_string(), found);
        }
        let cases = doctor.cases();
        assert_eq!(cases.len(), CASES_MAX);
        assert_eq!(cases[0].client, (CASES_MAX + 49).to_string());
    }
}

//! Ledger scripts: what a ledger must answer, line by line, whatever keeps its books.
//!
//! ```text
//! programme {"programme": "p", "expiry": {"kind": "activity", "months": 6}}
//!
//! 2026-01-10       bob award 100 extends → ok, balance 100, expires 2026-07-31
//! 2026-08-02T00:00 bob wait              → balance 0
//! ```
//!
//! A line has a time (a date is its noon; times are UTC), a member, a command, and after the arrow
//! what must be true of the answer and of the wallet as it is settled then. A programme is in force
//! from its line on. `#` begins a comment.

mod line;
mod replica;

pub use replica::Replica;

use crate::account::Account;
use crate::command::Command;
use crate::desk::Answer;
use crate::document::ProgrammeDocument;
use crate::entry::Entry;
use crate::identity::WalletId;
use crate::programme::{Programme, Programmes};
use crate::totals::Total;
use crate::wallet::Wallet;
use line::Line;
use std::sync::Arc;

/// Scripts by name. Every ledger must pass all of them.
pub const SCRIPTS: &[(&str, &str)] = &[
    ("awards", include_str!("script/awards.txt")),
    ("bounds", include_str!("script/bounds.txt")),
    ("expiry", include_str!("script/expiry.txt")),
    ("holds", include_str!("script/holds.txt")),
    ("lots", include_str!("script/lots.txt")),
    ("reversals", include_str!("script/reversals.txt")),
    ("spending", include_str!("script/spending.txt")),
    ("tiers", include_str!("script/tiers.txt")),
];

/// A ledger that a script is played on.
pub trait ScriptLedger {
    /// A turn with these commands.
    fn execute(
        &mut self,
        programmes: &Programmes,
        now_ms: i64,
        commands: &[Command],
    ) -> Vec<Answer>;
    /// A turn that settles a wallet.
    fn settle(&mut self, programmes: &Programmes, now_ms: i64, id: &WalletId);
    /// A wallet as it is stored.
    fn wallet(&mut self, id: &WalletId) -> Wallet;
    /// A sum of a programme over all books.
    fn total(&mut self, programme: &str, total: &Total) -> i128;
}

/// Plays a script, and returns the number of its lines. Each programme has a ledger of its own.
///
/// # Errors
///
/// All lines whose answer differs from what the script says.
pub fn run(
    name: &str,
    text: &str,
    mut ledger_of: impl FnMut() -> Box<dyn ScriptLedger>,
) -> Result<usize, String> {
    let mut faults = Vec::new();
    let mut play: Option<Play> = None;
    let mut lines = 0;
    for (number, text) in text.lines().enumerate() {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }

        let at = format!("{name}.txt line {}: {text}", number + 1);
        if let Some(json) = text.strip_prefix("programme ") {
            let document = document(json, &at);
            if let Some(play) = &mut play {
                faults.append(&mut play.play());
            }
            let former = play.take().filter(|play| play.is_of(&document));
            let mut next = former.unwrap_or_else(|| Play::over(ledger_of()));
            next.put_in_force(&document);
            play = Some(next);
        } else {
            let play = play.as_mut().expect("a script begins with a programme");
            play.add(text, number, at);
            lines += 1;
        }
    }

    faults.append(&mut play.expect("a script has a programme").play());
    if faults.is_empty() { Ok(lines) } else { Err(faults.join("\n")) }
}

fn document(json: &str, at: &str) -> ProgrammeDocument {
    let json = serde_json::from_str(json).unwrap_or_else(|error| panic!("{at}: {error}"));
    let document = ProgrammeDocument::parse(&json);
    document.unwrap_or_else(|problems| panic!("{at}: {problems:?}"))
}

/// The lines of one programme, which are played in the order of their times.
struct Play {
    programmes: Programmes,
    programme: Option<Arc<Programme>>,
    ledger: Box<dyn ScriptLedger>,
    lines: Vec<(Line, usize, String)>,
    faults: Vec<String>,
}

impl Play {
    fn over(ledger: Box<dyn ScriptLedger>) -> Self {
        Self {
            programmes: Programmes::new(),
            programme: None,
            ledger,
            lines: Vec::new(),
            faults: Vec::new(),
        }
    }

    fn is_of(&self, document: &ProgrammeDocument) -> bool {
        self.programmes.get(&document.programme).is_some()
    }

    fn put_in_force(&mut self, document: &ProgrammeDocument) {
        let version = self.programme.as_ref().map_or(1, |programme| programme.version + 1);
        let programme = Arc::new(Programme::compile(document, version).expect("it was checked"));
        self.programmes.insert(programme.clone());
        self.programme = Some(programme);
    }

    fn add(&mut self, text: &str, number: usize, at: String) {
        let programme = self.programme.as_ref().expect("a programme is in force");
        match Line::parse(text, number, programme) {
            Ok(line) => self.lines.push((line, number, at)),
            Err(problem) => self.faults.push(format!("{at}\n    {problem}")),
        }
    }

    fn play(&mut self) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.lines);
        lines.sort_by_key(|(line, ..)| line.now_ms);
        for (line, number, at) in &lines {
            self.line(line, *number, at);
        }
        std::mem::take(&mut self.faults)
    }

    fn line(&mut self, line: &Line, number: usize, at: &str) {
        let programme = self.programme.clone().expect("a programme is in force");
        let id = WalletId::new(programme.name(), &line.member);
        let answers = match line.commands.as_slice() {
            [_, ..] => self.ledger.execute(&self.programmes, line.now_ms, &line.commands),
            // Looking changes nothing; only every other look is written down.
            [] if number.is_multiple_of(2) => {
                self.ledger.settle(&self.programmes, line.now_ms, &id);
                Vec::new()
            }
            [] => Vec::new(),
        };

        let stored = self.ledger.wallet(&id);
        let (wallet, _) = stored.settled(&id, line.now_ms, &programme);
        let outcome = Outcome { programme: &programme, answers: &answers, wallet: &wallet };
        for expected in &line.expected {
            let found = match expected.strip_prefix("total ") {
                Some(total) => {
                    let name = total.split(' ').next().unwrap_or("");
                    let total = name.parse().unwrap_or_else(|error| panic!("{at}: {error}"));
                    let sum = self.ledger.total(programme.name(), &total);
                    format!("total {name} {sum}")
                }
                None => outcome.describe(expected),
            };
            if found != *expected {
                self.faults.push(format!("{at}\n    found `{found}`, not `{expected}`"));
            }
        }
    }
}

/// What a line led to.
struct Outcome<'a> {
    programme: &'a Programme,
    answers: &'a [Answer],
    wallet: &'a Wallet,
}

impl Outcome<'_> {
    /// What is true, in the words of what is expected.
    fn describe(&self, expected: &str) -> String {
        let word = expected.split(' ').next().unwrap_or("");
        let text = |points| self.programme.text_of(points);
        let value = match word {
            "ok" | "refused" | "invalid" | "replayed" => return self.answer(),
            "points" => text(self.entries().map(Entry::points).sum()),
            "awarded" => text(self.entries().map(Entry::awarded).sum()),
            "balance" => text(self.wallet.balance()),
            "available" => text(self.wallet.available()),
            "pending" => text(self.wallet.pending_points()),
            "held" => text(self.wallet.held_points()),
            "arrears" => text(self.wallet.arrears),
            "tier" => {
                let tier = self.programme.tier_of(self.wallet.tier.as_ref());
                tier.map_or("none", |tier| tier).to_owned()
            }
            "until" => optional(self.wallet.tier_until),
            "expires" => optional(self.wallet.expires_on()),
            "kinds" => {
                let kinds = self.entries().map(|entry| entry.kind.name());
                kinds.collect::<Vec<_>>().join(" ")
            }
            "lots" => {
                let lots = self.wallet.lots_by_date().into_iter();
                let lots = lots.map(|(points, day)| format!("{}@{}", text(points), optional(day)));
                lots.collect::<Vec<_>>().join(" ")
            }
            "issued" => {
                let budgets = self.entries().flat_map(|entry| &entry.postings);
                let names = budgets.filter_map(|posting| match &posting.account {
                    Account::Issued(budget) => Some(budget.to_string()),
                    _ => None,
                });
                names.collect::<Vec<_>>().join(" ")
            }
            "explain" => {
                let lines = self.entries().map(|entry| {
                    crate::explain::of_entry(entry, self.programme).replace(", ", "; ")
                });
                lines.collect::<Vec<_>>().join(" | ")
            }
            _ => "(unknown)".to_owned(),
        };
        format!("{word} {value}")
    }

    /// The entries of all answers, without those of replays.
    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.answers.iter().flat_map(|answer| match answer {
            Answer::Done(entries) => entries.iter().map(|entry| &**entry).collect::<Vec<_>>(),
            _ => Vec::new(),
        })
    }

    fn answer(&self) -> String {
        let answer = |answer: &Answer| match answer {
            Answer::Done(_) => "ok".to_owned(),
            Answer::Replayed(_) => "replayed".to_owned(),
            Answer::Refused { refusal, replayed: false, .. } => {
                format!("refused {}", refusal.code.as_str())
            }
            Answer::Refused { refusal, replayed: true, .. } => {
                format!("refused {} again", refusal.code.as_str())
            }
            Answer::Invalid(refusal) => format!("invalid {}", refusal.code.as_str()),
        };
        let mut answers: Vec<String> = self.answers.iter().map(answer).collect();
        answers.dedup();
        answers.join(" ")
    }
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

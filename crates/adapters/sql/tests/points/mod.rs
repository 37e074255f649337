//! Books that several tellers share: commands that all of them give, and what must be true
//! afterwards.

use raingauge_points::{
    Answer, Award, Basis, Body, BudgetId, Command, Desk, Footprint, Key, Programme,
    ProgrammeDocument, Programmes,
};
use raingauge_ports::points::{BookReader as _, Books as _, Error};
use raingauge_sql::{Books, Database};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::runtime::Handle;

/// How many books the databases of these tests have.
pub const BOOKS: u16 = 4;
/// From this number on, commands take back the award without a reference that they follow by as
/// many.
pub const REVERSALS: u64 = 1_000_000;
/// Commands of one turn.
pub const TURN: usize = 8;
const PROGRAMME: &str = "rain";
const MEMBERS: u64 = 40;
/// A budget that all books share, and that is soon used up.
const BUDGET: &str = "gifts";
const BUDGET_LIMIT: i64 = 500;
/// A moment of 2026, in milliseconds since 1970.
const NOW_MS: i64 = 1_790_000_000_000;

/// Gives commands to books.
pub struct Teller<D> {
    pub books: Books<D>,
    programmes: Programmes,
}

/// The book and the sequence of an entry.
pub type Place = (u16, u64);

impl<D: Database> Teller<D> {
    pub fn new(books: Books<D>) -> Self {
        let document = json!({
            "programme": PROGRAMME,
            "unit": "drops",
            "timezone": "UTC",
            "expiry": { "kind": "never" },
            "budgets": { BUDGET: { "limit": BUDGET_LIMIT.to_string() } },
        });
        let document = ProgrammeDocument::parse(&document).unwrap();
        let programme = Programme::compile(&document, 1).unwrap();
        let mut programmes = Programmes::new();
        programmes.insert(Arc::new(programme));
        Self { books, programmes }
    }

    /// Gives commands in one turn and returns the entry of each. It blocks the thread.
    pub fn turn(&self, numbers: &[u64]) -> Result<Vec<Place>, Error> {
        self.turn_after(numbers, || ())
    }

    /// As `turn`; calls `decided` before anything is written.
    pub fn turn_after(&self, numbers: &[u64], decided: impl Fn()) -> Result<Vec<Place>, Error> {
        let commands: Vec<Command> = numbers.iter().copied().map(command).collect();
        let footprint = Footprint::of(&commands, &self.programmes, NOW_MS);
        let count = self.books.books();
        let books: BTreeSet<u16> = footprint.wallets.iter().map(|id| id.book(count)).collect();
        let books: Vec<u16> = books.into_iter().collect();

        let mut answers = Vec::new();
        self.books.turn(&books, &footprint, &mut |_, snapshot| {
            let mut desk = Desk::new(&self.programmes, snapshot, NOW_MS);
            answers = commands.iter().map(|command| desk.execute(command)).collect();
            let turn = desk.finish();
            decided();
            turn
        })?;
        Ok(answers.iter().map(place).collect())
    }

    /// Asserts that each of the first commands has its one entry, and that everything in the books
    /// follows from their entries.
    pub fn examine(&self, commands: u64, runtime: &Handle) {
        runtime.block_on(self.books.verify()).unwrap().unwrap_or_else(|found| panic!("{found}"));
        for number in 0..commands {
            let key = Key::of(PROGRAMME, "", &command(number).key);
            let found = runtime.block_on(self.books.by_key(key)).unwrap();
            assert!(found.is_some(), "command {number} has an entry");
        }

        let budget = BudgetId { programme: PROGRAMME.into(), name: BUDGET.into() };
        let used = runtime.block_on(self.books.budgets(vec![budget])).unwrap();
        assert!(used[0] <= BUDGET_LIMIT, "the books together keep the limit: {}", used[0]);
    }
}

/// Returns a command by its number, the same in every process.
fn command(number: u64) -> Command {
    if let Some(award) = number.checked_sub(REVERSALS) {
        let award = command(award);
        let reversed = Some(Arc::clone(&award.key));
        let body = Body::Reverse { key: reversed, source: None, amount: None, points: None };
        return Command { key: key(number), body, ..award };
    }
    let member = |number: u64| Arc::<str>::from(format!("m{}", number % MEMBERS));
    let award = |budget: Option<&str>| {
        Body::Award(Award {
            basis: Basis::Points(10 + (number % 7) as i64),
            budget: budget.map(Arc::from),
            pending_days: None,
            expires_on: None,
            extends: None,
        })
    };
    let body = match number % 10 {
        0..=3 => award(None),
        4 | 5 => award(Some(BUDGET)),
        6 => Body::Burn { points: 5 },
        7 => Body::Transfer { to: member(number * 31 + 11), points: 3 },
        8 => Body::Hold { points: Some(2), until_ms: None, reward: None },
        _ => Body::Adjust { points: 4, expires_on: None },
    };
    Command {
        programme: PROGRAMME.into(),
        member: member(number * 7),
        key: key(number),
        source: "".into(),
        occurred_ms: None,
        accepted_ms: None,
        reference: (number % 10 < 4).then(|| format!("order {number}").into()),
        reason: Some("because it rains".into()),
        body,
    }
}

fn key(number: u64) -> Arc<str> {
    format!("command {number}").into()
}

fn place(answer: &Answer) -> Place {
    let entry = match answer {
        Answer::Done(entries) => &entries[0],
        Answer::Replayed(entry) | Answer::Refused { entry, .. } => entry,
        Answer::Invalid(refusal) => panic!("a command of this test is invalid: {refusal:?}"),
    };
    (entry.book, entry.sequence)
}

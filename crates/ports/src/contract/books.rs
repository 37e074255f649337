//! What every engine for the books of points keeps.
//!
//! The suite runs on a thread that may block. An engine whose futures need a runtime is tested
//! inside of one (`Handle::enter`).

mod reads;
mod refusals;
mod scripts;
mod turns;

pub use scripts::scripts;

use crate::points::{BookReader, Books, Error, Head};
use raingauge_points::{
    Answer, Award, Basis, Body, Command, Desk, Entry, Footprint, Points, Programme,
    ProgrammeDocument, Programmes, WalletId,
};
use serde_json::json;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// The time at which the tests begin: 2026-01-10T00:00:00Z.
pub const NOW_MS: i64 = 1_768_003_200_000;

/// Calls every test of the suite, each with fresh books that are empty.
pub fn suite<B: Books + BookReader>(fresh: impl Fn() -> B) {
    turns::empty_books_have_nothing(&fresh());
    turns::everything_becomes_durable_together(&fresh());
    turns::a_key_has_one_entry(&fresh());
    turns::a_turn_without_entries_moves_the_position_at_most(&fresh());
    turns::a_transfer_may_cross_books(&fresh());
    turns::an_award_is_reversed_by_reference_and_by_key(&fresh());
    turns::versions_in_force_follow_from_the_entries(&fresh());
    refusals::a_refused_turn_changes_nothing(&fresh());
    reads::entries_are_read_in_order(&fresh());
    reads::statements_are_read_in_pages(&fresh());
    reads::balances_are_known_as_of_a_time(&fresh());
    reads::wallets_are_due_in_order(&fresh());
    reads::sums_and_budgets_follow_from_the_entries(&fresh());
    reads::turns_move_some_of_many_sums(&fresh());
    reads::consumers_have_places(&fresh());
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on this thread.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// The programme of the tests: points expire six months after the last activity.
pub fn programmes() -> Programmes {
    let document = json!({
        "programme": "shop",
        "timezone": "Asia/Singapore",
        "expiry": {"kind": "activity", "months": 6},
        "budgets": {"campaign": {"limit": "500"}},
    });
    let document = ProgrammeDocument::parse(&document).expect("a programme");
    let mut programmes = Programmes::new();
    programmes.insert(Arc::new(Programme::compile(&document, 1).expect("it compiles")));
    programmes
}

/// A member of the programme.
pub fn wallet(member: &str) -> WalletId {
    WalletId::new("shop", member)
}

pub fn command(member: &str, key: &str, body: Body) -> Command {
    Command {
        programme: Arc::from("shop"),
        member: Arc::from(member),
        key: Arc::from(key),
        source: Arc::from(""),
        occurred_ms: None,
        accepted_ms: None,
        reference: None,
        reason: None,
        body,
    }
}

/// An award of points.
pub fn award(member: &str, key: &str, points: Points) -> Command {
    let award = Award {
        basis: Basis::Points(points),
        budget: None,
        pending_days: None,
        expires_on: None,
        extends: Some(true),
    };
    command(member, key, Body::Award(award))
}

pub fn burn(member: &str, key: &str, points: Points) -> Command {
    command(member, key, Body::Burn { points })
}

/// Executes commands as a teller does.
pub struct Clerk<'a, B> {
    pub books: &'a B,
    pub programmes: Programmes,
    pub now_ms: i64,
}

impl<'a, B: Books> Clerk<'a, B> {
    pub fn new(books: &'a B) -> Self {
        Self { books, programmes: programmes(), now_ms: NOW_MS }
    }

    /// Executes commands in one turn of all books that they touch, which moves the position.
    pub fn turn(
        &self,
        commands: &[Command],
        position: Option<u64>,
    ) -> Result<(Vec<Answer>, Vec<Head>), Error> {
        let footprint = Footprint::of(commands, &self.programmes, self.now_ms);
        let books = books_of(self.books, &footprint);
        let mut answers = Vec::new();
        let heads = self.books.turn(&books, &footprint, &mut |_, snapshot| {
            let mut desk = Desk::new(&self.programmes, snapshot, self.now_ms);
            answers = commands.iter().map(|command| desk.execute(command)).collect();
            let mut turn = desk.finish();
            turn.position = position;
            turn
        })?;
        Ok((answers, heads))
    }

    /// Executes commands that are not refused, in one turn. Returns the first entry of each.
    pub fn execute(&self, commands: &[Command]) -> Vec<Arc<Entry>> {
        let (answers, _) = self.turn(commands, None).expect("a turn");
        let first = |answer: Answer| match answer {
            Answer::Done(entries) => Arc::clone(&entries[0]),
            other => panic!("it is done, and not {other:?}"),
        };
        answers.into_iter().map(first).collect()
    }
}

/// The books of the wallets of a footprint, ascending.
fn books_of(books: &impl Books, footprint: &Footprint) -> Vec<u16> {
    let mut of_wallets: Vec<u16> =
        footprint.wallets.iter().map(|id| id.book(books.books())).collect();
    of_wallets.sort_unstable();
    of_wallets.dedup();
    of_wallets
}

/// The head of the book of a member.
fn head_of(books: &impl Books, member: &str) -> Head {
    books.head(wallet(member).book(books.books())).expect("a head")
}

//! Ledger scripts, played on books.

use super::{books_of, wait};
use crate::points::{BookReader, Books};
use raingauge_points::script::{SCRIPTS, ScriptLedger, run};
use raingauge_points::{Answer, Command, Desk, Footprint, Programmes, Total, Wallet, WalletId};
use std::sync::Arc;

struct ScriptBooks<B>(B);

impl<B: Books> ScriptBooks<B> {
    fn turn(
        &self,
        programmes: &Programmes,
        now_ms: i64,
        footprint: &Footprint,
        work: &mut dyn FnMut(&mut Desk<'_>),
    ) {
        let books = books_of(&self.0, footprint);
        let heads = self.0.turn(&books, footprint, &mut |_, snapshot| {
            let mut desk = Desk::new(programmes, snapshot, now_ms);
            work(&mut desk);
            desk.finish()
        });
        heads.expect("a turn");
    }
}

impl<B: Books + BookReader> ScriptLedger for ScriptBooks<B> {
    fn execute(
        &mut self,
        programmes: &Programmes,
        now_ms: i64,
        commands: &[Command],
    ) -> Vec<Answer> {
        let footprint = Footprint::of(commands, programmes, now_ms);
        let mut answers = Vec::new();
        self.turn(programmes, now_ms, &footprint, &mut |desk| {
            answers = commands.iter().map(|command| desk.execute(command)).collect();
        });
        answers
    }

    fn settle(&mut self, programmes: &Programmes, now_ms: i64, id: &WalletId) {
        let mut footprint = Footprint::default();
        footprint.wallet(id.clone());
        self.turn(programmes, now_ms, &footprint, &mut |desk| {
            desk.settle(id);
        });
    }

    fn wallet(&mut self, id: &WalletId) -> Wallet {
        let found = wait(self.0.wallets(vec![id.clone()])).expect("wallets").remove(0);
        found.unwrap_or_default()
    }

    fn total(&mut self, programme: &str, total: &Total) -> i128 {
        let totals = wait(self.0.totals(Arc::from(programme))).expect("totals");
        (0..self.0.books()).map(|book| totals.of(book, programme, total)).sum()
    }
}

/// Plays all ledger scripts, each programme on fresh books.
pub fn scripts<B: Books + BookReader + 'static>(mut fresh: impl FnMut() -> B) {
    for (name, text) in SCRIPTS {
        let lines = run(name, text, || Box::new(ScriptBooks(fresh())));
        assert!(lines.unwrap_or_else(|faults| panic!("{faults}")) > 0);
    }
}

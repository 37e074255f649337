//! Ledger scripts on a ledger in memory, and random commands against an oracle.

mod arrival;
mod oracle;
mod random;
mod sums;

use crate::document::ProgrammeDocument;
use crate::programme::{Programme, Programmes};
use crate::script::{Replica, SCRIPTS, run};
use std::sync::Arc;

/// A programme in force.
fn in_force(json: serde_json::Value) -> Programmes {
    let document = ProgrammeDocument::parse(&json).unwrap();
    let mut programmes = Programmes::new();
    programmes.insert(Arc::new(Programme::compile(&document, 1).unwrap()));
    programmes
}

fn play(books: u16) -> usize {
    let mut lines = 0;
    let mut faults = Vec::new();
    for (name, text) in SCRIPTS {
        match run(name, text, || Box::new(Replica::new(books))) {
            Ok(played) => lines += played,
            Err(fault) => faults.push(fault),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    lines
}

#[test]
fn scripts_are_played_on_one_book() {
    assert!(play(1) > 300);
}

#[test]
fn scripts_are_played_on_many_books() {
    play(16);
}

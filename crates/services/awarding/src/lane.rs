//! What one turn of the books decides.
//!
//! Commands of one book share a turn. Where there are several books, a turn would lock all of them,
//! so each book has a lane of its own, and a command over two books one for itself.

use crate::error::Error;
use crate::intake::Manner;
use raingauge_points::{
    Answer, Body, Command, Desk, Footprint, Programmes, Snapshot, Turn, WalletId,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// Where answers belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub origin: Origin,
    /// The place of the first command there.
    pub first: usize,
}

/// Where commands come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A request of the turn, by its place.
    Request(usize),
    /// Awards of the batch.
    Log,
}

/// Commands that are decided together in their order.
#[derive(Debug)]
struct Step {
    range: Range<usize>,
    manner: Manner,
    slot: Slot,
}

/// The commands and wallets of one turn of the books.
#[derive(Debug, Default)]
pub struct Lane {
    pub books: BTreeSet<u16>,
    commands: Vec<Command>,
    steps: Vec<Step>,
    settling: Vec<WalletId>,
    /// Nothing of it is written.
    pub is_trial: bool,
}

/// What a turn decided.
#[derive(Debug, Default)]
pub struct Decided {
    /// The answers of each step, in its order.
    pub answers: Vec<(Slot, Vec<Answer>)>,
    /// Entries that settled wallets.
    pub settled: usize,
}

impl Lane {
    fn push(&mut self, commands: Vec<Command>, manner: Manner, slot: Slot) {
        let first = self.commands.len();
        self.commands.extend(commands);
        self.steps.push(Step { range: first..self.commands.len(), manner, slot });
    }

    pub fn len(&self) -> usize {
        self.commands.len() + self.settling.len()
    }

    /// The wallets that it settles.
    pub fn settling(&self) -> &[WalletId] {
        &self.settling
    }

    /// What the books have to load.
    pub fn footprint(&self, programmes: &Programmes, now_ms: i64) -> Footprint {
        let mut footprint = Footprint::of(&self.commands, programmes, now_ms);
        let mut settled = Footprint::default();
        self.settling.iter().for_each(|id| settled.wallet(id.clone()));
        footprint.merge(settled);
        footprint
    }

    /// The versions that have priced awards of it and are not in force.
    pub fn other_versions(&self, programmes: &Programmes) -> BTreeSet<(Arc<str>, u32)> {
        let priced = self.commands.iter().filter_map(|command| {
            command.priced().map(|priced| (&command.programme, priced.version))
        });
        let is_other = |(name, version): &(&Arc<str>, u32)| {
            programmes.get(name).is_none_or(|programme| programme.version != *version)
        };
        priced.filter(is_other).map(|(name, version)| (Arc::clone(name), version)).collect()
    }

    /// Decides everything over what the books loaded. May be called again over something else.
    pub fn decide(
        &self,
        programmes: &Programmes,
        snapshot: Snapshot,
        now_ms: i64,
    ) -> (Decided, Turn) {
        let mut desk = Desk::new(programmes, snapshot, now_ms);
        let mut decided = Decided::default();
        for Step { range, manner, slot } in &self.steps {
            let commands = &self.commands[range.clone()];
            let answers = match manner {
                Manner::Together => desk.execute_together(commands),
                Manner::Each | Manner::Trial => {
                    commands.iter().map(|command| desk.execute(command)).collect()
                }
            };
            decided.answers.push((*slot, answers));
        }
        decided.settled = self.settling.iter().map(|id| desk.sweep(id)).sum();
        (decided, desk.finish())
    }

    /// The answers for all steps, when there is none.
    pub fn failed(&self, error: &Error) -> Vec<(Slot, Vec<Result<Answer, Error>>)> {
        let answers =
            |step: &Step| (step.slot, step.range.clone().map(|_| Err(error.clone())).collect());
        self.steps.iter().map(answers).collect()
    }
}

/// Sorts commands into lanes, keeping the order of those of each book.
#[derive(Debug)]
pub struct Lanes {
    books: u16,
    open: BTreeMap<u16, Lane>,
    closed: Vec<Lane>,
    trials: Vec<Lane>,
}

impl Lanes {
    pub fn new(books: u16) -> Self {
        Self { books, open: BTreeMap::new(), closed: Vec::new(), trials: Vec::new() }
    }

    pub fn push(&mut self, commands: Vec<Command>, manner: Manner, origin: Origin) {
        match manner {
            Manner::Trial => {
                let mut lane = self.alone(&commands);
                lane.is_trial = true;
                lane.push(commands, manner, Slot { origin, first: 0 });
                self.trials.push(lane);
            }
            Manner::Each if self.books > 1 => {
                for (first, command) in commands.into_iter().enumerate() {
                    self.join(vec![command], manner, Slot { origin, first });
                }
            }
            Manner::Each | Manner::Together => {
                self.join(commands, manner, Slot { origin, first: 0 });
            }
        }
    }

    /// Adds commands that stay together to the lane of their book.
    fn join(&mut self, commands: Vec<Command>, manner: Manner, slot: Slot) {
        let mut lane = self.alone(&commands);
        if let (1, Some(book)) = (lane.books.len(), lane.books.first()) {
            let open = self.open.entry(*book).or_default();
            open.books.insert(*book);
            open.push(commands, manner, slot);
            return;
        }
        // What came before in any of its books is decided before.
        for book in &lane.books {
            self.closed.extend(self.open.remove(book));
        }
        lane.push(commands, manner, slot);
        self.closed.push(lane);
    }

    /// Adds wallets that are settled.
    pub fn settle(&mut self, wallets: &[WalletId]) {
        for wallet in wallets {
            let book = wallet.book(self.books);
            let open = self.open.entry(book).or_default();
            open.books.insert(book);
            open.settling.push(wallet.clone());
        }
    }

    /// A lane over the books of commands.
    fn alone(&self, commands: &[Command]) -> Lane {
        let books = commands.iter().flat_map(|command| books_of(command, self.books)).collect();
        Lane { books, ..Lane::default() }
    }

    /// All lanes: those that write, and then those that do not.
    pub fn finish(self) -> Vec<Lane> {
        let mut lanes = self.closed;
        lanes.extend(self.open.into_values());
        lanes.extend(self.trials);
        lanes
    }
}

/// The books of the wallets that a command changes.
fn books_of(command: &Command, books: u16) -> impl Iterator<Item = u16> {
    let to = match &command.body {
        Body::Transfer { to, .. } => Some(to),
        _ => None,
    };
    let members = [Some(&command.member), to].into_iter().flatten();
    let wallets = members.map(|member| WalletId::new(&command.programme, member).book(books));
    wallets.collect::<Vec<_>>().into_iter()
}

/// Lanes in groups of which no two share a book. What came before in one of its books is in an
/// earlier group.
pub fn waves(lanes: &[Lane]) -> Vec<Vec<&Lane>> {
    let mut waves: Vec<Vec<&Lane>> = Vec::new();
    let mut next_of: HashMap<u16, usize> = HashMap::new();
    for lane in lanes {
        let free = lane.books.iter().filter_map(|book| next_of.get(book)).max();
        let wave = free.copied().unwrap_or_default();
        next_of.extend(lane.books.iter().map(|book| (*book, wave + 1)));
        if wave == waves.len() {
            waves.push(Vec::new());
        }
        waves[wave].push(lane);
    }
    waves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shares_a_book_keeps_its_order() {
        let lane =
            |books: &[u16]| Lane { books: books.iter().copied().collect(), ..Lane::default() };
        let lanes = [lane(&[1]), lane(&[2]), lane(&[1, 3]), lane(&[3]), lane(&[2]), lane(&[4])];
        let books = |lane: &&Lane| lane.books.iter().copied().collect::<Vec<u16>>();
        let found: Vec<Vec<Vec<u16>>> =
            waves(&lanes).iter().map(|wave| wave.iter().map(books).collect()).collect();
        let expected =
            vec![vec![vec![1], vec![2], vec![4]], vec![vec![1, 3], vec![2]], vec![vec![3]]];
        assert_eq!(found, expected);
    }
}

//! Which award paid for what: a pure function of a wallet's entries.
//!
//! Points of a lot are used in the order in which they came in. A reversal takes those of its own
//! award first.

use crate::Points;
use crate::account::{Account, Expiry};
use crate::day::Day;
use crate::entry::{Entry, Hold, HoldChange, Kind, LastExpiry};
use crate::identity::Key;
use crate::settle::{expired_since, sort_by_date};
use serde::Serialize;
use std::collections::HashMap;

/// Points that one entry brought and another one used. Both are sequences of the wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PointUse {
    pub credit: u64,
    pub debit: u64,
    pub points: Points,
}

/// Points that an entry brought and that are still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Remainder {
    pub credit: u64,
    pub points: Points,
    pub expiry: Expiry,
}

/// Where the points of a wallet came from, and where they went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    pub uses: Vec<PointUse>,
    pub left: Vec<Remainder>,
}

/// Points of one credit.
#[derive(Clone, Copy, Debug)]
struct Origin {
    credit: u64,
    points: Points,
}

/// Traces the entries of one wallet, all of them, from the oldest on.
pub fn trace<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Trace {
    let mut tracer = Tracer::default();
    for entry in entries {
        tracer.add(entry);
    }

    let mut left: Vec<Remainder> = tracer
        .lots
        .iter()
        .flat_map(|(expiry, origins)| {
            let remainder = |origin: &Origin| Remainder {
                credit: origin.credit,
                points: origin.points,
                expiry: *expiry,
            };
            origins.iter().map(remainder)
        })
        .collect();
    left.sort_by_key(|remainder| (remainder.expiry, remainder.credit));
    Trace { uses: tracer.uses, left }
}

#[derive(Default)]
struct Tracer {
    uses: Vec<PointUse>,
    lots: HashMap<Expiry, Vec<Origin>>,
    pending: HashMap<(i32, Expiry), Vec<Origin>>,
    /// Points of open holds, in the order of their lots.
    held: HashMap<Key, (Hold, Vec<Origin>)>,
    /// The last day of the rolling lot.
    rolling: Option<Day>,
    last_expiry: Option<LastExpiry>,
    /// Debits that nothing paid for yet.
    owed: Vec<Origin>,
    /// Sequences of the wallet by those of the book.
    awards: HashMap<(u16, u64), u64>,
}

impl Tracer {
    fn add(&mut self, entry: &Entry) {
        let own = entry.member_sequence;
        self.awards.insert((entry.book, entry.sequence), own);
        let reversed = entry.changes.reversal.as_ref();
        let preferred =
            reversed.and_then(|found| self.awards.get(&(found.book, found.sequence)).copied());

        // What the entry takes out of lots and what it gives back pass through here.
        let mut moving: Vec<Origin> = Vec::new();
        if let (Kind::Capture | Kind::Release, Some(HoldChange::Resolved(key))) =
            (entry.kind, &entry.changes.hold)
            && let Some((hold, held)) = self.held.remove(key)
        {
            moving = held;
            self.spend_captured(entry, &hold, &mut moving);
        }
        if let Some(rolling) = entry.changes.rolling {
            self.rolling = rolling.after;
        }
        if let Some(last_expiry) = entry.changes.last_expiry {
            self.last_expiry = last_expiry;
        }

        let is_moved = entry.kind == Kind::Activate;
        for (place, posting) in entry.postings.iter().enumerate() {
            match &posting.account {
                Account::Available(expiry) if posting.amount < 0 => {
                    let lot = self.lots.entry(*expiry).or_default();
                    let taken = take(lot, -posting.amount, preferred);
                    // A lot that is merged moves on with the next posting.
                    let next = entry.postings.get(place + 1);
                    let is_merge = next.is_some_and(|next| {
                        matches!(next.account, Account::Available(_))
                            && next.amount == -posting.amount
                    });
                    if is_merge || entry.kind == Kind::Hold {
                        moving.extend(taken);
                    } else {
                        self.use_up(&taken, own);
                    }
                }
                Account::Available(expiry) => {
                    let given = if moving.is_empty() {
                        vec![Origin { credit: own, points: posting.amount }]
                    } else {
                        take(&mut moving, posting.amount, None)
                    };
                    give(self.lots.entry(*expiry).or_default(), given);
                }
                Account::Pending { matures, expiry } if posting.amount < 0 => {
                    let lot = self.pending.entry((matures.0, *expiry)).or_default();
                    let taken = take(lot, -posting.amount, preferred);
                    if is_moved {
                        moving.extend(taken);
                    } else {
                        self.use_up(&taken, own);
                    }
                }
                Account::Pending { matures, expiry } => {
                    let origin = Origin { credit: own, points: posting.amount };
                    self.pending.entry((matures.0, *expiry)).or_default().push(origin);
                }
                Account::Arrears if posting.amount < 0 => {
                    self.owed.push(Origin { credit: own, points: -posting.amount });
                }
                Account::Arrears => self.pay(own, posting.amount, &mut moving),
                _ => {}
            }
        }

        if let Some(HoldChange::Opened(hold)) = &entry.changes.hold {
            self.held.insert(hold.key, (hold.clone(), moving));
        } else if !moving.is_empty() {
            self.use_up(&moving, own);
        }
    }

    /// The points of a hold that expire first are those that are captured.
    fn spend_captured(&mut self, entry: &Entry, hold: &Hold, held: &mut Vec<Origin>) {
        if entry.kind == Kind::Release {
            return;
        }
        let expired = expired_since(hold, self.last_expiry, entry.recorded_ms);
        let rolling = expired.map(|last| last.day).or(self.rolling);

        let mut of_lots: Vec<(Expiry, Vec<Origin>)> = Vec::with_capacity(hold.lots.len());
        for (expiry, points) in &hold.lots {
            of_lots.push((*expiry, take(held, *points, None)));
        }
        let mut lots = hold.lots.clone();
        sort_by_date(&mut lots, rolling);

        for (expiry, _) in &lots {
            let of_lot = of_lots.iter_mut().find(|(known, _)| known == expiry);
            held.append(&mut of_lot.expect("lots are those of the hold").1);
        }

        let burned = entry.postings.iter().filter_map(|posting| match posting.account {
            Account::Burned(..) => Some(posting.amount),
            _ => None,
        });
        let spent = take(held, burned.sum(), None);
        self.use_up(&spent, entry.member_sequence);
    }

    fn use_up(&mut self, taken: &[Origin], debit: u64) {
        let uses = taken.iter().map(|origin| PointUse {
            credit: origin.credit,
            debit,
            points: origin.points,
        });
        self.uses.extend(uses);
    }

    /// Pays what was owed, the oldest first.
    fn pay(&mut self, own: u64, points: Points, moving: &mut Vec<Origin>) {
        let debts = take(&mut self.owed, points, None);
        for debt in debts {
            let mut paid = take(moving, debt.points, None);
            let rest = debt.points - paid.iter().map(|origin| origin.points).sum::<Points>();
            if rest > 0 {
                paid.push(Origin { credit: own, points: rest });
            }
            self.use_up(&paid, debt.credit);
        }
    }
}

/// Puts points into a lot, each beside those of the same credit.
fn give(lot: &mut Vec<Origin>, given: Vec<Origin>) {
    for origin in given {
        match lot.binary_search_by_key(&origin.credit, |known| known.credit) {
            Ok(place) => lot[place].points += origin.points,
            Err(place) => lot.insert(place, origin),
        }
    }
}

/// Takes points out of a lot: those of one credit first, then the oldest.
fn take(lot: &mut Vec<Origin>, points: Points, preferred: Option<u64>) -> Vec<Origin> {
    let mut missing = points;
    let mut taken = Vec::new();
    let is_preferred = |origin: &Origin| Some(origin.credit) == preferred;
    let order =
        lot.iter().position(is_preferred).into_iter().chain(0..lot.len()).collect::<Vec<usize>>();

    for place in order {
        let part = lot[place].points.min(missing);
        if part > 0 {
            taken.push(Origin { points: part, ..lot[place] });
            lot[place].points -= part;
            missing -= part;
        }
    }
    lot.retain(|origin| origin.points > 0);
    taken
}

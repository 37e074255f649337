//! What a reference earned, and how much of that was reversed.

use crate::Points;
use crate::account::{Account, Expiry};
use crate::day::Day;
use crate::encoding::{
    DecodeError, Reader, put_day, put_expiry, put_number, put_option, put_rounding, put_signed,
    put_text, put_unsigned,
};
use crate::entry::{Entry, Kind};
use crate::limits::REFERENCE_AWARDS_MAX;
use crate::number::{Number, Rounding};
use std::sync::Arc;

const VERSION: u8 = 1;

/// The awards of a member under one reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Earned {
    pub(crate) awards: Vec<EarnedAward>,
}

/// An award, with all that a reversal needs of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EarnedAward {
    pub(crate) book: u16,
    pub(crate) sequence: u64,
    pub(crate) source: Arc<str>,
    pub(crate) budget: Arc<str>,
    pub(crate) points: Points,
    /// What was taken back so far.
    pub(crate) reversed: Points,
    pub(crate) amount: Option<Number>,
    /// The part of the amount that was paid back so far.
    pub(crate) refunded: Number,
    /// The product of the factors.
    pub(crate) multiplier: Option<Number>,
    pub(crate) rounding: Rounding,
    /// The lot that it went to; `None` where all of it was owed.
    pub(crate) expiry: Option<Expiry>,
    pub(crate) matures: Option<Day>,
    /// The period whose qualifying points it added to.
    pub(crate) period: Option<i32>,
}

impl EarnedAward {
    /// The award that an entry made.
    pub(crate) fn of(entry: &Entry) -> Self {
        let mut award = Self {
            book: entry.book,
            sequence: entry.sequence,
            source: entry.key.as_ref().map_or_else(|| "".into(), |key| key.source.clone()),
            budget: "".into(),
            points: entry.awarded(),
            reversed: 0,
            amount: entry.explain.as_ref().and_then(|explain| explain.amount),
            refunded: Number::ZERO,
            multiplier: entry.explain.as_ref().and_then(|explain| explain.multiplier()),
            rounding: entry.explain.as_ref().map_or(Rounding::default(), |found| found.rounding),
            expiry: None,
            matures: None,
            period: entry.changes.qualifying.map(|added| added.period),
        };

        // An award may merge other lots: what it adds itself comes first.
        for posting in entry.postings.iter().rev().filter(|posting| posting.amount > 0) {
            match posting.account {
                Account::Available(expiry) => award.expiry = Some(expiry),
                Account::Pending { matures, expiry } => {
                    award.expiry = Some(expiry);
                    award.matures = Some(matures);
                }
                _ => {}
            }
        }
        let issued = entry.postings.iter().find_map(|posting| match &posting.account {
            Account::Issued(budget) => Some(budget),
            _ => None,
        });
        if let Some(budget) = issued {
            award.budget = budget.clone();
        }
        award
    }
}

impl Earned {
    pub fn is_empty(&self) -> bool {
        self.awards.is_empty()
    }

    /// Whether another award fits.
    pub(crate) fn is_full(&self) -> bool {
        self.awards.len() >= REFERENCE_AWARDS_MAX
    }

    /// What all awards were, and what was taken back of them.
    pub fn points(&self) -> (Points, Points) {
        let awarded = self.awards.iter().map(|award| award.points).sum();
        let reversed = self.awards.iter().map(|award| award.reversed).sum();
        (awarded, reversed)
    }

    /// Adds an award, or a reversal of one. Other entries change nothing.
    pub fn apply(&mut self, entry: &Entry) {
        if matches!(entry.kind, Kind::Earn | Kind::Bonus) {
            self.awards.push(EarnedAward::of(entry));
        }

        let Some(reversal) = &entry.changes.reversal else { return };
        let of_award = |award: &&mut EarnedAward| {
            (award.book, award.sequence) == (reversal.book, reversal.sequence)
        };
        let award = self.awards.iter_mut().find(of_award).expect("what is reversed was awarded");
        award.reversed += reversal.points;
        assert!(award.reversed <= award.points, "no more is reversed than was awarded");
        if let Some(amount) = reversal.amount {
            award.refunded = award.refunded.plus(amount).expect("it was added when decided");
        }
    }

    /// Appends the record to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        put_unsigned(out, self.awards.len() as u64);
        for award in &self.awards {
            put_unsigned(out, award.book);
            put_unsigned(out, award.sequence);
            put_text(out, &award.source);
            put_text(out, &award.budget);
            put_signed(out, award.points);
            put_signed(out, award.reversed);
            put_option(out, award.amount, put_number);
            put_number(out, award.refunded);
            put_option(out, award.multiplier, put_number);
            put_rounding(out, award.rounding);
            put_option(out, award.expiry, put_expiry);
            put_option(out, award.matures, put_day);
            put_option(out, award.period, put_signed);
        }
    }

    /// Reads a record that fills the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::begin(bytes, VERSION)?;
        let awards = reader.list(|reader| {
            Ok(EarnedAward {
                book: reader.unsigned()?,
                sequence: reader.unsigned()?,
                source: reader.text()?,
                budget: reader.text()?,
                points: reader.signed()?,
                reversed: reader.signed()?,
                amount: reader.option(Reader::number)?,
                refunded: reader.number()?,
                multiplier: reader.option(Reader::number)?,
                rounding: reader.rounding()?,
                expiry: reader.option(Reader::expiry)?,
                matures: reader.option(Reader::day)?,
                period: reader.option(Reader::signed)?,
            })
        })?;
        reader.end()?;
        Ok(Self { awards })
    }
}

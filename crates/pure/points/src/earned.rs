//! What a reference earned, and how much of that was reversed.

use crate::Points;
use crate::account::{Account, Expiry};
use crate::day::Day;
use crate::encoding::{
    DecodeError, Reader, put_day, put_expiry, put_number, put_option, put_rounding, put_signed,
    put_text, put_unsigned,
};
use crate::entry::codec::{put_period, read_period};
use crate::entry::{Entry, EntryKey, Kind, Period};
use crate::limits::REFERENCE_AWARDS_MAX;
use crate::number::{Number, Rounding};
use crate::programme::EVENT_SOURCE;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

const VERSION: u8 = 3;
/// Records of this version do not say since when the points of an award can be spent.
const VERSION_WITHOUT_TIMES: u8 = 2;
/// Records of this version know neither the origin of an award nor the window of its period.
const VERSION_WITHOUT_ORIGIN: u8 = 1;

/// The awards of a member under one reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Earned {
    pub(crate) awards: Vec<EarnedAward>,
    /// When everything under the reference was taken back last: a transaction of that time or
    /// earlier that is awarded later is one of those.
    pub(crate) reversed_ms: Option<i64>,
}

/// An award, with all that a reversal needs of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EarnedAward {
    pub(crate) book: u16,
    pub(crate) sequence: u64,
    /// What the award is one of: all awards of an event share it, and no others do.
    pub(crate) origin: u64,
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
    /// When its points came into their lot, unless they were pending. Points that expired at once
    /// have the time of their transaction. `None` in older records.
    pub(crate) since_ms: Option<i64>,
    /// The period whose qualifying points it added to.
    pub(crate) period: Option<Period>,
}

impl EarnedAward {
    /// The award that an entry made.
    pub(crate) fn of(entry: &Entry) -> Self {
        let mut award = Self {
            book: entry.book,
            sequence: entry.sequence,
            origin: entry.key.as_ref().map_or(0, origin_of),
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
            since_ms: Some(if entry.changes.expires_at_once {
                entry.occurred_ms
            } else {
                entry.recorded_ms
            }),
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

    /// What all awards were, and what was taken back of them.
    pub fn points(&self) -> (Points, Points) {
        let awarded = self.awards.iter().map(|award| award.points).sum();
        let reversed = self.awards.iter().map(|award| award.reversed).sum();
        (awarded, reversed)
    }

    /// Adds an award, or a reversal of one. Other entries change nothing. Awards beyond the most
    /// that are kept are found by their keys alone.
    pub fn apply(&mut self, entry: &Entry) {
        let is_award = matches!(entry.kind, Kind::Earn | Kind::Bonus);
        if is_award && self.awards.len() < REFERENCE_AWARDS_MAX {
            self.awards.push(EarnedAward::of(entry));
        }

        let Some(reversal) = &entry.changes.reversal else { return };
        let of_award = |award: &&mut EarnedAward| {
            (award.book, award.sequence) == (reversal.book, reversal.sequence)
        };
        let award = self.awards.iter_mut().find(of_award).expect("what is reversed was awarded");
        award.reversed += reversal.points;
        assert!(award.reversed <= award.points, "no more is reversed than was awarded");
        if reversal.is_whole {
            self.reversed_ms = self.reversed_ms.max(Some(entry.occurred_ms));
        }
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
            out.extend_from_slice(&award.origin.to_le_bytes());
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
            put_option(out, award.since_ms, put_signed);
            put_option(out, award.period, put_period);
        }
        put_option(out, self.reversed_ms, put_signed);
    }

    /// Whether a stored record says the same. One that was begun by an earlier version may not say
    /// since when points could be spent.
    pub fn is_recorded_as(&self, stored: &Self) -> bool {
        let mut stored = stored.clone();
        for (award, of_journal) in stored.awards.iter_mut().zip(&self.awards) {
            award.since_ms = award.since_ms.or(of_journal.since_ms);
        }
        stored == *self
    }

    /// Reads a record that fills the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let version = match bytes.first() {
            Some(known @ (&VERSION_WITHOUT_ORIGIN | &VERSION_WITHOUT_TIMES)) => *known,
            _ => VERSION,
        };
        let is_old = version == VERSION_WITHOUT_ORIGIN;
        let mut reader = Reader::begin(bytes, version)?;
        let awards = reader.list(|reader| {
            let book = reader.unsigned()?;
            let sequence: u64 = reader.unsigned()?;
            Ok(EarnedAward {
                book,
                sequence,
                // Each award for itself, where nothing else is known.
                origin: if is_old { sequence } else { u64::from_le_bytes(reader.bytes()?) },
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
                since_ms: match version {
                    VERSION => reader.option(Reader::signed)?,
                    _ => None,
                },
                period: reader.option(|reader| {
                    if is_old {
                        return Ok(Period { number: reader.signed()?, months: None });
                    }
                    read_period(reader)
                })?,
            })
        })?;
        let reversed_ms = if is_old { None } else { reader.option(Reader::signed)? };
        reader.end()?;
        Ok(Self { awards, reversed_ms })
    }
}

/// A hash of what happened: an event, whichever of its rules awarded it, or a command.
fn origin_of(key: &EntryKey) -> u64 {
    if &*key.source != EVENT_SOURCE {
        return xxh3_64(format!("{}\0{}", key.source, key.text).as_bytes());
    }
    let event = key.text.split_once(':').map_or(&*key.text, |(_rule, event)| event);
    xxh3_64(event.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;
    use crate::identity::Key;

    #[test]
    fn the_awards_of_an_event_share_their_origin() {
        let origin = |source: &str, text: Arc<str>| {
            origin_of(&EntryKey { hash: Key::of("p", source, &text), text, source: source.into() })
        };
        let of_event = |rule, id: &str| origin(EVENT_SOURCE, Command::event_key(rule, "shop", id));
        assert_eq!(of_event(1, "o-1"), of_event(27, "o-1"));
        assert_ne!(of_event(1, "o-1"), of_event(1, "o-2"));
        let long = "o".repeat(300);
        assert_eq!(of_event(1, &long), of_event(2, &long));
        assert_ne!(origin("", "1:x".into()), origin("", "2:x".into()), "keys are free texts");
    }

    /// Version 1, as it was written before awards had an origin.
    #[test]
    fn records_without_origins_are_still_read() {
        let mut bytes = vec![VERSION_WITHOUT_ORIGIN];
        put_unsigned(&mut bytes, 1_u8);
        put_unsigned(&mut bytes, 0_u8);
        put_unsigned(&mut bytes, 7_u8);
        put_text(&mut bytes, "events");
        put_text(&mut bytes, "default");
        put_signed(&mut bytes, 15);
        put_signed(&mut bytes, 5);
        put_option(&mut bytes, Number::parse("10"), put_number);
        put_number(&mut bytes, Number::ZERO);
        put_option(&mut bytes, Number::parse("1.5"), put_number);
        put_rounding(&mut bytes, Rounding::default());
        put_option(&mut bytes, Some(Expiry::Rolling), put_expiry);
        put_option(&mut bytes, None, put_day);
        put_option(&mut bytes, Some(4), put_signed);

        let earned = Earned::decode(&bytes).unwrap();
        assert_eq!((earned.points(), earned.reversed_ms), ((15, 5), None));
        assert_eq!(earned.awards[0].period, Some(Period { number: 4, months: None }));
        let mut again = Vec::new();
        earned.encode(&mut again);
        assert_eq!(Earned::decode(&again).unwrap(), earned);
    }

    /// Version 2, as it was written before awards had the time of their points.
    #[test]
    fn records_without_times_are_still_read() {
        let bytes = [
            &[VERSION_WITHOUT_TIMES, 1, 0, 7][..],
            &42_u64.to_le_bytes(),
            &[0, 0, 30, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0],
        ];
        let earned = Earned::decode(&bytes.concat()).unwrap();
        assert_eq!((earned.points(), earned.awards[0].origin), ((15, 0), 42));
        assert_eq!(earned.awards[0].since_ms, None);
        let mut again = Vec::new();
        earned.encode(&mut again);
        assert_eq!(Earned::decode(&again).unwrap(), earned);
    }
}

//! Entries as bytes.
//!
//! ```text
//! version │ kind │ parts │ book │ sequence │ recorded │ occurred − recorded │ programme
//!   │ member, member sequence, balance, tier, expiry, due hour │ postings │ optional parts
//! ```
//!
//! `parts` has a bit for each optional part that follows, in the order of the constants.

use super::{
    BudgetUse, Changes, Entry, EntryKey, Explain, Factor, Hold, HoldChange, Kind, LastExpiry,
    Period, Qualifying, Reminder, Reversal, RollingChange, TierChange,
};
use crate::account::{Account, Posting};
use crate::encoding::{
    DecodeError, Reader, put_day, put_expiry, put_number, put_option, put_rounding, put_signed,
    put_text, put_unsigned,
};
use crate::identity::Key;
use raingauge_core::code::{Code, Refusal};

const VERSION: u8 = 1;

const MEMBER: u32 = 1;
const KEY: u32 = 1 << 1;
const REFERENCE: u32 = 1 << 2;
const REASON: u32 = 1 << 3;
const EXPLAIN: u32 = 1 << 4;
const REFUSAL: u32 = 1 << 5;
const ROLLING: u32 = 1 << 6;
const ACTIVITY: u32 = 1 << 7;
const QUALIFYING: u32 = 1 << 8;
const TIER: u32 = 1 << 9;
const HOLD: u32 = 1 << 10;
const LAST_EXPIRY: u32 = 1 << 11;
const REMINDED: u32 = 1 << 12;
const BUDGETS: u32 = 1 << 13;
const REVERSAL: u32 = 1 << 14;
const CLOSED: u32 = 1 << 15;
const IN_FORCE: u32 = 1 << 16;
const WHOLE: u32 = 1 << 17;
const WINDOW: u32 = 1 << 18;
const AT_ONCE: u32 = 1 << 19;
const PARTS_ALL: u32 = (1 << 20) - 1;

impl Entry {
    /// Appends the entry to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        out.push(self.kind.number());
        put_unsigned(out, self.bits());
        put_unsigned(out, self.book);
        put_unsigned(out, self.sequence);
        put_signed(out, self.recorded_ms);
        put_signed(out, i128::from(self.occurred_ms) - i128::from(self.recorded_ms));
        put_text(out, &self.programme);

        if let Some(member) = &self.member {
            put_text(out, member);
            put_unsigned(out, self.member_sequence);
            put_signed(out, self.balance_after);
            put_option(out, self.tier_after.as_deref(), put_text);
            put_option(out, self.expires_after, put_day);
            put_option(out, self.due_hour_after, put_unsigned);
        }

        put_unsigned(out, self.postings.len() as u64);
        for posting in &self.postings {
            put_account(out, &posting.account);
            put_signed(out, posting.amount);
        }

        if let Some(key) = &self.key {
            out.extend_from_slice(&key.hash.to_bytes());
            put_text(out, &key.text);
            put_text(out, &key.source);
            out.extend_from_slice(&self.fingerprint.to_le_bytes());
        }
        for text in [&self.reference, &self.reason].into_iter().flatten() {
            put_text(out, text);
        }
        if let Some(explain) = &self.explain {
            put_explain(out, explain);
        }
        if let Some(refusal) = &self.refusal {
            put_text(out, refusal.code.as_str());
            put_text(out, &refusal.detail);
        }
        put_changes(out, &self.changes);
    }

    /// Reads an entry that fills the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::begin(bytes, VERSION)?;
        let kind = Kind::from_number(reader.byte()?).ok_or(DecodeError)?;
        let bits: u32 = reader.unsigned()?;
        if bits & !PARTS_ALL != 0 {
            return Err(DecodeError);
        }

        let book = reader.unsigned()?;
        let sequence = reader.unsigned()?;
        let recorded_ms: i64 = reader.signed()?;
        let since_ms: i128 = reader.signed()?;
        let occurred_ms = i128::from(recorded_ms).checked_add(since_ms).ok_or(DecodeError)?;
        let occurred_ms = i64::try_from(occurred_ms).map_err(|_| DecodeError)?;
        let mut entry = Self::of_programme(reader.text()?, kind, occurred_ms);
        entry.book = book;
        entry.sequence = sequence;
        entry.recorded_ms = recorded_ms;

        if bits & MEMBER != 0 {
            entry.member = Some(reader.text()?);
            entry.member_sequence = reader.unsigned()?;
            entry.balance_after = reader.signed()?;
            entry.tier_after = reader.option(Reader::text)?;
            entry.expires_after = reader.option(Reader::day)?;
            entry.due_hour_after = reader.option(Reader::unsigned)?;
        }

        entry.postings = reader.list(|reader| {
            let account = read_account(reader)?;
            Ok(Posting::new(account, reader.signed()?))
        })?;
        if bits & KEY != 0 {
            let hash = Key::from_bytes(reader.bytes()?);
            let text = reader.text()?;
            let source = reader.text()?;
            entry.key = Some(EntryKey { hash, text, source });
            entry.fingerprint = u64::from_le_bytes(reader.bytes()?);
        }
        if bits & REFERENCE != 0 {
            entry.reference = Some(reader.text()?);
        }
        if bits & REASON != 0 {
            entry.reason = Some(reader.text()?);
        }
        if bits & EXPLAIN != 0 {
            entry.explain = Some(Box::new(read_explain(&mut reader)?));
        }
        if bits & REFUSAL != 0 {
            // A newer build may know more codes.
            let code = Code::parse(&reader.text()?).unwrap_or(Code::Failed);
            entry.refusal = Some(Refusal::new(code, &*reader.text()?));
        }
        entry.changes = read_changes(&mut reader, bits)?;
        reader.end()?;
        Ok(entry)
    }

    fn bits(&self) -> u32 {
        let changes = &self.changes;
        let bit = |bit: u32, is_there: bool| if is_there { bit } else { 0 };
        bit(MEMBER, self.member.is_some())
            | bit(KEY, self.key.is_some())
            | bit(REFERENCE, self.reference.is_some())
            | bit(REASON, self.reason.is_some())
            | bit(EXPLAIN, self.explain.is_some())
            | bit(REFUSAL, self.refusal.is_some())
            | bit(ROLLING, changes.rolling.is_some())
            | bit(ACTIVITY, changes.activity.is_some())
            | bit(QUALIFYING, changes.qualifying.is_some())
            | bit(TIER, changes.tier.is_some())
            | bit(HOLD, changes.hold.is_some())
            | bit(LAST_EXPIRY, changes.last_expiry.is_some())
            | bit(REMINDED, changes.reminded.is_some())
            | bit(BUDGETS, !changes.budgets.is_empty())
            | bit(REVERSAL, changes.reversal.is_some())
            | bit(CLOSED, changes.closed)
            | bit(IN_FORCE, changes.version.is_some())
            | bit(WHOLE, changes.reversal.as_ref().is_some_and(|reversal| reversal.is_whole))
            | bit(WINDOW, changes.qualifying.is_some_and(|added| added.period.months.is_some()))
            | bit(AT_ONCE, changes.expires_at_once)
    }
}

fn put_account(out: &mut Vec<u8>, account: &Account) {
    match account {
        Account::Available(expiry) => {
            out.push(0);
            put_expiry(out, *expiry);
        }
        Account::Pending { matures, expiry } => {
            out.push(1);
            put_day(out, *matures);
            put_expiry(out, *expiry);
        }
        Account::Held => out.push(2),
        Account::Arrears => out.push(3),
        Account::Issued(budget) => {
            out.push(4);
            put_text(out, budget);
        }
        Account::Burned(reason, due) => {
            out.push(if due.is_some() { 11 } else { 5 });
            put_text(out, reason);
            due.inspect(|month| put_signed(out, month.0));
        }
        Account::Expired(due) => {
            out.push(if due.is_some() { 12 } else { 6 });
            due.inspect(|month| put_signed(out, month.0));
        }
        Account::Adjusted => out.push(7),
        Account::Partner(name, day) => {
            out.push(if day.is_some() { 13 } else { 8 });
            put_text(out, name);
            day.inspect(|day| put_day(out, *day));
        }
        Account::Transit => out.push(9),
        Account::WrittenOff => out.push(10),
    }
}

fn read_account(reader: &mut Reader<'_>) -> Result<Account, DecodeError> {
    Ok(match reader.byte()? {
        0 => Account::Available(reader.expiry()?),
        1 => {
            let matures = reader.day()?;
            Account::Pending { matures, expiry: reader.expiry()? }
        }
        2 => Account::Held,
        3 => Account::Arrears,
        4 => Account::Issued(reader.text()?),
        5 => Account::Burned(reader.text()?, None),
        6 => Account::Expired(None),
        7 => Account::Adjusted,
        8 => Account::Partner(reader.text()?, None),
        9 => Account::Transit,
        10 => Account::WrittenOff,
        11 => Account::Burned(reader.text()?, Some(reader.month()?)),
        12 => Account::Expired(Some(reader.month()?)),
        13 => Account::Partner(reader.text()?, Some(reader.day()?)),
        _ => return Err(DecodeError),
    })
}

fn put_explain(out: &mut Vec<u8>, explain: &Explain) {
    put_unsigned(out, explain.version);
    put_option(out, explain.rule, put_unsigned);
    put_option(out, explain.rule_name.as_deref(), put_text);
    put_option(out, explain.amount, put_number);
    put_unsigned(out, explain.factors.len() as u64);
    for factor in &explain.factors {
        put_text(out, &factor.name);
        put_text(out, &factor.row);
        put_number(out, factor.value);
    }

    put_option(out, explain.exact, put_number);
    put_rounding(out, explain.rounding);
    put_option(out, explain.limit, put_signed);
    put_signed(out, explain.points);
}

fn read_explain(reader: &mut Reader<'_>) -> Result<Explain, DecodeError> {
    Ok(Explain {
        version: reader.unsigned()?,
        rule: reader.option(Reader::unsigned)?,
        rule_name: reader.option(Reader::text)?,
        amount: reader.option(Reader::number)?,
        factors: reader.list(|reader| {
            let name = reader.text()?;
            let row = reader.text()?;
            Ok(Factor { name, row, value: reader.number()? })
        })?,
        exact: reader.option(Reader::number)?,
        rounding: reader.rounding()?,
        limit: reader.option(Reader::signed)?,
        points: reader.signed()?,
    })
}

fn put_changes(out: &mut Vec<u8>, changes: &Changes) {
    if let Some(rolling) = &changes.rolling {
        put_option(out, rolling.before, put_day);
        put_option(out, rolling.after, put_day);
        put_signed(out, rolling.moved);
    }
    if let Some(day) = changes.activity {
        put_day(out, day);
    }
    if let Some(qualifying) = &changes.qualifying {
        put_signed(out, qualifying.period.number);
        put_signed(out, qualifying.points);
    }
    if let Some(change) = &changes.tier {
        put_text(out, &change.tier);
        put_option(out, change.until, put_day);
    }
    match &changes.hold {
        None => {}
        Some(HoldChange::Opened(hold)) => {
            out.push(0);
            put_hold(out, hold);
        }
        Some(HoldChange::Resolved(key)) => {
            out.push(1);
            out.extend_from_slice(&key.to_bytes());
        }
    }

    if let Some(last_expiry) = &changes.last_expiry {
        put_option(out, last_expiry.as_ref(), put_last_expiry);
    }
    if let Some(reminder) = &changes.reminded {
        put_reminder(out, reminder);
    }
    if !changes.budgets.is_empty() {
        put_unsigned(out, changes.budgets.len() as u64);
        for used in &changes.budgets {
            put_text(out, &used.budget);
            put_signed(out, used.amount);
        }
    }
    if let Some(reversal) = &changes.reversal {
        put_unsigned(out, reversal.book);
        put_unsigned(out, reversal.sequence);
        put_signed(out, reversal.points);
        put_option(out, reversal.amount, put_number);
        put_option(out, reversal.key, |out, key| out.extend_from_slice(&key.to_bytes()));
    }
    if let Some(version) = changes.version {
        put_unsigned(out, version);
    }
    if let Some(months) = changes.qualifying.and_then(|added| added.period.months) {
        put_unsigned(out, months);
    }
}

fn read_changes(reader: &mut Reader<'_>, bits: u32) -> Result<Changes, DecodeError> {
    let mut changes = Changes::default();
    if bits & ROLLING != 0 {
        let before = reader.option(Reader::day)?;
        let after = reader.option(Reader::day)?;
        changes.rolling = Some(RollingChange { before, after, moved: reader.signed()? });
    }
    if bits & ACTIVITY != 0 {
        changes.activity = Some(reader.day()?);
    }
    if bits & QUALIFYING != 0 {
        let period = Period { number: reader.signed()?, months: None };
        changes.qualifying = Some(Qualifying { period, points: reader.signed()? });
    }
    if bits & TIER != 0 {
        let tier = reader.text()?;
        changes.tier = Some(TierChange { tier, until: reader.option(Reader::day)? });
    }
    if bits & HOLD != 0 {
        changes.hold = Some(match reader.byte()? {
            0 => HoldChange::Opened(read_hold(reader)?),
            1 => HoldChange::Resolved(Key::from_bytes(reader.bytes()?)),
            _ => return Err(DecodeError),
        });
    }

    if bits & LAST_EXPIRY != 0 {
        changes.last_expiry = Some(reader.option(read_last_expiry)?);
    }
    if bits & REMINDED != 0 {
        changes.reminded = Some(read_reminder(reader)?);
    }
    if bits & BUDGETS != 0 {
        changes.budgets = reader.list(|reader| {
            let budget = reader.text()?;
            Ok(BudgetUse { budget, amount: reader.signed()? })
        })?;
        // Their bit stands for one at least.
        if changes.budgets.is_empty() {
            return Err(DecodeError);
        }
    }
    if bits & REVERSAL != 0 {
        changes.reversal = Some(Reversal {
            book: reader.unsigned()?,
            sequence: reader.unsigned()?,
            points: reader.signed()?,
            amount: reader.option(Reader::number)?,
            key: reader.option(|reader| reader.bytes().map(Key::from_bytes))?,
            is_whole: bits & WHOLE != 0,
        });
    }
    changes.closed = bits & CLOSED != 0;
    changes.expires_at_once = bits & AT_ONCE != 0;
    if bits & IN_FORCE != 0 {
        changes.version = Some(reader.unsigned()?);
    }
    if bits & WINDOW != 0 {
        let added = changes.qualifying.as_mut().ok_or(DecodeError)?;
        added.period.months = Some(reader.unsigned()?);
    }
    if bits & WHOLE != 0 && changes.reversal.is_none() {
        return Err(DecodeError);
    }
    Ok(changes)
}

pub(crate) fn put_period(out: &mut Vec<u8>, period: Period) {
    put_signed(out, period.number);
    put_option(out, period.months, put_unsigned);
}

pub(crate) fn read_period(reader: &mut Reader<'_>) -> Result<Period, DecodeError> {
    let number = reader.signed()?;
    Ok(Period { number, months: reader.option(Reader::unsigned)? })
}

pub(crate) fn put_hold(out: &mut Vec<u8>, hold: &Hold) {
    out.extend_from_slice(&hold.key.to_bytes());
    put_signed(out, hold.opened_ms);
    put_signed(out, hold.expires_ms);
    put_option(out, hold.reason.as_deref(), put_text);
    put_option(out, hold.reward.as_deref(), put_text);
    put_unsigned(out, hold.lots.len() as u64);
    for (expiry, points) in &hold.lots {
        put_expiry(out, *expiry);
        put_signed(out, *points);
    }
}

pub(crate) fn read_hold(reader: &mut Reader<'_>) -> Result<Hold, DecodeError> {
    Ok(Hold {
        key: Key::from_bytes(reader.bytes()?),
        opened_ms: reader.signed()?,
        expires_ms: reader.signed()?,
        reason: reader.option(Reader::text)?,
        reward: reader.option(Reader::text)?,
        lots: reader.list(|reader| Ok((reader.expiry()?, reader.signed()?)))?,
    })
}

pub(crate) fn put_last_expiry(out: &mut Vec<u8>, last: &LastExpiry) {
    put_day(out, last.day);
    put_signed(out, last.cut_ms);
    put_signed(out, last.points);
}

pub(crate) fn read_last_expiry(reader: &mut Reader<'_>) -> Result<LastExpiry, DecodeError> {
    let day = reader.day()?;
    let cut_ms = reader.signed()?;
    Ok(LastExpiry { day, cut_ms, points: reader.signed()? })
}

pub(crate) fn put_reminder(out: &mut Vec<u8>, reminder: &Reminder) {
    put_day(out, reminder.expires);
    put_unsigned(out, reminder.days);
}

pub(crate) fn read_reminder(reader: &mut Reader<'_>) -> Result<Reminder, DecodeError> {
    let expires = reader.day()?;
    Ok(Reminder { expires, days: reader.unsigned()? })
}

//! Wallets as bytes: numbers of variable length, 60 to 150 bytes for most.

use super::{Lot, PendingLot, Wallet};
use crate::encoding::{
    DecodeError, Reader, put_day, put_expiry, put_option, put_signed, put_text, put_unsigned,
};
use crate::entry::codec::{
    put_hold, put_last_expiry, put_period, put_reminder, read_hold, read_last_expiry, read_period,
    read_reminder,
};
use crate::entry::{Period, Qualifying};

const VERSION: u8 = 2;
/// Wallets of this version do not say how long their periods are. Those that know of none are
/// written so.
const VERSION_WITHOUT_WINDOWS: u8 = 1;

impl Wallet {
    /// Appends the wallet to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let has_windows = self.qualifying.iter().any(|found| found.period.months.is_some());
        out.push(if has_windows { VERSION } else { VERSION_WITHOUT_WINDOWS });
        out.push(u8::from(self.closed));
        put_unsigned(out, self.sequence);
        put_unsigned(out, self.included);
        put_option(out, self.due_hour, put_unsigned);
        put_option(out, self.tier.as_deref(), put_text);
        put_option(out, self.tier_until, put_day);

        put_unsigned(out, self.qualifying.len() as u64);
        for found in &self.qualifying {
            if has_windows {
                put_period(out, found.period);
            } else {
                put_signed(out, found.period.number);
            }
            put_signed(out, found.points);
        }

        put_option(out, self.activity, put_day);
        put_option(out, self.rolling_expires, put_day);
        put_unsigned(out, self.lots.len() as u64);
        for lot in &self.lots {
            put_expiry(out, lot.expiry);
            put_signed(out, lot.points);
        }

        put_unsigned(out, self.pending.len() as u64);
        for lot in &self.pending {
            put_day(out, lot.matures);
            put_expiry(out, lot.expiry);
            put_signed(out, lot.points);
        }
        put_unsigned(out, self.holds.len() as u64);
        for hold in &self.holds {
            put_hold(out, hold);
        }

        put_option(out, self.last_expiry.as_ref(), put_last_expiry);
        put_option(out, self.reminded.as_ref(), put_reminder);
        put_signed(out, self.arrears);
    }

    /// Reads a wallet that fills the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let has_windows = bytes.first() != Some(&VERSION_WITHOUT_WINDOWS);
        let version = if has_windows { VERSION } else { VERSION_WITHOUT_WINDOWS };
        let mut reader = Reader::begin(bytes, version)?;
        let wallet = Self {
            closed: reader.flag()?,
            sequence: reader.unsigned()?,
            included: reader.unsigned()?,
            due_hour: reader.option(Reader::unsigned)?,
            tier: reader.option(Reader::text)?,
            tier_until: reader.option(Reader::day)?,
            qualifying: reader.list(|reader| {
                let period = if has_windows {
                    read_period(reader)?
                } else {
                    Period { number: reader.signed()?, months: None }
                };
                Ok(Qualifying { period, points: reader.signed()? })
            })?,
            activity: reader.option(Reader::day)?,
            rolling_expires: reader.option(Reader::day)?,
            lots: reader.list(|reader| {
                let expiry = reader.expiry()?;
                Ok(Lot { expiry, points: reader.signed()? })
            })?,
            pending: reader.list(|reader| {
                let matures = reader.day()?;
                let expiry = reader.expiry()?;
                Ok(PendingLot { matures, expiry, points: reader.signed()? })
            })?,
            holds: reader.list(read_hold)?,
            last_expiry: reader.option(read_last_expiry)?,
            reminded: reader.option(read_reminder)?,
            arrears: reader.signed()?,
        };

        reader.end()?;
        Ok(wallet)
    }
}

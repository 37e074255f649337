//! Sums of a programme in a book: system accounts, and what is owed to members, by the month in
//! which it expires. They follow from the entries by [`Totals::apply`] alone.

use crate::account::{Account, Expiry};
use crate::day::{Day, Month};
use crate::entry::Entry;
use hashbrown::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// One sum. Its text is the name of the account in stores.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Total {
    /// Awards, as a negative sum, by budget.
    Issued(Arc<str>),
    /// What was spent, by reason and the month in which it was due.
    Burned(Arc<str>, Option<Month>),
    /// What expired, by month.
    Expired(Option<Month>),
    Adjusted,
    /// What was exchanged with a partner, by day.
    Partner(Arc<str>, Option<Day>),
    Transit,
    WrittenOff,
    /// Points of members that mature.
    Pending,
    Held,
    /// What members owe, as a negative sum.
    Arrears,
    /// Points that can be spent and expire in this month; `None` for those that never do.
    Outstanding(Option<Month>),
}

impl Total {
    /// Whether the sum is one of wallets, rather than of the programme itself.
    pub const fn is_of_wallets(&self) -> bool {
        matches!(self, Self::Pending | Self::Held | Self::Arrears | Self::Outstanding(_))
    }
}

impl fmt::Display for Total {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Issued(budget) => write!(out, "issued:{budget}"),
            Self::Burned(reason, None) => write!(out, "burned:{reason}"),
            Self::Burned(reason, Some(month)) => write!(out, "burned.{month}:{reason}"),
            Self::Expired(None) => out.write_str("expired"),
            Self::Expired(Some(month)) => write!(out, "expired.{month}"),
            Self::Adjusted => out.write_str("adjusted"),
            Self::Partner(name, None) => write!(out, "partner:{name}"),
            Self::Partner(name, Some(day)) => write!(out, "partner.{day}:{name}"),
            Self::Transit => out.write_str("transit"),
            Self::WrittenOff => out.write_str("writtenOff"),
            Self::Pending => out.write_str("pending"),
            Self::Held => out.write_str("held"),
            Self::Arrears => out.write_str("arrears"),
            Self::Outstanding(Some(month)) => write!(out, "outstanding:{month}"),
            Self::Outstanding(None) => out.write_str("outstanding:never"),
        }
    }
}

/// A text that is no name of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no account has this name")]
pub struct AccountError;

impl FromStr for Total {
    type Err = AccountError;

    fn from_str(text: &str) -> Result<Self, AccountError> {
        let month = |text: &str| text.parse().map_err(|_| AccountError);
        let day = |text: &str| text.parse().map_err(|_| AccountError);
        let (kind, name) = text.split_once(':').unwrap_or((text, ""));
        let (kind, date) = match kind.split_once('.') {
            Some((kind, date)) => (kind, Some(date)),
            None => (kind, None),
        };
        Ok(match kind {
            "burned" => Self::Burned(name.into(), date.map(month).transpose()?),
            "expired" => Self::Expired(date.map(month).transpose()?),
            "partner" => Self::Partner(name.into(), date.map(day).transpose()?),
            _ if date.is_some() => return Err(AccountError),
            "issued" => Self::Issued(name.into()),
            "adjusted" => Self::Adjusted,
            "transit" => Self::Transit,
            "writtenOff" => Self::WrittenOff,
            "pending" => Self::Pending,
            "held" => Self::Held,
            "arrears" => Self::Arrears,
            "outstanding" if name == "never" => Self::Outstanding(None),
            "outstanding" => Self::Outstanding(Some(month(name)?)),
            _ => return Err(AccountError),
        })
    }
}

/// A sum of a programme in a book.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TotalId {
    pub book: u16,
    pub programme: Arc<str>,
    pub total: Total,
}

/// Sums by their ids. One that is absent is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals(pub HashMap<TotalId, i128>);

impl Totals {
    /// Adds an entry, and reports each sum that it changes, with what the sum was.
    pub fn apply(&mut self, entry: &Entry, mut changed: impl FnMut(&TotalId, i128)) {
        let mut added = 0;
        let mut add = |total: Total, amount: i128| {
            if amount == 0 {
                return;
            }
            added += amount;
            let id = TotalId { book: entry.book, programme: entry.programme.clone(), total };
            match self.0.get_mut(&id) {
                Some(sum) => {
                    changed(&id, *sum);
                    *sum = plus(*sum, amount);
                }
                None => {
                    changed(&id, 0);
                    self.0.insert(id, amount);
                }
            }
        };

        // Points of the rolling lot move from month to month with its date.
        let rolling = entry.changes.rolling.as_ref();
        let month = |day: Option<Day>| day.map(Day::month);
        if let Some(change) = rolling.filter(|change| month(change.before) != month(change.after)) {
            add(Total::Outstanding(month(change.before)), -i128::from(change.moved));
            add(Total::Outstanding(month(change.after)), i128::from(change.moved));
        }

        for posting in &entry.postings {
            let total = match &posting.account {
                Account::Available(Expiry::On(day)) => Total::Outstanding(Some(day.month())),
                Account::Available(Expiry::Never) => Total::Outstanding(None),
                Account::Available(Expiry::Rolling) => {
                    let change = rolling.expect("an entry of the rolling lot has its date (I7)");
                    Total::Outstanding(month(change.after))
                }
                Account::Pending { .. } => Total::Pending,
                Account::Held => Total::Held,
                Account::Arrears => Total::Arrears,
                Account::Issued(budget) => Total::Issued(budget.clone()),
                Account::Burned(reason, due) => Total::Burned(reason.clone(), *due),
                Account::Expired(due) => Total::Expired(*due),
                Account::Adjusted => Total::Adjusted,
                Account::Partner(name, day) => Total::Partner(name.clone(), *day),
                Account::Transit => Total::Transit,
                Account::WrittenOff => Total::WrittenOff,
            };
            add(total, i128::from(posting.amount));
        }
        assert_eq!(added, 0, "what members get, the programme gives (I2)");
    }

    /// What a sum is after an amount was added to it.
    pub fn after(&self, id: &TotalId, added: i128) -> i128 {
        plus(self.0.get(id).copied().unwrap_or(0), added)
    }

    pub fn of(&self, book: u16, programme: &str, total: &Total) -> i128 {
        let found = |(id, sum): (&TotalId, &i128)| {
            (id.book == book && &*id.programme == programme && id.total == *total).then_some(*sum)
        };
        self.0.iter().find_map(found).unwrap_or(0)
    }

    /// What a programme owes, over all books that are here.
    pub fn liability(&self, programme: &str) -> Liability {
        let mut liability = Liability::default();
        for (id, sum) in self.0.iter().filter(|(id, _)| &*id.programme == programme) {
            liability.add(&id.total, *sum);
        }
        liability.outstanding.retain(|(_, points)| *points != 0);
        liability.outstanding.sort_by_key(|(month, _)| (month.is_none(), *month));
        liability.gone.sort_by_key(|gone| gone.month);
        liability
    }
}

fn plus(sum: i128, amount: i128) -> i128 {
    sum.checked_add(amount).expect("sums of 64-bit numbers fit 128 bits")
}

/// What a programme owes its members, and what became of what it gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Liability {
    /// Points that can be spent by the month in which they expire; those that never do come last.
    pub outstanding: Vec<(Option<Month>, i128)>,
    /// Points that were spent or expired, by the month in which they were due.
    pub gone: Vec<Gone>,
    pub pending: i128,
    pub held: i128,
    /// What members owe, as a positive number.
    pub arrears: i128,
    /// Awards, less reversals.
    pub issued: i128,
    pub burned: i128,
    pub expired: i128,
    pub written_off: i128,
    /// What partners took over, less what they gave.
    pub partners: i128,
    pub adjusted: i128,
}

/// Points that were due in a month, and left before it or with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    pub month: Month,
    pub burned: i128,
    pub expired: i128,
}

impl Gone {
    /// See [`Liability::breakage_ppm`].
    pub fn breakage_ppm(&self) -> Option<i128> {
        breakage_ppm(self.expired, self.burned)
    }
}

fn breakage_ppm(expired: i128, burned: i128) -> Option<i128> {
    let gone = expired + burned;
    (gone > 0).then(|| expired * 1_000_000 / gone)
}

impl Liability {
    fn add(&mut self, total: &Total, sum: i128) {
        match total {
            Total::Issued(_) => self.issued -= sum,
            Total::Burned(_, due) => {
                self.burned += sum;
                self.add_gone(*due, |gone| gone.burned += sum);
            }
            Total::Expired(due) => {
                self.expired += sum;
                self.add_gone(*due, |gone| gone.expired += sum);
            }
            Total::Adjusted => self.adjusted -= sum,
            Total::Partner(..) => self.partners += sum,
            Total::Transit => {}
            Total::WrittenOff => self.written_off -= sum,
            Total::Pending => self.pending += sum,
            Total::Held => self.held += sum,
            Total::Arrears => self.arrears -= sum,
            Total::Outstanding(month) => {
                match self.outstanding.iter_mut().find(|(other, _)| other == month) {
                    Some((_, points)) => *points += sum,
                    None => self.outstanding.push((*month, sum)),
                }
            }
        }
    }

    fn add_gone(&mut self, due: Option<Month>, add: impl FnOnce(&mut Gone)) {
        let Some(month) = due else { return };
        let place = self.gone.iter().position(|gone| gone.month == month).unwrap_or_else(|| {
            self.gone.push(Gone { month, burned: 0, expired: 0 });
            self.gone.len() - 1
        });
        add(&mut self.gone[place]);
    }

    /// Everything that members could claim, less what they owe.
    pub fn total(&self) -> i128 {
        let available: i128 = self.outstanding.iter().map(|(_, points)| points).sum();
        available + self.pending + self.held - self.arrears
    }

    /// The share of points that expired, of those that expired or were spent, in parts of a
    /// million; `None` where there were none.
    pub fn breakage_ppm(&self) -> Option<i128> {
        breakage_ppm(self.expired, self.burned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_accounts_lead_back() {
        for text in [
            "issued:food",
            "issued:a:b",
            "burned:",
            "burned.2026-07:a:b",
            "expired",
            "expired.2026-07",
            "adjusted",
            "partner:skyair",
            "partner.2026-07-31:skyair",
            "transit",
            "writtenOff",
            "pending",
            "held",
            "arrears",
            "outstanding:2026-07",
            "outstanding:never",
        ] {
            assert_eq!(text.parse::<Total>().unwrap().to_string(), text);
        }
        for wrong in [
            "outstanding:soon",
            "expired.soon",
            "partner.2026-07:skyair",
            "issued.2026-07:food",
            "gone",
        ] {
            assert_eq!(wrong.parse::<Total>(), Err(AccountError), "{wrong}");
        }
    }
}

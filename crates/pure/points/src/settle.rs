//! What becomes true by itself as time passes: points mature and expire, holds are released, tiers
//! end. A wallet is settled before every command and for every read, so that a balance is right
//! whether a sweep has written it down or not.

use crate::Points;
use crate::account::{Account, Expiry};
use crate::calendar::HOUR_MS;
use crate::day::Day;
use crate::draft::Draft;
use crate::entry::{BudgetUse, Entry, Hold, HoldChange, Kind, LastExpiry, Reminder};
use crate::identity::WalletId;
use crate::programme::Programme;
use crate::wallet::Wallet;
use xxhash_rust::xxh3::xxh3_64;

/// What is due. Of several at one moment, the first of these comes first: points that come back or
/// mature at the moment of an expiry do not save the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// Points expire whose last day this was.
    Expire(Day),
    /// Points mature on this day.
    Activate(Day),
    /// The hold at this place timed out.
    Release(usize),
    /// The tier ended with this day.
    Tier(Day),
    /// Points expire after this day; the number is that of days until then.
    Remind(Day, u16),
}

/// The next thing that is due, and when. `now_ms` says what is too late: a reminder of points that
/// cannot be spent any more is of no use, and is passed over.
fn next_due(wallet: &Wallet, programme: &Programme, now_ms: i64) -> Option<(i64, Due)> {
    let policy = &programme.expiry;
    let zone = programme.zone();
    let mut next: Option<(i64, Due)> = None;
    let mut consider = |at_ms: i64, due: Due| {
        let candidate = (at_ms, due);
        next = Some(next.map_or(candidate, |found| found.min(candidate)));
    };

    if let Some(first) = wallet.pending.first() {
        consider(zone.midnight_ms(first.matures), Due::Activate(first.matures));
    }
    for (place, hold) in wallet.holds.iter().enumerate() {
        consider(hold.expires_ms, Due::Release(place));
    }

    if let Some(last) = next_expiry(wallet) {
        consider(policy.cut_ms(last), Due::Expire(last));
    }
    if let (Some(until), Some(_)) = (wallet.tier_until, &programme.tiers) {
        consider(zone.midnight_ms(until.plus(1)), Due::Tier(until));
    }

    let reminder = next_reminder(wallet, programme);
    if let Some((expires, days)) = reminder.filter(|(expires, _)| policy.cut_ms(*expires) > now_ms)
    {
        let day = expires.plus(-i32::from(days));
        consider(zone.midnight_ms(day), Due::Remind(expires, days));
    }
    next
}

/// The last day of the points that expire next, among them those that are held.
fn next_expiry(wallet: &Wallet) -> Option<Day> {
    let dated = wallet.lots.first().and_then(|lot| match lot.expiry {
        Expiry::On(day) => Some(day),
        _ => None,
    });

    let rolling = wallet.rolling_expires.filter(|last| {
        let was_recorded = wallet.last_expiry.is_some_and(|expired| expired.day == *last);
        let held = || wallet.holds.iter().flat_map(|hold| &hold.lots);
        let is_held = || held().any(|(expiry, _)| *expiry == Expiry::Rolling);
        wallet.points_in(Expiry::Rolling) > 0 || !was_recorded && is_held()
    });
    dated.into_iter().chain(rolling).min()
}

/// The next reminder of points that expire next, if the member was not reminded of it.
fn next_reminder(wallet: &Wallet, programme: &Programme) -> Option<(Day, u16)> {
    if programme.remind_days.is_empty() || wallet.lots.is_empty() {
        return None;
    }
    let expires = wallet.expires_on()?;
    let sent = wallet.reminded.filter(|sent| sent.expires == expires);
    let is_new = |days: &&u16| sent.is_none_or(|sent| **days < sent.days);
    programme.remind_days.iter().find(is_new).map(|days| (expires, *days))
}

/// The hour of the due index for a wallet: the first one at whose beginning something is due.
pub(crate) fn due_hour(wallet: &Wallet, programme: &Programme) -> Option<u32> {
    let (at_ms, _) = next_due(wallet, programme, i64::MIN)?;
    let hour = at_ms.saturating_add(HOUR_MS - 1).div_euclid(HOUR_MS);
    Some(u32::try_from(hour.max(0)).unwrap_or(u32::MAX))
}

impl Programme {
    /// A number for what decides when something is due in a wallet, beside the wallet itself. It is
    /// the same for versions that agree on that, and never 0.
    pub fn due_terms(&self) -> u64 {
        let zone = self.zone().name();
        let grace_ms = self.expiry.grace_ms();
        let terms = format!("{zone} {grace_ms} {:?} {}", self.remind_days, self.tiers.is_some());
        // Stores of numbers have 63 bits.
        (xxh3_64(terms.as_bytes()) >> 1).max(1)
    }
}

/// Fills in what follows from the wallet, and applies the entry to it.
pub(crate) fn seal(entry: &mut Entry, wallet: &mut Wallet, programme: &Programme) {
    entry.member_sequence = wallet.sequence + 1;
    wallet.change(entry);

    entry.balance_after = wallet.balance();
    entry.tier_after = programme.tier_of(wallet.tier.as_ref()).cloned();
    entry.expires_after = wallet.expires_on();
    entry.due_hour_after = due_hour(wallet, programme);
    wallet.included = entry.sequence;
    wallet.due_hour = entry.due_hour_after;
}

/// The next entry that time itself demands; `None` when nothing is due.
pub(crate) fn next_entry(
    id: &WalletId,
    wallet: &Wallet,
    programme: &Programme,
    now_ms: i64,
) -> Option<Entry> {
    let (at_ms, due) = next_due(wallet, programme, now_ms)?;
    if at_ms > now_ms {
        return None;
    }

    let draft = |kind| Draft::new(id, wallet, programme, kind, at_ms);
    Some(match due {
        Due::Activate(day) => activate(draft(Kind::Activate), wallet, day, at_ms),
        Due::Release(place) => {
            let hold = wallet.holds[place].clone();
            let mut draft = draft(Kind::Release);
            resolve(&mut draft, wallet, programme, &hold, 0, at_ms);
            give_reward_back(&mut draft.entry, &hold);
            draft.finish()
        }
        Due::Expire(last) => expire(draft(Kind::Expire), wallet, last, at_ms, programme),
        Due::Tier(ended) => {
            let tiers = programme.tiers.as_ref().expect("a tier is due in programmes with tiers");
            let mut draft = draft(Kind::Tier);
            draft.entry.changes.tier = Some(tiers.down(wallet, ended));
            draft.finish()
        }
        Due::Remind(expires, first) => {
            // Of reminders that are late, the one nearest to the expiry is sent alone.
            let zone = programme.zone();
            let is_due = |days: &&u16| {
                **days <= first && zone.midnight_ms(expires.plus(-i32::from(**days))) <= now_ms
            };
            let days = programme.remind_days.iter().rev().find(is_due).copied().unwrap_or(first);
            let mut draft = draft(Kind::Remind);
            draft.entry.changes.reminded = Some(Reminder { expires, days });
            draft.finish()
        }
    })
}

fn activate(mut draft: Draft<'_>, wallet: &Wallet, day: Day, at_ms: i64) -> Entry {
    for lot in wallet.pending.iter().filter(|lot| lot.matures == day) {
        let account = Account::Pending { matures: day, expiry: lot.expiry };
        draft.entry.post(account, -lot.points);
        draft.credit_from(lot.expiry, lot.points, day, at_ms);
    }
    draft.finish()
}

fn expire(
    mut draft: Draft<'_>,
    wallet: &Wallet,
    last: Day,
    cut_ms: i64,
    programme: &Programme,
) -> Entry {
    let dated = wallet.points_in(Expiry::On(last));
    if dated > 0 {
        draft.debit(Expiry::On(last), dated);
    }

    let mut rolling = 0;
    if wallet.rolling_expires == Some(last) {
        rolling = wallet.points_in(Expiry::Rolling);
        if rolling > 0 {
            draft.debit(Expiry::Rolling, rolling);
        }
        // What a late award of the same time lost by itself is remembered with it.
        let before = wallet.last_expiry.filter(|before| before.day == last);
        let points = before.map_or(0, |before| before.points).saturating_add(rolling);
        let cut_ms = programme.expiry.cut_ms(last).min(cut_ms);
        draft.entry.changes.last_expiry = Some(Some(LastExpiry { day: last, cut_ms, points }));
    }
    draft.expire(last, dated + rolling);
    draft.finish()
}

/// The points that expired together while those of a hold were away, and would have taken them
/// along.
pub(crate) fn expired_since(
    hold: &Hold,
    last: Option<LastExpiry>,
    at_ms: i64,
) -> Option<LastExpiry> {
    last.filter(|last| last.cut_ms > hold.opened_ms && last.cut_ms <= at_ms)
}

/// Orders the lots of a hold as they expire, with the date that rolling points have by now, which
/// may have moved since the hold. It is the order of [`Wallet::lots_in_order`].
pub(crate) fn sort_by_date(lots: &mut [(Expiry, Points)], rolling: Option<Day>) {
    lots.sort_by_key(|(expiry, _)| match (*expiry, rolling) {
        (Expiry::On(day), _) => (0, Some(day), 0),
        (Expiry::Rolling, Some(day)) => (0, Some(day), 1),
        (Expiry::Rolling, None) => (1, None, 0),
        (Expiry::Never, _) => (2, None, 0),
    });
}

/// What points are burned for, where no reward says it. Reasons are free texts, of which accounts
/// would never end.
pub(crate) const BURNED_DEFAULT: &str = "default";

/// Spends what is captured of a hold, the parts that expire first, and gives the others back to
/// their lots. Parts whose date passed expire.
pub(crate) fn resolve(
    draft: &mut Draft<'_>,
    wallet: &Wallet,
    programme: &Programme,
    hold: &Hold,
    captured: i64,
    at_ms: i64,
) {
    let policy = &programme.expiry;
    draft.entry.post(Account::Held, -hold.points());
    draft.entry.changes.hold = Some(HoldChange::Resolved(hold.key));

    let expired = expired_since(hold, wallet.last_expiry, at_ms);
    let rolling_due = expired.map(|last| last.day).or(wallet.rolling_expires);
    let mut lots = hold.lots.clone();
    if captured > 0 {
        sort_by_date(&mut lots, rolling_due);
    }

    let burned = hold.reward.clone().unwrap_or_else(|| BURNED_DEFAULT.into());
    let mut to_capture = captured;
    for (expiry, points) in lots {
        let spent = to_capture.min(points);
        to_capture -= spent;
        if spent > 0 {
            draft.burn(&burned, expiry.last_day(rolling_due), spent);
        }
        let left = points - spent;
        match (expiry, expired) {
            _ if left == 0 => {}
            (Expiry::On(last), _) if policy.cut_ms(last) <= at_ms => draft.expire(last, left),
            (Expiry::Rolling, Some(last)) => {
                draft.expire(last.day, left);
                let points = last.points.saturating_add(left);
                draft.entry.changes.last_expiry = Some(Some(LastExpiry { points, ..last }));
            }
            _ => draft.credit_from(expiry, left, programme.zone().day(at_ms), at_ms),
        }
    }
    assert_eq!(to_capture, 0, "no more is captured than was held (I6)");
}

/// Puts a reward back into stock.
pub(crate) fn give_reward_back(entry: &mut Entry, hold: &Hold) {
    let Some(name) = &hold.reward else { return };
    let member = entry.member.as_deref().unwrap_or("");
    let budgets = [format!("reward:{name}"), format!("reward:{name}:{member}")];
    let uses = budgets.map(|budget| BudgetUse { budget: budget.into(), amount: -1 });
    entry.changes.budgets.extend(uses);
}

impl Wallet {
    /// The wallet as it is at a time, with the entries that nobody has written down yet. They have
    /// no number in the book.
    pub fn settled(&self, id: &WalletId, now_ms: i64, programme: &Programme) -> (Self, Vec<Entry>) {
        let mut wallet = self.clone();
        let mut entries = Vec::new();
        while let Some(mut entry) = next_entry(id, &wallet, programme, now_ms) {
            entry.recorded_ms = now_ms;
            seal(&mut entry, &mut wallet, programme);
            entries.push(entry);
        }
        wallet.included = self.included;
        (wallet, entries)
    }
}

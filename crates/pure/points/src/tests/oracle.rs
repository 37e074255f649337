//! What the ledger should do, by another design: every award is kept by itself, time passes hour
//! by hour, and nothing is added up before it is asked for.

use crate::Points;
use std::collections::{BTreeMap, BTreeSet};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
pub const MONTHS: i32 = 3;
const GRACE_HOURS: i64 = 24;
pub const REINSTATE_DAYS: i64 = 7;

/// Year and month of a day, found by counting.
fn month_of(day: i64) -> (i64, i64, i64) {
    let mut left = day;
    let mut year = 1970;
    loop {
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let months = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        for (month, days) in (0..).zip(months) {
            if left < days {
                return (year, month, day - left + days - 1);
            }
            left -= days;
        }
        year += 1;
    }
}

/// The last day of the month that is `MONTHS` after that of a day, by walking from month to month.
pub fn extended_to(day: i64) -> i64 {
    let mut last = month_of(day).2;
    for _ in 0..MONTHS {
        last = month_of(last + 1).2;
    }
    last
}

pub fn cut_ms(last: i64) -> i64 {
    (last + 1) * DAY_MS + GRACE_HOURS * HOUR_MS
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Date {
    On(i64),
    Rolling,
}

/// One point, or several that came together and have not been parted.
#[derive(Clone, Copy, Debug)]
struct Piece {
    date: Date,
    points: Points,
}

#[derive(Clone, Debug)]
struct Held {
    key: u32,
    until_ms: i64,
    /// In the order in which they were taken, each with whether it expired with the others.
    pieces: Vec<(Piece, bool)>,
}

/// What a member has.
#[derive(Clone, Debug, Default)]
pub struct Member {
    pieces: Vec<Piece>,
    pending: Vec<(i64, Piece)>,
    held: Vec<Held>,
    resolved: Vec<u32>,
    pub arrears: Points,
    rolling: Option<i64>,
    /// The last rolling day that expired, and what went with it.
    buried: Option<(i64, Points)>,
    awards: BTreeMap<u32, (Points, Points, Date, Option<i64>)>,
    /// Awards of which what was left in the rolling lot expired.
    dead: BTreeSet<u32>,
    /// Points that were spent and that expired, by the year and month (from 0) of their day.
    pub gone: BTreeMap<(i64, i64), (Points, Points)>,
    hour: i64,
}

/// What is awarded.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub points: Points,
    /// A day of its own.
    pub date: Option<i64>,
    pub extends: bool,
    pub pending_days: i64,
    pub occurred_ms: i64,
}

/// The outcome of a command.
pub type Outcome = Result<(), &'static str>;

impl Member {
    pub fn available(&self) -> Points {
        self.pieces.iter().map(|piece| piece.points).sum()
    }

    pub fn pending(&self) -> Points {
        self.pending.iter().map(|(_, piece)| piece.points).sum()
    }

    pub fn held(&self) -> Points {
        self.held.iter().flat_map(|held| &held.pieces).map(|(piece, _)| piece.points).sum()
    }

    /// Points by the day on which they expire.
    pub fn by_date(&self) -> BTreeMap<i64, Points> {
        let mut found = BTreeMap::new();
        for piece in &self.pieces {
            *found.entry(self.day_of(piece.date)).or_default() += piece.points;
        }
        found
    }

    fn day_of(&self, date: Date) -> i64 {
        match date {
            Date::On(day) => day,
            Date::Rolling => self.rolling.unwrap(),
        }
    }

    fn gone_by(&mut self, day: i64) -> &mut (Points, Points) {
        let (year, month, _) = month_of(day);
        self.gone.entry((year, month)).or_default()
    }

    /// Lets time pass, hour by hour. All times of the tests are full hours.
    pub fn pass(&mut self, now_ms: i64) {
        if self.hour == 0 {
            self.hour = now_ms / HOUR_MS;
        }
        while self.hour * HOUR_MS <= now_ms {
            self.strike(self.hour * HOUR_MS);
            self.hour += 1;
        }
    }

    fn strike(&mut self, at_ms: i64) {
        self.expire(at_ms);
        let today = at_ms / DAY_MS;
        let (ripe, rest): (Vec<_>, Vec<_>) =
            self.pending.iter().copied().partition(|(matures, _)| *matures <= today);
        self.pending = rest;
        for (matures, piece) in ripe {
            self.begin_again(piece.date, matures, at_ms);
            self.give(piece);
        }

        let over: Vec<u32> =
            self.held.iter().filter(|held| held.until_ms <= at_ms).map(|held| held.key).collect();
        for key in over {
            self.release(key, 0, at_ms);
        }
    }

    fn expire(&mut self, at_ms: i64) {
        let rolling = self.rolling;
        let is_over = |date: &Date| match date {
            Date::On(day) => cut_ms(*day) <= at_ms,
            Date::Rolling => rolling.is_some_and(|day| cut_ms(day) <= at_ms),
        };
        let gone = self.pieces.iter().filter(|piece| piece.date == Date::Rolling);
        let gone: Points =
            gone.filter(|piece| is_over(&piece.date)).map(|piece| piece.points).sum();
        let over: Vec<Piece> =
            self.pieces.iter().filter(|piece| is_over(&piece.date)).copied().collect();
        self.pieces.retain(|piece| !is_over(&piece.date));
        for piece in over {
            self.gone_by(self.day_of(piece.date)).1 += piece.points;
        }

        let Some(day) = rolling.filter(|day| cut_ms(*day) <= at_ms) else { return };
        let mut lost = false;
        for (piece, expired) in self.held.iter_mut().flat_map(|held| &mut held.pieces) {
            if piece.date == Date::Rolling && self.buried.is_none_or(|(last, _)| last != day) {
                *expired = true;
                lost = true;
            }
        }
        if gone > 0 || lost {
            let before =
                self.buried.filter(|(last, _)| *last == day).map_or(0, |(_, points)| points);
            self.buried = Some((day, before + gone));
            for (key, (_, _, date, kept)) in &self.awards {
                if *date == Date::Rolling && kept.is_none_or(|day| day * DAY_MS < at_ms) {
                    self.dead.insert(*key);
                }
            }
        }
    }

    fn give(&mut self, mut piece: Piece) {
        let paid = piece.points.min(self.arrears);
        self.arrears -= paid;
        piece.points -= paid;
        if piece.points > 0 {
            self.pieces.push(piece);
        }
    }

    /// A rolling date that is over begins again.
    fn begin_again(&mut self, date: Date, day: i64, at_ms: i64) {
        let is_over = self.rolling.is_none_or(|last| cut_ms(last) <= at_ms);
        if date == Date::Rolling && is_over {
            self.rolling = Some(extended_to(day));
        }
    }

    /// Takes one piece after the other: the earliest, and of one day the dated ones first.
    fn take(&mut self, mut points: Points, only: Option<Date>) -> Vec<Piece> {
        let mut taken = Vec::new();
        while points > 0 {
            let candidates = self.pieces.iter().enumerate();
            let candidates =
                candidates.filter(|(_, piece)| only.is_none_or(|date| date == piece.date));
            let first = candidates.min_by_key(|(_, piece)| (self.day_of(piece.date), piece.date));
            let Some((place, _)) = first else { break };
            let piece = &mut self.pieces[place];
            let part = piece.points.min(points);
            piece.points -= part;
            points -= part;
            taken.push(Piece { points: part, ..*piece });
            self.pieces.retain(|piece| piece.points > 0);
        }
        taken
    }

    pub fn award(&mut self, key: u32, terms: Terms, now_ms: i64) -> Outcome {
        let Terms { points, date, extends, pending_days, occurred_ms } = terms;
        let day = occurred_ms / DAY_MS;
        let today = now_ms / DAY_MS;
        if date.is_some_and(|date| date < today) {
            return Err("points_invalid");
        }
        let date = date.map_or(Date::Rolling, Date::On);
        let matures = day + pending_days;
        let is_pending = matures > today;
        let extended = extended_to(day);

        let buried = self.buried.filter(|_| date == Date::Rolling);
        let keeps_alive = |last: i64| extends && extended > last;
        let reinstates = buried.filter(|(last, _)| {
            let cut = cut_ms(*last);
            occurred_ms < cut && keeps_alive(*last) && now_ms < cut + REINSTATE_DAYS * DAY_MS
        });
        let effective_ms = if pending_days == 0 { occurred_ms } else { matures * DAY_MS };
        let is_gone = !is_pending
            && buried.is_some_and(|(last, _)| effective_ms < cut_ms(last) && !keeps_alive(last));

        if extends {
            self.rolling = Some(self.rolling.map_or(extended, |last| last.max(extended)));
        }
        let kept = if is_pending { Some(matures) } else { None };
        let owed = self.arrears.min(points);
        let in_lot = is_pending || points > owed;
        self.awards.insert(key, (points, 0, if in_lot { date } else { Date::On(i64::MIN) }, kept));
        let piece = Piece { date, points };
        if is_pending {
            if points > 0 {
                self.pending.push((matures, piece));
            }
        } else if is_gone {
            self.arrears -= owed;
            // Those that are left may be older ones of the lot: all of it is alike.
            self.pieces.push(Piece { points: points - owed, ..piece });
            let there: Points = self
                .pieces
                .iter()
                .filter(|piece| piece.date == Date::Rolling)
                .map(|piece| piece.points)
                .sum();
            let lost = there.min(points);
            self.pieces.retain(|piece| piece.points > 0);
            self.take(lost, Some(Date::Rolling));
            let (last, gone) = self.buried.unwrap();
            self.buried = Some((last, gone + lost));
            self.gone_by(last).1 += lost;
            self.dead.insert(key);
        } else {
            if !extends {
                self.begin_again(date, day, occurred_ms);
            }
            self.give(piece);
        }

        if let Some((last, points)) = reinstates {
            self.buried = None;
            self.gone_by(last).1 -= points;
            for (_, expired) in self.held.iter_mut().flat_map(|held| &mut held.pieces) {
                *expired = false;
            }
            self.give(Piece { date: Date::Rolling, points });
        }
        self.strike_again(now_ms);
        Ok(())
    }

    /// What came too late is due at once.
    pub fn strike_again(&mut self, now_ms: i64) {
        self.strike(now_ms);
    }

    pub fn burn(&mut self, points: Points) -> Outcome {
        if self.available() < points {
            return Err("insufficient_points");
        }
        for piece in self.take(points, None) {
            self.gone_by(self.day_of(piece.date)).0 += piece.points;
        }
        Ok(())
    }

    pub fn hold(&mut self, key: u32, points: Points, until_ms: i64) -> Outcome {
        if self.available() < points {
            return Err("insufficient_points");
        }
        let pieces = self.take(points, None).into_iter().map(|piece| (piece, false)).collect();
        self.held.push(Held { key, until_ms, pieces });
        Ok(())
    }

    pub fn resolve(&mut self, key: u32, captured: Points, now_ms: i64) -> Outcome {
        let Some(held) = self.held.iter().find(|held| held.key == key) else {
            return Err(if self.resolved.contains(&key) {
                "hold_resolved"
            } else {
                "hold_unknown"
            });
        };
        let points: Points = held.pieces.iter().map(|(piece, _)| piece.points).sum();
        if captured > points {
            return Err("exceeds_hold");
        }
        self.release(key, captured, now_ms);
        Ok(())
    }

    fn release(&mut self, key: u32, captured: Points, at_ms: i64) {
        let place = self.held.iter().position(|held| held.key == key).unwrap();
        let held = self.held.remove(place);
        self.resolved.push(key);
        let mut captured = captured;
        let mut pieces = held.pieces;
        // A capture takes the first to expire by today's dates.
        if captured > 0 {
            let gone = self.buried.map(|(last, _)| last);
            pieces.sort_by_key(|(piece, expired)| {
                let gone = gone.filter(|_| *expired);
                (gone.unwrap_or_else(|| self.day_of(piece.date)), piece.date)
            });
        }
        for (piece, expired) in pieces {
            let part = captured.min(piece.points);
            captured -= part;
            let buried = self.buried.filter(|_| expired);
            let day = buried.map_or_else(|| self.day_of(piece.date), |(last, _)| last);
            self.gone_by(day).0 += part;
            let left = Piece { points: piece.points - part, ..piece };
            let is_over = matches!(left.date, Date::On(day) if cut_ms(day) <= at_ms);
            if is_over || expired {
                self.gone_by(day).1 += left.points;
                if let Some((last, points)) = buried {
                    self.buried = Some((last, points + left.points));
                }
                continue;
            }
            if left.points > 0 {
                self.give(left);
            }
        }
    }

    pub fn reverse(&mut self, award: u32, points: Option<Points>) -> Outcome {
        let Some((awarded, reversed, date, kept)) = self.awards.get(&award).copied() else {
            return Err("reference_unknown");
        };
        let left = awarded - reversed;
        let points = points.unwrap_or(left);
        if left == 0 || points > left {
            return Err("entry_not_reversible");
        }

        let mut missing = points;
        if let Some(matures) = kept {
            for (day, piece) in &mut self.pending {
                if *day == matures && piece.date == date {
                    let part = piece.points.min(missing);
                    piece.points -= part;
                    missing -= part;
                }
            }
            self.pending.retain(|(_, piece)| piece.points > 0);
        }
        if let Some((_, gone)) = self.buried.as_mut().filter(|_| self.dead.contains(&award)) {
            let part = missing.min(*gone);
            *gone -= part;
            missing -= part;
            let last = self.buried.map_or(0, |(last, _)| last);
            self.gone_by(last).1 -= part;
        }
        let own: Points = self.take(missing, Some(date)).iter().map(|piece| piece.points).sum();
        missing -= own;
        let others: Points = self.take(missing, None).iter().map(|piece| piece.points).sum();
        missing -= others;
        self.pending.sort_by_key(|(day, piece)| (*day, piece.date));
        for (_, piece) in &mut self.pending {
            let part = piece.points.min(missing);
            piece.points -= part;
            missing -= part;
        }
        self.pending.retain(|(_, piece)| piece.points > 0);
        self.arrears += missing;
        self.awards.insert(award, (awarded, reversed + points, date, kept));
        Ok(())
    }
}

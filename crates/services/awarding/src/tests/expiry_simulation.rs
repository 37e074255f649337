//! Months that pass over members, sweeps that end half way, and events that come late.
//!
//! The oracle sorts the events of a member by when they happened, and walks through them.

use super::random::{Random, play};
use super::stage::{DAY_MS, HOUR_MS, Process, Stage, programme};
use raingauge_points::Kind;
use raingauge_ports::campaigns::sender::Response;
use raingauge_ports::clock::Clock;
use raingauge_ports::points::QueueName;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const SEEDS: u64 = 60;
const MEMBERS: u64 = 12;
/// Singapore is ahead of UTC by this, all year.
const AHEAD_MS: i64 = 8 * HOUR_MS;

struct World {
    stage: Stage,
    process: Process,
    random: Random,
    /// When each event of a member happened, and its points.
    events: BTreeMap<String, Vec<(i64, i64)>>,
    next: u64,
}

/// The first moment at which points of an activity cannot be spent any more.
fn cut_ms(activity_ms: i64) -> i64 {
    let day = (activity_ms + AHEAD_MS).div_euclid(DAY_MS);
    let mut year = 1970;
    let mut month = 0;
    let mut of_month = day;
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let len = |year: i64, month: usize| match month {
        1 if is_leap(year) => 29,
        1 => 28,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    };
    let mut after = 0;
    while of_month >= len(year, month) {
        of_month -= len(year, month);
        month += 1;
        if month == 12 {
            month = 0;
            year += 1;
        }
    }
    // To the end of this month, and of six more.
    after += len(year, month) - of_month;
    for _ in 0..6 {
        month += 1;
        if month == 12 {
            month = 0;
            year += 1;
        }
        after += len(year, month);
    }
    (day + after) * DAY_MS - AHEAD_MS + DAY_MS
}

/// What a member has at a time.
fn balance_of(events: &[(i64, i64)], now_ms: i64) -> i64 {
    let mut events = events.to_vec();
    events.sort_unstable();
    let mut balance = 0;
    let mut cut = i64::MAX;
    for (at_ms, points) in events {
        if at_ms >= cut {
            balance = 0;
        }
        cut = cut_ms(at_ms);
        balance += points;
    }
    if now_ms >= cut { 0 } else { balance }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::of(seed);
        let books = *random.pick(&[1, 2]);
        let mut stage = Stage::new(books, |_| Ok(Response::of_status(200)));
        // Ranges of a few wallets go through the queue.
        stage.options.sweep.range = 1 + random.below(4) as usize;
        let mut process = stage.open();
        stage.save(programme());
        stage.turn(&mut process).unwrap();
        Self { stage, process, random, events: BTreeMap::new(), next: 0 }
    }

    fn now_ms(&self) -> i64 {
        self.stage.clock.now_ms()
    }

    fn order(&mut self) {
        self.next += 1;
        let member = format!("member-{}", self.random.below(MEMBERS));
        let late_ms = if self.random.one_in(3) { self.random.below(2 * DAY_MS as u64) } else { 0 };
        let at_ms = self.now_ms() - late_ms as i64;
        let amount = 1 + self.random.below(20) as i64;
        let data = json!({
            "member": member, "country": "SG", "vertical": "ride", "amount": amount,
            "order_id": format!("o-{}", self.next),
        });
        self.stage.send_at(&format!("o-{}", self.next), "order.completed", at_ms, &data);
        self.events.entry(member).or_default().push((at_ms, amount));
    }

    /// A part of the process does something, which may be the last thing it does.
    fn step(&mut self) {
        if self.random.one_in(4) {
            self.stage.fuse.arm(self.random.below(5) as u32, self.random.one_in(2));
        }
        let sweeper = Arc::clone(&self.process.sweeper);
        match self.random.below(6) {
            0 | 1 => self.order(),
            2 => drop(self.stage.turn(&mut self.process)),
            3 => drop(self.stage.during(&mut self.process, sweeper.sweep())),
            4 => drop(self.stage.during(&mut self.process, sweeper.step(Duration::ZERO))),
            _ => self.stage.clock.advance(self.random.below(4 * HOUR_MS as u64) as i64),
        }
        if self.stage.fuse.has_blown() {
            self.begin_again();
        }
    }

    fn begin_again(&mut self) {
        self.stage.fuse.replace();
        self.process = self.stage.open();
    }

    /// What is read is right, whatever has been swept.
    fn check(&self) {
        let now_ms = self.now_ms();
        for (member, events) in &self.events {
            let found = self.stage.available(&self.process, member);
            assert_eq!(found, balance_of(events, now_ms), "{member}: {events:?} at {now_ms}");
        }
    }

    /// Sweeps until nothing is due.
    fn sweep(&mut self) {
        loop {
            self.stage.settle_down(&mut self.process);
            let sweeper = Arc::clone(&self.process.sweeper);
            let status = self.stage.during(&mut self.process, sweeper.sweep()).unwrap();
            if status.ranges == 0
                && status.wallets == 0
                && self.stage.depth(QueueName::Expiry).0 == 0
            {
                return;
            }
            // Letters of a process that ended are hidden for a while.
            self.stage.clock.advance(61_000);
        }
    }

    fn play(&mut self) {
        for _ in 0..8 {
            for _ in 0..12 {
                self.step();
            }
            self.begin_again();
            self.stage.turn(&mut self.process).unwrap();
            self.check();

            let days = *self.random.pick(&[0, 3, 20, 100, 200, 250]);
            self.stage.clock.advance(self.random.below(1 + days * DAY_MS as u64) as i64);
            self.check();
            for _ in 0..4 {
                self.step();
            }
            self.begin_again();
            self.stage.turn(&mut self.process).unwrap();
            self.check();
            if self.random.one_in(2) {
                self.sweep();
                self.check();
            }
        }

        self.stage.clock.advance(400 * DAY_MS);
        self.check();
        self.sweep();
        self.check();
        let entries = self.stage.entries();
        let sum = |member: &str| {
            let own = entries.iter().filter(|entry| entry.member.as_deref() == Some(member));
            own.map(|entry| entry.points()).sum::<i64>()
        };
        assert!(self.events.keys().all(|member| sum(member) == 0), "all of it has expired");
        let earned = entries.iter().filter(|entry| entry.kind == Kind::Earn).count() as u64;
        assert_eq!(earned, self.next, "each event once");
    }
}

#[test]
fn points_expire_on_their_day_however_sweeps_go() {
    // The examples of the reference, in Singapore.
    let at = |text: &str| raingauge_core::time::parse_rfc3339_ms(text.as_bytes()).unwrap();
    assert_eq!(cut_ms(at("2026-01-10T02:00:00Z")), at("2026-08-01T16:00:00Z"));
    assert_eq!(cut_ms(at("2026-02-28T15:59:59Z")), at("2026-09-01T16:00:00Z"));
    assert_eq!(cut_ms(at("2024-12-31T16:00:00Z")), at("2025-08-01T16:00:00Z"));

    play(SEEDS, |seed| World::new(seed).play());
}

//! The engine itself, with the desk that decides: awards of points by turns, as the teller makes
//! them.

use super::{Breakdown, Figures, Load, TURN, disk_bytes, processor_time, random};
use raingauge_embedded::{BookOptions, PointBooks};
use raingauge_points::Command;
use raingauge_ports::contract::books::{Clerk, award};
use std::time::{Duration, Instant};

/// Awards to each wallet once, so that all of them are there, then at random.
pub fn run(load: &Load) -> Figures {
    let options = BookOptions {
        cache_bytes: load.cache_bytes as usize,
        block_cache_bytes: load.cache_bytes,
        ..BookOptions::default()
    };
    let books = PointBooks::open(&load.folder.join("points"), &options).expect("books");
    let clerk = Clerk::new(&books);
    let mut first = 0;
    while first < load.wallets {
        let end = (first + TURN as u64).min(load.wallets);
        take(&clerk, &(first..end).map(|member| award_of(member, member)).collect::<Vec<_>>());
        first = end;
    }

    let mut seed = 2;
    let mut number = load.wallets;
    let mut turns = Vec::new();
    let processor = processor_time();
    let started = Instant::now();
    while turns.len() * TURN < load.awards {
        let next = |number: u64| award_of(random(&mut seed) % load.hot, number);
        let commands: Vec<Command> = (number..number + TURN as u64).map(next).collect();
        number += TURN as u64;
        turns.push(take(&clerk, &commands));
    }

    Figures {
        awards: turns.len() * TURN,
        elapsed: started.elapsed(),
        turns,
        parts: Breakdown::default(),
        disk: disk_bytes(&load.folder),
        processor: processor_time() - processor,
    }
}

fn award_of(member: u64, number: u64) -> Command {
    award(&format!("{member:010}"), &format!("order-{number}"), 180)
}

fn take(clerk: &Clerk<'_, PointBooks>, commands: &[Command]) -> Duration {
    let began = Instant::now();
    let (answers, _) = clerk.turn(commands, None).expect("a turn");
    assert_eq!(answers.len(), commands.len());
    began.elapsed()
}

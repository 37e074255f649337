//! The engine itself, with the desk that decides: awards of points by turns, as the teller makes
//! them.

use super::{Breakdown, Figures, Load, TURN, disk_bytes, processor_time, random};
use raingauge_embedded::{BookOptions, PointBooks};
use raingauge_points::{Award, Basis, Body, Command, Day};
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

    let awards: Vec<Command> = (0..load.sums).map(award_of_month).collect();
    for commands in awards.chunks(TURN) {
        take(&clerk, commands);
    }

    let mut seed = 2;
    let mut number = load.wallets;
    let mut turns = Vec::new();
    let processor = processor_time();
    let started = Instant::now();
    while turns.len() * load.turn < load.awards {
        let next = |number: u64| award_of(random(&mut seed) % load.hot, number);
        let commands: Vec<Command> = (number..number + load.turn as u64).map(next).collect();
        number += load.turn as u64;
        turns.push(take(&clerk, &commands));
    }

    Figures {
        awards: turns.len() * load.turn,
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

/// An award that expires in a month of its own, for which there is a sum.
fn award_of_month(number: u16) -> Command {
    let first = Day::of_civil(2027, 1, 31).expect("a day");
    let expires_on = Some(first.plus_months(number));
    let mut command = award(&format!("late-{number}"), &format!("month-{number}"), 180);
    command.body = Body::Award(Award { expires_on, ..Award::of(Basis::Points(180)) });
    command
}

fn take(clerk: &Clerk<'_, PointBooks>, commands: &[Command]) -> Duration {
    let began = Instant::now();
    let (answers, _) = clerk.turn(commands, None).expect("a turn");
    assert_eq!(answers.len(), commands.len());
    began.elapsed()
}

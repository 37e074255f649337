//! Scores given to members, and members taken away.

use raingauge_resp::{Arguments, Failure, Replies};
use smallvec::SmallVec;

use crate::commands::check_name;
use crate::notify::Class;
use crate::turn::{Outcome, Turn};

/// What the options of `ZADD` allow.
#[derive(Debug, Clone, Copy, Default)]
struct Rules {
    /// Only members that are not there.
    new_only: bool,
    /// Only members that are there.
    known_only: bool,
    /// Only scores that grow, or that fall.
    growing: bool,
    falling: bool,
    /// Adds to the score.
    increment: bool,
    /// Replies how many members were changed, not only added.
    changes: bool,
}

impl Rules {
    /// Reads the options, and returns them with the index of the first score.
    fn parse(arguments: Arguments<'_>) -> (Rules, usize) {
        let mut rules = Rules::default();
        let mut index = 2;

        while index < arguments.len() {
            let option = match () {
                () if arguments.is(index, "nx") => &mut rules.new_only,
                () if arguments.is(index, "xx") => &mut rules.known_only,
                () if arguments.is(index, "gt") => &mut rules.growing,
                () if arguments.is(index, "lt") => &mut rules.falling,
                () if arguments.is(index, "ch") => &mut rules.changes,
                () if arguments.is(index, "incr") => &mut rules.increment,
                () => break,
            };
            *option = true;
            index += 1;
        }
        (rules, index)
    }

    fn check(self, members: usize) -> Result<(), Failure> {
        let line = if self.new_only && self.known_only {
            "ERR XX and NX options at the same time are not compatible"
        } else if self.new_only && (self.growing || self.falling) || self.growing && self.falling {
            "ERR GT, LT, and/or NX options at the same time are not compatible"
        } else if self.increment && members > 1 {
            "ERR INCR option supports a single increment-element pair"
        } else {
            return Ok(());
        };

        Err(Failure::text(line))
    }

    /// The score that a member gets. `None` where the rules leave it as it is.
    fn decide(self, former: Option<f64>, given: f64) -> Result<Option<f64>, Failure> {
        let Some(former) = former else {
            return Ok((!self.known_only).then_some(given));
        };
        if self.new_only {
            return Ok(None);
        }

        let score = if self.increment { former + given } else { given };
        if score.is_nan() {
            return Err(Failure::ScoreNotNumber);
        }
        let refused = self.growing && score <= former || self.falling && score >= former;

        Ok((!refused).then_some(score))
    }
}

/// Scores with their members.
type Pairs<'a> = SmallVec<[(f64, &'a [u8]); 4]>;

pub(super) fn zadd(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let (rules, first) = Rules::parse(arguments);
    let rest = arguments.len() - first;
    if rest == 0 || !rest.is_multiple_of(2) {
        return Err(Failure::Syntax);
    }
    rules.check(rest / 2)?;

    add(turn, arguments.at(1), pairs(arguments, first)?, rules, replies)
}

pub(super) fn zincrby(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let rules = Rules { increment: true, ..Rules::default() };

    add(turn, arguments.at(1), pairs(arguments, 2)?, rules, replies)
}

pub(super) fn zrem(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let key = arguments.at(1);
    let members = arguments.from(2).iter();
    let held = turn.sorted(key)?;

    let mut removed = 0;
    if held.is_some_and(|held| members.clone().any(|member| held.contains(member)))
        && let Some(sorted) = turn.sorted_mut(key)?
    {
        removed = members.filter(|member| sorted.remove(member).is_some()).count();
        turn.notify(Class::Sorted, "zrem", key);
    }

    replies.integer(removed as i64);
    Ok(())
}

fn pairs(arguments: Arguments<'_>, first: usize) -> Result<Pairs<'_>, Failure> {
    let mut pairs = Pairs::new();
    for index in (first..arguments.len()).step_by(2) {
        pairs.push((arguments.float(index)?, arguments.at(index + 1)));
    }
    for (_, member) in &pairs {
        check_name(member)?;
    }

    Ok(pairs)
}

fn add(
    turn: &mut Turn<'_>,
    key: &[u8],
    pairs: Pairs<'_>,
    rules: Rules,
    replies: &mut Replies,
) -> Outcome {
    let held = turn.sorted(key)?;
    let is_new = held.is_none();
    // A sum that is no number is found out before anything changes; without INCR there is none.
    if let (Some(held), true) = (held, rules.increment) {
        let (given, member) = pairs[0];
        rules.decide(held.score(member), given)?;
    }

    let mut counts = Counts::default();
    if !(is_new && rules.known_only) {
        let sorted = turn.sorted_or_new(key)?;
        for (given, member) in pairs {
            let former = sorted.score(member);
            if let Some(score) = rules.decide(former, given)? {
                sorted.insert(member, score);
                counts.note(former, score);
            }
        }
        if counts.added + counts.updated == 0 {
            turn.unchanged(key);
        } else {
            turn.notify(Class::Sorted, if rules.increment { "zincr" } else { "zadd" }, key);
        }
    }

    match counts.score {
        Some(score) if rules.increment => replies.double(score),
        None if rules.increment => replies.null(),
        _ if rules.changes => replies.integer(counts.added + counts.updated),
        _ => replies.integer(counts.added),
    }
    Ok(())
}

/// What became of the members.
#[derive(Default)]
struct Counts {
    added: i64,
    updated: i64,
    /// The score of the last one that the rules let through.
    score: Option<f64>,
}

impl Counts {
    fn note(&mut self, former: Option<f64>, score: f64) {
        match former {
            None => self.added += 1,
            Some(former) if former != score => self.updated += 1,
            Some(_) => {}
        }
        self.score = Some(score);
    }
}

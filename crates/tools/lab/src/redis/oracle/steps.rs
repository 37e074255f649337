//! What a case consists of, and how one is drawn from a seed.

use super::draw::{Draw, ONE_SCORE};
use super::grammar::Template;
use super::templates::{COMMANDS, RANDOM, WALKS};
use rand::Rng;
use std::sync::LazyLock;

/// Connections to each server.
pub const CONNECTIONS: usize = 2;

static PLAIN: LazyLock<Vec<Template>> = LazyLock::new(|| templates(COMMANDS));
static CHANCE: LazyLock<Vec<Template>> = LazyLock::new(|| templates(RANDOM));
static WALK: LazyLock<Vec<Template>> = LazyLock::new(|| templates(WALKS));

pub type Words = Vec<Vec<u8>>;

/// A step is finished on both servers before the next one begins.
#[derive(Debug, Clone)]
pub enum Step {
    /// Commands in one pipeline, which is sent in pieces that end after these bytes.
    Batch { connection: usize, commands: Vec<Words>, cuts: Vec<usize> },
    /// A command that chooses at random.
    Chance { connection: usize, words: Words },
    /// A walk by cursor, followed to its end.
    Walk { connection: usize, words: Words },
    /// A key expires in a millisecond, and both servers get the time for it.
    Lapse { connection: usize, key: Vec<u8> },
    /// The connection is replaced by one of this protocol.
    Reconnect { connection: usize, protocol: u8 },
    /// The state of both servers is compared.
    Compare,
    /// The server under test is disturbed; the other one is not.
    Disturb(Disturbance),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    /// It writes a checkpoint.
    Checkpoint,
    /// It is killed and started again. Connections to both servers are replaced.
    Reopen,
}

fn templates(texts: &'static [&'static str]) -> Vec<Template> {
    texts.iter().map(|text| Template::new(text)).collect()
}

/// The steps of a case. Without `disturb` there are no disturbances.
pub fn draw(seed: u64, len: usize, disturb: bool, without: &[String]) -> Vec<Step> {
    let mut draw = Draw::new(seed);
    // A case is about some of the commands, so that it repeats them and their combinations.
    let share = [0.15, 0.4, 1.0][draw.random.random_range(0..3)];
    let mut chosen: Vec<usize> =
        (0..PLAIN.len()).filter(|_| draw.random.random_bool(share)).collect();
    chosen.retain(|place| {
        let name = COMMANDS[*place].split(' ').next().unwrap_or_default();
        !without.iter().any(|one| one.eq_ignore_ascii_case(name))
    });
    if chosen.is_empty() {
        chosen.push(0);
    }

    let mut steps: Vec<Step> = (0..len).map(|_| step(&mut draw, &chosen, disturb)).collect();
    steps.push(Step::Compare);
    steps
}

fn step(draw: &mut Draw, chosen: &[usize], disturb: bool) -> Step {
    let connection = draw.random.random_range(0..CONNECTIONS);
    match draw.random.random_range(0..1_000) {
        0..40 => Step::Chance { connection, words: filled(&CHANCE, draw) },
        40..60 => Step::Walk { connection, words: filled(&WALK, draw) },
        60..66 => Step::Lapse { connection, key: draw.slot("any") },
        66..74 => Step::Reconnect { connection, protocol: draw.random.random_range(2..=3) },
        74..79 => Step::Compare,
        79..82 if disturb => Step::Disturb(Disturbance::Reopen),
        82..86 if disturb => Step::Disturb(Disturbance::Checkpoint),
        _ => batch(connection, draw, chosen),
    }
}

fn filled(templates: &[Template], draw: &mut Draw) -> Words {
    let place = draw.random.random_range(0..templates.len());
    templates[place].fill(draw)
}

fn batch(connection: usize, draw: &mut Draw, chosen: &[usize]) -> Step {
    let len = match draw.random.random_range(0..10) {
        0..5 => 1,
        5..9 => draw.random.random_range(2..8),
        _ => draw.random.random_range(8..40),
    };
    let mut commands: Vec<Words> = (0..len).map(|_| command(draw, chosen)).collect();

    if draw.random.random_bool(0.08) {
        commands.insert(0, vec![b"MULTI".to_vec()]);
        let end: &[u8] = if draw.random.random_bool(0.85) { b"EXEC" } else { b"DISCARD" };
        commands.push(vec![end.to_vec()]);
    }

    let bytes: usize = commands.iter().flatten().map(|word| word.len() + 6).sum();
    let mut cuts: Vec<usize> =
        (0..draw.random.random_range(0..4)).map(|_| draw.random.random_range(1..=bytes)).collect();
    cuts.sort_unstable();
    Step::Batch { connection, commands, cuts }
}

fn command(draw: &mut Draw, chosen: &[usize]) -> Words {
    let place = chosen[draw.random.random_range(0..chosen.len())];
    let mut words = PLAIN[place].fill(draw);
    // A set of one score stays one.
    if !words.contains(&ONE_SCORE.to_vec()) && draw.random.random_bool(0.04) {
        damage(&mut words, draw);
    }
    if draw.random.random_bool(0.05) {
        words[0].make_ascii_lowercase();
    }
    words
}

/// Makes a command wrong, perhaps: a word is missing, doubled or another one. A lone key that
/// remains is still a determined command.
fn damage(words: &mut Words, draw: &mut Draw) {
    let place = draw.random.random_range(0..words.len());
    match draw.random.random_range(0..3) {
        0 if place > 0 => drop(words.remove(place)),
        1 if place > 0 => {
            let slots = ["int", "small", "edge", "far", "member"];
            let slot = slots[draw.random.random_range(0..slots.len())];
            words[place] = draw.slot(slot);
        }
        _ if place > 0 => words.insert(place, words[place].clone()),
        _ => words.push(draw.slot("edge")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_steps_again() {
        let text = |seed| format!("{:?}", draw(seed, 100, true, &[]));
        assert_eq!(text(3), text(3));
        assert_ne!(text(3), text(4));
        assert!(!format!("{:?}", draw(5, 2_000, false, &[])).contains("Disturb"));
    }
}

//! The kinds of faults, and their order in a run.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use std::time::Duration;

/// Probability of two faults at once.
const BOTH_PROBABILITY: f64 = 0.15;
/// Probability of a pause that outlasts the writers' session in the consumer group.
const LONG_PROBABILITY: f64 = 0.3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    WriterKilled,
    WriterPaused,
    WriterStopped,
    ReaderKilled,
    ReaderPaused,
    PortalKilled,
    NodeKilled,
    NodePaused,
    BrokerKilled,
    BrokerPaused,
    RedisKilled,
    RedisPaused,
    CatalogStopped,
    CatalogKilled,
    CatalogPaused,
    Rebalance,
    WritesTimeOut,
    RolesRestarted,
    AllRestarted,
}

/// The part that a fault takes away. Two simultaneous faults take away different parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Writer,
    Reader,
    Portal,
    Node,
    Broker,
    Redis,
    Catalog,
    /// Several parts: no other fault is combined with it.
    Much,
}

/// How a fault takes a part away, and how it comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    Killed,
    Paused,
    /// Asked to stop, and started again.
    Stopped,
    /// Neither of these.
    Other,
}

impl Kind {
    /// The faults that take away one of several Cassandra nodes.
    pub const LOSS_OF_A_NODE: [Kind; 2] = [Self::NodeKilled, Self::NodePaused];

    /// Every kind with its name, what it takes away and how, and the number of times that it is in
    /// one deck. In the order of the enum.
    const DECK: [(Kind, &'static str, Part, Loss, usize); 19] = {
        use Loss::{Killed, Other, Paused, Stopped};
        use Part::{Broker, Catalog, Much, Node, Portal, Reader, Redis, Writer};
        [
            (Self::WriterKilled, "writer killed", Writer, Killed, 4),
            (Self::WriterPaused, "writer paused", Writer, Paused, 5),
            (Self::WriterStopped, "writer stopped in order", Writer, Stopped, 1),
            (Self::ReaderKilled, "reader killed", Reader, Killed, 2),
            (Self::ReaderPaused, "reader paused", Reader, Paused, 2),
            (Self::PortalKilled, "portal killed", Portal, Killed, 1),
            (Self::NodeKilled, "Cassandra node killed", Node, Killed, 3),
            (Self::NodePaused, "Cassandra node paused", Node, Paused, 3),
            (Self::BrokerKilled, "Kafka killed", Broker, Killed, 2),
            (Self::BrokerPaused, "Kafka paused", Broker, Paused, 2),
            (Self::RedisKilled, "Redis killed", Redis, Killed, 1),
            (Self::RedisPaused, "Redis paused", Redis, Paused, 1),
            (Self::CatalogStopped, "MariaDB stopped in order", Catalog, Stopped, 1),
            (Self::CatalogKilled, "MariaDB killed", Catalog, Killed, 1),
            (Self::CatalogPaused, "MariaDB paused", Catalog, Paused, 1),
            (Self::Rebalance, "third writer comes and goes", Writer, Other, 3),
            (Self::WritesTimeOut, "writes time out (no quorum)", Much, Other, 3),
            (Self::RolesRestarted, "all roles killed", Much, Other, 2),
            (Self::AllRestarted, "everything killed", Much, Other, 1),
        ]
    };

    pub fn all() -> impl Iterator<Item = Kind> {
        Self::DECK.into_iter().map(|(kind, ..)| kind)
    }

    /// Parses the name of a kind; the error lists all names.
    pub fn from_name(name: &str) -> Result<Self, String> {
        let names = || Self::all().map(Self::name).collect::<Vec<_>>().join(", ");
        Self::all()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| format!("the faults are: {}", names()))
    }

    pub fn name(self) -> &'static str {
        Self::DECK[self as usize].1
    }

    pub fn part(self) -> Part {
        Self::DECK[self as usize].2
    }

    pub fn loss(self) -> Loss {
        Self::DECK[self as usize].3
    }

    /// How long the fault lasts before it is undone.
    fn lasts(self, random: &mut StdRng) -> Duration {
        let milliseconds = match self {
            // Longer than the request timeout, shorter than the time after which nodes are declared
            // dead.
            Self::WritesTimeOut => random.random_range(1_500..4_000),
            Self::WriterPaused | Self::ReaderPaused | Self::NodePaused | Self::BrokerPaused => {
                if random.random_bool(LONG_PROBABILITY) {
                    random.random_range(7_000..15_000)
                } else {
                    random.random_range(1_000..6_000)
                }
            }
            Self::Rebalance => random.random_range(2_000..8_000),
            _ => random.random_range(200..7_000),
        };
        Duration::from_millis(milliseconds)
    }
}

/// One planned fault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    pub kind: Kind,
    /// Which instance it hits, modulo their number.
    pub which: usize,
    pub lasts: Duration,
}

/// Deals `count` faults, alone or in pairs. A short run takes a part of a shuffled deck, a long one
/// contains every kind. `exists` selects the kinds that are wanted and possible on the cluster.
pub fn deal(count: usize, exists: impl Fn(Kind) -> bool, random: &mut StdRng) -> Vec<Vec<Fault>> {
    let one: Vec<Kind> = Kind::DECK
        .into_iter()
        .filter(|(kind, ..)| exists(*kind))
        .flat_map(|(kind, .., times)| std::iter::repeat_n(kind, times))
        .collect();

    let mut kinds = Vec::new();
    while kinds.len() < count && !one.is_empty() {
        let mut deck = one.clone();
        deck.shuffle(random);
        kinds.append(&mut deck);
    }

    kinds.truncate(count);
    let mut rounds: Vec<Vec<Fault>> = Vec::new();
    for kind in kinds {
        let which = *[0, 1, 2, 3, 4, 5].choose(random).unwrap_or(&0);
        let fault = Fault { kind, which, lasts: kind.lasts(random) };
        let beside = random.random_bool(BOTH_PROBABILITY);

        match rounds.last_mut() {
            Some(round) if beside && round.len() == 1 && go_together(round[0].kind, kind) => {
                round.push(fault)
            }
            _ => rounds.push(vec![fault]),
        }
    }

    rounds
}

fn go_together(left: Kind, right: Kind) -> bool {
    let (left, right) = (left.part(), right.part());
    left != right && left != Part::Much && right != Part::Much
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::collections::HashSet;

    #[test]
    fn a_long_deck_holds_every_kind_and_a_seed_deals_the_same_again() {
        let deal = |seed| deal(100, |_| true, &mut StdRng::seed_from_u64(seed));
        let rounds = deal(7);
        assert_eq!(rounds, deal(7));
        assert_ne!(rounds, deal(8));

        let kinds: Vec<Kind> = rounds.iter().flatten().map(|fault| fault.kind).collect();
        assert_eq!(kinds.len(), 100);
        assert_eq!(kinds.iter().collect::<HashSet<_>>().len(), Kind::DECK.len());
        assert!(rounds.iter().any(|round| round.len() == 2));

        assert!(
            rounds
                .iter()
                .all(|round| round.len() == 1 || go_together(round[0].kind, round[1].kind))
        );
    }

    #[test]
    fn every_kind_is_found_by_its_name() {
        assert!(Kind::all().enumerate().all(|(place, kind)| place == kind as usize));
        assert!(Kind::all().all(|kind| Kind::from_name(kind.name()) == Ok(kind)));
        assert!(Kind::from_name("Kafka").unwrap_err().contains("Kafka paused"));
    }

    #[test]
    fn what_a_cluster_does_not_have_is_not_broken() {
        let rounds = deal(60, |kind| kind.part() != Part::Redis, &mut StdRng::seed_from_u64(1));
        assert!(rounds.iter().flatten().all(|fault| fault.kind.part() != Part::Redis));
    }
}

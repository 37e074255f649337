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

impl Kind {
    /// The faults that take away one of several Cassandra nodes.
    pub const LOSS_OF_A_NODE: [Kind; 2] = [Self::NodeKilled, Self::NodePaused];

    pub fn all() -> impl Iterator<Item = Kind> {
        Self::DECK.into_iter().map(|(kind, _)| kind)
    }

    /// All kinds, with the number of times that each is in one deck.
    const DECK: [(Kind, usize); 19] = [
        (Self::WriterKilled, 4),
        (Self::WriterPaused, 5),
        (Self::WriterStopped, 1),
        (Self::ReaderKilled, 2),
        (Self::ReaderPaused, 2),
        (Self::PortalKilled, 1),
        (Self::NodeKilled, 3),
        (Self::NodePaused, 3),
        (Self::BrokerKilled, 2),
        (Self::BrokerPaused, 2),
        (Self::RedisKilled, 1),
        (Self::RedisPaused, 1),
        (Self::CatalogStopped, 1),
        (Self::CatalogKilled, 1),
        (Self::CatalogPaused, 1),
        (Self::Rebalance, 3),
        (Self::WritesTimeOut, 3),
        (Self::RolesRestarted, 2),
        (Self::AllRestarted, 1),
    ];

    /// Parses the name of a kind; the error lists all names.
    pub fn from_name(name: &str) -> Result<Self, String> {
        let names = || Self::all().map(Self::name).collect::<Vec<_>>().join(", ");
        Self::all()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| format!("the faults are: {}", names()))
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::WriterKilled => "writer killed",
            Self::WriterPaused => "writer paused",
            Self::WriterStopped => "writer stopped in order",
            Self::ReaderKilled => "reader killed",
            Self::ReaderPaused => "reader paused",
            Self::PortalKilled => "portal killed",
            Self::NodeKilled => "Cassandra node killed",
            Self::NodePaused => "Cassandra node paused",
            Self::BrokerKilled => "Kafka killed",
            Self::BrokerPaused => "Kafka paused",
            Self::RedisKilled => "Redis killed",
            Self::RedisPaused => "Redis paused",
            Self::CatalogStopped => "MariaDB stopped in order",
            Self::CatalogKilled => "MariaDB killed",
            Self::CatalogPaused => "MariaDB paused",
            Self::Rebalance => "third writer comes and goes",
            Self::WritesTimeOut => "writes time out (no quorum)",
            Self::RolesRestarted => "all roles killed",
            Self::AllRestarted => "everything killed",
        }
    }

    pub fn part(self) -> Part {
        match self {
            Self::WriterKilled | Self::WriterPaused | Self::WriterStopped | Self::Rebalance => {
                Part::Writer
            }
            Self::ReaderKilled | Self::ReaderPaused => Part::Reader,
            Self::PortalKilled => Part::Portal,
            Self::NodeKilled | Self::NodePaused => Part::Node,
            Self::BrokerKilled | Self::BrokerPaused => Part::Broker,
            Self::RedisKilled | Self::RedisPaused => Part::Redis,
            Self::CatalogStopped | Self::CatalogKilled | Self::CatalogPaused => Part::Catalog,
            Self::WritesTimeOut | Self::RolesRestarted | Self::AllRestarted => Part::Much,
        }
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
        .filter(|(kind, _)| exists(*kind))
        .flat_map(|(kind, times)| std::iter::repeat_n(kind, times))
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
        assert!(Kind::all().all(|kind| Kind::from_name(kind.name()) == Ok(kind)));
        assert!(Kind::from_name("Kafka").unwrap_err().contains("Kafka paused"));
    }

    #[test]
    fn what_a_cluster_does_not_have_is_not_broken() {
        let rounds = deal(60, |kind| kind.part() != Part::Redis, &mut StdRng::seed_from_u64(1));
        assert!(rounds.iter().flatten().all(|fault| fault.kind.part() != Part::Redis));
    }
}

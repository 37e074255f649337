//! A ledger of its own for one programme: the same decisions, over what the fork itself decided.
//!
//! One desk decides everything, each command at the time of the latest event so far, as if it were
//! awarded when it happened. Wallets stay at the desk. What references earned is rarely asked for
//! again, and lies in records beside it.

use crate::limits::{FORECAST_BYTES_MAX, FORECAST_MEMBERS_MAX, FORECAST_TURN_LEN_MAX};
use crate::records::Records;
use hashbrown::HashSet;
use raingauge_points::{
    Answer, BookHead, Command, Desk, Earned, Key, Programmes, ReferenceId, Snapshot, Totals,
    Wallet, WalletId,
};
use raingauge_replay::Error;

const HOUR_MS: i64 = 3_600_000;

/// Begins without wallets.
pub struct Fork<'a> {
    desk: Desk<'a>,
    references: References,
    /// The keys of all commands so far: an event that comes twice awards once.
    keys: HashSet<Key>,
}

/// What references earned, encoded.
#[derive(Default)]
struct References {
    records: Records,
    encoded: Vec<u8>,
}

impl References {
    fn get(&self, id: &ReferenceId) -> Option<Earned> {
        let record = self.records.get(&id.text)?;
        Some(Earned::decode(record).expect("it was encoded here"))
    }

    fn put(&mut self, id: &ReferenceId, earned: &Earned) {
        self.encoded.clear();
        earned.encode(&mut self.encoded);
        self.records.put(&id.text, &self.encoded);
    }
}

impl<'a> Fork<'a> {
    /// A fork for the only one of these programmes.
    pub fn new(programmes: &'a Programmes) -> Self {
        let state = Snapshot { heads: vec![BookHead::default()], books: 1, ..Snapshot::default() };
        Self {
            desk: Desk::new(programmes, state, i64::MIN),
            references: References::default(),
            keys: HashSet::new(),
        }
    }

    pub fn totals(&self) -> &Totals {
        &self.desk.state().totals
    }

    pub fn members(&self) -> usize {
        self.desk.state().wallets.len()
    }

    /// Decides the command of an event that happened at a time. `None` for one that came before.
    pub fn take(&mut self, command: &Command, at_ms: i64) -> Result<Option<Answer>, Error> {
        let key = command.key_hash();
        if !self.keys.insert(key) {
            return Ok(None);
        }

        self.next_turn(at_ms);
        if let Some(reference) = &command.reference {
            let id = ReferenceId::of(&command.programme, &command.member, reference);
            if let Some(earned) = self.references.get(&id) {
                self.desk.load(id, earned);
            }
        }
        let answer = self.desk.execute_keyed(command, key);

        self.check_size()?;
        Ok(Some(answer))
    }

    /// Settles every wallet to the end of a range.
    pub fn settle_all(&mut self, until_ms: i64) {
        let until_hour = u32::try_from(until_ms.div_euclid(HOUR_MS)).unwrap_or(0);
        let is_due = |wallet: &Wallet| wallet.due_hour.is_some_and(|hour| hour <= until_hour);
        let wallets = self.desk.state().wallets.iter();
        let due: Vec<WalletId> =
            wallets.filter(|(_, wallet)| is_due(wallet)).map(|(id, _)| id.clone()).collect();

        for ids in due.chunks(FORECAST_TURN_LEN_MAX) {
            self.next_turn(until_ms);
            for id in ids {
                self.desk.settle(id);
            }
        }
    }

    fn next_turn(&mut self, now_ms: i64) {
        let Self { desk, references, .. } = self;
        desk.next_turn(now_ms, |id, earned| references.put(id, earned));
    }

    fn check_size(&self) -> Result<(), Error> {
        let most = if self.members() > FORECAST_MEMBERS_MAX {
            format!("{FORECAST_MEMBERS_MAX} members")
        } else if self.bytes_len() > FORECAST_BYTES_MAX {
            format!("{FORECAST_BYTES_MAX} bytes of keys and references")
        } else {
            return Ok(());
        };
        Err(Error::TooLarge(format!("a forecast has at most {most}: take a shorter range")))
    }

    /// The memory of what grows with every command, approximately.
    fn bytes_len(&self) -> usize {
        self.keys.len() * size_of::<Key>() + self.references.records.bytes_len()
    }
}

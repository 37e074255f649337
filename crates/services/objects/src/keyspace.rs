//! The live objects, behind one lock: what is resident, what changed in this hold, and what a
//! change sets off.
//!
//! A *hold* begins with [`Keyspace::begin`] and ends with [`Keyspace::finish`], which hands the
//! effects of all changes to the store as one group. Slots keep their places in between, since
//! nothing is evicted during a hold.

mod changes;
mod effects;
mod eviction;
mod loads;
mod name;
mod overlay;
mod prefetch;
mod residency;
mod slot;
mod waiting;
mod watchers;

pub(crate) use loads::{Claim, Loaded, LoadedObject, Miss};
pub(crate) use prefetch::PREFETCH_LEN;
pub(crate) use slot::{Place, Slot};
pub(crate) use waiting::Waiter;
pub(crate) use watchers::Watch;

use crate::notify::{Class, Flags};
use crate::options::{Limits, Options};
use crate::pubsub::{Message, PubSub, Space};
use crate::stats::{Counters, Lookups, Totals};
use bytes::Bytes;
use eviction::{Gone, Probation};
use loads::{Loads, Shards};
use prefetch::Prefetched;
use raingauge_ports::clock::Look;
use raingauge_ports::objects::{Effect, INTERNAL_DATABASE};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use slot::{Dirty, Slots, Touch};
use std::sync::Arc;
use waiting::Waiting;
use watchers::Watchers;

/// Databases, with the internal one.
const DATABASES: usize = INTERNAL_DATABASE as usize + 1;

/// The resident keys of one database.
#[derive(Default)]
struct Database {
    slots: Slots,
    probation: Probation,
    /// The group that last flushed or swapped it: each of its keys is at least as new.
    floor: u64,
    /// Whether it was flushed in this hold: what is not resident is not there.
    is_flushed: bool,
}

/// What the process shares with the keyspace.
#[derive(Clone, Default)]
pub(crate) struct Shared {
    pub pubsub: PubSub,
    pub flags: Arc<Flags>,
    pub counters: Arc<Counters>,
}

pub(crate) struct Keyspace {
    databases: Vec<Database>,
    prefetched: Prefetched,
    shards: Shards,
    loads: Loads,
    shared: Shared,
    limits: Limits,
    /// Bytes that resident keys and objects may take.
    resident_bytes_max: usize,
    resident_bytes: usize,
    /// Bytes that one transaction may change or answer.
    together_bytes_max: usize,
    /// Keys that were evicted a short time ago.
    gone: Gone,
    /// Where eviction goes on: a database and an index.
    hand: (usize, usize),
    watchers: Watchers,
    waiting: Waiting,
    random: SmallRng,
    next_id: u64,
    next_load: u16,
    totals: Totals,
    /// The last group.
    newest_stamp: u64,

    /// The time of the hold, in milliseconds since 1970. It never goes back.
    now_ms: i64,
    /// Objects that expire up to here are gone. Nothing expires while the clock is not trusted.
    expired_ms: i64,
    /// Whether commands of this hold know what they replace.
    looks_for_new: bool,
    /// Whether the commands of this hold count as uses of their keys.
    touches: bool,
    /// The last group of the connection before this hold.
    last_stamp: u64,
    /// Whether a command of the hold changed anything. What expires is no change of a command.
    has_written: bool,
    /// Keys that expired in this hold, and how many of these were in the internal database.
    expired: u64,
    expired_internal: u64,
    /// Which of the messages tell of them, by their index.
    expired_messages: Vec<usize>,
    /// Bytes of what the hold changed, about as the group will have them.
    changed_bytes: usize,
    /// Keys that changed since the last seal, each once.
    dirty: Vec<Dirty>,
    /// Keys whose effects are in the group, so that its stamp becomes theirs.
    sealed: Vec<Dirty>,
    /// Databases that were flushed or swapped in this hold.
    replaced: Vec<u8>,
    effects: Vec<Effect>,
    /// The number of the running command.
    command: u64,
    /// Keys that the running command changed.
    touched: Vec<Touch>,
    /// Messages that leave with the group, or without one at the end of their command.
    messages: Vec<Message>,
    /// Slots that went in this hold, to be dropped without the lock.
    dropped: Vec<Slot>,
}

impl Keyspace {
    pub(crate) fn new(shared: Shared, options: &Options, next_id: u64) -> Self {
        let mut random = SmallRng::from_os_rng();
        Self {
            databases: (0..DATABASES).map(|_| Database::default()).collect(),
            prefetched: Prefetched::default(),
            shards: Shards::default(),
            loads: Loads::default(),
            shared,
            limits: options.limits,
            resident_bytes_max: options.resident_bytes,
            together_bytes_max: options.together_bytes_max(),
            resident_bytes: 0,
            gone: Gone::default(),
            hand: (0, 0),
            watchers: Watchers::default(),
            waiting: Waiting::default(),
            next_id,
            next_load: rand::Rng::random(&mut random),
            random,
            totals: Totals::default(),
            newest_stamp: 0,
            now_ms: 0,
            expired_ms: i64::MIN,
            looks_for_new: false,
            touches: true,
            last_stamp: 0,
            has_written: false,
            expired: 0,
            expired_internal: 0,
            expired_messages: Vec::new(),
            changed_bytes: 0,
            dirty: Vec::new(),
            sealed: Vec::new(),
            replaced: Vec::new(),
            effects: Vec::new(),
            command: 1,
            touched: Vec::new(),
            messages: Vec::new(),
            dropped: Vec::new(),
        }
    }

    /// Begins a hold. `clock` is what all its commands see; objects expire only where it is sound.
    /// Its commands count as uses of their keys if it `touches` them. Its messages wait for the
    /// group that its connection changed last, `last_stamp`, or for a later one.
    pub(crate) fn begin(&mut self, clock: Look, touches: bool, last_stamp: u64) {
        self.prefetched.clear();
        self.touches = touches;
        self.last_stamp = last_stamp;
        self.now_ms = self.now_ms.max(clock.now_ms);
        self.expired_ms = if clock.is_sound { self.now_ms } else { i64::MIN };
        self.looks_for_new = self.shared.flags.has(Class::New);
        self.has_written = false;
        self.expired = 0;
        self.expired_internal = 0;
        self.changed_bytes = 0;
    }

    /// Keys that expired in this hold, those of the internal database too.
    pub(crate) fn expired(&self) -> u64 {
        self.expired
    }

    pub(crate) fn touches(&self) -> bool {
        self.touches
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.now_ms
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Bytes of what the hold has changed so far, about.
    pub(crate) fn changed_bytes(&self) -> usize {
        self.changed_bytes
    }

    /// Bytes that one transaction may change or answer.
    pub(crate) fn together_bytes_max(&self) -> usize {
        self.together_bytes_max
    }

    pub(crate) fn random(&mut self) -> &mut SmallRng {
        &mut self.random
    }

    pub(crate) fn lookups(&self) -> Lookups {
        self.totals.lookups()
    }

    pub(crate) fn totals(&mut self) -> &mut Totals {
        &mut self.totals
    }

    pub(crate) fn watchers(&mut self) -> &mut Watchers {
        &mut self.watchers
    }

    pub(crate) fn waiting(&mut self) -> &mut Waiting {
        &mut self.waiting
    }

    /// The stamp of the last group.
    pub(crate) fn newest_stamp(&self) -> u64 {
        self.newest_stamp
    }

    /// The place of a resident key, whether it has an object or is known to have none.
    pub(crate) fn find(&self, database: u8, name: &[u8]) -> Option<Place> {
        let slots = &self.databases[usize::from(database)].slots;
        let prefetched = self.prefetched.find(database, slots, name);
        let index = prefetched.or_else(|| slots.get_index_of(name))?;
        Some(Place { database, index })
    }

    /// Looks for keys that commands are about to use.
    pub(crate) fn prefetch(&mut self, database: u8, names: &[&[u8]]) {
        let slots = &self.databases[usize::from(database)].slots;
        self.prefetched.look_for(database, slots, names);
    }

    pub(crate) fn slot(&self, place: Place) -> &Slot {
        &self.databases[usize::from(place.database)].slots[place.index]
    }

    pub(crate) fn slot_mut(&mut self, place: Place) -> &mut Slot {
        &mut self.databases[usize::from(place.database)].slots[place.index]
    }

    fn name(&self, place: Place) -> &Bytes {
        let slots = &self.databases[usize::from(place.database)].slots;
        slots.get_index(place.index).expect("a place of this hold").0
    }

    /// Resident keys of a database that have objects, for RANDOMKEY: the name at an index, if the
    /// key there is live.
    pub(crate) fn resident_name(&self, database: u8, index: usize) -> Option<Bytes> {
        let slots = &self.databases[usize::from(database)].slots;
        let (name, slot) = slots.get_index(index)?;
        slot.object.is_some().then(|| name.clone())
    }

    pub(crate) fn resident_len(&self, database: u8) -> usize {
        self.databases[usize::from(database)].slots.len()
    }

    /// Messages that wait for the end of the hold.
    pub(crate) fn messages_len(&self) -> usize {
        self.messages.len()
    }

    /// Queues a notification for the end of the hold, where a class is published at all. Clients do
    /// not know the internal database.
    pub(crate) fn notify(&mut self, class: Class, event: &'static str, database: u8, name: &[u8]) {
        if database == INTERNAL_DATABASE {
            return;
        }

        let (to_keyspace, to_keyevent) = self.shared.flags.channels(class);
        if to_keyspace {
            let mut channel = format!("__keyspace@{database}__:").into_bytes();
            channel.extend_from_slice(name);
            let message = Message::to_channel(channel.into(), Bytes::from_static(event.as_bytes()));
            self.messages.push(message);
        }
        if to_keyevent {
            let channel = format!("__keyevent@{database}__:{event}").into_bytes();
            let message = Message::to_channel(channel.into(), Bytes::copy_from_slice(name));
            self.messages.push(message);
        }
    }

    /// Whether events of new keys may be published in this hold, so that commands have to know
    /// what they replace.
    pub(crate) fn looks_for_new(&self) -> bool {
        self.looks_for_new
    }

    /// Makes commands of this hold know what they replace, before events of new keys are asked for.
    pub(crate) fn look_for_new(&mut self) {
        self.looks_for_new = true;
    }

    /// Queues a message as [`Keyspace::notify`] does, and returns how many subscribers will get it.
    pub(crate) fn publish(&mut self, space: Space, channel: Bytes, payload: Bytes) -> usize {
        let receivers = self.shared.pubsub.receivers(space, &channel);
        if receivers > 0 {
            self.messages.push(Message { space, ..Message::to_channel(channel, payload) });
        }
        receivers
    }

    pub(crate) fn pubsub(&self) -> &PubSub {
        &self.shared.pubsub
    }

    fn load_number(&mut self) -> u16 {
        self.next_load = self.next_load.wrapping_add(1);
        self.next_load
    }
}

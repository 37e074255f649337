//! What a handler of a command works with: the keys of the command, and its moment.

use crate::admission::{self, ENTRY_BYTES};
use crate::failures;
use crate::keyspace::{Keyspace, Place};
use crate::notify::Class;
use crate::options::Limits;
use crate::pubsub::{PubSub, Space};
use bytes::Bytes;
use raingauge_resp::{Arguments, Failure, Replies, Spec};
use raingauge_values::{Hash, List, Object, Set, Sorted, Text, Value};
use rand::rngs::SmallRng;

/// What a handler returns. A failure comes before any change.
pub(crate) type Outcome = Result<(), Failure>;

/// Runs one command.
pub(crate) type Handler = fn(&mut Turn<'_>, Arguments<'_>, &mut Replies) -> Outcome;

/// The expiry of an object that takes the place of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// That of the object before.
    Keep,
    /// None.
    Clear,
    /// Milliseconds since 1970. A time that has passed removes the object.
    At(i64),
}

/// One command in its moment. Its keys are resident, and what had expired is gone.
///
/// A handler touches the keys at the positions that the table names, and no other.
pub(crate) struct Turn<'a> {
    keyspace: &'a mut Keyspace,
    database: u8,
    /// How long the command waits for its keys, if it does.
    wait_ms: Option<i64>,
}

/// Accessors of one type: to read, to change what may be new, and to change what is there.
macro_rules! accessors {
    ($($type:ident $kind:literal $read:ident $create:ident $($change:ident)?;)*) => {
        $(
            #[doc = concat!("The ", $kind, " of a key; a failure when it has another type.")]
            pub fn $read(&self, key: &[u8]) -> Result<Option<&$type>, Failure> {
                match self.get(key).map(|object| &object.value) {
                    None => Ok(None),
                    Some(Value::$type(value)) => Ok(Some(value)),
                    Some(_) => Err(Failure::WrongType),
                }
            }

            #[doc = concat!("The ", $kind, " of a key, which counts as changed. Empty if new.")]
            pub fn $create(&mut self, key: &[u8]) -> Result<&mut $type, Failure> {
                let place = self.place(key);
                match self.value(place) {
                    None => self.keyspace.create(place, empty::$create),
                    Some(Value::$type(_)) => {}
                    Some(_) => return Err(Failure::WrongType),
                }

                match self.touched(place) {
                    Some(Value::$type(value)) => Ok(value),
                    _ => Err(Failure::WrongType),
                }
            }

            $(
                #[doc = concat!("The ", $kind, " of a key, which counts as changed.")]
                pub fn $change(&mut self, key: &[u8]) -> Result<Option<&mut $type>, Failure> {
                    let Some(place) = self.find(key) else { return Ok(None) };
                    match self.value(place) {
                        None => return Ok(None),
                        Some(Value::$type(_)) => {}
                        Some(_) => return Err(Failure::WrongType),
                    }

                    match self.touched(place) {
                        Some(Value::$type(value)) => Ok(Some(value)),
                        _ => Err(Failure::WrongType),
                    }
                }
            )?
        )*
    };
}

/// Values that new keys begin with.
mod empty {
    use super::{Hash, List, Set, Sorted, Text, Value};

    pub(super) fn text_or_new() -> Value {
        Value::Text(Text::new(b""))
    }

    pub(super) fn hash_or_new() -> Value {
        Value::Hash(Box::new(Hash::new()))
    }

    pub(super) fn set_or_new() -> Value {
        Value::Set(Box::new(Set::new()))
    }

    pub(super) fn list_or_new() -> Value {
        Value::List(Box::new(List::new()))
    }

    pub(super) fn sorted_or_new() -> Value {
        Value::Sorted(Box::new(Sorted::new()))
    }
}

impl<'a> Turn<'a> {
    pub(crate) fn new(keyspace: &'a mut Keyspace, database: u8) -> Self {
        Self { keyspace, database, wait_ms: None }
    }

    /// The time of the command, in milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.keyspace.now_ms()
    }

    pub fn database(&self) -> u8 {
        self.database
    }

    pub fn limits(&self) -> &Limits {
        self.keyspace.limits()
    }

    pub fn random(&mut self) -> &mut SmallRng {
        self.keyspace.random()
    }

    /// The object of a key.
    pub fn get(&self, key: &[u8]) -> Option<&Object> {
        self.get_in(self.database, key)
    }

    pub fn exists(&self, key: &[u8]) -> bool {
        self.get(key).is_some()
    }

    /// Tells one stay of an object in memory from the next, for cursors over its entries.
    pub fn load_number(&self, key: &[u8]) -> u16 {
        self.find(key).map_or(0, |place| self.keyspace.slot(place).load)
    }

    accessors! {
        Text "string" text text_or_new;
        Hash "hash" hash hash_or_new hash_mut;
        Set "set" set set_or_new set_mut;
        List "list" list list_or_new list_mut;
        Sorted "sorted set" sorted sorted_or_new sorted_mut;
    }

    /// Takes back that a key counts as changed by this command, which changed nothing after all.
    pub fn unchanged(&mut self, key: &[u8]) {
        if let Some(place) = self.find(key) {
            self.keyspace.untouch(place);
        }
    }

    /// Gives a key a value, in the place of what it had, of whatever type. Returns whether it is
    /// there: it is not where its time is over already.
    pub fn put(&mut self, key: &[u8], value: Value, expiry: Expiry) -> bool {
        let expires_ms = match expiry {
            Expiry::Keep => self.get(key).and_then(|object| object.expires_ms),
            Expiry::Clear => None,
            Expiry::At(at_ms) => Some(at_ms),
        };

        self.put_in(self.database, key, Object { expires_ms, ..Object::new(value) });
        let is_over = expires_ms.is_some_and(|at_ms| at_ms <= self.now_ms());
        if is_over {
            self.take(key);
        }
        !is_over
    }

    /// Removes a key. Returns whether it was there.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        self.take(key).is_some()
    }

    /// Removes a key, and returns what it had.
    pub fn take(&mut self, key: &[u8]) -> Option<Object> {
        let place = self.find(key)?;
        self.keyspace.take(place)
    }

    /// Sets or removes the time at which a key expires, in milliseconds since 1970. Returns whether
    /// the key is there.
    pub fn set_expiry(&mut self, key: &[u8], expires_ms: Option<i64>) -> bool {
        let place = self.find(key).filter(|place| self.keyspace.slot(*place).object.is_some());
        let Some(place) = place else { return false };

        self.keyspace.touch(place);
        if let Some(object) = &mut self.keyspace.slot_mut(place).object {
            object.expires_ms = expires_ms;
        }
        true
    }

    /// When a key expires, in milliseconds since 1970: `Some(None)` for one that does not, `None`
    /// for one that is not there.
    pub fn expires_ms(&self, key: &[u8]) -> Option<Option<i64>> {
        self.get(key).map(|object| object.expires_ms)
    }

    /// Publishes a keyspace event at the end of the turn, if the server is asked for such.
    pub fn notify(&mut self, class: Class, event: &'static str, key: &[u8]) {
        self.keyspace.notify(class, event, self.database, key);
    }

    /// Makes the command wait until one of its keys changes, for a number of milliseconds; 0 for
    /// ever.
    /// The handler replies nothing.
    pub fn wait(&mut self, timeout_ms: i64) {
        self.wait_ms = Some(timeout_ms);
    }

    pub(crate) fn take_wait(&mut self) -> Option<i64> {
        self.wait_ms.take()
    }

    /// As [`Turn::get`], in another database.
    pub(crate) fn get_in(&self, database: u8, key: &[u8]) -> Option<&Object> {
        let place = self.keyspace.find(database, key)?;
        self.keyspace.slot(place).object.as_ref()
    }

    /// Puts an object in the place of what a key had, which is removed first: it is a new one.
    pub(crate) fn replace_in(&mut self, database: u8, key: &[u8], object: Object) {
        if let Some(place) = self.keyspace.find(database, key) {
            self.keyspace.take(place);
        }
        self.put_in(database, key, object);
    }

    pub(crate) fn put_in(&mut self, database: u8, key: &[u8], object: Object) {
        self.keyspace.put(database, key, object);
    }

    pub(crate) fn notify_in(
        &mut self,
        class: Class,
        event: &'static str,
        database: u8,
        key: &[u8],
    ) {
        self.keyspace.notify(class, event, database, key);
    }

    /// Milliseconds since a command last used a key.
    pub(crate) fn idle_ms(&self, key: &[u8]) -> Option<i64> {
        let place = self.find(key)?;
        let slot = self.keyspace.slot(place);
        slot.object.as_ref().map(|_| self.now_ms() - slot.used_ms)
    }

    /// Bytes of memory that a key takes, about.
    pub(crate) fn weight(&self, key: &[u8]) -> Option<usize> {
        let place = self.find(key)?;
        let slot = self.keyspace.slot(place);
        slot.object.as_ref().map(|_| slot.weight)
    }

    /// As [`admission::check_growth`], for a command that another one runs.
    pub(crate) fn check_growth(
        &self,
        spec: &Spec,
        arguments: Arguments<'_>,
        weight: usize,
    ) -> Result<(), Failure> {
        admission::check_growth(self.keyspace, spec, arguments, weight)
    }

    /// Refuses a change after which the object of a key would take more memory than one may: it
    /// could not be loaded again. [`admission::check_growth`] has looked at the arguments before;
    /// this is for objects that grow by more than those.
    pub(crate) fn check_bytes(&self, key: &[u8], bytes: usize) -> Result<(), Failure> {
        let bytes_max = self.limits().object_bytes_max;
        if bytes > bytes_max { Err(failures::too_large(key, bytes, bytes_max)) } else { Ok(()) }
    }

    /// As [`Turn::check_bytes`], for an entry of `len` bytes that is added to a collection.
    pub(crate) fn check_entry(&self, key: &[u8], len: usize) -> Result<(), Failure> {
        self.check_bytes(key, self.weight(key).unwrap_or(0) + len + ENTRY_BYTES)
    }

    /// Makes the rest of the transaction, or of the connection, work on another database.
    pub(crate) fn select(&mut self, database: u8) {
        self.database = database;
    }

    pub(crate) fn flush(&mut self, database: u8) {
        self.keyspace.flush(database);
    }

    pub(crate) fn swap(&mut self, a: u8, b: u8) {
        self.keyspace.swap(a, b);
    }

    pub(crate) fn publish(&mut self, space: Space, channel: Bytes, payload: Bytes) -> usize {
        self.keyspace.publish(space, channel, payload)
    }

    pub(crate) fn pubsub(&self) -> &PubSub {
        self.keyspace.pubsub()
    }

    /// The place of a resident key.
    fn find(&self, key: &[u8]) -> Option<Place> {
        self.keyspace.find(self.database, key)
    }

    /// The place of a key of this command.
    fn place(&self, key: &[u8]) -> Place {
        let place = self.find(key);
        place.expect("a handler touches only keys at the positions of its row in the table")
    }

    fn value(&self, place: Place) -> Option<&Value> {
        self.keyspace.slot(place).object.as_ref().map(|object| &object.value)
    }

    /// The value at a place, which counts as changed.
    fn touched(&mut self, place: Place) -> Option<&mut Value> {
        self.keyspace.touch(place);
        self.keyspace.slot_mut(place).object.as_mut().map(|object| &mut object.value)
    }
}

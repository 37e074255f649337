//! The table of commands: facts about each, by which it is checked before it runs.

mod bitmap;
mod cluster;
mod connection;
mod generic;
mod hash;
mod list;
mod pubsub;
mod rain;
mod scripting;
mod server;
mod set;
mod sorted;
mod string;
mod transactions;

use std::sync::LazyLock;

use crate::id::Id;
use crate::spec::{Access, Categories, Flags, Room, Spec, counted, one, range};

/// How commands use keys: short names for the combinations that the table has.
const READ: Access = Access::RO.and(Access::ACCESS);
const LOOK: Access = Access::RO;
const CHANGE: Access = Access::RW.and(Access::ACCESS).and(Access::UPDATE);
const UPDATE: Access = Access::RW.and(Access::UPDATE);
const TAKE: Access = Access::RW.and(Access::ACCESS).and(Access::DELETE);
const ADD: Access = Access::RW.and(Access::INSERT);
const REMOVE: Access = Access::RW.and(Access::DELETE);
const DROP: Access = Access::RM.and(Access::DELETE);
const REPLACE: Access = Access::OW.and(Access::UPDATE);
const CREATE: Access = Access::OW.and(Access::INSERT);
const VARIABLE: Access = Access::VARIABLE_FLAGS;
const NOT_KEY: Access = Access::NOT_KEY;

/// Rows of one group: id, name, arity, flags, categories that do not follow from the flags, room;
/// keys, version, summary.
macro_rules! rows {
    (
        $group:literal
        $($id:ident $name:literal $arity:literal [$($flag:ident)*] [$($category:ident)*] $room:ident
            [$($key:expr),*] $since:literal $summary:literal;)*
    ) => {
        pub(super) const ROWS: &[Spec] = &[$(Spec {
            id: Id::$id,
            name: $name,
            arity: $arity,
            flags: Flags::NONE$(.and(Flags::$flag))*,
            keys: &[$($key),*],
            categories: implied(Flags::NONE$(.and(Flags::$flag))*)$(.and(Categories::$category))*,
            group: $group,
            since: $since,
            summary: $summary,
            room: Room::$room,
        }),*];
    };
}
use rows;

/// The categories that follow from the flags of a command.
const fn implied(flags: Flags) -> Categories {
    let mut categories = if flags.has(Flags::FAST) { Categories::FAST } else { Categories::SLOW };

    if flags.has(Flags::WRITE) {
        categories = categories.and(Categories::WRITE);
    }
    if flags.has(Flags::READONLY) {
        categories = categories.and(Categories::READ);
    }
    if flags.has(Flags::ADMIN) {
        categories = categories.and(Categories::ADMIN).and(Categories::DANGEROUS);
    }
    if flags.has(Flags::PUBSUB) {
        categories = categories.and(Categories::PUBSUB);
    }
    if flags.has(Flags::BLOCKING) {
        categories = categories.and(Categories::BLOCKING);
    }

    categories
}

static GROUPS: [&[Spec]; 14] = [
    connection::ROWS,
    generic::ROWS,
    string::ROWS,
    bitmap::ROWS,
    hash::ROWS,
    set::ROWS,
    sorted::ROWS,
    list::ROWS,
    transactions::ROWS,
    pubsub::ROWS,
    server::ROWS,
    cluster::ROWS,
    scripting::ROWS,
    rain::ROWS,
];

/// Every command and subcommand; the subcommands of a container follow it.
pub fn all() -> impl Iterator<Item = &'static Spec> {
    GROUPS.iter().copied().flatten()
}

/// The commands without subcommands.
pub fn commands() -> impl Iterator<Item = &'static Spec> {
    all().filter(|spec| spec.container().is_none())
}

/// The subcommands of a container, or none of another command.
pub fn subcommands(container: &Spec) -> impl Iterator<Item = &'static Spec> {
    let name = container.name;

    all().filter(move |spec| spec.container() == Some(name))
}

/// A command by its name in any case.
pub fn find(name: &[u8]) -> Option<&'static Spec> {
    INDEX.find(&[name]).filter(|spec| spec.container().is_none())
}

/// A subcommand by the names of its container and its own, in any case.
pub fn find_sub(container: &str, name: &[u8]) -> Option<&'static Spec> {
    INDEX.find(&[container.as_bytes(), b"|", name])
}

/// Names by their hash: open addressing, at most a third full.
struct Index {
    slots: Vec<Option<&'static Spec>>,
}

/// A power of two above three times the number of rows.
const SLOTS: usize = 1024;

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index { slots: vec![None; SLOTS] };

    for spec in all() {
        let mut slot = hash(&[spec.name.as_bytes()]);
        while index.slots[slot % SLOTS].is_some() {
            slot += 1;
        }

        index.slots[slot % SLOTS] = Some(spec);
    }

    index
});

impl Index {
    /// The row whose name is the pieces one behind the other.
    fn find(&self, pieces: &[&[u8]]) -> Option<&'static Spec> {
        let mut slot = hash(pieces);

        while let Some(spec) = self.slots[slot % SLOTS] {
            if is_named(spec, pieces) {
                return Some(spec);
            }
            slot += 1;
        }

        None
    }
}

fn is_named(spec: &Spec, pieces: &[&[u8]]) -> bool {
    let mut rest = spec.name.as_bytes();

    for piece in pieces {
        match rest.split_at_checked(piece.len()) {
            Some((front, behind)) if front.eq_ignore_ascii_case(piece) => rest = behind,
            _ => return false,
        }
    }

    rest.is_empty()
}

/// FNV-1a over the pieces in lower case. Names of any length cost no more than their bytes.
fn hash(pieces: &[&[u8]]) -> usize {
    let hash = pieces.iter().copied().flatten().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0193)
    });

    (hash ^ (hash >> 15)) as usize
}

#[cfg(test)]
#[path = "../table_tests.rs"]
mod tests;

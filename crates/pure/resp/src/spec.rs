//! Facts about a command, by which it is checked before it runs.

use crate::arguments::Arguments;
use crate::id::Id;

/// A command or subcommand of the table.
#[derive(Debug)]
pub struct Spec {
    pub id: Id,
    /// In lower case; a subcommand has the name of its container before it, `object|encoding`.
    pub name: &'static str,
    /// Number of arguments with the name; a negative one is the least.
    pub arity: i16,
    pub flags: Flags,
    pub keys: &'static [KeySpec],
    pub categories: Categories,
    pub group: &'static str,
    /// The version of Redis, or of raingauge for its own commands, that introduced it.
    pub since: &'static str,
    pub summary: &'static str,
    pub room: Room,
}

/// Which part of the process runs a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// The service of objects.
    Objects,
    /// The door: connections, and reports about the server.
    Door,
    /// The counts and events of raingauge.
    Rain,
}

/// What a caller needs in order to run a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Nothing but a login.
    Any,
    ObjectsRead,
    ObjectsWrite,
    CountsRead,
    EventsWrite,
    Admin,
}

impl Scope {
    /// The name that tokens have for it.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Any => "none",
            Scope::ObjectsRead => "objects:read",
            Scope::ObjectsWrite => "objects:write",
            Scope::CountsRead => "counts:read",
            Scope::EventsWrite => "events:write",
            Scope::Admin => "admin",
        }
    }
}

macro_rules! bits {
    ($(#[$doc:meta])* $name:ident: $($flag:ident = $bit:literal $text:literal,)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name(u32);

        impl $name {
            pub const NONE: $name = $name(0);
            $(pub const $flag: $name = $name(1 << $bit);)*

            /// Every flag with the name that replies use.
            pub const ALL: &'static [($name, &'static str)] = &[$(($name::$flag, $text),)*];

            /// Both sets together.
            pub const fn and(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }

            /// Whether all flags of the other set are in this one.
            pub const fn has(self, other: $name) -> bool {
                self.0 & other.0 == other.0
            }

            /// The names of the flags of this set.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                $name::ALL.iter().filter(move |(flag, _)| self.has(*flag)).map(|(_, name)| *name)
            }

            /// The flag of this name.
            pub fn named(name: &str) -> Option<$name> {
                $name::ALL.iter().find(|(_, known)| *known == name).map(|(flag, _)| *flag)
            }
        }
    };
}

bits! {
    /// Properties of a command, under the names that `COMMAND INFO` has for them.
    Flags:
    WRITE = 0 "write",
    READONLY = 1 "readonly",
    DENYOOM = 2 "denyoom",
    ADMIN = 3 "admin",
    PUBSUB = 4 "pubsub",
    NOSCRIPT = 5 "noscript",
    BLOCKING = 6 "blocking",
    LOADING = 7 "loading",
    STALE = 8 "stale",
    SKIP_MONITOR = 9 "skip_monitor",
    SKIP_SLOWLOG = 10 "skip_slowlog",
    ASKING = 11 "asking",
    FAST = 12 "fast",
    NO_AUTH = 13 "no_auth",
    MAY_REPLICATE = 14 "may_replicate",
    NO_ASYNC_LOADING = 15 "no_async_loading",
    NO_MULTI = 16 "no_multi",
    MOVABLEKEYS = 17 "movablekeys",
    ALLOW_BUSY = 18 "allow_busy",
}

bits! {
    /// Categories of commands, under the names that `ACL CAT` has for them.
    Categories:
    KEYSPACE = 0 "keyspace",
    READ = 1 "read",
    WRITE = 2 "write",
    SET = 3 "set",
    SORTEDSET = 4 "sortedset",
    LIST = 5 "list",
    HASH = 6 "hash",
    STRING = 7 "string",
    BITMAP = 8 "bitmap",
    HYPERLOGLOG = 9 "hyperloglog",
    GEO = 10 "geo",
    STREAM = 11 "stream",
    PUBSUB = 12 "pubsub",
    ADMIN = 13 "admin",
    FAST = 14 "fast",
    SLOW = 15 "slow",
    BLOCKING = 16 "blocking",
    DANGEROUS = 17 "dangerous",
    CONNECTION = 18 "connection",
    TRANSACTION = 19 "transaction",
    SCRIPTING = 20 "scripting",
}

bits! {
    /// How a command uses a key.
    Access:
    RO = 0 "RO",
    RW = 1 "RW",
    OW = 2 "OW",
    RM = 3 "RM",
    ACCESS = 4 "access",
    UPDATE = 5 "update",
    INSERT = 6 "insert",
    DELETE = 7 "delete",
    NOT_KEY = 8 "not_key",
    INCOMPLETE = 9 "incomplete",
    VARIABLE_FLAGS = 10 "variable_flags",
}

/// Where some of the keys of a command stand among its arguments.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    pub access: Access,
    /// The argument that the positions are counted from; the name is 0.
    pub at: u16,
    pub find: Find,
}

/// The keys behind the argument at which a [`KeySpec`] begins.
#[derive(Clone, Copy, Debug)]
pub enum Find {
    /// Up to `last` arguments behind the first; -1 is the last argument of all. Every `step`th.
    Range { last: i16, step: u16 },
    /// A number says how many keys follow it.
    Counted,
}

/// One key at `at`.
pub(crate) const fn one(access: Access, at: u16) -> KeySpec {
    range(access, at, 0, 1)
}

/// Keys from `at` on.
pub(crate) const fn range(access: Access, at: u16, last: i16, step: u16) -> KeySpec {
    KeySpec { access, at, find: Find::Range { last, step } }
}

/// Keys behind the number at `at`.
pub(crate) const fn counted(access: Access, at: u16) -> KeySpec {
    KeySpec { access, at, find: Find::Counted }
}

impl Spec {
    /// Whether a command of this many arguments, with its name, is well formed.
    pub fn accepts(&self, len: usize) -> bool {
        let arity = usize::from(self.arity.unsigned_abs());

        if self.arity < 0 { len >= arity } else { len == arity }
    }

    pub fn is_write(&self) -> bool {
        self.flags.has(Flags::WRITE)
    }

    pub fn is_readonly(&self) -> bool {
        self.flags.has(Flags::READONLY)
    }

    pub fn denies_oom(&self) -> bool {
        self.flags.has(Flags::DENYOOM)
    }

    /// Whether the first argument of the command names a subcommand.
    pub fn is_container(&self) -> bool {
        matches!(
            self.id,
            Id::Acl
                | Id::Client
                | Id::Cluster
                | Id::Command
                | Id::Config
                | Id::Function
                | Id::Latency
                | Id::Memory
                | Id::Object
                | Id::Pubsub
                | Id::Script
                | Id::Slowlog
        )
    }

    /// The name of the container, of a subcommand.
    pub fn container(&self) -> Option<&'static str> {
        self.name.split_once('|').map(|(container, _)| container)
    }

    /// Visits the positions of all keys of a command, in their order. What does not fit, such as a
    /// number of keys beyond the arguments, is left out: the command itself refuses it.
    pub fn key_positions(&self, arguments: Arguments<'_>, mut visit: impl FnMut(usize, Access)) {
        for spec in self.keys {
            spec.positions(arguments, &mut |at| visit(at, spec.access));
        }
    }

    /// What a caller needs in order to run the command.
    pub fn scope(&self) -> Scope {
        match self.id {
            Id::RainCount | Id::RainCounts | Id::RainSeries | Id::RainTop => Scope::CountsRead,
            Id::RainEvent | Id::RainAdd => Scope::EventsWrite,
            Id::RainOnce | Id::Publish | Id::Spublish => Scope::ObjectsWrite,

            // What shows keys or how the door is used, or asks for what happens anyway.
            Id::ClientList
            | Id::ClusterCountkeysinslot
            | Id::ClusterGetkeysinslot
            | Id::ConfigGet
            | Id::Info
            | Id::Lastsave
            | Id::Role
            | Id::SlowlogGet
            | Id::SlowlogLen
            | Id::LatencyHistogram
            | Id::LatencyHistory
            | Id::LatencyLatest
            | Id::Watch => Scope::ObjectsRead,
            Id::Save | Id::Bgsave | Id::Bgrewriteaof => Scope::ObjectsWrite,

            _ if self.is_write() => Scope::ObjectsWrite,
            _ if self.flags.has(Flags::ADMIN) => Scope::Admin,
            _ if self.is_readonly() || self.flags.has(Flags::PUBSUB) => Scope::ObjectsRead,
            _ => Scope::Any,
        }
    }

    /// First key, last key and step, as old clients read them from `COMMAND`; zeros when the
    /// positions follow from the arguments only.
    pub fn legacy_keys(&self) -> (i64, i64, i64) {
        let mut first = 0;
        let mut last = 0;
        let mut every = 0;

        for spec in self.keys {
            let Find::Range { last: end, step } = spec.find else { continue };
            let at = i64::from(spec.at);
            let end = if end < 0 { i64::from(end) } else { at + i64::from(end) };

            if first == 0 {
                first = at;
                last = end;
                every = i64::from(step);
            } else if last >= 0 && (end < 0 || at == last + 1) {
                last = end;
            }
        }

        (first, last, every)
    }
}

impl KeySpec {
    /// Visits the positions of these keys.
    pub fn positions(&self, arguments: Arguments<'_>, visit: &mut impl FnMut(usize)) {
        let at = usize::from(self.at);

        match self.find {
            Find::Range { last, step } => {
                let end = match usize::try_from(last) {
                    Ok(last) => at + last,
                    Err(_) => arguments.len().saturating_sub(usize::from(last.unsigned_abs())),
                };

                for position in (at..=end).step_by(usize::from(step)) {
                    if position < arguments.len() {
                        visit(position);
                    }
                }
            }

            Find::Counted => {
                let count = arguments.get(at).and_then(crate::number::parse_i64).unwrap_or(0);
                let rest = arguments.len().saturating_sub(at + 1);
                let count = usize::try_from(count).unwrap_or(0);

                if count <= rest {
                    (at + 1..at + 1 + count).for_each(visit);
                }
            }
        }
    }
}

/// What a caller may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// Everything, as on loopback without tokens.
    pub const fn all() -> Rights {
        Rights(0b1_1111)
    }

    const fn bit(scope: Scope) -> u8 {
        match scope {
            Scope::Any => 0,
            Scope::ObjectsRead => 1,
            Scope::ObjectsWrite => 2,
            Scope::CountsRead => 4,
            Scope::EventsWrite => 8,
            Scope::Admin => 16,
        }
    }

    /// These rights and one more.
    #[must_use]
    pub const fn with(self, scope: Scope) -> Rights {
        Rights(self.0 | Rights::bit(scope))
    }

    pub const fn has(self, scope: Scope) -> bool {
        self.0 & Rights::bit(scope) == Rights::bit(scope)
    }
}

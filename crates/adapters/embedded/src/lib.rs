//! The engines that need no server: the event log in segment files, the bucket store on fjall.
//!
//! ```text
//!   data folder
//!   ├── log/      00000000000000000000.log …   events, in blocks that became durable together
//!   │             acknowledged                 how far the log was acknowledged
//!   │             clock                        when the clock was last trusted
//!   │             ids-….run                    identities of older events, sorted
//!   ├── tiles/    fjall                        tiles, the position in the log, the writer's state
//!   ├── campaigns/
//!   │   ├── ledger/  fjall                     the ledger of campaigns
//!   │   └── tables/  fjall                     uploaded tables
//!   ├── objects/
//!   │   ├── log/     00000000000000000000.objects …   groups of effects, since the last checkpoint
//!   │   └── state/   fjall                     heads, entries, the position in the log
//!   └── points/
//!       ├── journal/  00000000000000000000.book …   entries, in blocks durable together
//!       ├── state/    fjall                     what follows from them: wallets, keys, statements
//!       └── queues/   fjall                     letters
//! ```
//!
//! The log is the truth. The store is a function of a prefix of the log, and records which one. The
//! same holds for the journal of points and its state.

#[cfg(test)]
mod allocations;
mod books;
mod cache;
mod clock;
mod compaction;
#[cfg(test)]
mod faults;
mod files;
mod ledger;
mod log;
mod objects;
mod queues;
mod room;
mod store;
mod tiles;
mod uploads;

pub use books::{
    Options as BookOptions, PointBooks, rebuild as rebuild_books, verify as verify_books,
};
pub use clock::LogClock;
pub use compaction::StoreCompactor;
pub use ledger::{CampaignLedger, Options as LedgerOptions};
pub use log::{
    Allowed as RepairAllowed, Fault as LogFault, Inspection as LogInspection,
    Options as LogOptions, Repair as LogRepair, SegmentLog,
};
pub use objects::{
    Description as ObjectDescription, Difference as ObjectDifference, ObjectFiles,
    Options as ObjectOptions, Summary as ObjectSummary, WideObject, verify as verify_objects,
};
pub use queues::{LetterQueues, Options as QueueOptions};
pub use tiles::{Options as TileOptions, TileStore};
pub use uploads::{Options as TableOptions, UploadedTables};

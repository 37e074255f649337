//! The engines that need no server: the event log in segment files, the bucket store on fjall.
//!
//! ```text
//!   data folder
//!   ├── log/      00000000000000000000.log …   events, in blocks that became durable together
//!   │             acknowledged                 how far the log was acknowledged
//!   │             clock                        when the clock was last trusted
//!   │             ids-….run                    identities of older events, sorted
//!   ├── tiles/    fjall                        tiles, the position in the log, the writer's state
//!   └── campaigns/
//!       ├── ledger/  fjall                     the ledger of campaigns
//!       └── tables/  fjall                     uploaded tables
//! ```
//!
//! The log is the truth. The store is a function of a prefix of the log, and records which one.

#[cfg(test)]
mod allocations;
mod clock;
mod compaction;
#[cfg(test)]
mod faults;
mod files;
mod ledger;
mod log;
mod room;
mod store;
mod tiles;
mod uploads;

pub use clock::LogClock;
pub use compaction::StoreCompactor;
pub use ledger::{CampaignLedger, Options as LedgerOptions};
pub use log::{
    Allowed as RepairAllowed, Fault as LogFault, Inspection as LogInspection,
    Options as LogOptions, Repair as LogRepair, SegmentLog,
};
pub use tiles::{Options as TileOptions, TileStore};
pub use uploads::{Options as TableOptions, UploadedTables};

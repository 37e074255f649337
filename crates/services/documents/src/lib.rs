//! Documents of products: how they are checked, stored, and take effect.
//!
//! ```text
//!   doors ──▶ Documents ── checks (Rules) ──▶ DocumentStore: every version
//!                 │                                 ▲
//!                 │                       reconciler, twice a second
//!                 └──▶ control entry in the log ──▶ worker ──▶ InEffect
//! ```
//!
//! A version is stored first, and takes effect at a place in the log: the control entry that names
//! it. So everything before it is decided by the version before, in this process and in every
//! replay. A process that ends between the two leaves a difference that the reconciler finds.
//!
//! What a product's documents are is up to its [`Rules`]; those of campaigns are
//! [`CampaignRules`], and those of points [`ProgrammeRules`]. A [`ProductKind`] lets documents be
//! proposed as drafts, and [`Uploads`] fills the tables that documents describe.

mod announcer;
mod campaign_rules;
mod difference;
mod documents;
mod error;
mod product_kind;
mod programme_difference;
mod programme_rules;
mod rules;
mod upload_rows;
mod uploads;

pub use campaign_rules::CampaignRules;
pub use difference::{between, sentences};
pub use documents::{Deps, Documents, Options};
pub use error::Error;
pub use product_kind::ProductKind;
pub use programme_rules::ProgrammeRules;
pub use raingauge_counters::documents::Provenance;
pub use rules::{CheckedDocument, InEffect, Rules};
pub use upload_rows::Format;
pub use uploads::{Upload, Uploads};

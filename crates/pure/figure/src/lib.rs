//! What all charts share, whether a page of the portal or a report of the lab draws them.
//!
//! ```text
//!   values ──▶ Axis: ticks, heights ─┐
//!   times  ──▶ clock: ticks ─────────┼──▶ a drawing of the portal or the lab
//!   points ──▶ path: SVG ────────────┘      with values as text by Unit and number
//! ```
//!
//! The crate draws nothing itself: widths, colours and time zones belong to its callers.

pub mod clock;
pub mod number;
pub mod path;

mod axis;
mod unit;

pub use axis::{Axis, Scale};
pub use unit::Unit;

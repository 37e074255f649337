//! Settings, declared where their component lives.
//!
//! A component declares a struct with [`settings!`]: the name, values, default and text of each
//! setting, in one place. The binary composes these structs with [`compose!`], and everything else
//! is made from the declarations: the reading of files, variables and options, messages, the
//! reference page and the commented files in `config/`.
//!
//! ```text
//!   file, variables, options ──▶ Reader ──▶ settings! structs ──▶ compose! ──▶ or every Problem
//!                                  ▲
//!                 Group: the settings of a component ──▶ page: reference, example file
//! ```
//!
//! A [`Reader`] reports every problem at once: the key, where it was set, what is wrong, and what
//! to do.

mod declare;
mod given;
mod nearest;
pub mod page;
mod problem;
mod raw;
mod reader;
mod value;
mod words;

pub use declare::{Kind, PROGRAM, Setting, kinds};
pub use problem::{Origin, Problem, quote};
pub use raw::{Item, Raw};
pub use reader::{Group, Reader};
pub use value::{Checked, Entry, FromText, Value, Wrong, text_of, wrong_type};

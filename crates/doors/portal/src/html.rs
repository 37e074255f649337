//! The building blocks of pages.

pub mod chart;
pub mod counter_form;
pub mod drafts;
pub mod jobs;
pub mod layout;
pub mod notes;
pub mod parts;
pub mod passwords;
pub mod trial;
pub mod words;

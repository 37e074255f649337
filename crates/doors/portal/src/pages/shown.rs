//! What a page with a list and a form below it shows beside the list.

use crate::fields::Fields;
use crate::html::notes;
use jiff::tz::TimeZone;
use maud::Markup;

/// What was just done or typed. `M` is what was made, and is shown this once.
pub struct Shown<'a, M> {
    pub note: Markup,
    pub zone: TimeZone,
    pub made: Option<M>,
    /// What was typed into the form, and what is wrong with it.
    pub typed: Option<&'a Fields>,
    problem: Option<(&'static str, &'a str)>,
}

impl<'a, M> Shown<'a, M> {
    /// The list, as an address asks for it.
    pub fn asked(fields: &Fields) -> Self {
        Self {
            note: notes::shown(fields),
            zone: fields.zone(),
            made: None,
            typed: None,
            problem: None,
        }
    }

    pub fn made(made: M) -> Self {
        Self { made: Some(made), ..Self::asked(&Fields::default()) }
    }

    /// A form again, with what is wrong beside its field.
    pub fn refused(typed: &'a Fields, field: &'static str, words: &'a str) -> Self {
        Self {
            typed: Some(typed),
            problem: Some((field, words)),
            ..Self::asked(&Fields::default())
        }
    }

    pub fn text(&self, field: &str) -> &str {
        self.typed.map_or("", |fields| fields.text(field))
    }

    pub fn problem(&self, field: &str) -> Option<&str> {
        self.problem.filter(|(found, _)| *found == field).map(|(_, words)| words)
    }
}

//! The state of a page that has a list and a form below it.

use crate::fields::Fields;
use crate::html::notes;
use jiff::tz::TimeZone;
use maud::Markup;

/// The note, the form and the result to show. `M` is the item just created, which is shown only
/// this once.
pub struct PageState<'a, M> {
    pub note: Markup,
    pub zone: TimeZone,
    pub made: Option<M>,
    /// The submitted form, when it had a problem.
    pub typed: Option<&'a Fields>,
    problem: Option<(&'static str, &'a str)>,
}

impl<'a, M> PageState<'a, M> {
    /// The plain list, as the address specifies it.
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

    /// The form again, with the problem beside its field.
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

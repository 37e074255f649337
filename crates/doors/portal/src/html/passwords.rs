//! Fields for passwords.

use super::parts::Field;
use crate::Fields;
use maud::{Markup, html};
use raingauge_people::AccountError;
use raingauge_people::passwords::{PASSWORD_CHARS_MIN, PASSWORD_LEN_MAX};

/// A field that hides its input. It is never filled with what was typed before.
pub fn field(
    name: &str,
    label: &str,
    hint: &str,
    problem: Option<&str>,
    autocomplete: &str,
) -> Markup {
    Field { name, label, hint, problem }.around(&html! {
        input type="password" id=(name) name=(name) required autocomplete=(autocomplete)
            maxlength=(PASSWORD_LEN_MAX) aria-invalid=[problem.map(|_| "true")]
            aria-describedby={ (name) "-words" };
    })
}

/// Reads the fields of [`pair`].
pub fn chosen(fields: &Fields) -> Result<&str, AccountError> {
    let password = fields.exact("password");
    if password == fields.exact("again") {
        return Ok(password);
    }
    let words = "The two passwords differ. Type the same one twice.".to_owned();
    Err(AccountError::Field("again", words))
}

/// A new password, twice.
pub fn pair(problem: Option<&str>, again: Option<&str>) -> Markup {
    let hint = format!("At least {PASSWORD_CHARS_MIN} characters, such as a few words in a row.");
    html! {
        (field("password", "New password", &hint, problem, "new-password"))
        (field("again", "Repeat the password", "", again, "new-password"))
    }
}

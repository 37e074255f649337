//! The document of a product as text, for its form: YAML, of which JSON is a part.

mod editor;
mod places;

pub use editor::{Editor, Sheet, check_no_approval, propose};

use crate::Fault;
use crate::html::words;
use maud::{Markup, html};
use places::line_of;
use raingauge_core::counter::Problem;
use raingauge_documents::Error;
use serde::Serialize;
use serde_json::Value as Json;

/// Longest text of a document in a form, in bytes.
pub const DOCUMENT_TEXT_LEN_MAX: usize = 192 * 1024;

/// Why a document was not saved. Its form shows what is wrong with it; anything else is a page of
/// its own.
#[derive(Debug)]
pub enum SaveError {
    Invalid(Vec<Problem>),
    Other(Fault),
}

impl From<Error> for SaveError {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid { problems, .. } => Self::Invalid(problems),
            error => Self::Other(error.into()),
        }
    }
}

/// Reads a text. A text of several documents in a list is refused: a form is about one.
pub fn parse(text: &str) -> Result<Json, Vec<Problem>> {
    let problem = |detail: String| vec![Problem::new("", detail)];
    if text.len() > DOCUMENT_TEXT_LEN_MAX {
        return Err(problem(format!("the text has more than {DOCUMENT_TEXT_LEN_MAX} bytes")));
    }

    let json: Json = serde_yaml_ng::from_str(text)
        .map_err(|error| problem(format!("the text cannot be read: {error}")))?;
    match json {
        Json::Object(_) => Ok(json),
        Json::Array(mut list) if list.len() == 1 && list[0].is_object() => Ok(list.remove(0)),
        _ => Err(problem("the text must be one document".to_owned())),
    }
}

/// Writes a document.
pub fn text_of(document: &impl Serialize) -> String {
    serde_yaml_ng::to_string(document).unwrap_or_default()
}

/// What is wrong with a text, each problem with its line.
pub fn problems(problems: &[Problem], text: &str) -> Markup {
    html! {
        @if !problems.is_empty() {
            div.notice.bad role="alert" {
                p { strong { (words::count_of(problems.len() as i128, "problem", "problems")) } " to solve before it can be saved:" }
                ul.reasons {
                    @for Problem { field, detail } in problems {
                        li {
                            @if let Some(line) = line_of(text, field) {
                                @let words = text.lines().nth(line - 1).unwrap_or_default().trim();
                                strong { "line " (line) } ": " code { (words::cut(words, 80)) } br;
                            }
                            @if !field.is_empty() { code { (field) } " " }
                            (detail)
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn yaml_and_json_are_read() {
        let document = json!({"name": "n", "eventTypes": ["a"]});
        for text in
            ["name: n\neventTypes: [a]", "- name: n\n  eventTypes:\n    - a", &document.to_string()]
        {
            assert_eq!(parse(text), Ok(document.clone()), "{text}");
        }
        assert_eq!(parse(&text_of(&document)), Ok(document));
        for wrong in ["", "- a: 1\n- b: 2", "text", "a: [", "{\"a\": 1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse(&" ".repeat(DOCUMENT_TEXT_LEN_MAX + 1)).is_err());
    }

    #[test]
    fn problems_are_shown_with_their_lines() {
        let found = [Problem::new("limits[0]", "<max> is 0"), Problem::new("", "odd")];
        let markup = problems(&found, "name: <b>\nlimits:\n- {max: 0}").into_string();
        assert!(markup.contains("line 3") && markup.contains("&lt;max&gt; is 0"), "{markup}");
        assert_eq!(problems(&[], "").into_string(), "");
    }
}

//! A letter as the text of a message.
//!
//! ```text
//!   {"version":1,"id":"shop:o-1","firstError":null,"form":"plain"}\n
//!   the body, as it is, or as a text of JSON if it has characters that SQS refuses
//! ```

use raingauge_ports::points::{Death, Letter, QUEUE_ID_LEN_MAX, QueueError};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Longest text of a message, and of all messages of one call, in bytes: the least that any server
/// takes. SQS itself takes more.
pub const MESSAGE_LEN_MAX: usize = 262_144;
/// The version of the envelope.
const VERSION: u32 = 1;
/// What is kept of the body of a dead letter that is too long with its death: it fits, however many
/// of its characters are escaped.
const CUT_BODY_LEN: usize = 32_768;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header<'a> {
    version: u32,
    id: Cow<'a, str>,
    first_error: Option<Cow<'a, str>>,
    form: Form,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead: Option<Grave>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Form {
    Plain,
    Json,
}

/// What a dead letter carries.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Grave {
    reason: String,
    last_error: String,
    attempts: u32,
    died_ms: i64,
    /// When the letter was sent, before it died.
    sent_ms: i64,
}

/// A message that was opened.
#[derive(Debug, PartialEq)]
pub struct Opened {
    pub letter: Letter,
    /// The death, and when the letter had been sent.
    pub death: Option<(Death, i64)>,
}

/// The text of a letter; of a dead one with its death, and when it had been sent.
pub fn seal(letter: &Letter, death: Option<(&Death, i64)>) -> Result<String, QueueError> {
    let is_plain = letter.body.chars().all(is_taken) && !letter.body.is_empty();
    let form = if is_plain { Form::Plain } else { Form::Json };
    let body = match form {
        Form::Plain => letter.body.clone(),
        Form::Json => text_of(&letter.body),
    };

    let header = Header {
        version: VERSION,
        id: Cow::Borrowed(&letter.id),
        first_error: letter.first_error.as_deref().map(Cow::Borrowed),
        form,
        dead: death.map(|(death, sent_ms)| Grave {
            reason: death.reason.clone(),
            last_error: death.last_error.clone(),
            attempts: death.attempts,
            died_ms: death.died_ms,
            sent_ms,
        }),
    };
    let message = format!("{}\n{body}", text_of(&header));
    if message.len() > MESSAGE_LEN_MAX {
        return Err(QueueError::TooLarge(format!(
            "a letter has more than {MESSAGE_LEN_MAX} bytes once its characters are escaped for SQS"
        )));
    }
    Ok(message)
}

/// The text of a dead letter. A message of another program may be too long for it, and is cut, so
/// that its receiver gets rid of it.
pub fn seal_dead(letter: &Letter, death: &Death, sent_ms: i64) -> Result<String, QueueError> {
    match seal(letter, Some((death, sent_ms))) {
        Err(QueueError::TooLarge(_)) => {
            let mut cut = letter.clone();
            cut.body.truncate(cut.body.floor_char_boundary(CUT_BODY_LEN));
            cut.id.truncate(cut.id.floor_char_boundary(QUEUE_ID_LEN_MAX));
            seal(&cut, Some((death, sent_ms)))
        }
        sealed => sealed,
    }
}

/// Opens a message. `None` for the text of another program, or of a newer version.
pub fn open(message: &str) -> Option<Opened> {
    let (header, body) = message.split_once('\n')?;
    let header: Header = serde_json::from_str(header).ok()?;
    if header.version != VERSION {
        return None;
    }

    let body = match header.form {
        Form::Plain => body.to_owned(),
        Form::Json => serde_json::from_str(body).ok()?,
    };
    let letter = Letter {
        id: header.id.into_owned(),
        body,
        first_error: header.first_error.map(Cow::into_owned),
    };
    let death = header.dead.map(|grave| {
        let Grave { reason, last_error, attempts, died_ms, sent_ms } = grave;
        (Death { reason, last_error, attempts, died_ms }, sent_ms)
    });
    Some(Opened { letter, death })
}

/// JSON without the characters that SQS refuses. Those below a blank are escaped in any JSON.
fn text_of(value: &(impl Serialize + ?Sized)) -> String {
    let text = serde_json::to_string(value).expect("texts and numbers have a form in JSON");
    text.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff")
}

/// Whether SQS takes a character in a message.
fn is_taken(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r') || (c >= ' ' && c != '\u{fffe}' && c != '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn death() -> Death {
        let reason = "too_old".to_owned();
        Death { reason, last_error: "no row".to_owned(), attempts: 3, died_ms: 258 }
    }

    #[test]
    fn letters_come_out_as_they_went_in() {
        for body in ["{}", "", "a\nb\r\n", "\u{1}", "\u{fffe}", "☔", "\n"] {
            let letter = Letter::new("shop:\n\u{ffff}", body).because("\u{2} no row");
            let sealed = seal(&letter, None).unwrap();
            assert!(sealed.chars().all(is_taken), "{sealed:?}");
            assert_eq!(open(&sealed), Some(Opened { letter: letter.clone(), death: None }));

            let sealed = seal(&letter, Some((&death(), 5))).unwrap();
            assert_eq!(open(&sealed), Some(Opened { letter, death: Some((death(), 5)) }));
        }
    }

    /// Every later version must be able to read messages that wait.
    #[test]
    fn a_message_is_laid_out_as_it_was_in_version_1() {
        let sealed = seal(&Letter::new("a", "b"), None).unwrap();
        assert_eq!(
            sealed,
            "{\"version\":1,\"id\":\"a\",\"firstError\":null,\"form\":\"plain\"}\nb"
        );
    }

    #[test]
    fn what_is_strange_or_too_long_is_refused() {
        for strange in
            ["", "hello", "{}\nbody", "{\"version\":2,\"id\":\"a\",\"form\":\"plain\"}\nb"]
        {
            assert_eq!(open(strange), None);
        }
        let long = Letter::new("a", "\u{1}".repeat(100_000));
        assert!(matches!(seal(&long, None), Err(QueueError::TooLarge(_))));
        // A dead one is cut instead, and says why it died.
        let dead = open(&seal_dead(&long, &death(), 5).unwrap()).unwrap();
        assert_eq!(dead.letter.body.len(), CUT_BODY_LEN);
        assert_eq!(dead.death, Some((death(), 5)));
    }
}

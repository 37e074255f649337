//! Whom a control entry is for.
//!
//! ```json
//! {"for": "campaigns", "kind": "campaign", …}
//! ```
//!
//! A consumer obeys the entries that name it, and passes over all others, whatever they say. An
//! entry without `for` is for counting, which writes its own that way. A kind that the consumer
//! named does not know was written by a newer version of it: passing over it would make something
//! else of the log than that version does, so the consumer has to stop there until it is upgraded.

use raingauge_ports::consumers::Name;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What every control entry says.
#[derive(Debug, Deserialize)]
pub struct Head {
    /// The consumer that it is for; counting when it names none.
    #[serde(rename = "for")]
    consumer: Option<String>,
    pub kind: String,
}

impl Head {
    pub fn parse(payload: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(payload)
    }

    pub fn is_for(&self, consumer: &Name) -> bool {
        match &self.consumer {
            Some(named) => named == consumer.as_str(),
            None => *consumer == Name::counting(),
        }
    }
}

/// A document of a product that takes effect at a version, which may be that of its deletion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentVersion {
    pub kind: String,
    pub id: String,
    pub version: u32,
}

#[derive(Deserialize)]
struct DocumentEntry {
    document: DocumentVersion,
}

/// The payload of the control entry by which a document takes effect for a consumer.
pub fn document_entry(consumer: &str, document: &DocumentVersion) -> Vec<u8> {
    let entry = json!({"for": consumer, "kind": "document", "document": document});
    entry.to_string().into_bytes()
}

/// The document that takes effect for a consumer at a control entry; `None` at one that is not for
/// it. The error says why an entry for the consumer cannot be obeyed.
pub fn document_order(payload: &[u8], consumer: &Name) -> Result<Option<DocumentVersion>, String> {
    let Ok(head) = Head::parse(payload) else { return Ok(None) };
    if !head.is_for(consumer) {
        return Ok(None);
    }
    if head.kind != "document" {
        return Err(format!("it is of kind {:?}", head.kind));
    }
    let entry: DocumentEntry =
        serde_json::from_slice(payload).map_err(|error| error.to_string())?;
    Ok(Some(entry.document))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_for_the_consumer_that_it_names() {
        let names = [Name::counting(), Name::new("campaigns").unwrap()];
        for (payload, is_for) in [
            (&br#"{"kind":"counter","version":1}"#[..], [true, false]),
            (br#"{"kind":"counter","for":"counting"}"#, [true, false]),
            (br#"{"for":"campaigns","kind":"pause","since":7}"#, [false, true]),
            (br#"{"for":"caf\u00e9","kind":"\u0061"}"#, [false, false]),
            (br#"{"for":"","kind":"x"}"#, [false, false]),
        ] {
            let head = Head::parse(payload).unwrap();
            assert_eq!(names.each_ref().map(|name| head.is_for(name)), is_for);
        }

        for payload in
            [&b""[..], b"x", b"[]", b"{}", br#"{"for":"counting"}"#, br#"{"for":1,"kind":"x"}"#]
        {
            assert!(Head::parse(payload).is_err(), "{payload:?}");
        }
    }
}

//! What an event may bring beside its attributes, over whichever door.

use raingauge_core::code::{Code, Refusal};

/// A media type without its parameters, in small letters.
pub fn media_type(header: &str) -> String {
    header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The data of an event whose attributes stand beside it: JSON text, or nothing when its media type
/// is another.
pub fn json_data<'a>(media_type: &str, data: &'a [u8]) -> Result<&'a str, Refusal> {
    let malformed = |detail: &str| Refusal::new(Code::EventMalformed, detail);
    let is_json =
        media_type.is_empty() || media_type == "application/json" || media_type.ends_with("+json");
    if !is_json || data.is_empty() {
        return Ok("");
    }
    let text = std::str::from_utf8(data).map_err(|_| malformed("the data is not UTF-8"))?;
    serde_json::from_str::<serde::de::IgnoredAny>(text)
        .map_err(|error| malformed(&format!("the data is not JSON: {error}")))?;
    Ok(text)
}

//! Answers that a browser saves as a file.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use raingauge_app::largest::{COMPLETE, complete};

/// A text as a file with this name.
pub fn file(content_type: &'static str, name: &str, text: String) -> Response {
    let disposition = format!("attachment; filename=\"{name}\"");
    let about =
        [(header::CONTENT_TYPE, content_type), (header::CONTENT_DISPOSITION, disposition.as_str())];
    (about, text).into_response()
}

/// The same, where the text may lack entries: a header says whether it has all of them.
pub fn part(content_type: &'static str, name: &str, text: String, is_complete: bool) -> Response {
    let mut response = file(content_type, name, text);
    let value: HeaderValue = complete(is_complete);
    response.headers_mut().insert(COMPLETE, value);
    response
}

pub const CSV: &str = "text/csv; charset=utf-8";

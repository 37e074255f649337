//! Headers of every response.

use axum::http::{HeaderMap, HeaderValue, header};

/// Sets the headers of every response that is not a page: browsers neither guess its type, nor show
/// it as a page, nor store it.
pub fn protect(headers: &mut HeaderMap) {
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'");
    set(header::CACHE_CONTROL, "no-store");
}

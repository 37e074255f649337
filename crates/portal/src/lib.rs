//! The pages that `raingauge` serves to a browser, embedded in the binary.
//!
//! The page at `/` shows the counters and answers for one key of one of them: how many in a range, as a number and as a
//! chart. It is plain HTML, CSS and ES modules without a build step, it loads nothing from elsewhere, and it asks the
//! same HTTP interface that every other client asks. This crate only holds the files; the binary turns each of
//! [`ASSETS`] into a route and sends [`CONTENT_SECURITY_POLICY`] with it.
//!
//! ```text
//! index.html ── style.css, panels.css, favicon.svg
//!     └── app.js        which counter is chosen; the list; the top keys
//!           ├── answer.js    one key: the number, the range, the table     ── chart.js   the bars
//!           ├── system.js    is the server ready, is it behind             ── command.js a command to copy
//!           ├── address.js   the page's state in its address
//!           └── api.js, time.js, words.js, dom.js   requests; zones and buckets; sentences; elements
//! ```

/// One file of the page.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// The path of the route, from `/`.
    pub path: &'static str,
    /// The value of the `Content-Type` header.
    pub content_type: &'static str,
    pub body: &'static [u8],
}

/// What a browser may load for these pages: their own files and the server's own answers, no inline script or style,
/// nothing from elsewhere. With it, a name or a key that carries markup stays harmless even if it were ever inserted
/// as such.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! asset {
    ($path:literal, $content_type:expr, $file:literal) => {
        Asset { path: $path, content_type: $content_type, body: include_bytes!(concat!("../assets/", $file)) }
    };
}

/// Every file of the page, by route.
pub const ASSETS: &[Asset] = &[
    asset!("/", HTML, "index.html"),
    asset!("/assets/style.css", CSS, "style.css"),
    asset!("/assets/panels.css", CSS, "panels.css"),
    asset!("/assets/favicon.svg", SVG, "favicon.svg"),
    asset!("/assets/app.js", JAVASCRIPT, "app.js"),
    asset!("/assets/answer.js", JAVASCRIPT, "answer.js"),
    asset!("/assets/chart.js", JAVASCRIPT, "chart.js"),
    asset!("/assets/system.js", JAVASCRIPT, "system.js"),
    asset!("/assets/command.js", JAVASCRIPT, "command.js"),
    asset!("/assets/address.js", JAVASCRIPT, "address.js"),
    asset!("/assets/api.js", JAVASCRIPT, "api.js"),
    asset!("/assets/time.js", JAVASCRIPT, "time.js"),
    asset!("/assets/words.js", JAVASCRIPT, "words.js"),
    asset!("/assets/dom.js", JAVASCRIPT, "dom.js"),
];

#[cfg(test)]
mod tests;

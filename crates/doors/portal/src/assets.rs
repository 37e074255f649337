//! The static files of the pages, embedded in the binary.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};

#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// The path of the route, from `/`.
    pub path: &'static str,
    /// The value of the `Content-Type` header.
    pub content_type: &'static str,
    pub body: &'static [u8],
}

const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! asset {
    ($content_type:expr, $file:literal) => {
        Asset {
            path: concat!("/assets/", $file),
            content_type: $content_type,
            body: include_bytes!(concat!("../assets/", $file)),
        }
    };
}

/// All files, by route. Every page loads the CSS and JavaScript files.
pub const ASSETS: &[Asset] = &[
    asset!(CSS, "style.css"),
    asset!(CSS, "parts.css"),
    asset!(CSS, "chart.css"),
    asset!(CSS, "counters.css"),
    asset!(CSS, "editor.css"),
    asset!(CSS, "system.css"),
    asset!(CSS, "people.css"),
    asset!(SVG, "favicon.svg"),
    asset!(JAVASCRIPT, "portal.js"),
    asset!(JAVASCRIPT, "chart.js"),
    asset!(JAVASCRIPT, "system.js"),
    asset!(JAVASCRIPT, "vendor/htmx.min.js"),
];

/// Responds with a file, or with `304 Not Modified` if the browser has it already.
pub fn answer(asset: &'static Asset, headers: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", &hex::encode(Sha256::digest(asset.body))[..16]);
    let has_it =
        headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let about = [
        (header::CONTENT_TYPE, asset.content_type),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::ETAG, &tag),
    ];

    if has_it {
        (StatusCode::NOT_MODIFIED, about).into_response()
    } else {
        (about, asset.body).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &str) -> Vec<String> {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
        let entries = std::fs::read_dir(format!("{root}/{folder}")).expect("the assets folder");
        let names = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        names.filter(|name| name.contains('.') && !name.ends_with("LICENSE")).collect()
    }

    #[test]
    fn every_file_of_the_folder_is_served() {
        let own = files("").into_iter().map(|name| format!("/assets/{name}"));
        let mut found: Vec<String> = own
            .chain(files("vendor").into_iter().map(|name| format!("/assets/vendor/{name}")))
            .collect();
        let mut served: Vec<String> = ASSETS.iter().map(|asset| asset.path.to_owned()).collect();
        found.sort();
        served.sort();
        assert_eq!(found, served);
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        for asset in ASSETS.iter().filter(|asset| !asset.path.contains("vendor")) {
            let text = std::str::from_utf8(asset.body).expect("assets are text");
            for (place, _) in text.match_indices("http") {
                let address = &text[place..text.len().min(place + 40)];
                let is_name = address.starts_with("http://www.w3.org/");
                assert!(
                    is_name || !address.starts_with("http:") && !address.starts_with("https:"),
                    "{address}"
                );
            }
        }
    }

    #[test]
    fn a_browser_that_has_a_file_is_not_sent_it_again() {
        let first = answer(&ASSETS[0], &HeaderMap::new());
        assert_eq!(first.status(), StatusCode::OK);
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        assert_eq!(answer(&ASSETS[0], &headers).status(), StatusCode::NOT_MODIFIED);
    }
}

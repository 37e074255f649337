//! What every page promises.

mod doors;
mod texts;

use crate::world::World;
use axum::http::StatusCode;

#[tokio::test]
async fn pages_forbid_what_they_do_not_need() {
    let page = World::new().get("/").await;
    assert_eq!(page.status, StatusCode::OK);
    let header = |name: &str| {
        page.headers.get(name).map(|value| value.to_str().expect("text")).unwrap_or_default()
    };
    assert!(header("content-security-policy").starts_with("default-src 'none'; script-src 'self'"));
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert_eq!(header("x-frame-options"), "DENY");
    assert_eq!(header("cache-control"), "no-store");
    page.lacks("style=\"").lacks("onclick").lacks("http://").lacks("https://");
}

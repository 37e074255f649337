//! The promises of the page that can be checked without a browser: it is complete, and it stays inside its policy.

use std::collections::BTreeSet;

use super::{ASSETS, Asset, CONTENT_SECURITY_POLICY};

fn text(asset: &Asset) -> &'static str {
    std::str::from_utf8(asset.body).expect("assets are text")
}

/// Everything that stands between `before` and the next `after`.
fn between<'a>(text: &'a str, before: &'a str, after: char) -> impl Iterator<Item = &'a str> {
    text.split(before).skip(1).filter_map(move |rest| rest.split(after).next())
}

/// The files that an asset asks the browser for, as routes.
fn references(asset: &Asset) -> Vec<String> {
    let text = text(asset);
    let mut found: Vec<String> = Vec::new();
    match asset.content_type.split(';').next() {
        Some("text/html") => {
            for attribute in ["href=\"", "src=\""] {
                found.extend(between(text, attribute, '"').filter(|target| !target.starts_with('#')).map(String::from));
            }
        }
        Some("text/css") => found.extend(between(text, "url(", ')').map(String::from)),
        Some("text/javascript") => {
            let modules = between(text, "from \"", '"').chain(between(text, "import(\"", '"'));
            found.extend(modules.map(|module| module.replacen("./", "/assets/", 1)));
        }
        _ => {}
    }
    found
}

#[test]
fn every_file_that_is_asked_for_is_served() {
    let routes: BTreeSet<&str> = ASSETS.iter().map(|asset| asset.path).collect();
    assert_eq!(routes.len(), ASSETS.len(), "two assets share a path");
    let mut asked: BTreeSet<String> = BTreeSet::from(["/".to_string()]);
    for asset in ASSETS {
        for target in references(asset) {
            assert!(routes.contains(target.as_str()), "{} asks for {target}, which is not served", asset.path);
            asked.insert(target);
        }
    }
    for route in routes {
        assert!(asked.contains(route), "nothing asks for {route}");
    }
}

#[test]
fn every_file_of_the_folder_is_served() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
    let files = std::fs::read_dir(folder).expect("the assets folder").count();
    assert_eq!(files, ASSETS.len());
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    for asset in ASSETS {
        let own = text(asset).replace("http://www.w3.org/2000/svg", "the name of SVG");
        assert!(!own.contains("://"), "{} names an address elsewhere", asset.path);
        assert!(!own.contains("@import"), "{} imports a style sheet", asset.path);
        for target in references(asset) {
            assert!(target.starts_with('/') && !target.starts_with("//"), "{} loads {target}", asset.path);
        }
    }
}

#[test]
fn nothing_needs_inline_script_or_style() {
    for asset in ASSETS.iter().filter(|asset| !asset.content_type.starts_with("text/css")) {
        let text = text(asset);
        for forbidden in [" style=", "<style", "javascript:", " onclick=", " onload=", " oninput=", " onsubmit="] {
            assert!(!text.contains(forbidden), "{} contains {forbidden}", asset.path);
        }
        for script in between(text, "<script", '>') {
            assert!(script.contains("src=\""), "{} holds a script", asset.path);
        }
    }
}

#[test]
fn data_never_becomes_markup() {
    for asset in ASSETS.iter().filter(|asset| asset.content_type.starts_with("text/javascript")) {
        for forbidden in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"] {
            assert!(!text(asset).contains(forbidden), "{} uses {forbidden}", asset.path);
        }
    }
}

#[test]
fn every_element_that_a_script_looks_up_is_on_the_page() {
    let page = text(&ASSETS[0]);
    for asset in ASSETS {
        for id in between(text(asset), "byId(\"", '"') {
            assert!(page.contains(&format!("id=\"{id}\"")), "{} looks for #{id}", asset.path);
        }
    }
}

#[test]
fn the_policy_allows_nothing_by_default_and_nothing_inline() {
    assert!(
        CONTENT_SECURITY_POLICY
            .starts_with("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:")
    );
    assert!(!CONTENT_SECURITY_POLICY.contains("unsafe"));
    assert!(!CONTENT_SECURITY_POLICY.contains("  "));
}

//! Any portal shows the whole system.

use super::roles::{NOON_S, Roles};
use crate::client::forever;
use crate::server::until;
use serde_json::json;

/// What the page of the system says of a number, by its label.
fn figure(page: &str, label: &str) -> Option<String> {
    let (_, rest) = page.split_once(&format!("<dt>{label}</dt>"))?;
    let (_, rest) = rest.split_once("<b class=\"figure\">")?;
    rest.split('<').next().map(str::to_owned)
}

/// Each process announces itself, and what the reader answers is measured at the portal, which
/// answers no counts.
pub fn processes_see_each_other(roles: &Roles) {
    let system = || {
        let page = roles.portal.get("/system");
        assert_eq!(page.status, 200, "{}", page.text());
        page.text()
    };

    until("the portal shows all three", || {
        let page = system();
        ["writer", "reader", "portal"]
            .iter()
            .all(|role| page.contains(&format!("<td>{role}</td>")))
            .then_some(())
    });
    roles.portal.create(
        json!({"id": 64, "name": "watched", "template": "watched:{city}", "eventType": "watched",
        "retentionDays": forever()}),
    );
    roles.settle();

    let rate = until("the portal shows what the reader answers", || {
        roles.reader.count("watched:oslo", NOON_S, NOON_S + 900);
        figure(&system(), "Range counts").filter(|rate| rate != "0/s")
    });
    println!("the portal shows {rate}");
}

//! The portal: pages for defining, trying, checking and watching counters.
//!
//! ```text
//!   browser ──▶ routes ──▶ guard: authentication, role, own form ──▶ pages ──▶ services
//!                                                                      │
//!                                                       html: layout, parts, charts
//! ```
//!
//! The server renders all pages as HTML: links, forms and reloads are enough to use everything, and
//! the address determines what a page shows. htmx, a script served with the pages, replaces parts
//! of a page where that is more convenient. Pages load nothing from other hosts, and the content
//! security policy enforces that.

mod assets;
mod caller;
mod cookies;
pub mod document;
pub mod download;
mod fault;
mod fields;
mod form;
mod guard;
pub mod html;
mod largest;
mod observed;
mod pages;
mod routes;
mod section;
mod times;
mod trials;

pub use assets::{ASSETS, Asset};
pub use fault::Fault;
pub use fields::{Fields, Query};
pub use guard::too_slow;
pub use html::layout::Place;
pub use pages::openid::BACK as OPENID_BACK;
pub use routes::{Needs, Pages, Route, router, routes};
pub use section::{Answer, Section, Visit, done, encoded, page, reason_field};

use axum::response::Html;
use html::layout::{self, Link};
use maud::Markup;
use raingauge_app::App;
use raingauge_core::bucket::Granularity;
use raingauge_people::Principal;
use raingauge_people::accounts::Accounts;
use raingauge_people::openid::OpenId;
use raingauge_people::secrets::new_secret;
use std::ops::Deref;
use std::sync::Arc;

/// What a browser may load for these pages: their own files and the server's own responses, no
/// inline script or style, and nothing from other hosts. With this policy, a name or a key that
/// contains markup stays harmless even if it were ever inserted unescaped.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The portal, with its services and caches.
#[derive(Clone)]
pub struct Portal {
    app: Arc<App>,
    /// The links of the navigation.
    links: Arc<[Link]>,
    /// The OpenID provider, if sign-in through one is configured.
    openid: Option<OpenId>,
    /// Cache of the catalog's counters.
    list: Arc<pages::counters::Memory>,
    /// Cache of the measured costs of counters.
    costs: Arc<pages::counter::CostMemory>,
    /// Accounts, and the audit log of what people change.
    pub accounts: Arc<Accounts>,
    /// The form secret of people who need not sign in. Each process creates its own.
    open_secret: Arc<str>,
    /// Views of events that the audit log already has.
    views: Arc<raingauge_people::views::Views>,
}

impl Portal {
    pub fn new(app: Arc<App>, openid: Option<OpenId>) -> Self {
        let accounts = Accounts::new(
            Arc::clone(&app.people.store),
            Arc::clone(&app.clock),
            app.people.options.clone(),
        );
        Self {
            app,
            links: routes::navigation(&Pages::default()).into(),
            openid,
            list: Arc::default(),
            costs: Arc::default(),
            accounts: Arc::new(accounts),
            open_secret: new_secret().into(),
            views: Arc::default(),
        }
    }

    /// Adds the links of products to the navigation.
    pub fn with_links(mut self, pages: &Pages) -> Self {
        self.links = routes::navigation(pages).into();
        self
    }

    /// Renders a whole page, without the navigation if the person has not signed in.
    pub fn page(
        &self,
        person: Option<&Principal>,
        place: Place,
        title: &str,
        body: &Markup,
    ) -> Html<String> {
        layout::page(&self.links, person, place, title, body)
    }

    /// The end of this UTC day. Queries that end here stay the same for a whole day.
    fn end_of_today_s(&self) -> i64 {
        Granularity::Day.ceil(self.clock.now_s() + 1)
    }
}

impl Deref for Portal {
    type Target = App;

    fn deref(&self) -> &App {
        &self.app
    }
}

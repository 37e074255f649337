//! The portal: pages in which counters are defined, tried, trusted and watched.
//!
//! ```text
//!   browser ──▶ routes ──▶ guard: who is it, may they, is the form theirs ──▶ pages ──▶ services ──▶ ports
//!                                                                              │
//!                                                              html: layout, parts, charts
//! ```
//!
//! Pages are HTML that is made here, on the server: a link, a form and a reload do everything, and
//! what is shown follows from the address. htmx, a script that is served with the pages, exchanges
//! parts of a page where that is pleasanter. Nothing is loaded from elsewhere, and the content
//! security policy keeps it so.

mod assets;
mod cookies;
mod fault;
mod fields;
mod form;
mod guard;
pub mod html;
mod largest;
mod observing;
mod pages;
mod routes;
mod times;
mod trying;

pub use assets::{ASSETS, Asset};
pub use fields::Fields;
pub use guard::too_slow;
pub use pages::openid::BACK as OPENID_BACK;
pub use routes::{Needs, Route, router, routes};

use raingauge_app::App;
use raingauge_core::bucket::Granularity;
use raingauge_people::accounts::Accounts;
use raingauge_people::openid::OpenId;
use raingauge_people::secrets::new_secret;
use std::ops::Deref;
use std::sync::Arc;

/// What a browser may load for these pages: their own files and the server's own answers, no inline
/// script or style, nothing from elsewhere. With it, a name or a key that carries markup stays
/// harmless even if it were ever inserted as such.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The portal of a process.
#[derive(Clone)]
pub struct Portal {
    app: Arc<App>,
    /// Where people may also sign in.
    openid: Option<OpenId>,
    /// The largest keys of counters, found before.
    largest: Arc<largest::Memory>,
    /// The counters of the catalog, read before.
    list: Arc<pages::counters::Memory>,
    /// What counters cost, measured before.
    costs: Arc<pages::counter::CostMemory>,
    /// Accounts, and the audit log of what people change.
    pub accounts: Arc<Accounts>,
    /// What the forms of people who need not sign in carry: made anew with each process.
    open_secret: Arc<str>,
    /// Whose views of events the audit log has already.
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
            openid,
            largest: Arc::default(),
            list: Arc::default(),
            costs: Arc::default(),
            accounts: Arc::new(accounts),
            open_secret: new_secret().into(),
            views: Arc::default(),
        }
    }

    /// The end of this UTC day: what is asked up to it is asked with the same words for a whole
    /// day.
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

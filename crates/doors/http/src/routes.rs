//! The route table of the API, with one line for each route. The router, the guard, the audit log,
//! docs/rights.md, the contract and the tests derive from it.

use super::contract::Operation;
use super::guard::{Guard, Guarded};
use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use raingauge_app::{App, Role};
use raingauge_core::access::Scope;
use std::fmt;
use std::sync::Arc;

/// A line of the table.
pub struct Route {
    pub method: Method,
    pub path: &'static str,
    /// The scope that the caller's token needs; `None` for a public route.
    pub scope: Option<Scope>,
    /// The role of the processes that serve it; `None` when every process does.
    pub role: Option<Role>,
    /// The audit log's verb; `None` for routes that change no definitions.
    pub verb: Option<&'static str>,
    /// Whether the handler reads the body as it comes, of media types that it checks itself.
    pub is_upload: bool,
    /// Its description in the contract.
    pub describe: fn() -> Operation,
    mount: Mount,
}

/// Mounts a handler behind its guard.
type Mount = Box<dyn FnOnce(Arc<Guard>) -> MethodRouter<Arc<App>> + Send>;

impl fmt::Debug for Route {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.method, self.path)
    }
}

/// Lines of the table, in the order of addition.
pub struct Routes {
    /// The role of new lines.
    role: Option<Role>,
    list: Vec<Route>,
}

/// Methods that add routes whose requests change something, and which the audit log keeps.
macro_rules! changes {
    ($($name:ident $method:ident),+) => {
        $(pub fn $name<T: 'static, H: Handler<T, Arc<App>>>(
            self,
            path: &'static str,
            scope: Scope,
            verb: &'static str,
            handler: H,
            describe: fn() -> Operation,
        ) -> Self {
            self.add(Method::$method, path, Some(scope), Some(verb), handler, describe)
        })+
    };
}

impl Routes {
    /// Routes that every process serves.
    pub const fn everywhere() -> Self {
        Self { role: None, list: Vec::new() }
    }

    /// Routes that only processes with this role serve.
    pub const fn of(role: Role) -> Self {
        Self { role: Some(role), list: Vec::new() }
    }

    /// A `GET` that needs no token.
    pub fn open<T: 'static, H: Handler<T, Arc<App>>>(
        self,
        path: &'static str,
        handler: H,
        describe: fn() -> Operation,
    ) -> Self {
        self.add(Method::GET, path, None, None, handler, describe)
    }

    pub fn get<T: 'static, H: Handler<T, Arc<App>>>(
        self,
        path: &'static str,
        scope: Scope,
        handler: H,
        describe: fn() -> Operation,
    ) -> Self {
        self.add(Method::GET, path, Some(scope), None, handler, describe)
    }

    changes! { post POST, put PUT, patch PATCH, delete DELETE }

    /// A `POST` that the audit log leaves out: it sends events, or its query is too long for an
    /// address.
    pub fn post_unlogged<T: 'static, H: Handler<T, Arc<App>>>(
        self,
        path: &'static str,
        scope: Scope,
        handler: H,
        describe: fn() -> Operation,
    ) -> Self {
        self.add(Method::POST, path, Some(scope), None, handler, describe)
    }

    /// Makes the line that was added last one that reads its body as it comes, which may be long
    /// and take its time.
    pub fn uploaded(mut self) -> Self {
        if let Some(last) = self.list.last_mut() {
            last.is_upload = true;
        }
        self
    }

    /// Adds the lines of another list, which keep their roles.
    pub fn join(mut self, other: Self) -> Self {
        self.list.extend(other.list);
        self
    }

    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.list.iter()
    }

    /// Builds a router of all lines, each behind its guard.
    pub fn mount(self, app: &Arc<App>) -> Router<Arc<App>> {
        self.list.into_iter().fold(Router::new(), |router, route| {
            let guard = Arc::new(Guard::new(app, &route));
            router.route(route.path, (route.mount)(guard))
        })
    }

    fn add<T: 'static, H: Handler<T, Arc<App>>>(
        mut self,
        method: Method,
        path: &'static str,
        scope: Option<Scope>,
        verb: Option<&'static str>,
        handler: H,
        describe: fn() -> Operation,
    ) -> Self {
        let filter = filter_of(&method);
        let mount: Mount = Box::new(move |guard| on(filter, Guarded { guard, handler }));
        self.list.push(Route {
            method,
            path,
            scope,
            role: self.role,
            verb,
            is_upload: false,
            describe,
            mount,
        });
        self
    }
}

/// A `GET` route serves `HEAD` too.
fn filter_of(method: &Method) -> MethodFilter {
    match *method {
        Method::POST => MethodFilter::POST,
        Method::PUT => MethodFilter::PUT,
        Method::PATCH => MethodFilter::PATCH,
        Method::DELETE => MethodFilter::DELETE,
        _ => MethodFilter::GET,
    }
}

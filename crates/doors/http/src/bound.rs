//! Lines of the route table whose handlers get the services of a product.

use crate::{Operation, Routes};
use axum::extract::Request;
use axum::handler::Handler;
use raingauge_app::{App, Role};
use raingauge_core::access::Scope;
use std::sync::Arc;

/// A handler that takes `Extension<Arc<S>>`.
struct Bound<S, H> {
    services: Arc<S>,
    handler: H,
}

impl<S, H: Clone> Clone for Bound<S, H> {
    fn clone(&self) -> Self {
        Self { services: Arc::clone(&self.services), handler: self.handler.clone() }
    }
}

impl<T, S, H> Handler<T, Arc<App>> for Bound<S, H>
where
    S: Send + Sync + 'static,
    H: Handler<T, Arc<App>>,
{
    type Future = H::Future;

    fn call(self, mut request: Request, app: Arc<App>) -> Self::Future {
        request.extensions_mut().insert(self.services);
        self.handler.call(request, app)
    }
}

/// The routes of a product with these services, as they are added.
pub struct Table<S> {
    services: Arc<S>,
    routes: Routes,
}

/// Methods that add routes whose requests change something.
macro_rules! changes {
    ($($method:ident),+) => {
        $(pub fn $method<T: 'static, H: Handler<T, Arc<App>>>(
            self,
            path: &'static str,
            (scope, verb): (Scope, &'static str),
            handler: H,
            describe: fn() -> Operation,
        ) -> Self {
            self.add(handler, |routes, bound| routes.$method(path, scope, verb, bound, describe))
        })+
    };
}

impl<S: Send + Sync + 'static> Table<S> {
    /// An empty table, whose routes are served by processes with this role.
    pub fn new(role: Role, services: S) -> Self {
        Self { services: Arc::new(services), routes: Routes::of(role) }
    }

    pub fn routes(self) -> Routes {
        self.routes
    }

    pub fn get<T: 'static, H: Handler<T, Arc<App>>>(
        self,
        path: &'static str,
        scope: Scope,
        handler: H,
        describe: fn() -> Operation,
    ) -> Self {
        self.add(handler, |routes, bound| routes.get(path, scope, bound, describe))
    }

    /// A `POST` that the audit log leaves out, because it changes nothing.
    pub fn ask<T: 'static, H: Handler<T, Arc<App>>>(
        self,
        path: &'static str,
        scope: Scope,
        handler: H,
        describe: fn() -> Operation,
    ) -> Self {
        self.add(handler, |routes, bound| routes.post_unlogged(path, scope, bound, describe))
    }

    changes! { post, put, patch, delete }

    /// Makes the line that was added last one that reads its body as it comes.
    pub fn uploaded(self) -> Self {
        Self { routes: self.routes.uploaded(), ..self }
    }

    fn add<H>(self, handler: H, add: impl FnOnce(Routes, Bound<S, H>) -> Routes) -> Self {
        let Self { services, routes } = self;
        let bound = Bound { services: Arc::clone(&services), handler };
        Self { routes: add(routes, bound), services }
    }
}

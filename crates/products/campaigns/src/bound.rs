//! Lines of the route table whose handlers get the services of campaigns.

use crate::Campaigns;
use axum::extract::Request;
use axum::handler::Handler;
use raingauge_app::{App, Role};
use raingauge_core::access::Scope;
use raingauge_http::{Operation, Routes};
use std::sync::Arc;

/// A handler that takes `Extension<Arc<Campaigns>>`.
#[derive(Clone)]
struct Bound<H> {
    campaigns: Arc<Campaigns>,
    handler: H,
}

impl<T, H: Handler<T, Arc<App>>> Handler<T, Arc<App>> for Bound<H> {
    type Future = H::Future;

    fn call(self, mut request: Request, app: Arc<App>) -> Self::Future {
        request.extensions_mut().insert(self.campaigns);
        self.handler.call(request, app)
    }
}

/// The routes of campaigns, as they are added.
pub struct Table {
    campaigns: Arc<Campaigns>,
    routes: Routes,
}

impl Table {
    pub fn new(role: Role, campaigns: &Campaigns) -> Self {
        Self { campaigns: Arc::new(campaigns.clone()), routes: Routes::of(role) }
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

    pub fn post<T: 'static, H: Handler<T, Arc<App>>>(
        self,
        path: &'static str,
        (scope, verb): (Scope, &'static str),
        handler: H,
        describe: fn() -> Operation,
    ) -> Self {
        self.add(handler, |routes, bound| routes.post(path, scope, verb, bound, describe))
    }

    pub fn put<T: 'static, H: Handler<T, Arc<App>>>(
        self,
        path: &'static str,
        (scope, verb): (Scope, &'static str),
        handler: H,
        describe: fn() -> Operation,
    ) -> Self {
        self.add(handler, |routes, bound| routes.put(path, scope, verb, bound, describe))
    }

    pub fn patch<T: 'static, H: Handler<T, Arc<App>>>(
        self,
        path: &'static str,
        (scope, verb): (Scope, &'static str),
        handler: H,
        describe: fn() -> Operation,
    ) -> Self {
        self.add(handler, |routes, bound| routes.patch(path, scope, verb, bound, describe))
    }

    pub fn delete<T: 'static, H: Handler<T, Arc<App>>>(
        self,
        path: &'static str,
        (scope, verb): (Scope, &'static str),
        handler: H,
        describe: fn() -> Operation,
    ) -> Self {
        self.add(handler, |routes, bound| routes.delete(path, scope, verb, bound, describe))
    }

    /// Makes the line that was added last one that reads its body as it comes.
    pub fn uploaded(self) -> Self {
        Self { routes: self.routes.uploaded(), ..self }
    }

    fn add<H>(self, handler: H, add: impl FnOnce(Routes, Bound<H>) -> Routes) -> Self {
        let Self { campaigns, routes } = self;
        let bound = Bound { campaigns: Arc::clone(&campaigns), handler };
        Self { routes: add(routes, bound), campaigns }
    }
}

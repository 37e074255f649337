//! Lines of the route table whose handlers get the services of a product.

use crate::problem::Problem;
use crate::queries::Parameters;
use crate::{Operation, Routes};
use axum::extract::{Query, Request};
use axum::handler::Handler;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use futures_util::future::{Either, Ready, ready};
use raingauge_app::{App, Role};
use raingauge_core::access::Scope;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// A handler that takes `Extension<Arc<S>>`. It is asked only with query parameters that its
/// description has: to ignore one such as `dryRun` could do what the caller did not want.
struct Bound<S, H> {
    services: Arc<S>,
    handler: H,
    description: Arc<Description>,
}

/// What a route takes.
struct Description {
    describe: fn() -> Operation,
    parameters: OnceLock<Vec<String>>,
}

impl Description {
    /// Refuses query parameters that the route does not have. A query that cannot be read is left
    /// to the handler.
    fn check(&self, uri: &Uri) -> Result<(), Problem> {
        match Query::<HashMap<String, String>>::try_from_uri(uri) {
            Ok(Query(given)) if !given.is_empty() => {
                let parameters =
                    self.parameters.get_or_init(|| (self.describe)().query_parameters());
                let known: Vec<&str> = parameters.iter().map(String::as_str).collect();
                Parameters::checked(given, &known).map(|_| ())
            }
            _ => Ok(()),
        }
    }
}

impl<S, H: Clone> Clone for Bound<S, H> {
    fn clone(&self) -> Self {
        Self {
            services: Arc::clone(&self.services),
            handler: self.handler.clone(),
            description: Arc::clone(&self.description),
        }
    }
}

impl<T, S, H> Handler<T, Arc<App>> for Bound<S, H>
where
    S: Send + Sync + 'static,
    H: Handler<T, Arc<App>>,
{
    type Future = Either<Ready<Response>, H::Future>;

    fn call(self, mut request: Request, app: Arc<App>) -> Self::Future {
        if let Err(problem) = self.description.check(request.uri()) {
            return Either::Left(ready(problem.into_response()));
        }
        request.extensions_mut().insert(self.services);
        Either::Right(self.handler.call(request, app))
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
            self.add(handler, describe, |routes, bound| {
                routes.$method(path, scope, verb, bound, describe)
            })
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
        self.add(handler, describe, |routes, bound| routes.get(path, scope, bound, describe))
    }

    /// A `POST` that the audit log leaves out, because it changes nothing.
    pub fn ask<T: 'static, H: Handler<T, Arc<App>>>(
        self,
        path: &'static str,
        scope: Scope,
        handler: H,
        describe: fn() -> Operation,
    ) -> Self {
        self.add(handler, describe, |routes, bound| {
            routes.post_unlogged(path, scope, bound, describe)
        })
    }

    changes! { post, put, patch, delete }

    /// Makes the line that was added last one that reads its body as it comes.
    pub fn uploaded(self) -> Self {
        Self { routes: self.routes.uploaded(), ..self }
    }

    fn add<H>(
        self,
        handler: H,
        describe: fn() -> Operation,
        add: impl FnOnce(Routes, Bound<S, H>) -> Routes,
    ) -> Self {
        let Self { services, routes } = self;
        let description = Arc::new(Description { describe, parameters: OnceLock::new() });
        let bound = Bound { services: Arc::clone(&services), handler, description };
        Self { routes: add(routes, bound), services }
    }
}

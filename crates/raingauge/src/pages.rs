//! The portal's pages, each within the time that a request may take.

use axum::Router;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use futures_util::{FutureExt, Stream};
use raingauge_portal::{Pages, Portal};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;

pub fn router(portal: Portal, products: Pages, timeout: Duration) -> Router {
    let router = raingauge_portal::router(portal.clone(), products);
    router.layer(from_fn(move |request: Request, next: Next| {
        let portal = portal.clone();
        async move {
            let (_waiting, gone) = oneshot::channel();
            let request =
                request.map(|body| Body::from_stream(Form { body: body.into_data_stream(), gone }));
            let answered = tokio::time::timeout(timeout, next.run(request)).await;
            answered.unwrap_or_else(|_| raingauge_portal::too_slow(&portal, timeout))
        }
    }))
}

/// A form that is being received. A change continues when its caller has gone, but the wait for the
/// rest of a form does not: it ends when the request has been answered.
struct Form {
    body: BodyDataStream,
    gone: oneshot::Receiver<()>,
}

impl Stream for Form {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = Pin::new(&mut self.body).poll_next(context);
        if next.is_pending() && self.gone.poll_unpin(context).is_ready() {
            return Poll::Ready(Some(Err(axum::Error::new("the form took too long"))));
        }
        next
    }
}

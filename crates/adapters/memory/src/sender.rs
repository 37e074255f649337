//! A sender that sends nothing: it notes the requests, and answers what a script says.

use parking_lot::Mutex;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::sender::{self, Request, Response, SendError};
use std::future::ready;

type Script = Box<dyn FnMut(&Request) -> Result<Response, SendError> + Send>;

pub struct Sender {
    requests: Mutex<Vec<Request>>,
    script: Mutex<Script>,
}

impl Sender {
    /// Answers each request with what the script returns for it.
    pub fn scripted(
        script: impl FnMut(&Request) -> Result<Response, SendError> + Send + 'static,
    ) -> Self {
        Self { requests: Mutex::default(), script: Mutex::new(Box::new(script)) }
    }

    /// The requests so far, in their order.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().clone()
    }
}

/// Answers 200.
impl Default for Sender {
    fn default() -> Self {
        Self::scripted(|_| Ok(Response::of_status(200)))
    }
}

impl sender::Sender for Sender {
    fn send<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Response, SendError>> {
        if !is_absolute(&request.url) {
            return Box::pin(ready(Err(SendError::Address)));
        }

        self.requests.lock().push(request.clone());
        let response = (self.script.lock())(request).map(|mut response| {
            response.is_cut = response.body.len() > request.response_len_max;
            response.body.truncate(request.response_len_max);
            response
        });
        Box::pin(ready(response))
    }
}

/// Whether it is an address of http or https, with a host and without a user.
fn is_absolute(url: &str) -> bool {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split(['/', '?']).next()).unwrap_or_default();
    !host.is_empty() && !host.contains(['@', ' '])
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_ports::campaigns::sender::Method;
    use raingauge_ports::contract::campaigns::sender::{ReceivedRequest, Reply, Stage, suite};

    struct Recorder(Sender);

    impl Stage for Recorder {
        fn sender(&self) -> &dyn sender::Sender {
            &self.0
        }

        fn url(&self) -> String {
            "http://sink".to_owned()
        }

        fn received(&self) -> Vec<ReceivedRequest> {
            let requests = self.0.requests();
            requests.into_iter().map(received).collect()
        }
    }

    fn received(request: Request) -> ReceivedRequest {
        let method = match request.method {
            Method::Get => "GET",
            Method::Post => "POST",
        };
        let headers = request.headers.into_iter();
        ReceivedRequest {
            method: method.to_owned(),
            path: request.url.strip_prefix("http://sink").expect("the address").to_owned(),
            headers: headers.map(|(name, value)| (name.to_owned(), value)).collect(),
            body: request.body,
        }
    }

    #[tokio::test]
    async fn the_contract_is_kept() {
        suite(async |replies| {
            let mut replies = replies.into_iter();
            Recorder(Sender::scripted(move |request| match replies.next().expect("a reply") {
                Reply::Answer(response) => Ok(response),
                Reply::Close => {
                    let why = "the connection was closed".to_owned();
                    Err(SendError::Broken { host: "sink".to_owned(), why })
                }
                Reply::Silence => Err(SendError::Late(request.timeout)),
            }))
        })
        .await;
    }
}

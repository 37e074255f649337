//! The contract of a sender, against a server that answers as the suite says.

use crate::campaigns::sender::{Method, Request, Response, SendError, Sender};
use std::time::Duration;

/// What the server does with one request.
#[derive(Clone, Debug)]
pub enum Reply {
    Answer(Response),
    /// Closes the connection when it has read the request.
    Close,
    /// Neither answers nor closes.
    Silence,
}

/// A sender, and a server that it reaches. The server gives these replies in their order, and
/// notes the requests.
pub trait Stage {
    fn sender(&self) -> &dyn Sender;

    /// An address of the server, without its path.
    fn url(&self) -> String;

    /// The requests that arrived, in their order.
    fn received(&self) -> Vec<ReceivedRequest>;
}

/// A request as the server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedRequest {
    pub method: String,
    /// With the query.
    pub path: String,
    /// Names in lower case, with those that the sender added.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Long enough for a local server, and the longest time that the suite waits for nothing.
const TIMEOUT: Duration = Duration::from_millis(300);
const LEN_MAX: usize = 1_000;

/// Runs the whole suite. `start` begins a stage with the replies of its server.
pub async fn suite<S: Stage>(start: impl AsyncFn(Vec<Reply>) -> S) {
    a_request_arrives_as_it_is(start(vec![answer(202)]).await).await;
    every_status_is_a_response(start([200, 204, 404, 500].map(answer).to_vec()).await).await;
    redirects_are_not_followed(start(vec![redirect(), answer(200)]).await).await;
    long_responses_are_cut(start(vec![of_len(LEN_MAX), of_len(LEN_MAX + 1)]).await).await;
    silence_ends_in_time(start(vec![Reply::Silence, answer(200)]).await).await;
    a_broken_connection_is_reported(start(vec![Reply::Close, answer(200)]).await).await;
    malformed_addresses_are_refused(start(Vec::new()).await).await;
}

fn answer(status: u16) -> Reply {
    Reply::Answer(Response::of_status(status))
}

fn redirect() -> Reply {
    let headers = vec![("location".to_owned(), "/elsewhere".to_owned())];
    Reply::Answer(Response { headers, ..Response::of_status(307) })
}

fn of_len(len: usize) -> Reply {
    Reply::Answer(Response { body: vec![b'x'; len], ..Response::of_status(200) })
}

fn post(stage: &impl Stage, path: &str) -> Request {
    Request {
        method: Method::Post,
        url: format!("{}{path}", stage.url()),
        headers: vec![("content-type", "application/json".to_owned())],
        body: b"{}".to_vec(),
        timeout: TIMEOUT,
        response_len_max: LEN_MAX,
        allow_private: true,
    }
}

async fn a_request_arrives_as_it_is(stage: impl Stage) {
    let mut request = post(&stage, "/v1/award?x=1%20");
    request.headers.push(("webhook-id", "act_7".to_owned()));
    request.body = vec![0, 255, 13, 10];
    let response = stage.sender().send(&request).await.expect("a response");
    assert_eq!((response.status, response.body, response.is_cut), (202, Vec::new(), false));

    let received = stage.received();
    assert_eq!(received.len(), 1);
    let ReceivedRequest { method, path, headers, body } = &received[0];
    assert_eq!((method.as_str(), path.as_str()), ("POST", "/v1/award?x=1%20"));
    assert_eq!(*body, request.body);
    for (name, value) in &request.headers {
        let found = headers.iter().filter(|(other, _)| other == name);
        assert_eq!(found.map(|(_, value)| value).collect::<Vec<_>>(), [value]);
    }
}

async fn every_status_is_a_response(stage: impl Stage) {
    for status in [200, 204, 404, 500] {
        let get = Request::get(format!("{}/", stage.url()), TIMEOUT, LEN_MAX);
        let get = Request { allow_private: true, ..get };
        let response = stage.sender().send(&get).await.expect("a response");
        assert_eq!(response.status, status);
    }
    assert!(stage.received().iter().all(|request| request.method == "GET"));
}

async fn redirects_are_not_followed(stage: impl Stage) {
    let response = stage.sender().send(&post(&stage, "/")).await.expect("a response");
    assert_eq!((response.status, response.header("location")), (307, Some("/elsewhere")));
    assert_eq!(response.header("retry-after"), None);
    assert_eq!(stage.received().len(), 1);
}

async fn long_responses_are_cut(stage: impl Stage) {
    for is_cut in [false, true] {
        let response = stage.sender().send(&post(&stage, "/")).await.expect("a response");
        assert_eq!((response.body.len(), response.is_cut), (LEN_MAX, is_cut));
    }
}

async fn silence_ends_in_time(stage: impl Stage) {
    let late = stage.sender().send(&post(&stage, "/")).await;
    assert_eq!(late, Err(SendError::Late(TIMEOUT)));
    let next = stage.sender().send(&post(&stage, "/")).await.expect("a response");
    assert_eq!(next.status, 200, "the connection is not used again");
}

async fn a_broken_connection_is_reported(stage: impl Stage) {
    let broken = stage.sender().send(&post(&stage, "/")).await;
    assert!(matches!(broken, Err(SendError::Broken { .. })), "{broken:?}");
    assert_eq!(stage.received().len(), 1, "each request is sent once");
    let next = stage.sender().send(&post(&stage, "/")).await.expect("a response");
    assert_eq!(next.status, 200);
}

async fn malformed_addresses_are_refused(stage: impl Stage) {
    for url in ["", "/path", "ftp://example.com/", "https://", "http://exa mple.com", "mailto:a@b"]
    {
        let request = Request { url: url.to_owned(), ..post(&stage, "/") };
        let error = stage.sender().send(&request).await;
        assert_eq!(error, Err(SendError::Address), "{url}");
    }
    assert_eq!(stage.received(), []);
}

//! Hand-made calls that no gRPC client sends.

use bytes::Bytes;
use h2::client::SendRequest;
use tokio::net::TcpStream;
use tonic::codegen::http::{HeaderMap, Request};

/// What came back: headers and trailers together, and the bytes between them.
#[derive(Debug)]
pub struct Answer {
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// A call that has begun: the rest is sent through the stream.
pub struct Call {
    pub stream: h2::SendStream<Bytes>,
    response: h2::client::ResponseFuture,
}

/// A connection of HTTP/2, which goes on in the background.
pub async fn connect(address: &str) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(address).await.expect("the door is open");
    let (sender, connection) = h2::client::handshake(stream).await.expect("the door speaks HTTP/2");
    tokio::spawn(connection);
    sender
}

/// Sends the head of a call.
pub async fn begin(
    sender: &SendRequest<Bytes>,
    address: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Call {
    let mut request =
        Request::post(format!("http://{address}{path}")).header("content-type", "application/grpc");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut sender = sender.clone().ready().await.expect("an open connection");
    let (response, stream) =
        sender.send_request(request.body(()).expect("a request"), false).expect("sent");
    Call { stream, response }
}

impl Call {
    /// Waits for the whole answer.
    pub async fn answer(self) -> Answer {
        let response = self.response.await.expect("an answer");
        let (head, mut stream) = response.into_parts();
        let mut headers = head.headers;
        let mut body = Vec::new();
        while let Some(chunk) = stream.data().await {
            let chunk = chunk.expect("the answer is whole");
            let _ = stream.flow_control().release_capacity(chunk.len());
            body.extend_from_slice(&chunk);
        }
        headers.extend(stream.trailers().await.expect("the answer is whole").unwrap_or_default());
        Answer { headers, body }
    }
}

/// One call with this body, to its end.
pub async fn call(address: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let sender = connect(address).await;
    let mut call = begin(&sender, address, path, headers).await;
    call.stream.send_data(Bytes::copy_from_slice(body), true).expect("sent");
    call.answer().await
}

/// Returns a message after the five bytes that announce it.
pub fn framed(message: &[u8]) -> Vec<u8> {
    [&[0], &(message.len() as u32).to_be_bytes()[..], message].concat()
}

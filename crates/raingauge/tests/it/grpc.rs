//! The gRPC door, asked by clients that the build made of `proto/`.

mod answers;
mod door;
mod drain;
mod events;
mod points;
pub mod raw;

use crate::client::at;
use crate::server::{Home, PATIENCE, Server};
use proto::io::cloudevents::v1::CloudEvent;
use proto::io::cloudevents::v1::cloud_event::cloud_event_attribute_value::Attr;
use proto::io::cloudevents::v1::cloud_event::{CloudEventAttributeValue, Data};
use proto::raingauge::v1::counts_client::CountsClient;
use proto::raingauge::v1::events_client::EventsClient;
use proto::raingauge::v1::points_client::PointsClient;
use proto::raingauge::v1::{
    AwardRequest, AwardResponse, BalancesRequest, BalancesResponse, CountsRequest, CountsResponse,
    PublishRequest, PublishResponse, SeriesRequest, SeriesResponse,
};
use raingauge_grpc::client as proto;
use std::future::Future;
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

const NOON: &str = "2024-09-24T12:00:00Z";
const ANSWER_BYTES_MAX: usize = 64 << 20;

fn home() -> Home {
    Home::with(&[("server.grpc_listen", "127.0.0.1:0")])
}

/// Where the gRPC door of a server is, as it has logged.
pub fn address_of(server: &Server) -> Option<String> {
    let log = server.errors();
    let (_, rest) = log.split_once("grpc_address=")?;
    rest.split_whitespace().next().map(str::to_owned)
}

/// A client, and the runtime that it needs.
struct Grpc {
    runtime: Runtime,
    channel: Channel,
    address: String,
    token: Option<String>,
}

impl Grpc {
    fn new(server: &Server) -> Self {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let address = address_of(server).expect("the address is in the log");
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
        let channel = runtime.block_on(endpoint.connect()).expect("the door is open");
        Self { runtime, channel, address, token: None }
    }

    fn set_token(&mut self, token: &str) {
        self.token = Some(token.to_owned());
    }

    fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        let waited = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, future).await });
        waited.unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain"))
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            let header = format!("Bearer {token}").parse().expect("a token is ASCII");
            request.metadata_mut().insert("authorization", header);
        }
        request
    }

    fn batch(&self, message: CountsRequest) -> Result<CountsResponse, Status> {
        let mut client =
            CountsClient::new(self.channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX);
        self.wait(client.batch(self.request(message))).map(tonic::Response::into_inner)
    }

    fn series(&self, message: SeriesRequest) -> Result<SeriesResponse, Status> {
        let mut client = CountsClient::new(self.channel.clone());
        self.wait(client.series(self.request(message))).map(tonic::Response::into_inner)
    }

    fn award(&self, message: AwardRequest) -> Result<AwardResponse, Status> {
        let mut client = PointsClient::new(self.channel.clone());
        self.wait(client.award(self.request(message))).map(tonic::Response::into_inner)
    }

    fn balances(&self, message: BalancesRequest) -> Result<BalancesResponse, Status> {
        let mut client = PointsClient::new(self.channel.clone());
        self.wait(client.balances(self.request(message))).map(tonic::Response::into_inner)
    }

    fn publish(&self, events: Vec<CloudEvent>) -> Result<PublishResponse, Status> {
        let mut client =
            EventsClient::new(self.channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX);
        let message = PublishRequest { events, wait_applied: true };
        self.wait(client.publish(self.request(message))).map(tonic::Response::into_inner)
    }
}

/// Asserts that a call was refused with this status and code.
#[track_caller]
fn assert_refused<T>(answer: Result<T, Status>, status: Code, code: &str) {
    let refused = answer.err().unwrap_or_else(|| panic!("{code} was expected"));
    assert_eq!((refused.code(), code_of(&refused)), (status, code), "{refused:?}");
    assert!(refused.message().len() > 10, "{refused:?}");
}

fn code_of(status: &Status) -> &str {
    status.metadata().get("raingauge-code").and_then(|code| code.to_str().ok()).unwrap_or_default()
}

fn attribute(value: Attr) -> CloudEventAttributeValue {
    CloudEventAttributeValue { attr: Some(value) }
}

/// An event of type `drop` at a city.
fn drop_event(id: &str, time_s: i64, city: &str) -> CloudEvent {
    let time = attribute(Attr::CeTimestamp(prost_types::Timestamp { seconds: time_s, nanos: 0 }));
    CloudEvent {
        id: id.to_owned(),
        source: "tests".to_owned(),
        spec_version: "1.0".to_owned(),
        r#type: "drop".to_owned(),
        attributes: [("time".to_owned(), time)].into(),
        data: Some(Data::TextData(format!("{{\"city\": \"{city}\"}}"))),
    }
}

fn noon_s() -> i64 {
    at(NOON)
}

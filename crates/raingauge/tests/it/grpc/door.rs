//! The door itself: tokens, limits, deadlines, metrics, reflection.

use super::proto::raingauge::v1::{
    AwardRequest, BalancesRequest, CountRequest, CountsRequest, SeriesRequest,
};
use super::{Grpc, address_of, assert_refused, drop_event, home, noon_s, raw};
use crate::auth::{SCOPES, home_with_tokens, token};
use crate::client::{Client, drops_counter};
use crate::server::{Home, until};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

const BATCH: &str = "/raingauge.v1.Counts/Batch";
const PUBLISH: &str = "/raingauge.v1.Events/Publish";

#[test]
fn there_is_no_door_unless_it_is_asked_for() {
    let home = Home::new();
    assert_eq!(address_of(&home.start()), None);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused =
        Home::with(&[("server.grpc_listen", &address)]).try_start().err().expect("it is refused");
    assert!(refused.errors.contains(&address), "{}", refused.errors);
    let refused = Home::with(&[("server.grpc_listen", "0.0.0.0:0")])
        .try_start()
        .err()
        .expect("it is refused");
    assert!(refused.errors.contains("server.grpc_listen"), "{}", refused.errors);
}

/// The door speaks HTTP/1.1 too, so a web page could call it.
#[test]
fn without_a_token_only_calls_of_this_machine_are_taken() {
    let home = home();
    let server = home.start();
    let address = address_of(&server).expect("the address is in the log");
    let call = |headers: &str| {
        let head = format!(
            "POST {BATCH} HTTP/1.1\r\ncontent-type: application/grpc\r\nconnection: close\r\n{headers}"
        );
        Client::new(&address).raw(format!("{head}content-length: 5\r\n\r\n\0\0\0\0\0").as_bytes())
    };

    let local = call("host: localhost\r\n");
    assert!(!local.contains("foreign_request"), "{local}");

    for foreign in [
        "host: evil.example\r\n",
        "host: localhost\r\norigin: https://evil.example\r\n",
        "host: localhost\r\nx-forwarded-for: 192.0.2.7\r\n",
    ] {
        let answer = call(foreign);
        assert!(answer.contains("raingauge-code: foreign_request"), "{foreign}: {answer}");
    }
}

#[test]
fn every_method_asks_for_its_scope() {
    let mut home = home_with_tokens();
    home.set("server.grpc_listen", "127.0.0.1:0");

    let server = home.start();
    server.with_token(&token("admin")).create(drops_counter());

    let mut grpc = Grpc::new(&server);
    type Method = (&'static str, fn(&Grpc) -> Result<(), Status>);

    let methods: [Method; 5] = [
        ("counts:read", |grpc| grpc.batch(CountsRequest::default()).map(|_| ())),
        ("counts:read", |grpc| {
            let key = "drops:oslo".to_owned();
            let to_time = noon_s();
            grpc.series(SeriesRequest {
                key,
                from_time: to_time - 900,
                to_time,
                ..SeriesRequest::default()
            })
            .map(|_| ())
        }),
        ("events:write", |grpc| grpc.publish(vec![drop_event("a", noon_s(), "oslo")]).map(|_| ())),
        ("points:award", |grpc| grpc.award(AwardRequest::default()).map(|_| ())),
        ("points:read", |grpc| grpc.balances(BalancesRequest::default()).map(|_| ())),
    ];

    for (scope, method) in methods {
        grpc.token = None;
        assert_refused(method(&grpc), Code::Unauthenticated, "token_missing");
        grpc.set_token("rg_unknown");
        assert_refused(method(&grpc), Code::Unauthenticated, "token_unknown");

        for held in SCOPES {
            grpc.set_token(&token(held));
            if held == scope || held == "admin" {
                method(&grpc).expect("the scope is enough")
            } else {
                assert_refused(method(&grpc), Code::PermissionDenied, "scope_missing")
            }
        }
    }

    // Health checks and reflection need no token.
    let mut health = HealthClient::new(grpc.channel.clone());
    for service in ["", "raingauge.v1.Counts", "raingauge.v1.Events"] {
        let asked = grpc.wait(health.check(HealthCheckRequest { service: service.to_owned() }));
        assert_eq!(asked.expect("an answer").get_ref().status, 1, "{service}");
    }

    assert!(!services(&grpc).is_empty());
}

/// One answer of reflection.
fn reflect(grpc: &Grpc, asked: MessageRequest) -> MessageResponse {
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(asked) };
    grpc.wait(async {
        let mut client = ServerReflectionClient::new(grpc.channel.clone());
        let asked = futures_util::stream::iter([request]);
        let mut answers =
            client.server_reflection_info(asked).await.expect("reflection").into_inner();
        let answer = answers.message().await.expect("an answer").expect("an answer");
        answer.message_response.expect("an answer")
    })
}

fn services(grpc: &Grpc) -> Vec<String> {
    match reflect(grpc, MessageRequest::ListServices(String::new())) {
        MessageResponse::ListServicesResponse(list) => {
            list.service.into_iter().map(|service| service.name).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn reflection_lists_the_services_and_their_messages() {
    let home = home();
    let server = home.start();
    let grpc = Grpc::new(&server);
    let services = services(&grpc);

    for name in ["raingauge.v1.Counts", "raingauge.v1.Events", "grpc.health.v1.Health"] {
        assert!(services.iter().any(|service| service == name), "{name} is not in {services:?}");
    }

    for symbol in
        ["raingauge.v1.Counts", "io.cloudevents.v1.CloudEvent", "google.protobuf.Timestamp"]
    {
        let answer = reflect(&grpc, MessageRequest::FileContainingSymbol(symbol.to_owned()));
        let MessageResponse::FileDescriptorResponse(files) = answer else { panic!("{answer:?}") };
        assert_eq!(files.file_descriptor_proto.len(), 1, "{symbol}");
    }
}

#[test]
fn calls_beyond_the_limits_are_refused_by_name() {
    let home =
        Home::with(&[("server.grpc_listen", "127.0.0.1:0"), ("server.body_bytes_max", "2097152")]);
    let server = home.start();
    server.create(drops_counter());

    let grpc = Grpc::new(&server);
    let ranges = |len: usize, key: &str| {
        let request =
            CountRequest { key: key.to_owned(), to_time: noon_s(), ..CountRequest::default() };
        CountsRequest { requests: vec![request; len], fresh: false }
    };

    assert_eq!(grpc.batch(ranges(1_000, "drops:oslo")).expect("an answer").results.len(), 1_000);
    assert_refused(
        grpc.batch(ranges(1_001, "drops:oslo")),
        Code::InvalidArgument,
        "too_many_ranges",
    );
    assert_refused(
        grpc.batch(ranges(1_000, &"x".repeat(2_000))),
        Code::InvalidArgument,
        "body_too_large",
    );

    let city = "x".repeat(60_000);
    let events = (0..40).map(|id| drop_event(&id.to_string(), noon_s(), &city)).collect();
    assert_refused(grpc.publish(events), Code::InvalidArgument, "body_too_large");

    let refused_with =
        |headers: &[(&str, &str)], path: &str, body: &[u8], status: &str, code: &str| {
            let answer = grpc.wait(raw::call(&grpc.address, path, headers, body));
            assert_eq!(
                (answer.header("grpc-status"), answer.header("raingauge-code")),
                (status, code),
                "{answer:?}"
            );
            assert!(!answer.header("grpc-message").is_empty());
        };

    let refused = |path: &str, body: &[u8], status: &str, code: &str| {
        refused_with(&[], path, body, status, code)
    };
    refused("/raingauge.v1.Counts/Delete", &raw::framed(b""), "12", "route_unknown");
    refused("/nothing", b"", "12", "route_unknown");
    refused(BATCH, b"", "3", "request_malformed");
    refused(BATCH, &raw::framed(b"noise"), "3", "request_malformed");
    refused(BATCH, b"\0\0", "3", "request_malformed");
    refused(PUBLISH, &raw::framed(&[0x12, 0]), "3", "request_malformed");
    refused(PUBLISH, &[1, 0, 0, 0, 1, 7], "3", "request_malformed");
    refused_with(
        &[("grpc-encoding", "gzip")],
        PUBLISH,
        &[1, 0, 0, 0, 1, 7],
        "3",
        "encoding_unknown",
    );

    let errors = server.metric("raingauge_errors_total{code=\"request_malformed\"}");
    assert_eq!(errors, 5.0);
}

/// The caller's deadline ends a call, unless the server's limit ends it sooner.
#[test]
fn a_call_takes_no_longer_than_either_side_allows() {
    let home =
        Home::with(&[("server.grpc_listen", "127.0.0.1:0"), ("server.request_timeout_s", "1")]);
    let server = home.start();
    let grpc = Grpc::new(&server);

    for timeout in ["20m", "99H", "soon"] {
        let answer = grpc.wait(async {
            let sender = raw::connect(&grpc.address).await;
            // The message never comes.
            raw::begin(&sender, &grpc.address, BATCH, &[("grpc-timeout", timeout)])
                .await
                .answer()
                .await
        });

        assert_eq!(
            (answer.header("grpc-status"), answer.header("raingauge-code")),
            ("4", "timeout"),
            "{timeout}"
        );
        let said = if timeout == "20m" { "20ms" } else { "1s" };
        assert!(answer.header("grpc-message").contains(said), "{answer:?}");
    }
}

/// Messages share the budget of HTTP bodies, and are charged for what has arrived. Over HTTP/1.1,
/// which the door speaks too, each message has a connection of its own.
#[test]
fn messages_share_the_room_of_all_bodies() {
    let home =
        Home::with(&[("server.grpc_listen", "127.0.0.1:0"), ("server.body_bytes_max", "1048576")]);
    let server = home.start();
    let grpc = Grpc::new(&server);
    let mut body = vec![b' '; 900_000];

    body.extend_from_slice(b"[]");
    let ask = || server.send("POST", "/v1/events", &[("content-type", "application/json")], &body);

    // Each announces a message of the largest size, which does not arrive.
    let begin = || {
        let mut stream = TcpStream::connect(&grpc.address).expect("a connection");
        let head = format!(
            "POST {PUBLISH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/grpc\r\ncontent-length: 1048576\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), &[0, 0, 15, 255, 251]].concat()).expect("sent");

        stream
    };

    let waiting: Vec<TcpStream> = (0..40).map(|_| begin()).collect();
    ask().expect(200);
    drop(waiting);

    // Now most of four messages arrives. A machine that is slow for some seconds ends them for
    // their slowness: then others take their place.
    let (full, refused, calls) = until("the room is full", || {
        let mut calls: Vec<TcpStream> = (0..5).map(|_| begin()).collect();
        for call in calls.iter_mut().take(4) {
            call.write_all(&[0; 900_000]).ok()?;
        }

        let full = (0..100).map(|_| ask()).find(|answer| answer.status == 429)?;
        calls[4].write_all(&[0; 900_000]).ok()?;

        let mut answer = [0; 1_024];
        let len = calls[4].read(&mut answer).ok()?;
        let refused = String::from_utf8_lossy(&answer[..len]).into_owned();

        refused.contains("raingauge-code: bodies_in_flight\r\n").then_some((full, refused, calls))
    });

    full.expect_problem(429, "bodies_in_flight");
    assert!(
        refused.contains("grpc-status: 8\r\n")
            && refused.contains("grpc-retry-pushback-ms: 1000\r\n"),
        "{refused}"
    );

    // Counts have their own budget.
    grpc.batch(CountsRequest::default()).expect("an answer");
    drop(calls);
    until("the room is free again", || grpc.publish(vec![drop_event("a", noon_s(), "oslo")]).ok());
}

#[test]
fn calls_are_in_the_metrics() {
    let home = home();
    let server = home.start();
    let grpc = Grpc::new(&server);
    let requests = |status: &str| {
        let labels = format!("method=\"raingauge.v1.Counts/Batch\",status=\"{status}\"");
        server.metric(&format!("raingauge_grpc_requests_total{{{labels}}}"))
    };

    for _ in 0..3 {
        grpc.batch(CountsRequest::default()).expect("an answer");
    }
    grpc.batch(CountsRequest { requests: vec![CountRequest::default(); 1_001], fresh: false })
        .expect_err("refused");
    assert_eq!((requests("OK"), requests("INVALID_ARGUMENT")), (3.0, 1.0));

    let timed = "raingauge_grpc_request_seconds_count{method=\"raingauge.v1.Counts/Batch\"}";
    assert_eq!(server.metric(timed), 4.0);
    assert_eq!(server.metric("raingauge_errors_total{code=\"too_many_ranges\"}"), 1.0);
}

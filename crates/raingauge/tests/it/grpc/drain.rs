//! A graceful shutdown: watchers are notified, running calls complete, and no client delays the
//! server.

use super::proto::raingauge::v1::PublishRequest;
use super::{Grpc, drop_event, home, noon_s, raw};
use crate::client::drops_counter;
use prost::Message;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;

const SERVING: i32 = 1;
const NOT_SERVING: i32 = 2;

#[test]
fn a_drain_is_announced_and_lets_calls_end() {
    let home = home();
    let server = home.start();
    server.create(drops_counter());

    let grpc = Grpc::new(&server);
    let address = grpc.address.clone();
    grpc.wait(async {
        let mut health = HealthClient::new(grpc.channel.clone());
        let watched = health.watch(HealthCheckRequest::default()).await.expect("a watch");
        let mut watched = watched.into_inner();
        assert_eq!(watched.message().await.unwrap().unwrap().status, SERVING);

        // A client that opens a reflection stream and never closes it.
        let mut reflection = ServerReflectionClient::new(grpc.channel.clone());
        let never = futures_util::stream::pending();
        let mut looking =
            reflection.server_reflection_info(never).await.expect("reflection").into_inner();

        // A call begins, and its message is still being sent when the server begins to stop.
        let sender = raw::connect(&address).await;
        let mut call = raw::begin(&sender, &address, "/raingauge.v1.Events/Publish", &[]).await;
        let probe = raw::framed(&HealthCheckRequest::default().encode_to_vec());
        let mut answered = raw::begin(&sender, &address, "/grpc.health.v1.Health/Check", &[]).await;

        answered.stream.send_data(probe.into(), true).expect("sent");

        // When the server answers what came after the head of the call, it has read the head.
        assert_eq!(answered.answer().await.header("grpc-status"), "0");
        server.signal("TERM");
        assert_eq!(watched.message().await.unwrap().unwrap().status, NOT_SERVING);
        assert!(watched.message().await.expect("the watch ends well").is_none());
        assert!(looking.message().await.expect("reflection ends well").is_none());

        let events = vec![drop_event("a", noon_s(), "oslo")];
        let message = PublishRequest { events, wait_applied: true }.encode_to_vec();
        call.stream.send_data(raw::framed(&message).into(), true).expect("sent");

        let answer = call.answer().await;
        assert_eq!(answer.header("grpc-status"), "0", "{answer:?}");
    });
    drop(grpc);
    assert!(server.ended().success());

    let log = std::fs::read_to_string(home.path().join("errors.txt")).unwrap();
    assert!(!log.contains("cut off"), "{log}");

    let server = home.start();
    assert_eq!(server.count("drops:oslo", noon_s(), noon_s() + 900), 1);
}

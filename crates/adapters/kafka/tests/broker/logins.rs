//! Brokers that want a login, with and without TLS.

use crate::support::{Broker, One, made, options_at, plan};
use raingauge_core::event::Event;
use raingauge_kafka::{self as kafka, Options, Sasl, SaslMechanism, Security, Tls, migrate};
use raingauge_ports::log::Batch;
use std::time::Duration;

const USER: &str = "raingauge";

fn options(broker: &Broker, door: &str, mechanism: SaslMechanism, password: &str) -> Options {
    let sasl = Sasl { mechanism, user: USER.to_owned(), password: password.to_owned() };
    Options {
        security: Security { tls: None, sasl: Some(sasl) },
        ..options_at(&broker.variable(door), "logins")
    }
}

fn with_tls(options: Options, ca: Option<&str>) -> Options {
    let tls = Tls { ca: ca.map(Into::into), certificate: None };
    Options { security: Security { tls: Some(tls), ..options.security.clone() }, ..options }
}

/// Makes a topic, appends to it and sees that; all that clients of Kafka do here.
async fn goes_round(options: &Options) {
    made(options, 1).await;
    let one = One::open(options).await;
    let mut batch = Batch::default();
    batch.push(&Event { id: "1".into(), ..Event::of_data("t", 1_000, "{}") });
    one.append(batch).await;
}

/// A login that brokers refuse is named as the cause, by the commands and when a topic is opened.
async fn is_refused(options: Options) {
    let options = Options { request_timeout: Duration::from_secs(3), ..options };
    let refusals = [
        migrate(&options, &plan(1)).await.map(drop).expect_err("it is not let in").to_string(),
        kafka::Topic::open(options).await.map(drop).expect_err("it is not let in").to_string(),
    ];
    for refusal in refusals {
        println!("{refusal}");
        assert!(refusal.contains("127.0.0.1"), "{refusal}");
    }
}

#[tokio::test]
async fn who_has_the_password_is_let_in() {
    let Some(broker) = Broker::start(&["--kafka", "--kafka-sasl"]) else {
        return;
    };
    let plain = |door, password| options(&broker, door, SaslMechanism::Plain, password);
    goes_round(&plain("RAINGAUGE_TEST_KAFKA_SASL", USER)).await;
    is_refused(plain("RAINGAUGE_TEST_KAFKA_SASL", "wrong")).await;

    if !cfg!(feature = "tls") {
        println!("TLS and SCRAM were not tried: this was built without the feature tls");
        return;
    }

    let ca = broker.variable("RAINGAUGE_TEST_KAFKA_CA");
    for mechanism in [SaslMechanism::ScramSha256, SaslMechanism::ScramSha512] {
        goes_round(&options(&broker, "RAINGAUGE_TEST_KAFKA_SASL", mechanism, USER)).await;
        let tls = |password, ca| {
            with_tls(options(&broker, "RAINGAUGE_TEST_KAFKA_SASL_TLS", mechanism, password), ca)
        };
        goes_round(&tls(USER, Some(&ca))).await;
        is_refused(tls("wrong", Some(&ca))).await;
        is_refused(tls(USER, None)).await;
    }
}

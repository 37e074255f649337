//! Settings of the log on Kafka.

use super::*;
use raingauge_kafka::SaslMechanism;

#[test]
fn a_short_key_of_control_entries_is_refused() {
    let (long, short) = ("0123456789abcdef".repeat(2), "0123456789abcdef");
    let load_keys = |keys: &str| load(&format!("[kafka]\ncontrol_key = \"{keys}\"\n"), &[]);
    let keys = load_keys(&format!("{long}, {long}2")).unwrap().kafka.control_keys;
    assert_eq!(keys, [long.clone(), format!("{long}2")]);
    assert_starts(
        &load_keys(&format!("{long},{short}")).unwrap_err(),
        &["2 kafka.control_key: a key of control"],
    );
}

#[test]
fn tls_and_scram_to_kafka_need_a_build_that_has_them() {
    let text = r#"
[kafka]
user = "writer"
password = "secret"
sasl_mechanism = "scram-sha-512"
tls = "yes"
ca_file = "ca.pem"
"#;

    let loaded = load(text, &[]);
    if cfg!(feature = "kafka-tls") {
        assert!(loaded.unwrap().kafka.has_tls);
    } else {
        let refused = "this program was built without TLS and SCRAM for Kafka. Build it with";
        let expected =
            [format!("5 kafka.sasl_mechanism: {refused}"), format!("6 kafka.tls: {refused}")];
        assert_starts(&loaded.unwrap_err(), &expected.each_ref().map(String::as_str));
    }

    assert_starts(
        &load("[kafka]\nca_file = \"ca.pem\"\n", &[]).unwrap_err(),
        &["2 kafka.ca_file: there is a file"],
    );
    assert_starts(
        &load("[kafka]\nkey_file = \"key.pem\"\n", &[]).unwrap_err(),
        &["0 kafka.certificate_file: kafka"],
    );

    let plain = "[kafka]\nuser = \"writer\"\npassword = \"secret\"\n";
    assert_eq!(load(plain, &[]).unwrap().kafka.sasl_mechanism, SaslMechanism::Plain);
}

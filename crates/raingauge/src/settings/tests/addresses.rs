//! Addresses that other machines reach need tokens and TLS.

use super::*;

#[test]
fn an_address_beyond_loopback_needs_a_token() {
    let hash = new_token().1;
    let with_token = format!("[{{ name = \"a\", sha256 = \"{hash}\", scopes = [\"admin\"] }}]");
    for (address, refused) in [
        ("127.0.0.1:80", false),
        ("127.9.9.9:80", false),
        ("[::1]:80", false),
        ("[::ffff:127.0.0.1]:80", false),
        ("localhost:80", false),
        ("0.0.0.0:80", true),
        ("[::]:80", true),
        ("192.168.1.7:80", true),
    ] {
        for key in ["listen", "grpc_listen"] {
            let variable = format!("RAINGAUGE__SERVER__{}", key.to_uppercase());
            let listen = (variable.as_str(), address);
            let without = Settings::load(None, variables(&[listen]), []);
            assert_eq!(without.is_err(), refused, "{address}");

            if let Err(problems) = without {
                let shown = problems[0].to_string();
                assert!(
                    shown.starts_with(&format!("server.{key} (variable {variable}): ")),
                    "{shown}"
                );
                assert!(shown.contains("no token is configured. Run `raingauge token`"), "{shown}");
            }

            let tokens = ("RAINGAUGE__AUTH__TOKENS", with_token.as_str());
            let plain = ("RAINGAUGE__SERVER__PLAINTEXT", "true");
            assert!(Settings::load(None, variables(&[listen, tokens, plain]), []).is_ok());
        }
    }

    let option = ("server.listen", "--listen", "0.0.0.0:80".to_owned());
    let problems = Settings::load(None, variables(&[]), [option]).unwrap_err();
    assert!(
        problems[0]
            .to_string()
            .starts_with("server.listen (option --listen): 0.0.0.0:80 can be reached")
    );
}

#[test]
fn a_person_who_need_not_sign_in_is_on_this_machine() {
    let open = ("RAINGAUGE__PORTAL__SIGN_IN", "false");
    assert!(!Settings::load(None, variables(&[open]), []).unwrap().people.sign_in);

    let elsewhere = ("RAINGAUGE__SERVER__LISTEN", "0.0.0.0:80");
    let required = ("RAINGAUGE__AUTH__REQUIRED", "true");
    let plain = ("RAINGAUGE__SERVER__PLAINTEXT", "true");
    let problems =
        Settings::load(None, variables(&[open, elsewhere, required, plain]), []).unwrap_err();

    assert_eq!(problems.len(), 1);
    assert!(
        problems[0]
            .to_string()
            .starts_with("portal.sign_in (variable RAINGAUGE__PORTAL__SIGN_IN): 0.0.0.0:80")
    );

    // A process without the portal has no page.
    let reader = ("RAINGAUGE__CLUSTER__ROLES", "reader");
    let engines = ("RAINGAUGE__CLUSTER__ENGINES", "cluster");
    assert!(
        Settings::load(None, variables(&[open, elsewhere, required, plain, reader, engines]), [])
            .is_ok()
    );
}

#[test]
fn tokens_of_the_portal_are_enough_to_listen_elsewhere() {
    let elsewhere = ("RAINGAUGE__SERVER__LISTEN", "0.0.0.0:80");
    let plain = ("RAINGAUGE__SERVER__PLAINTEXT", "true");
    let settings = Settings::load(
        None,
        variables(&[elsewhere, plain, ("RAINGAUGE__AUTH__REQUIRED", "true")]),
        [],
    )
    .unwrap();
    assert!(settings.auth.is_asked());
}

/// A door that other machines reach has TLS, or a proxy that has, or the word of the operator.
#[test]
fn an_address_beyond_loopback_needs_tls() {
    let required = ("RAINGAUGE__AUTH__REQUIRED", "true");
    let certificate = ("RAINGAUGE__SERVER__TLS_CERTIFICATE", "a.pem");
    let load = |given: &[(&str, &str)]| Settings::load(None, variables(given), []);

    for key in ["listen", "grpc_listen"] {
        let variable = format!("RAINGAUGE__SERVER__{}", key.to_uppercase());
        let elsewhere = (variable.as_str(), "0.0.0.0:80");
        let problems = load(&[elsewhere, required]).unwrap_err();
        let shown = problems[0].to_string();

        assert_eq!(problems.len(), 1, "{shown}");
        assert!(shown.starts_with(&format!("server.{key} (variable {variable}): ")), "{shown}");
        assert!(
            shown.contains("in clear. Give server.tls_certificate and server.tls_key"),
            "{shown}"
        );

        let safe =
            load(&[elsewhere, required, certificate, ("RAINGAUGE__SERVER__TLS_KEY", "b.pem")])
                .unwrap();
        assert_eq!(safe.warnings(), [""; 0]);

        let proxied =
            load(&[elsewhere, required, ("RAINGAUGE__PORTAL__PUBLIC_URL", "https://rain.example")])
                .unwrap();
        assert_eq!(proxied.warnings().len(), 1);

        let plain = load(&[elsewhere, required, ("RAINGAUGE__SERVER__PLAINTEXT", "true")]).unwrap();
        assert!(plain.warnings()[0].contains("in clear"));
        assert!(
            load(&[elsewhere, required, ("RAINGAUGE__PORTAL__PUBLIC_URL", "http://rain.example")])
                .is_err()
        );
    }

    let torn = load(&[certificate]).unwrap_err();
    assert!(torn[0].to_string().contains("is given without server.tls_key"), "{}", torn[0]);
    assert_eq!(defaults().warnings(), [""; 0]);
}

/// The door for Redis clients speaks no TLS, so only the word of the operator opens it to others.
#[test]
fn the_door_for_redis_clients_needs_a_safe_network() {
    let required = ("RAINGAUGE__AUTH__REQUIRED", "true");
    let elsewhere = ("RAINGAUGE__RESP__LISTEN", "0.0.0.0:6380");
    let load = |given: &[(&str, &str)]| Settings::load(None, variables(given), []);

    let local = load(&[("RAINGAUGE__RESP__LISTEN", "localhost:6380")]).unwrap();
    assert_eq!(local.warnings(), [""; 0]);
    let without = load(&[elsewhere]).unwrap_err();
    assert!(without[0].to_string().contains("no token is configured"), "{}", without[0]);

    let proxied = ("RAINGAUGE__PORTAL__PUBLIC_URL", "https://rain.example");
    for given in [&[elsewhere, required][..], &[elsewhere, required, proxied]] {
        let problems = load(given).unwrap_err();
        let shown = problems[0].to_string();
        assert_eq!(problems.len(), 1, "{shown}");
        assert!(shown.starts_with("resp.listen (variable RAINGAUGE__RESP__LISTEN): "), "{shown}");
        assert!(shown.contains("this door speaks no TLS"), "{shown}");
    }

    let plain = ("RAINGAUGE__SERVER__PLAINTEXT", "true");
    let open = load(&[elsewhere, required, plain]).unwrap();
    assert!(open.warnings()[0].contains("the door for Redis clients on 0.0.0.0:6380"));
}

#[test]
fn the_objects_of_a_cluster_are_those_of_one_process() {
    let settings =
        [("RAINGAUGE__CLUSTER__ENGINES", "cluster"), ("RAINGAUGE__RESP__LISTEN", "127.0.0.1:6380")];
    let warnings = Settings::load(None, variables(&settings), []).unwrap().warnings();
    assert!(warnings[0].contains("in the data folder of this process alone"), "{warnings:?}");
}

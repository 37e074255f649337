//! Configurations that would let strangers in.

use super::{assert_starts, load};

/// Each of these shows that others are expected, through a proxy on this machine, whatever the
/// address to listen on.
#[test]
fn a_configuration_for_others_asks_them_for_tokens() {
    let url = "[portal]\npublic_url = \"https://rain.example\"\n";
    let openid =
        format!("{url}[openid]\nissuer = \"https://login.example\"\nclient_id = \"rain\"\n");
    let required = |text: &str| load(&format!("[auth]\nrequired = true\n{text}"), &[]);

    for (text, refused) in [
        (url, &["2 portal.public_url: "][..]),
        (&openid, &["2 portal.public_url: ", "4 openid.issuer: "]),
        ("[portal]\naddress_header = \"X-Forwarded-For\"\n", &["2 portal.address_header: "]),
        ("[portal]\napproval = true\n", &["2 portal.approval: "]),
    ] {
        let problems = load(text, &[]).unwrap_err();
        assert_starts(&problems, refused);
        assert!(problems[0].to_string().contains("Set auth.required = true"), "{}", problems[0]);
        assert!(required(text).is_ok(), "{text}");
    }

    for here in ["http://127.0.0.1:8080", "http://localhost", "http://[::1]:8080"] {
        assert!(
            load(&format!("[portal]\npublic_url = \"{here}\"\nsign_in = false\n"), &[]).is_ok(),
            "{here}"
        );
    }

    let open = required(&format!("{url}sign_in = false\n")).unwrap_err();
    assert_starts(&open, &["5 portal.sign_in: nobody would have to sign in"]);
}

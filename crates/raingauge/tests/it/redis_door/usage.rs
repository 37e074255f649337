//! What the door tells of its use: hot keys, sizes, clients without pipelines; metrics and page.

use super::{Client, home, ok, words};
use crate::server::until;
use raingauge_resp_client::Reply;

fn text(reply: &Reply) -> String {
    String::from_utf8_lossy(reply.bytes().unwrap_or_default()).into_owned()
}

/// The values of a map, by their names.
fn field<'a>(map: &'a Reply, name: &str) -> &'a Reply {
    let all = map.elements().expect("a map");
    let pair = all.chunks(2).find(|pair| pair[0].bytes() == Some(name.as_bytes()));
    &pair.unwrap_or_else(|| panic!("{name} in {map:?}"))[1]
}

#[test]
fn a_client_that_sends_one_by_one_is_found_and_one_that_pipelines_is_not() {
    let home = home();
    let server = home.start();
    let mut slow = Client::new(&server);
    slow.call(&["CLIENT", "SETNAME", "worker-7"]);
    let mut quick = Client::new(&server);
    quick.call(&["CLIENT", "SETNAME", "worker-8"]);

    let sets: Vec<Vec<String>> = (0..300).map(|n| words(&format!("SET key:{n} x"))).collect();
    assert!(quick.pipeline(&sets).iter().all(|reply| *reply == ok()));

    // A busy machine may tear a burst; one is found sooner or later.
    let case = until("a burst is found", || {
        (0..200).for_each(|_| _ = slow.call(&["GET", "key:1"]));
        let commands: Vec<Vec<String>> = vec![words("PING"), words("RAIN.DOCTOR")];
        let found = slow.pipeline(&commands).remove(1);
        found.elements().expect("an array").first().cloned()
    });
    assert_eq!(text(field(&case, "client")), "worker-7");
    assert_eq!(text(field(&case, "command")), "get");
    assert!(field(&case, "commands").integer() >= Some(20));
    assert!(text(field(&case, "says")).contains("a pipeline would save up to"), "{case:?}");
    assert_eq!(slow.call(&["RAIN.DOCTOR", "RESET"]), ok());
}

#[test]
fn hot_keys_and_sizes_are_sampled() {
    let home = home();
    let server = home.start();
    let mut client = Client::new(&server);
    let heavy = "x".repeat(10_000);
    let sets: Vec<Vec<String>> = (0..6_400)
        .map(|n| {
            let value = if n % 10 == 0 { heavy.as_str() } else { "small" };
            let key = if n % 2 == 0 { "hot".to_owned() } else { format!("key:{n}") };
            vec!["SET".to_owned(), key, value.to_owned()]
        })
        .collect();
    assert!(client.pipeline(&sets).iter().all(|reply| *reply == ok()));

    let hot = client.call(&["RAIN.HOT", "3"]);
    let first = hot.elements().expect("an array")[0].elements().expect("a key").to_vec();
    assert_eq!(text(&first[0]), "hot");
    let commands = first[1].integer().expect("a number");
    assert!((1_000..=6_400).contains(&commands), "{commands}");
    assert_eq!(first[3], Reply::Integer(0));

    let sizes = client.call(&["RAIN.SIZES"]);
    assert!(field(&sizes, "values").integer() >= Some(50), "{sizes:?}");
    assert!(field(&sizes, "p99_bytes").integer() >= Some(10_000), "{sizes:?}");
    assert!(field(&sizes, "classes").elements().is_some_and(|classes| !classes.is_empty()));
    assert_eq!(client.call(&["RAIN.SIZES", "RESET"]), ok());
    assert_eq!(field(&client.call(&["RAIN.SIZES"]), "values"), &Reply::Integer(0));
    assert_eq!(client.call(&["RAIN.HOT", "RESET"]), ok());
    assert_eq!(client.call(&["RAIN.HOT"]), Reply::Array(Vec::new()));
}

#[test]
fn metrics_and_the_page_show_what_clients_do() {
    let mut home = home();
    home.set("portal.sign_in", "false");
    let server = home.start();
    let mut client = Client::new(&server);
    let sets: Vec<Vec<String>> = (0..640).map(|n| words(&format!("SET <i>{n} x"))).collect();
    client.pipeline(&sets);

    until("the keys are counted", || {
        (server.metric("raingauge_objects_keys") >= 640.0).then_some(())
    });
    assert!(server.metric("raingauge_objects_commands_total") >= 640.0);
    let page = server.get("/objects").text();
    for part in ["Memory and disk", "Hot keys", "Sizes of values", "from a pipeline"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.contains("&lt;i&gt;") && !page.contains("<i>"), "names of keys are escaped");
    assert!(server.get("/").text().contains("/objects") || page.contains("href=\"/objects\""));
}

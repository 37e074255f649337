//! The contract of the instances.

use crate::instances::{Instance, Instances};

/// Runs the whole suite. `fresh` returns a store without instances each time.
pub async fn suite<I: Instances>(fresh: impl AsyncFn() -> I) {
    an_instance_comes_back_whole(&fresh().await).await;
    a_newer_report_replaces_the_older_one(&fresh().await).await;
    instances_are_listed_by_name(&fresh().await).await;
    who_leaves_or_is_silent_is_forgotten(&fresh().await).await;
}

/// An instance with this id, last seen at `seen_s`.
pub fn instance(id: &str, seen_s: i64) -> Instance {
    Instance {
        id: id.to_owned(),
        name: "reader-1".to_owned(),
        roles: vec!["reader".to_owned(), "portal".to_owned()],
        version: "0.3.0".to_owned(),
        address: "127.0.0.1:8080".to_owned(),
        started_s: 1_727_215_200,
        seen_s,
        measures: "{}".to_owned(),
    }
}

fn ids(found: &[Instance]) -> Vec<&str> {
    found.iter().map(|instance| instance.id.as_str()).collect()
}

async fn an_instance_comes_back_whole(instances: &dyn Instances) {
    assert_eq!(instances.list().await.expect("listed"), []);
    let whole = Instance {
        name: "a'; DROP TABLE x; --<script>☔".to_owned(),
        measures: format!("{{\"x\":\"{}\"}}", "\\\\\\\"☔".repeat(2_000)),
        ..instance("a/1", i64::from(u32::MAX))
    };
    instances.announce(whole.clone()).await.expect("announced");
    let bare = Instance { id: "b".to_owned(), measures: "{}".to_owned(), ..Instance::default() };
    instances.announce(bare.clone()).await.expect("announced");
    assert_eq!(instances.list().await.expect("listed"), [bare, whole]);
}

async fn a_newer_report_replaces_the_older_one(instances: &dyn Instances) {
    instances.announce(instance("a", 1)).await.expect("announced");
    let newer =
        Instance { version: "0.4.0".to_owned(), measures: "[1]".to_owned(), ..instance("a", 2) };
    instances.announce(newer.clone()).await.expect("announced");
    // Announcing the same instance twice has no further effect.
    instances.announce(newer.clone()).await.expect("announced");
    assert_eq!(instances.list().await.expect("listed"), [newer]);
}

async fn instances_are_listed_by_name(instances: &dyn Instances) {
    for (id, name) in [("3", "b"), ("1", "c"), ("2", "b"), ("4", "a")] {
        let named = Instance { name: name.to_owned(), ..instance(id, 7) };
        instances.announce(named).await.expect("announced");
    }
    assert_eq!(ids(&instances.list().await.expect("listed")), ["4", "2", "3", "1"]);
}

async fn who_leaves_or_is_silent_is_forgotten(instances: &dyn Instances) {
    for (id, seen_s) in [("a", 10), ("b", 20), ("c", 30)] {
        instances.announce(instance(id, seen_s)).await.expect("announced");
    }
    instances.leave("c").await.expect("left");
    instances.leave("nobody").await.expect("left");
    assert_eq!(ids(&instances.list().await.expect("listed")), ["a", "b"]);
    instances.forget(20).await.expect("forgotten");
    assert_eq!(ids(&instances.list().await.expect("listed")), ["b"]);
    // The instance was only slow.
    instances.announce(instance("a", 40)).await.expect("announced");
    assert_eq!(ids(&instances.list().await.expect("listed")), ["a", "b"]);
}

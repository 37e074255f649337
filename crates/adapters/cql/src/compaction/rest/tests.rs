//! The REST interface as `api/api-doc/storage_service.json` and `compaction_manager.json` of Scylla
//! describe it.
//!
//! Scylla is not to be had from the package registries that the tests may use: a small HTTP server
//! that answers as those documents say stands in for it. What a real Scylla does was not tried
//! here.

use super::*;
use hyper::body::Incoming;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper::{Request, Response};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// A node that records its requests, and compacts until a request or the test ends that.
#[derive(Clone, Default)]
struct ScyllaNode {
    asked: Arc<Mutex<Vec<String>>>,
    begun: Arc<Notify>,
    ended: Arc<Notify>,
}

impl ScyllaNode {
    async fn listen(self) -> Rest {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let node = self.clone();
                let service = service_fn(move |request| {
                    let node = node.clone();
                    async move { Ok::<_, Infallible>(node.answer(request).await) }
                });
                tokio::spawn(
                    server::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });

        Rest::new(&format!("http://{{host}}:{port}/"), "counts".to_owned()).unwrap()
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<String> {
        let asked = format!("{} {}", request.method(), request.uri());
        self.asked.lock().unwrap().push(asked.clone());

        match asked.as_str() {
            "POST /storage_service/keyspace_compaction/counts" => {
                self.begun.notify_one();
                self.ended.notified().await;
                Response::new(String::new())
            }
            "POST /compaction_manager/stop_keyspace_compaction/counts?type=COMPACTION" => {
                self.ended.notify_one();
                Response::new(String::new())
            }
            "GET /compaction_manager/compactions" => Response::new(
                r#"[{"id": "1", "ks": "counts", "cf": "tile_table", "completed": 40, "total": 100, "task_type": "COMPACTION", "unit": "keys"},
                    {"id": "2", "ks": "counts", "cf": "key_table", "completed": 2, "total": 10, "task_type": "COMPACTION", "unit": "keys"},
                    {"id": "3", "ks": "system", "cf": "peers", "completed": 1, "total": 1, "task_type": "COMPACTION", "unit": "keys"}]"#
                    .to_owned(),
            ),
            _ => {
                let mut response = Response::new(r#"{"message": "Can't find a keyspace absent", "code": 400}"#.to_owned());
                *response.status_mut() = StatusCode::BAD_REQUEST;
                response
            }
        }
    }
}

#[tokio::test]
async fn a_node_compacts_until_it_is_done() {
    let node = ScyllaNode::default();
    let rest = node.clone().listen().await;
    let observed = async {
        node.begun.notified().await;
        let progress = rest.progress("127.0.0.1").await.unwrap();
        assert_eq!(progress, Some(Progress { done: 42, total: 110, unit: "keys".to_owned() }));
        node.ended.notify_one();
    };

    let (compacted, ()) = tokio::join!(rest.compact("127.0.0.1"), observed);
    assert_eq!(compacted, Ok(()));

    let asked = node.asked.lock().unwrap().clone();
    assert_eq!(
        asked,
        ["POST /storage_service/keyspace_compaction/counts", "GET /compaction_manager/compactions"]
    );
}

#[tokio::test]
async fn a_compaction_is_given_up_and_stopped() {
    let node = ScyllaNode::default();
    let rest = node.clone().listen().await;
    tokio::select! {
        compacted = rest.compact("127.0.0.1") => panic!("it ended: {compacted:?}"),
        () = node.begun.notified() => {}
    }
    rest.stop("127.0.0.1").await.unwrap();
    let asked = node.asked.lock().unwrap().clone();
    assert_eq!(
        asked[1],
        "POST /compaction_manager/stop_keyspace_compaction/counts?type=COMPACTION"
    );
}

#[tokio::test]
async fn a_refusal_of_a_node_keeps_its_words() {
    let rest = ScyllaNode::default().listen().await;
    let absent = Rest { keyspace: "absent".to_owned(), ..rest };
    let error = absent.compact("127.0.0.1").await.unwrap_err().to_string();
    assert!(error.contains("/keyspace_compaction/absent: it answered 400"), "{error}");
    assert!(error.contains("Can't find a keyspace absent"), "{error}");
}

#[tokio::test]
async fn a_node_that_is_away_is_reported_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let rest = Rest::new(&format!("http://{{host}}:{port}"), "counts".to_owned()).unwrap();
    let error = rest.compact("127.0.0.1").await.unwrap_err().to_string();
    assert!(error.contains("api_address"), "{error}");
}

#[test]
fn addresses_are_checked_and_hosts_put_in() {
    for wrong in ["127.0.0.1:10000", "https://{host}:10000", "", "http://"] {
        assert!(Rest::new(wrong, "counts".to_owned()).is_err(), "{wrong}");
    }
    let rest = Rest::new("http://{host}:10000", "counts".to_owned()).unwrap();
    assert_eq!(rest.address("::1", "/a").unwrap().to_string(), "http://[::1]:10000/a");
    assert_eq!(rest.address("10.0.0.7", "/a").unwrap().to_string(), "http://10.0.0.7:10000/a");
}

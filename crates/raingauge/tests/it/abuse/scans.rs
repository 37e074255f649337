//! Requests that read the whole log or every tile: many at once, and by callers who do not wait for
//! the answer.

use crate::auth::{home_with_tokens, token};
use crate::client::{Client, at, drop_event, drops_counter};
use crate::operations::memory_bytes;
use crate::server::{Server, until};
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const NOON: &str = "2024-09-24T12:00:00Z";
const EVENTS: usize = 60_000;
const CITIES: usize = 1_000;

/// Many events of many keys, so that looking at all of them takes a while.
fn fill(server: &Server) {
    server.with_token(&token("admin")).create(drops_counter());
    let producer = server.with_token(&token("events:write"));

    for from in (0..EVENTS).step_by(20_000) {
        let lines: String = (from..from + 20_000)
            .map(|n| {
                format!(
                    "{}\n",
                    drop_event(&n.to_string(), at(NOON), &format!("city-{}", n % CITIES))
                )
            })
            .collect();

        let headers = [("content-type", "application/x-ndjson")];
        producer.send("POST", "/v1/events?wait=applied", &headers, lines.as_bytes()).expect(200);
    }
}

fn recount(n: usize) -> String {
    format!("/v1/recount?key=drops:city-{}&fromTime=0&toTime={}", n % CITIES, at(NOON) + 86_400)
}

fn keys(n: usize) -> String {
    format!("/v1/counters/34/keys?fromTime={}&limit=10", (n as i64 % 300) * 86_400)
}

/// Counts as an application does, which has a token of its own.
fn counts(client: &Client) {
    let counts = client.counts(&[("drops:city-7", at(NOON), at(NOON) + 900)]);
    assert_eq!(counts, [(EVENTS / CITIES) as i64]);
}

#[test]
fn many_scans_of_one_caller_wait_for_their_turn() {
    let home = home_with_tokens();
    let server = home.start();
    fill(&server);

    let began_bytes = memory_bytes(server.pid(), "VmHWM:");
    let greedy = server.with_token(&token("counts:read"));
    let modest = server.with_token(&token("admin"));
    let answered = AtomicUsize::new(0);
    let busy = AtomicUsize::new(0);

    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..60 {
            let greedy = greedy.clone();
            let answered = &answered;
            let busy = &busy;

            scope.spawn(move || {
                for n in 0..2 {
                    let path = if n == 0 { recount(thread) } else { keys(thread) };
                    let answer = greedy.send("GET", &path, &[], b"");
                    match answer.status {
                        200 => answered.fetch_add(1, Ordering::SeqCst),
                        504 => 0,
                        _ => {
                            answer.expect_problem(429, "scans_waiting");
                            assert!(answer.header("retry-after").parse::<u64>().is_ok());
                            busy.fetch_add(1, Ordering::SeqCst)
                        }
                    };
                }
            });
        }

        // Another caller has a turn of its own, and counts are not asked to wait.
        scope.spawn(|| {
            until("many are waiting", || (busy.load(Ordering::SeqCst) > 0).then_some(()));
            let recounted = modest.get(&recount(3)).expect(200);
            assert_eq!(recounted["equal"], true, "{recounted}");
            is_done.store(true, Ordering::SeqCst);
        });

        while !is_done.load(Ordering::SeqCst) {
            counts(&modest);
        }
    });
    assert!(answered.load(Ordering::SeqCst) > 0 && busy.load(Ordering::SeqCst) > 0);

    let grew = memory_bytes(server.pid(), "VmHWM:") - began_bytes;
    assert!(grew < 128 << 20, "{grew} bytes were taken");
}

/// Callers who hang up take their scans along: what runs stops, what waits leaves the queue.
#[test]
fn scans_end_with_those_who_asked_for_them() {
    let home = home_with_tokens();
    let server = home.start();
    fill(&server);

    let reader = server.with_token(&token("counts:read"));
    for _ in 0..20 {
        let callers: Vec<TcpStream> = (0..16)
            .map(|n| {
                let mut stream = TcpStream::connect(&server.address).expect("a connection");
                let path = recount(n);
                let bearer = token("counts:read");
                let head = format!(
                    "GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {bearer}\r\n\r\n"
                );

                stream.write_all(head.as_bytes()).expect("sent");
                stream
            })
            .collect();

        counts(&reader);
        drop(callers);
    }

    // Without their callers none of the 320 is left, and the next one is not refused for long.
    let answer = until("the queue is empty", || {
        Some(reader.get(&recount(1))).filter(|answer| answer.status == 200)
    });
    assert_eq!(answer.json()["recounted"], (EVENTS / CITIES) as i64);
}

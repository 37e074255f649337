//! Bodies that are expensive to read, slow to arrive, or many at once: their cost, and their effect
//! on others.

use crate::auth::{home_with_tokens, token};
use crate::client::{Answer, at, drop_event, drops_counter};
use crate::operations::memory_bytes;
use crate::server::{Home, Server, until};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;

const NOON: &str = "2024-09-24T12:00:00Z";
const MIB: usize = 1 << 20;
const JSON: (&str, &str) = ("content-type", "application/json");

/// A JSON text of about `len` bytes: one member repeated.
fn repeated(begin: &str, member: &str, end: &str, len: usize) -> Vec<u8> {
    let times = (len - begin.len() - end.len()) / (member.len() + 1);
    let mut text = begin.to_owned();
    text.push_str(member);
    for _ in 1..times {
        text.push(',');
        text.push_str(member);
    }
    text.push_str(end);
    text.into_bytes()
}

/// Sends a body four times at once, together with ordinary events and counts. Returns the answers.
fn four_at_once(server: &Server, path: &str, body: &[u8]) -> Vec<Answer> {
    std::thread::scope(|scope| {
        let calls: Vec<_> =
            (0..4).map(|_| scope.spawn(|| server.send("POST", path, &[JSON], body))).collect();
        while calls.iter().any(|call| !call.is_finished()) {
            let event = drop_event("same", at(NOON), "oslo");
            server.lines("/v1/events", &[event]).expect(200);
            server.results(&[("drops:oslo", at(NOON), at(NOON) + 900)]);
        }
        calls.into_iter().map(|call| call.join().expect("an answer")).collect()
    })
}

/// Members that take many times their bytes once they are parsed, in bodies as long as any route
/// takes and as long as the route itself takes: the answers are small, and so is the memory that
/// they need.
#[test]
fn a_body_takes_no_more_memory_than_its_route_needs() {
    let mut home = Home::new();
    // The allocator gives back at once what is free: otherwise the bodies of one case are still
    // resident in the next, the more of them the busier the machine is.
    home.export("MIMALLOC_PURGE_DELAY", "0");
    let server = home.start();
    server.create(drops_counter());

    let began_bytes = memory_bytes(server.pid(), "VmHWM:");
    let long = 33_000_000;
    let cases = [
        ("/v1/buckets", "[", r#"{"":0}"#, "]", 8 * MIB),
        ("/v1/buckets", "[", "0", "]", 8 * MIB),
        ("/v1/counts", "{\"requests\":[", "{}", "]}", 4 * MIB),
        ("/v1/counts", "{\"requests\":[],\"x\":[", "[]", "]}", 4 * MIB),
        ("/v1/counters", "[", r#"{"":0}"#, "]", 256 << 10),
        ("/v1/counters", "[", "0", "]", 256 << 10),
        ("/v1/counters/preview", r#"{"name":["#, "[]", "]}", 256 << 10),
        ("/v1/counters/34/preview", r#"{"x":["#, "\"\"", "]}", 256 << 10),
    ];

    for (path, begin, member, end, route_len) in cases {
        for len in [long, route_len] {
            let body = repeated(begin, member, end, len);
            for answer in four_at_once(&server, path, &body) {
                assert!(
                    (400..500).contains(&answer.status) || path == "/v1/counts",
                    "{path} {}",
                    answer.status
                );
                assert!(
                    answer.body.len() < MIB,
                    "{path} with {member}: {} bytes",
                    answer.body.len()
                );

                if len == long {
                    answer.expect_problem(413, "body_too_large");
                }
            }
        }
    }

    let too_many = repeated("[", r#"{"":0}"#, "]", MIB);
    server.send("POST", "/v1/buckets", &[JSON], &too_many).expect_problem(413, "too_many_buckets");

    let too_many = repeated("{\"requests\":[", "{}", "]}", MIB);
    server.send("POST", "/v1/counts", &[JSON], &too_many).expect_problem(413, "too_many_ranges");

    let grew = memory_bytes(server.pid(), "VmHWM:") - began_bytes;
    println!("{began_bytes} bytes resident at first, {grew} more at most");
    // As values, such bodies would take a gigabyte.
    assert!(grew < 128 * MIB, "{grew} bytes were taken");
}

/// Only events may be compressed.
#[test]
fn other_routes_take_no_packed_body() {
    let home = Home::new();
    let server = home.start();
    for (method, path) in
        [("POST", "/v1/counts"), ("POST", "/v1/buckets"), ("PUT", "/v1/cache-policy")]
    {
        let headers = [JSON, ("content-encoding", "gzip")];
        server.send(method, path, &headers, b"packed").expect_problem(415, "encoding_unknown");
    }
}

/// Heads that announce much, and bodies that stop half way, keep no one out; the senders of those
/// that stop get an answer that says so.
#[test]
fn who_announces_much_and_sends_little_keeps_nobody_out() {
    let home = home_with_tokens();
    let server = home.start();
    server.with_token(&token("admin")).create(drops_counter());

    let begin = |path: &str, scope: &str, more: &str, len: usize| {
        let mut stream = TcpStream::connect(&server.address).expect("a connection");
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n{more}\
             content-length: {len}\r\n\r\n[",
            token(scope)
        );

        stream.write_all(head.as_bytes()).expect("sent");
        stream
    };

    let mut waiting: Vec<TcpStream> = (0..20)
        .flat_map(|_| {
            [
                begin("/v1/counts", "counts:read", "content-encoding: gzip\r\n", 9),
                begin("/v1/counts", "counts:read", "", 4 * MIB),
                begin("/v1/events", "events:write", "", 32 * MIB),
                begin("/v1/events", "events:write", "content-encoding: gzip\r\n", 32 * MIB),
                begin("/v1/buckets", "admin", "", 8 * MIB),
            ]
        })
        .collect();

    let producer = server.with_token(&token("events:write"));
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed
        .write_all(drop_event("packed", at(NOON), "oslo").to_string().as_bytes())
        .expect("memory");

    let packed = packed.finish().expect("memory");
    for n in 0..20 {
        producer.lines("/v1/events", &[drop_event(&n.to_string(), at(NOON), "oslo")]).expect(200);
        producer
            .send("POST", "/v1/events", &[JSON, ("content-encoding", "gzip")], &packed)
            .expect(200);
        server.with_token(&token("counts:read")).results(&[(
            "drops:oslo",
            at(NOON),
            at(NOON) + 900,
        )]);
    }

    let mut stopped = waiting.swap_remove(1);
    let mut answer = String::new();
    let _ = stopped.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("body_too_slow"), "{answer}");
}

/// The unpacked bytes of a body are charged as they appear, and released when they are read.
#[test]
fn packed_bodies_take_room_for_what_comes_out_of_them() {
    let home = Home::with(&[("server.body_bytes_max", "1048576")]);
    let server = home.start();
    server.create(drops_counter());

    let lines: String =
        (0..4_000).map(|n| format!("{}\n", drop_event(&n.to_string(), at(NOON), "oslo"))).collect();
    assert!(lines.len() < MIB, "{}", lines.len());

    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(lines.as_bytes()).expect("memory");

    let packed = packed.finish().expect("memory");
    let headers = [("content-type", "application/x-ndjson"), ("content-encoding", "gzip")];

    // Many more than would fit if each were charged as the largest body.
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                until("the body is taken", || {
                    let answer = server.send("POST", "/v1/events", &headers, &packed);
                    (answer.status == 200).then(|| answer.expect(200))
                });
            });
        }
    });
    until("they are counted once", || {
        (server.count("drops:oslo", at(NOON), at(NOON) + 900) == 4_000).then_some(())
    });

    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    bomb.write_all(&vec![b' '; 64 * MIB]).expect("memory");

    let bomb = bomb.finish().expect("memory");
    server.send("POST", "/v1/events", &headers, &bomb).expect_problem(413, "body_too_large");
    assert_eq!(server.post("/v1/events", &json!([])).status, 200);
}

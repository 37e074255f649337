//! What operators rely on: a graceful shutdown, one process per folder, back-pressure, bounded
//! memory.

use crate::client::{Client, at, drop_event, drops_counter, event, forever};
use crate::server::{Home, Server, until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const NOON: &str = "2024-09-24T12:00:00Z";

fn total(client: &Client) -> i64 {
    client.count("drops:oslo", at(NOON), at(NOON) + 86_400)
}

/// SIGTERM in the middle of traffic: every acknowledged event is counted, and the process ends with
/// 0 in time.
#[test]
fn terminating_loses_nothing_that_was_acknowledged() {
    let home = Home::with(&[("server.drain_timeout_s", "5")]);
    let server = home.start();
    server.create(drops_counter());

    let acknowledged = AtomicUsize::new(0);
    let sent = AtomicUsize::new(0);
    let client = (*server).clone();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let acknowledged = &acknowledged;
            let sent = &sent;
            let client = &client;

            scope.spawn(move || {
                for batch in 0.. {
                    let events: Vec<Value> = (0..20)
                        .map(|n| drop_event(&format!("{thread}-{batch}-{n}"), at(NOON), "oslo"))
                        .collect();
                    sent.fetch_add(events.len(), Ordering::SeqCst);

                    let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
                    let headers = [("content-type", "application/x-ndjson")];
                    match client.try_send("POST", "/v1/events", &headers, lines.as_bytes()) {
                        Ok(answer) if answer.status == 200 => {
                            acknowledged.fetch_add(events.len(), Ordering::SeqCst);
                        }
                        _ => return,
                    }
                }
            });
        }

        until("there is traffic", || (acknowledged.load(Ordering::SeqCst) > 500).then_some(()));
        let (status, took) = server.terminate();
        assert_eq!(status.code(), Some(0));
        assert!(took < Duration::from_secs(12), "it took {took:?}");
    });

    let server = home.start();
    let least = acknowledged.load(Ordering::SeqCst) as i64;
    let most = sent.load(Ordering::SeqCst) as i64;

    assert!(
        (least..=most).contains(&total(&server)),
        "{} is not in {least}..={most}",
        total(&server)
    );
}

/// A client that never finishes its request does not keep the server from ending.
#[test]
fn terminating_is_bounded_whatever_clients_do() {
    let home = Home::with(&[("server.drain_timeout_s", "1")]);
    let server = home.start();
    server.create(drops_counter());
    server.count_events(&[drop_event("1", at(NOON), "oslo")]);

    let mut slow = TcpStream::connect(&server.address).unwrap();
    slow.write_all(
        b"POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\ncontent-length: 1000\r\n\r\n{",
    )
    .unwrap();

    let idle = TcpStream::connect(&server.address).unwrap();

    // A request on a third connection shows that the server has accepted the other two.
    assert_eq!(server.get("/healthz").status, 200);
    let (status, took) = server.terminate();
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(5), "it took {took:?}");
    drop((slow, idle));
    assert_eq!(total(&home.start()), 1);
}

#[test]
fn an_interrupt_ends_it_too() {
    let home = Home::new();
    let server = home.start();
    server.signal("INT");
    let (status, _) = server.terminate();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_folder_is_served_by_one_process() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());
    let refused = home.try_start().err().expect("the second is refused");
    assert!(!refused.status.success());
    let errors = refused.errors.to_lowercase();
    let said = ["another", "in use", "already", "lock"].iter().any(|word| errors.contains(word));
    assert!(said, "it says that another process has the folder: {}", refused.errors);
    server.count_events(&[drop_event("1", at(NOON), "oslo")]);
    assert_eq!(total(&server), 1, "the first goes on");
}

#[test]
fn a_port_that_is_taken_is_refused() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = Home::new().try_start_on(&address).err().expect("it is refused");
    assert!(!refused.status.success());
    assert!(refused.errors.contains(&address), "{}", refused.errors);
}

#[test]
fn all_problems_of_the_settings_are_reported_at_once() {
    let home = Home::with(&[
        ("server.listen", "nowhere"),
        ("log.segment_bytes", "1 GiB"),
        ("storage.tile_cache_byte", "1"),
        ("observe.log_level", "loud"),
    ]);

    let data = home.data().display().to_string();
    let refused = home
        .try_start_with(&["serve", "--data-dir", &data].map(str::to_owned))
        .err()
        .expect("it is refused");

    for key in ["server.listen", "log.segment_bytes", "TILE_CACHE_BYTES", "observe.log_level"] {
        assert!(refused.errors.contains(key), "{key} is not in: {}", refused.errors);
    }
    assert!(!home.data().exists(), "nothing was begun");
}

/// The queue before the disk is full: some requests are refused with a retry, and no event is lost.
#[test]
fn a_full_queue_refuses_and_loses_nothing() {
    refuses_and_loses_nothing(
        &[("log.queue_bytes_max", "65536"), ("server.body_bytes_max", "65536")],
        429,
        "log_busy",
        120,
    );
}

/// The writer is too far behind the log, with the same outcome.
#[test]
fn a_lagging_writer_refuses_and_loses_nothing() {
    refuses_and_loses_nothing(&[("log.lag_events_max", "1000")], 503, "writer_lagging", 1_500);
}

/// Many clients send at once, and send refused events again until all are accepted.
fn refuses_and_loses_nothing(
    settings: &[(&str, &str)],
    status: u16,
    code: &str,
    events_per_batch: usize,
) {
    let home = Home::with(settings);
    let server = home.start();

    // A separate key for many events makes the writer's work harder than the log's.
    server.create(json!({"name": "by id", "template": "by:{n}", "eventType": "drop", "retentionDays": forever()}));
    server.create(drops_counter());

    let seen = AtomicBool::new(false);
    let sent = AtomicUsize::new(0);
    let client: &Client = &server;
    std::thread::scope(|scope| {
        for thread in 0..12 {
            let seen = &seen;
            let sent = &sent;
            scope.spawn(move || {
                for batch in 0..200 {
                    if seen.load(Ordering::SeqCst) && batch > 3 {
                        return;
                    }
                    let events: Vec<Value> = (0..events_per_batch)
                        .map(|n| {
                            let data = json!({"city": "oslo", "n": n * 7 + batch});
                            event(
                                "drop",
                                &format!("{thread}-{batch}-{n}"),
                                at(NOON) + n as i64,
                                data,
                            )
                        })
                        .collect();

                    until("the batch is taken", || {
                        let answer = client.lines("/v1/events", &events);
                        if answer.status == 200 {
                            return Some(());
                        }
                        assert!([429, 503].contains(&answer.status), "{}", answer.text());

                        if answer.status == status {
                            answer.expect_problem(status, code);
                            let after: u64 = answer
                                .header("retry-after")
                                .parse()
                                .expect("Retry-After is in seconds");
                            assert!((1..=60).contains(&after));
                            seen.store(true, Ordering::SeqCst);
                        }

                        None
                    });
                    sent.fetch_add(events.len(), Ordering::SeqCst);
                }
            });
        }
    });
    assert!(seen.load(Ordering::SeqCst), "{code} was never answered");
    until("everything is counted", || {
        (total(client) == sent.load(Ordering::SeqCst) as i64).then_some(())
    });

    let refused = client.metric(&format!("raingauge_errors_total{{code=\"{code}\"}}"));
    assert!(refused >= 1.0);
}

/// Returns the memory of a process on Linux, in bytes.
pub fn memory_bytes(pid: u32, name: &str) -> usize {
    let status =
        std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process has a status");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .expect("the status tells the memory");
    let kilobytes: usize =
        line.trim_matches(|char: char| !char.is_ascii_digit()).parse().expect("a number");
    kilobytes * 1_024
}

/// Ten times more tiles than the cache holds: memory stays within the settings, and every count is
/// right.
#[test]
fn memory_is_bounded_by_the_settings() {
    let cache_bytes = 8 << 20;
    let cache = cache_bytes.to_string();
    let home =
        Home::with(&[("storage.tile_cache_bytes", &cache), ("storage.block_cache_bytes", &cache)]);
    let server = home.start();

    server.create(drops_counter());
    let pid = server.pid();
    let began_bytes = memory_bytes(pid, "RssAnon:");

    // Each key has a day tile and a span, which with its name take some 300 bytes in the cache.
    let keys = 300_000;
    let keys_per_batch = 10_000;
    for batch in 0..keys / keys_per_batch {
        let from = batch * keys_per_batch;
        let lines: String = (from..from + keys_per_batch)
            .map(|key| {
                format!("{}\n", drop_event(&key.to_string(), at(NOON), &format!("city-{key}")))
            })
            .collect();

        let headers = [("content-type", "application/x-ndjson")];
        server.send("POST", "/v1/events?wait=applied", &headers, lines.as_bytes()).expect(200);
    }

    let random_keys: Vec<String> =
        (0..1_000).map(|n| format!("drops:city-{}", n * 7_919 % keys)).collect();
    let ranges: Vec<(&str, i64, i64)> =
        random_keys.iter().map(|key| (key.as_str(), at(NOON), at(NOON) + 900)).collect();
    assert_eq!(server.counts(&ranges), vec![1; ranges.len()]);

    let (now_bytes, peak_bytes) = (memory_bytes(pid, "RssAnon:"), memory_bytes(pid, "VmHWM:"));
    println!(
        "anonymous memory: {began_bytes} at first, {now_bytes} in the end; {peak_bytes} resident at most"
    );

    // Besides both caches: 16 bytes for each identity, three times over while its table grows; and
    // what does not grow with the data: the memory tables of the storage engine, and bodies and
    // blocks in flight.
    let bound = began_bytes + 2 * cache_bytes + keys * 48 + (192 << 20);
    assert!(now_bytes < bound, "{now_bytes} bytes are held, more than {bound}");
    assert!(server.metric("raingauge_tile_cache_bytes") <= cache_bytes as f64 * 1.1);
}

#[test]
fn a_server_that_is_ready_says_so_in_one_line() {
    let home = Home::new();
    let data = home.data().display().to_string();
    let arguments = ["serve", "--data-dir", &data, "--listen", "127.0.0.1:0"].map(str::to_owned);
    let mut child = home
        .command(&arguments)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();

    let mut output = child.stdout.take().unwrap();
    let mut line = Vec::new();
    let mut byte = [0];
    while output.read(&mut byte).is_ok_and(|len| len == 1) && byte[0] != b'\n' {
        line.push(byte[0]);
    }

    let line = String::from_utf8(line).unwrap();
    let address = line.rsplit("http://").next().unwrap_or_default();
    assert_eq!(Client::new(address).get("/readyz").status, 200, "{line}");

    let _ = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert_eq!(child.wait().unwrap().code(), Some(0));

    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "nothing else is printed there");
}

/// A store that cannot write stops counting: `/readyz` reports it, the process ends with an error,
/// and the next one counts everything that was acknowledged.
#[test]
fn a_failure_turns_readiness_red_and_ends_the_process() {
    let home =
        Home::with(&[("storage.tile_cache_bytes", "1048576"), ("server.failure_grace_s", "1")]);
    let server = home.start();
    server.create(drops_counter());
    assert_eq!(server.get("/readyz").status, 200);

    // Without its folder, the next file of the store cannot be created.
    let tiles = home.data().join("tiles");
    let aside = home.path().join("aside");
    std::fs::rename(&tiles, &aside).unwrap();

    let mut acknowledged = 0;
    until("readiness is red", || {
        let city = |n: i64| format!("city-{acknowledged}-{n}");
        let lines: String =
            (0..5_000).map(|n| format!("{}\n", drop_event(&city(n), at(NOON), &city(n)))).collect();
        let headers = [("content-type", "application/x-ndjson")];

        if server
            .try_send("POST", "/v1/events", &headers, lines.as_bytes())
            .is_ok_and(|answer| answer.status == 200)
        {
            acknowledged += 5_000;
        }

        (server.get("/readyz").status == 503).then_some(())
    });

    let errors = home.errors_path();
    assert_eq!(server.ended().code(), Some(1));
    assert!(std::fs::read_to_string(errors).unwrap().contains("counting has failed"));

    std::fs::rename(&aside, &tiles).unwrap();
    let server = home.start();

    for batch in (0..acknowledged).step_by(5_000) {
        let key = format!("drops:city-{batch}-4999");
        assert_eq!(server.count(&key, at(NOON), at(NOON) + 900), 1, "{key}");
    }
}

/// Clients that only hold their connections take none of the descriptors that the log and the store
/// need.
#[test]
fn idle_clients_leave_room_for_files() {
    let mut home =
        Home::with(&[("log.segment_bytes", "1048576"), ("storage.tile_cache_bytes", "1048576")]);
    home.limit_open_files(256);

    let server = home.start();
    server.create(drops_counter());

    let mut busy = TcpStream::connect(&server.address).unwrap();
    let health = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    busy.write_all(health).unwrap();
    assert!(read_answer(&mut busy).starts_with("HTTP/1.1 200"));

    let idle: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(&server.address).unwrap()).collect();

    // Each batch fills about one segment.
    for batch in 0..6 {
        let lines: String = (0..6_000)
            .map(|n| {
                format!(
                    "{}\n",
                    drop_event(&format!("{batch}-{n}"), at(NOON), &format!("city-{batch}-{n}"))
                )
            })
            .collect();

        let head =
            "POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\n";
        busy.write_all(format!("{head}content-length: {}\r\n\r\n{lines}", lines.len()).as_bytes())
            .unwrap();

        let answer = read_answer(&mut busy);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    drop(idle);
    until("the server answers others again", || {
        let ready = server.try_send("GET", "/readyz", &[], b"");
        ready.is_ok_and(|answer| answer.status == 200).then_some(())
    });
    assert!(!server.errors().contains("Too many open files"), "{}", server.errors());
}

/// Reads the head and the body of an answer over a connection that stays open.
fn read_answer(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        bytes.push(byte[0]);
    }

    let head = String::from_utf8(bytes).unwrap();
    let len = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; len.expect("an answer has a length")];
    stream.read_exact(&mut body).unwrap();

    head
}

/// Copies a catalog, which has files beside it.
fn copy_catalog(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for name in ["catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm"] {
        let _ = std::fs::remove_file(to.join(name));
        if from.join(name).exists() {
            std::fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

/// A catalog that was restored alone would assign ids again that already have counts.
#[test]
fn a_catalog_older_than_the_counts_is_refused() {
    let mut home = Home::new();
    let server = home.start();
    server.create(drops_counter());
    server.terminate();

    let data = home.data();
    let older = home.path().join("older");
    let newer = home.path().join("newer");
    copy_catalog(&data, &older);

    let server = home.start();
    let more = json!({"name": "more", "template": "more:{city}", "eventType": "drop", "retentionDays": forever()});
    let id = server.create(more.clone())["id"].clone();
    server.terminate();
    copy_catalog(&data, &newer);
    copy_catalog(&older, &data);

    let refused = home.try_start().err().expect("it is refused");
    let said =
        format!("the catalog is older than the counts: counter {id} was counted at version 1");
    assert!(refused.errors.contains(&said), "{}", refused.errors);

    copy_catalog(&newer, &data);
    let server = home.start();
    server.count_events(&[drop_event("1", at(NOON), "oslo")]);

    let count = |server: &Server| server.count("more:oslo", at(NOON), at(NOON) + 900);
    assert_eq!(count(&server), 1);
    server.terminate();

    // Without a backup, the counter is created again, by its id.
    copy_catalog(&older, &data);
    home.set("storage.accept_older_catalog", "true");

    let server = home.start();
    let mut again = more;
    again["id"] = id;
    server.create(again);
    server.terminate();
    home.set("storage.accept_older_catalog", "false");
    assert_eq!(count(&home.start()), 1);
}

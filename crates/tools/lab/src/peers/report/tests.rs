use super::*;

fn measured(rate: f64) -> Measurement {
    let latency = Latency {
        mean_us: 200.0,
        p50_us: 100.0,
        p99_us: 2_000.0,
        p999_us: 3_000.0,
        max_us: 4_000.0,
    };
    Measurement {
        requests: 100,
        unanswered: 0,
        elapsed_s: 1.0,
        requests_per_s: rate,
        units_per_s: rate * 10.0,
        latency,
    }
}

/// Two systems, the first of them ten times as fast.
pub fn sample() -> Report {
    let busy = Busy { server_core: 1.0, client_core: 0.5, client: 0.5 };
    let system = |name: &str, rate: f64, exactly_once| System {
        name: name.to_owned(),
        version: "1.0".to_owned(),
        how: "somehow".to_owned(),
        loaded_s: 1.0,
        history_bytes_per_million: 2.0 * MEGABYTE,
        memory_bytes: 3_000_000,
        others_cores: 0.0,
        reads: Kind::ALL
            .map(|kind| {
                let greatest = measured(rate);
                let half = measured(rate / 2.0);
                Read { kind, greatest, half, cpu_s_per_million: 1_000.0 / rate, busy }
            })
            .into(),
        writes: vec![WriteResult {
            mode: Mode {
                how: "in lines".to_owned(),
                durable: true,
                exactly_once,
                batch_events: 10,
                connections: 4,
            },
            events: 1_000,
            events_per_s: rate * 3.0,
            shown_per_s: exactly_once.then_some(rate * 2.0),
            latency: measured(rate).latency,
            cpu_s_per_million: 1.5,
            disk_bytes_per_million: 1_500_000.0,
            busy,
        }],
    };

    Report {
        started: "2026-01-01T00:00:00Z".to_owned(),
        machine: Machine::here(),
        keys: 10,
        history_events: 1_000,
        connections: 32,
        systems: vec![system("raingauge", 1_000.0, true), system("duckdb", 100.0, false)],
        left_out: vec![ExcludedSystem {
            system: "questdb".to_owned(),
            why: "it is not installed".to_owned(),
            has_failed: false,
        }],
    }
}

#[test]
fn tables_have_every_system_and_say_what_is_missing() {
    let text = sample().markdown();
    assert!(text.contains("| raingauge 1.0 | somehow | 10,000 |  | 1,000 |"), "{text}");
    assert!(text.contains("| DuckDB 1.0 | somehow | 1,000 | 10.0 x | 100 |"), "{text}");
    assert!(
        text.contains(
            "| DuckDB, in lines | yes | no | 300 | the same | 10 x 4 | 0.100, 2.00 | 1.50 | 1.5 |"
        ),
        "{text}"
    );
    assert!(text.contains("questdb was left out: it is not installed."), "{text}");
    assert!(text.lines().filter(|line| line.starts_with('|')).all(|line| line.ends_with('|')));
}

#[test]
fn only_a_system_that_is_installed_can_fail_the_comparison() {
    let mut report = sample();
    assert_eq!(report.fault(), None);
    report.left_out.push(ExcludedSystem {
        system: "redis".to_owned(),
        why: "it did not answer".to_owned(),
        has_failed: true,
    });
    assert_eq!(report.fault().as_deref(), Some("redis: it did not answer"));
}

#[test]
fn a_report_can_be_read_again() {
    let text = serde_json::to_string(&sample()).unwrap();
    let again: Report = serde_json::from_str(&text).unwrap();
    assert_eq!(again.markdown(), sample().markdown());
}

//! Major compaction of the nodes of a real Cassandra. `RAINGAUGE_TEST_SERVICES` is the folder of
//! the servers that `scripts/services` started; where it did not, `RAINGAUGE_TEST_NODETOOL` is
//! nodetool with its options, separated by spaces, and `{host}` for the address of a node.

use crate::support::{Place, layout};
use raingauge_cql::schema::migrate;
use raingauge_cql::{
    self as cql, CompactionOptions, CompactionTables, CompactionWay, NodeCompactor,
};
use raingauge_ports::maintenance::{Compactor, Node};
use std::process::Command;
use std::time::{Duration, Instant};

/// Longest wait for something to happen.
const PATIENCE: Duration = Duration::from_secs(60);
const FLUSHES: usize = 4;
/// What nodetool says when it looks at all tables while another test drops some.
const AMID_A_DROP: &str = "Server is not initialized yet";
/// Rows of a quarter of a mebibyte in each of two files: at a mebibyte a second they take most of a
/// minute to compact, which is longer than nodetool takes on a machine that is busy.
const SLOW_ROWS: usize = 96;

fn nodetool() -> Option<Vec<String>> {
    if let Ok(command) = std::env::var("RAINGAUGE_TEST_NODETOOL") {
        return Some(command.split_whitespace().map(str::to_owned).collect());
    }
    let Ok(folder) = std::env::var("RAINGAUGE_TEST_SERVICES") else {
        eprintln!("skipped: RAINGAUGE_TEST_SERVICES names no servers; `make test` starts some");
        return None;
    };
    // Nodes are numbered by the end of their addresses.
    let services = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/services");
    let script = format!("exec '{services}' nodetool '{folder}' \"${{0##*.}}\" \"$@\"");
    Some(["sh", "-c", &script, "{host}"].map(str::to_owned).to_vec())
}

/// A keyspace, and the way to compact it.
struct Ground {
    place: Place,
    command: Vec<String>,
}

impl Ground {
    fn new() -> Option<Self> {
        Some(Self { command: nodetool()?, place: Place::new()? })
    }

    fn compactor(&self, tables: CompactionTables) -> NodeCompactor {
        let options = CompactionOptions {
            command: self.command.clone(),
            tables,
            ..CompactionOptions::default()
        };
        NodeCompactor::new(self.place.cql(), options)
    }

    fn nodes(&self) -> Vec<Node> {
        self.place.block_on(self.compactor(CompactionTables::Auto).nodes()).expect("nodes")
    }

    /// Runs nodetool against a node.
    fn run(&self, node: &Node, arguments: &[&str]) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut words = self.command.iter().map(|word| word.replace("{host}", &node.name));
            let output = Command::new(words.next().unwrap())
                .args(words)
                .args(arguments)
                .output()
                .expect("nodetool runs");

            if output.status.success() {
                return String::from_utf8(output.stdout).expect("text");
            }
            let is_amid_a_drop = String::from_utf8_lossy(&output.stderr).contains(AMID_A_DROP);
            assert!(is_amid_a_drop && Instant::now() < deadline, "{arguments:?}: {output:?}");
        }
    }

    /// Files of a table on a node.
    fn files(&self, node: &Node, table: &str) -> usize {
        let stats =
            self.run(node, &["tablestats", &format!("{}.{table}", self.place.options.keyspace)]);
        let line = stats.lines().find_map(|line| line.trim().strip_prefix("SSTable count: "));
        line.unwrap_or_else(|| panic!("no count in:\n{stats}")).trim().parse().expect("a number")
    }

    /// Makes several files of each table, which nothing merges before its time.
    fn fill(&self) {
        let keyspace = &self.place.options.keyspace;
        let session = self.place.cql().session_for_tests();

        for table in ["tile_table", "key_table", "daily_count_table"] {
            self.run(&self.nodes()[0], &["disableautocompaction", keyspace, table]);
        }
        let day_us = 86_400_000_000_i64;

        for flush in 0..FLUSHES as i64 {
            // The rows of two flushes lie two months apart, so that they belong to different
            // windows.
            let stamp = 1_700_000_000_000_000 + flush * 60 * day_us;
            for statement in [
                format!(
                    "UPDATE tile_table USING TIMESTAMP {stamp} SET tiles[1] = 0x01 WHERE key = 'a' AND period = 1"
                ),
                format!("INSERT INTO key_table (counter, shard, key) VALUES (1, 0, 'k{flush}')"),
                format!(
                    "INSERT INTO daily_count_table (key, daily_timestamp, log_partition, count)
                     VALUES ('a', {}, 0, 1) USING TIMESTAMP {stamp}",
                    stamp / 1_000
                ),
            ] {
                self.place.block_on(session.query_unpaged(statement, ())).expect("written");
            }

            for node in self.nodes() {
                self.run(&node, &["flush", keyspace]);
            }
        }
    }
}

#[test]
fn many_files_become_one() {
    let Some(ground) = Ground::new() else { return };
    ground.fill();

    let nodes = ground.nodes();
    assert!(!nodes.is_empty() && nodes.iter().all(|node| node.rack.contains('/')), "{nodes:?}");

    let node = &nodes[0];
    let files = |table| ground.files(node, table);
    for table in ["tile_table", "key_table", "daily_count_table"] {
        assert_eq!(files(table), FLUSHES, "{table} before");
    }

    let compact =
        |tables| ground.place.block_on(ground.compactor(tables).compact(node)).expect("compacted");
    compact(CompactionTables::Auto);
    assert_eq!((files("tile_table"), files("key_table")), (1, 1));

    // Cassandra would put all windows into one file.
    assert_eq!(files("daily_count_table"), FLUSHES, "windows are left alone");
    compact(CompactionTables::All);
    assert_eq!(files("daily_count_table"), 1);

    assert_eq!(
        ground.place.block_on(ground.compactor(CompactionTables::All).progress(node)),
        Ok(None)
    );
}

/// A compaction that is slowed down is given up and stopped: the node does no more of it, and its
/// files are as before.
#[test]
fn a_compaction_is_observed_and_stopped() {
    let Some(ground) = Ground::new() else { return };
    let node = &ground.nodes()[0];
    let keyspace = &ground.place.options.keyspace;
    ground.run(node, &["disableautocompaction", keyspace, "tile_table"]);

    let session = ground.place.cql().session_for_tests();
    for flush in 0..2 {
        ground.place.block_on(async {
            let statement = "UPDATE tile_table SET tiles[1] = ? WHERE key = ? AND period = 1";
            let prepared = session.prepare(statement).await.expect("prepared");

            for row in 0..SLOW_ROWS {
                // What cannot be packed takes the room that it takes.
                let blob: Vec<u8> = (0..256 << 10).map(|_| rand::random()).collect();
                session
                    .execute_unpaged(&prepared, (blob, format!("{flush}-{row}")))
                    .await
                    .expect("written");
            }
        });
        ground.run(node, &["flush", keyspace]);
    }

    let files = ground.files(node, "tile_table");
    assert!(files > 1, "{files}");

    let before = ground.run(node, &["getcompactionthroughput"]);
    let throughput =
        before.split_whitespace().find_map(|word| word.parse::<f64>().ok()).expect("a number")
            as u64;
    ground.run(node, &["setcompactionthroughput", "1"]);

    let compactor = ground.compactor(CompactionTables::Auto);
    let outcome = ground.place.block_on(async {
        let deadline = Instant::now() + PATIENCE;
        let seen = async {
            loop {
                match compactor.progress(node).await {
                    Ok(Some(progress)) if progress.total > 8 << 20 => return Ok(progress),
                    _ if Instant::now() > deadline => return Err("no progress was seen".to_owned()),
                    _ => {}
                }
            }
        };

        let seen = tokio::select! {
            seen = seen => seen,
            compacted = compactor.compact(node) => Err(format!("it ended by itself: {compacted:?}")),
        };
        let stopped = compactor.stop(node).await;
        (seen, stopped, compactor.progress(node).await)
    });

    ground.run(node, &["setcompactionthroughput", &throughput.to_string()]);
    let (seen, stopped, after) = outcome;
    let seen = seen.expect("progress");
    assert!(seen.done < seen.total && seen.unit == "bytes", "{seen:?}");
    assert_eq!((stopped, after), (Ok(()), Ok(None)));
    assert_eq!(ground.files(node, "tile_table"), files);
}

#[test]
fn failures_are_reported() {
    let Some(ground) = Ground::new() else { return };
    let node = &ground.nodes()[0];
    let failure = |command: &[&str]| {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        let options = CompactionOptions {
            command,
            way: CompactionWay::Nodetool,
            ..CompactionOptions::default()
        };

        let compactor = NodeCompactor::new(ground.place.cql(), options);
        ground.place.block_on(compactor.compact(node)).unwrap_err().to_string()
    };

    let absent = failure(&["/nowhere/nodetool"]);
    assert!(
        absent.contains("/nowhere/nodetool cannot be run") && absent.contains("compaction_command"),
        "{absent}"
    );
    assert!(failure(&[]).contains("names no program"));

    let refused =
        failure(&["sh", "-c", "echo nodetool: Failed to connect to $0; exit 1", "{host}"]);
    assert!(
        refused.ends_with(&format!("nodetool: Failed to connect to {}", node.name)),
        "{refused}"
    );
}

/// Dropping a compaction ends the command and every process that it started.
#[test]
fn a_command_that_is_given_up_leaves_no_process() {
    let Some(ground) = Ground::new() else { return };
    let folder = std::env::temp_dir().join(format!("raingauge-{}", ground.place.options.keyspace));
    std::fs::create_dir_all(&folder).unwrap();

    // A script whose child would outlive it, as nodetool is one.
    let script = format!(
        "sleep 600 & echo $! > {0}/pid.new; mv {0}/pid.new {0}/pid; wait",
        folder.display()
    );
    let options = CompactionOptions {
        command: ["sh", "-c", &script].map(str::to_owned).to_vec(),
        ..CompactionOptions::default()
    };
    let compactor = NodeCompactor::new(ground.place.cql(), options);
    let node = &ground.nodes()[0];
    let pid_file = folder.join("pid");

    let deadline = Instant::now() + PATIENCE;
    let wait_until = |done: &dyn Fn() -> bool| {
        while !done() {
            assert!(Instant::now() < deadline, "waited in vain");
            std::thread::sleep(Duration::from_millis(5));
        }
    };

    ground.place.block_on(async {
        tokio::select! {
            compacted = compactor.compact(node) => panic!("it ended by itself: {compacted:?}"),
            () = async { while !pid_file.exists() { tokio::task::yield_now().await } } => {}
        }
    });
    let process = format!("/proc/{}", std::fs::read_to_string(&pid_file).unwrap().trim());
    let is_gone = || {
        let stat = std::fs::read_to_string(format!("{process}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    wait_until(&is_gone);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A keyspace in capitals is the same keyspace.
#[test]
fn the_keyspace_is_known_by_its_name_on_the_server() {
    let Some(ground) = Ground::new() else { return };
    let mut options = ground.place.options.clone();
    options.keyspace = options.keyspace.to_uppercase();
    ground.place.block_on(migrate(&options, &layout())).expect("nothing to do");
    let cql = ground.place.block_on(cql::Cluster::connect(options)).expect("connected");
    let command = ground.command.clone();
    let compactor =
        NodeCompactor::new(cql, CompactionOptions { command, ..CompactionOptions::default() });
    ground.place.block_on(compactor.compact(&ground.nodes()[0])).expect("compacted");
}

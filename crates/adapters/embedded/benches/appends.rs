//! What it takes to append to the log durably, one append after the other.
//!
//! `cargo bench -p raingauge-embedded --bench appends`; `RAINGAUGE_BENCH_FOLDER=/path` sets where
//! the files lie, `RAINGAUGE_BENCH_APPENDS=4000` how many appends each row makes.
//!
//! Beside the event log stand two bare files: one that grows with every append, and one that is as
//! long as it will be from the start, with zeros where nothing was written yet.

#[path = "books/processor.rs"]
mod processor;

use processor::processor_time;
use raingauge_core::event::Event;
use raingauge_embedded::{LogOptions, SegmentLog};
use raingauge_ports::clock::SystemClock;
use raingauge_ports::log::{Batch, EventSink};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of an append.
const LENS: [usize; 3] = [1_000, 8_000, 60_000];

fn main() {
    let appends = std::env::var("RAINGAUGE_BENCH_APPENDS").ok();
    let appends = appends.and_then(|text| text.parse().ok()).unwrap_or(4_000);
    let folder =
        std::env::var_os("RAINGAUGE_BENCH_FOLDER").map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(folder).expect("a folder");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");

    println!(
        "{:>6}  {:<20} {:>9} {:>9} {:>9} {:>15}",
        "bytes", "", "mean", "p50", "p99", "processor time"
    );
    for len in LENS {
        let file = bare(folder.path(), 0);
        measure(len, "a file that grows", appends, |number| append(&file, len, number));
        let file = bare(folder.path(), len * appends);
        measure(len, "a file of zeros", appends, |number| append(&file, len, number));

        let path = folder.path().join(format!("log-{len}"));
        let log = SegmentLog::open(&path, LogOptions::default(), Arc::new(SystemClock));
        let log = log.expect("a log");
        measure(len, "the event log", appends, |number| {
            let id = number.to_string();
            let data = format!("\"{:0len$}\"", 0);
            let mut batch = Batch::default();
            batch.push(&Event { id: id.into(), ..Event::of_data("t", 1_000, &data) });
            runtime.block_on(log.append(batch)).expect("appended");
        });
    }
}

fn bare(folder: &Path, len: usize) -> File {
    let file = File::create(folder.join("bare")).expect("a file");
    file.write_all_at(&vec![0; len], 0).expect("written");
    file.sync_all().expect("synced");
    file
}

fn append(file: &File, len: usize, number: usize) {
    file.write_all_at(&vec![1; len], (number * len) as u64).expect("written");
    file.sync_data().expect("synced");
}

fn measure(len: usize, what: &str, appends: usize, mut append: impl FnMut(usize)) {
    let processor = processor_time();
    let mut times: Vec<Duration> = Vec::with_capacity(appends);
    for number in 0..appends {
        let began = Instant::now();
        append(number);
        times.push(began.elapsed());
    }
    let processor = (processor_time() - processor) / appends as u32;
    let mean = times.iter().sum::<Duration>() / appends as u32;
    times.sort_unstable();
    let p50 = times[appends / 2];
    let p99 = times[appends * 99 / 100];
    println!("{len:>6}  {what:<20} {mean:>9.0?} {p50:>9.0?} {p99:>9.0?} {processor:>15.0?}");
}

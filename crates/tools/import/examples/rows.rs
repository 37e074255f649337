//! Reads all rows of a file and says how fast: `cargo run --release -p raingauge-import --example
//! rows -- FILE MAPPING.toml [TIMES]`.

use raingauge_import::{Mapping, Rows};
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, mapping, times @ ..] = &arguments[..] else {
        return Err("usage: rows FILE MAPPING.toml [TIMES]".into());
    };
    let mapping = Mapping::load(Path::new(mapping))?;
    let times: u32 = times.first().map_or(Ok(1), |text| text.parse())?;
    for _ in 0..times {
        let started = Instant::now();
        let mut rows = Rows::open(Path::new(file), &mapping)?;
        let mut events = 0u64;
        let mut rejected = 0u64;
        let mut data_len = 0usize;

        while let Some(row) = rows.next_row()? {
            match row.event {
                Ok(event) => {
                    events += 1;
                    data_len += event.data.len();
                }
                Err(_) => rejected += 1,
            }
        }

        let elapsed = started.elapsed();
        println!(
            "{events} events, {rejected} rejected, {data_len} bytes of data in {:.1} ms: {:.0} rows/s",
            elapsed.as_secs_f64() * 1_000.0,
            rows.rows() as f64 / elapsed.as_secs_f64()
        );
    }

    Ok(())
}

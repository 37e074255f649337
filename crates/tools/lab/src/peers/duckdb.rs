//! DuckDB: events are appended in large batches to a table without keys or indexes, as its
//! documentation recommends for loading. The history is ordered by key and time, so that min-max
//! indexes skip most blocks.
//!
//! A primary key would reject a repeated id, at a cost that its documentation warns about; without
//! one, a repeated event is counted again.

use super::client::Mode;
use super::embedded::{Dialect, keys, within};
use super::question::Question;
use crate::workload::key_of;

const SCHEMA: &str =
    "CREATE TABLE events (key VARCHAR NOT NULL, time_s BIGINT NOT NULL, id UBIGINT NOT NULL)";
/// Space for a key in a row of fixed width, which the other side converts to Arrow without a loop.
const KEY_BYTES: usize = 24;

pub enum DuckDb {}

impl Dialect for DuckDb {
    const TITLE: &'static str = "DuckDB";
    const HOW: &'static str = "a table of events, counted when asked";
    const SCHEMA: &'static [&'static str] = &[SCHEMA];
    const SETTLE: &'static [&'static str] = &["CHECKPOINT"];
    const TOTAL: &'static str = "SELECT count(*) FROM events WHERE time_s >=";

    fn mode() -> Mode {
        Mode::new("INSERT from Arrow", 50_000, 2).durable()
    }

    fn sql(question: &Question) -> String {
        match question {
            Question::Counts(ranges) if ranges.len() == 1 => {
                format!("SELECT count(*) FROM events WHERE {}", within(&ranges[0], "time_s"))
            }
            Question::Counts(ranges) => {
                let counts: Vec<String> = ranges
                    .iter()
                    .map(|range| format!("count(*) FILTER ({})", within(range, "time_s")))
                    .collect();
                format!("SELECT {} FROM events WHERE key IN ({})", counts.join(", "), keys(ranges))
            }
            Question::Series(days, _) => format!(
                "SELECT time_s // 86400 * 86400 AS day, count(*) FROM events
                 WHERE key = '{}' AND time_s >= {} AND time_s < {} GROUP BY day",
                key_of(days.city),
                days.from_s,
                days.to_s
            ),
        }
    }

    fn render(bytes: &mut Vec<u8>, key: &str, time_s: i64, id: u64) {
        let mut room = [0; KEY_BYTES];
        let length = key.len().min(KEY_BYTES);
        room[..length].copy_from_slice(&key.as_bytes()[..length]);
        bytes.extend_from_slice(&room);
        bytes.extend_from_slice(&time_s.to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::question::{Kind, questions};
    use crate::workload::{Settings, Workload};

    #[test]
    fn rows_have_one_width() {
        let mut bytes = Vec::new();
        DuckDb::render(&mut bytes, "abc", 1, 2);
        assert_eq!(bytes.len(), KEY_BYTES + 16);
        assert_eq!((&bytes[..4], bytes[24], bytes[32]), (&b"abc\0"[..], 1, 2));
    }

    #[test]
    fn a_batch_is_one_statement() {
        let workload = Workload::new(Settings { keys: 20, history: 500, seed: 1 }, 1_795_000_000);
        assert_eq!(
            DuckDb::sql(&questions(&workload, Kind::Batch)[0])
                .matches("FILTER (key = 'lab:city:")
                .count(),
            10
        );
        assert!(DuckDb::sql(&questions(&workload, Kind::Series)[0]).contains("GROUP BY day"));
    }
}

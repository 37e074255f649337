//! How others count in CQL.

use crate::load::{Event, Place};
use futures_util::{StreamExt, stream};
use raingauge_core::bucket::Granularity;
use raingauge_cql::ReadPlan;
use scylla::value::CqlTimestamp;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Requests under way at once, as many as the writer has.
const IN_FLIGHT: usize = 128;

/// Counter columns: three increments for each event. A repeated one would count twice.
pub fn counter_columns(place: &Place, events: &[Event]) -> Duration {
    let keyspace = &place.options.keyspace;
    for granularity in Granularity::ALL {
        place.run(&format!(
            "CREATE TABLE IF NOT EXISTS {keyspace}.counter_{} (key text, time timestamp, count counter, PRIMARY KEY (key, time))",
            granularity.name()
        ));
    }

    let session = place.cql(ReadPlan::Tiles).session_for_tests();
    place.runtime.block_on(async {
        let mut statements = Vec::new();
        for granularity in Granularity::ALL {
            let text = format!(
                "UPDATE {keyspace}.counter_{} SET count = count + ? WHERE key = ? AND time = ?",
                granularity.name()
            );
            statements.push(session.prepare(text).await.expect("prepared"));
        }

        let session = &session;
        let statements = &statements;
        let began = Instant::now();
        let updates = events
            .iter()
            .flat_map(|event| Granularity::ALL.map(|granularity| (event, granularity)));
        let updates = updates.map(|(event, granularity)| async move {
            let time = CqlTimestamp(granularity.floor(event.time_s) * 1_000);
            let values = (scylla::value::Counter(event.value), &event.key, time);
            session
                .execute_unpaged(&statements[granularity as usize], values)
                .await
                .expect("counted");
        });

        stream::iter(updates).buffer_unordered(IN_FLIGHT).collect::<Vec<()>>().await;
        began.elapsed()
    })
}

/// One upsert for each event and table: the absolute count, which the writer knows.
pub fn upsert_per_event(place: &Place, events: &[Event]) -> Duration {
    let session = place.cql(ReadPlan::Tiles).session_for_tests();
    place.runtime.block_on(async {
        let mut statements = Vec::new();
        for (table, column) in [
            ("minutely_count_table", "minutely_timestamp"),
            ("hourly_count_table", "hourly_timestamp"),
            ("daily_count_table", "daily_timestamp"),
        ] {
            let text = format!(
                "INSERT INTO {table} (key, {column}, log_partition, count) VALUES (?, ?, -2, ?)"
            );
            statements.push(session.prepare(text).await.expect("prepared"));
        }

        let session = &session;
        let statements = &statements;
        let mut counts = HashMap::<(&str, Granularity, i64), i64>::new();
        let began = Instant::now();
        let upserts = events
            .iter()
            .flat_map(|event| Granularity::ALL.map(|granularity| (event, granularity)));
        let upserts = upserts.map(|(event, granularity)| {
            let time_s = granularity.floor(event.time_s);
            let count = counts.entry((&event.key, granularity, time_s)).or_default();
            *count += event.value;

            let values = (&event.key, CqlTimestamp(time_s * 1_000), *count);
            async move {
                session
                    .execute_unpaged(&statements[granularity as usize], values)
                    .await
                    .expect("written");
            }
        });

        stream::iter(upserts).buffer_unordered(IN_FLIGHT).collect::<Vec<()>>().await;
        began.elapsed()
    })
}

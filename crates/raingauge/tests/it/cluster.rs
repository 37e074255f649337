//! The engines of a cluster under the real binary: writers, readers and portals as processes of
//! their own over Cassandra, Kafka and MariaDB.
//!
//! The servers are those named by RAINGAUGE_TEST_CQL, RAINGAUGE_TEST_KAFKA and
//! RAINGAUGE_TEST_MYSQL; `make test` starts them, and without them each test reports that it was
//! skipped. A test has a keyspace, topics, a consumer group and a database of its own; tests that
//! do not disturb others share one set of processes.

mod database_away;
mod demo;
mod earlier;
mod example;
mod faults;
mod foreign;
mod history;
mod lab;
mod live;
mod load;
mod lost_log;
mod lost_writers;
mod place;
mod points;
mod points_killed;
mod portal;
mod roles;
mod rollout;
mod start_order;
mod takeover;
mod watching;

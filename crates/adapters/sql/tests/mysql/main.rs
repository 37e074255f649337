//! The catalog on a real server, which `RAINGAUGE_TEST_MYSQL` names: `make test` starts one. The
//! user in that address must be allowed to make databases and users. Servers that a test stops are
//! its own, made with MariaDB's programs, or with the `mysqld` that `RAINGAUGE_TEST_MYSQLD` names:
//! `scripts/services run temp --mysql -- cargo test -p raingauge-sql --test mysql`.

mod changes;
#[path = "../histories/mod.rs"]
mod histories;
mod loss;
mod points;
#[path = "../points/mod.rs"]
mod points_load;
mod refusals;
mod schema;
mod server;
mod support;
mod tls;
mod verify;

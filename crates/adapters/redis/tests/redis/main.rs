//! The adapter on real servers. Those that a test harms it starts itself; `RAINGAUGE_TEST_REDIS`
//! and `RAINGAUGE_TEST_REDIS_CLUSTER` name others that keep the contract too.

mod cluster;
mod faults;
mod server;
mod single;
mod tls;
